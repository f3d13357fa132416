"""`headrace stream`, and what one does with its run: `ctl`, `top` and `log`."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from headrace.cli.console import Debug, err, out, spark_session, wait_for_kernels
from headrace.cli.inputs import load_inputs
from headrace.cli.run import MEMORY_MB, Cores, Memory, Name, Queries, StreamPath, Time, TimeZone
from headrace.errors import LogError, RunError
from headrace.runtime.live.control import ask
from headrace.runtime.live.files import Folder
from headrace.runtime.live.log import Commit, PartialLog
from headrace.runtime.live.progress import FILE
from headrace.runtime.live.sinks import ConsoleSink, ParquetSink, Sink
from headrace.runtime.live.versions import Versions

Run = Annotated[Path, typer.Argument(help="The run: its checkpoint folder.")]

ctl = typer.Typer(help="Change the queries of a run, or list them.", no_args_is_help=True)
log = typer.Typer(help="Look at the partial log of a run.", no_args_is_help=True)

_table = partial(Table, box=None, pad_edge=False)


def stream(
    queries: Queries,
    stream: StreamPath,
    checkpoint: Annotated[Path, typer.Option("--checkpoint", help="A folder for what the run has to remember.")],
    time_column: Time = None,
    name: Name = None,
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="Write windows below this folder, one folder per query.")
    ] = None,
    console: Annotated[bool, typer.Option("--console", help="Print the first rows of each window.")] = False,
    lateness: Annotated[str, typer.Option(help="How late a record may come.")] = "0 seconds",
    trigger: Annotated[
        str, typer.Option(help="How often to look for new files, or 'available now': until there are no more.")
    ] = "1 second",
    retain: Annotated[
        str | None, typer.Option(help="How long partials of past windows are kept, for queries that join.")
    ] = None,
    ahead: Annotated[
        str, typer.Option(help="A record that is further ahead of all others, and of the clock, is set aside.")
    ] = "1 day",
    dead_letters: Annotated[
        Path | None, typer.Option(help="A folder for records that did not count, with the reason.")
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Follow the folder of queries: files that come and go.")
    ] = False,
    metrics_port: Annotated[int | None, typer.Option(help="Where Prometheus finds metrics.")] = None,
    files_per_batch: Annotated[int | None, typer.Option(min=1, help="New files that are read at a time.")] = None,
    cores: Cores = None,
    time_zone: TimeZone = "UTC",
    memory: Memory = MEMORY_MB,
    debug: Debug = False,
) -> None:
    """Answer queries over a growing folder of Parquet: each window once, when it is complete.

    Example: headrace stream examples/netflow/queries --stream feed --checkpoint run --out windows
    """
    if watch and not queries.is_dir():
        raise typer.BadParameter("is for a folder of *.sql files", param_hint="--watch")
    workload, source = load_inputs(queries, stream, name, time_column)
    sinks: list[Sink] = [ParquetSink(str(out_folder))] if out_folder is not None else []
    if console or not sinks:
        sinks.append(ConsoleSink())
    with spark_session(cores, time_zone) as spark:
        wait_for_kernels()
        live = workload.start(
            replace(source, lateness=lateness),
            sink=sinks,
            checkpoint=str(checkpoint),
            spark=spark,
            trigger=trigger,
            retain=retain,
            ahead=ahead,
            files_per_batch=files_per_batch,
            dead_letters=str(dead_letters) if dead_letters is not None else None,
            watch=queries if watch else None,
            metrics_port=metrics_port,
            budget=memory << 20,
        )
        err.print(f"{len(workload)} queries are running; 'headrace top {checkpoint}' shows how, Ctrl-C ends it")
        try:
            live.await_termination()
        except KeyboardInterrupt:
            err.print("ending after this micro-batch ...")
        finally:
            live.stop()
        progress = live.progress()
        if progress is not None:
            err.print(f"{progress.total_records:,} records in {progress.batch + 1} micro-batches")


@ctl.command("add")
def add(
    run: Run,
    name: Annotated[str, typer.Argument(help="The query's name.")],
    query: Annotated[str, typer.Argument(help="Its text, or a file that has it.")],
    backfill: Annotated[
        bool, typer.Option("--backfill", help="Begin with the first window whose slices are all kept.")
    ] = False,
) -> None:
    """Have one more query."""
    file = Path(query)
    text = file.read_text(encoding="utf-8-sig") if query.endswith(".sql") and file.is_file() else query
    ask(_folder(run), {"do": "add", "name": name, "text": text, "backfill": backfill})
    err.print(f"'{name}' joins with the next micro-batch")


@ctl.command("remove")
def remove(run: Run, name: Annotated[str, typer.Argument(help="The query's name.")]) -> None:
    """Let a query go."""
    ask(_folder(run), {"do": "remove", "name": name})
    err.print(f"'{name}' leaves with the next micro-batch")


@ctl.command("list")
def list_queries(run: Run) -> None:
    """List the queries, each on a line."""
    for name, text in sorted(Versions(_folder(run) / "versions").texts().items()):
        typer.echo(f"{name}\t{' '.join(text.split())}")


@log.command("inspect")
def inspect(
    run: Run, as_json: Annotated[bool, typer.Option("--json", help="Print the last commit as JSON.")] = False
) -> None:
    """Show what the last commit says."""
    commit = PartialLog(_folder(run)).latest()
    if commit is None:
        raise LogError(f"'{run}' has no commit yet")
    if as_json:
        typer.echo(json.loads(commit.to_bytes())["body"])
        return
    _show_commit(commit)


@log.command("verify")
def verify(run: Run) -> None:
    """Read all partials that matter and check their checksums; exits with 1 where something is wrong."""
    log = PartialLog(_folder(run))
    problems = list(log.verify())
    for problem in problems:
        err.print(problem, markup=False)
    if problems:
        raise LogError(f"{len(problems)} problems in the log of '{run}'")
    commit = log.latest()
    entries = commit.entries if commit is not None else ()
    err.print(
        f"{len(entries):,} partials, {sum(entry.rows for entry in entries):,} rows: all as they were written"
    )


def top(
    run: Run,
    once: Annotated[bool, typer.Option("--once", help="Print what there is, and end.")] = False,
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between two looks.")] = 1.0,
) -> None:
    """Show what a run is doing: rates, nodes and queries."""
    if once:
        out.print(_picture(_folder(run)))
    else:
        show_run(run, every)


def show_run(run: Path, every: float, until: float | None = None) -> None:
    """What a run is doing, again and again until a moment of the monotonic clock, or until Ctrl-C.

    Where there is no terminal, each look is printed.
    """
    folder = _folder(run)
    if not out.is_terminal:
        while until is not None and time.monotonic() < until:
            out.print(_picture(folder))
            time.sleep(max(every, 5.0))
        out.print(_picture(folder))
        return
    with Live(_picture(folder), console=out, screen=True, auto_refresh=False) as live:
        try:
            while until is None or time.monotonic() < until:
                time.sleep(every)
                live.update(_picture(folder), refresh=True)
        except KeyboardInterrupt:
            return


def _folder(run: Path) -> Folder:
    if not run.is_dir():
        raise RunError(f"there is no folder '{run}'")
    return Folder(str(run))


def _progress(folder: Folder) -> list[dict[str, Any]]:
    if not folder.has(FILE):
        raise RunError(f"'{folder.name}' has not finished a micro-batch yet")
    found: list[dict[str, Any]] = json.loads(folder.read(FILE))
    return found


def _picture(folder: Folder) -> Group:
    recent = _progress(folder)
    last = recent[-1]
    seconds = sum(each["seconds"] for each in recent)
    rate = sum(each["records"] for each in recent) / seconds if seconds else 0.0
    head = Text(
        f"{last['run']}   {last['at'][:19]}   micro-batch {last['batch']:,}   {last['total_records']:,} records\n"
        f"{rate:,.0f} records/s over {len(recent)} micro-batches, the last in {last['seconds']:.2f} s   "
        f"watermark {last['watermark'][:19]}   version {last['version']}\n"
        f"log: {last['log_partials']:,} partials, {last['log_rows']:,} rows, {last['log_bytes'] / 1e6:,.1f} MB   "
        f"set aside: {last['no_time']:,} without a time, {last['ahead']:,} too far ahead\n"
    )
    nodes = _table("node", "rows in", "rows out", "reduction", "seconds")
    for node in last["nodes"]:
        reduction = node["rows_in"] / node["rows_out"] if node["rows_out"] else 0.0
        shown = f"{node['rows_in']:,}", f"{node['rows_out']:,}", f"{reduction:,.1f}x", f"{node['seconds']:.2f}"
        nodes.add_row(node["node"], *shown)
    queries = _table("query", "rows given", "late")
    given: dict[str, int] = {}
    for each in recent:
        for query, rows in each["given"].items():
            given[query] = given.get(query, 0) + rows
    for query in sorted({*given, *last["late"]}):
        queries.add_row(query, f"{given.get(query, 0):,}", f"{last['late'].get(query, 0):,}")
    return Group(head, nodes, Text(""), queries)


def _show_commit(commit: Commit) -> None:
    out.print(f"run {commit.run}, micro-batch {commit.batch}, plan version {commit.version}")
    out.print(f"watermark {commit.watermark_us} us, latest record {commit.latest_us} us")
    counts = commit.counts
    out.print(f"{counts.records:,} records, {counts.no_time:,} without a time, {counts.ahead:,} too far ahead")
    entries = _table("version", "node", "slices", "partials", "rows", "MB")
    lots: dict[tuple[int, str], list[Any]] = {}
    for entry in commit.entries:
        lots.setdefault((entry.version, entry.node), []).append(entry)
    for (version, node), own in sorted(lots.items()):
        numbers = f"{len({entry.slice for entry in own}):,}", f"{len(own):,}", f"{sum(e.rows for e in own):,}"
        entries.add_row(str(version), node, *numbers, f"{sum(e.size for e in own) / 1e6:.1f}")
    out.print(entries)
    queries = _table("query", "joined with version", "given until (us)", "late")
    for name, standing in sorted(commit.queries.items()):
        queries.add_row(name, str(standing.version), str(standing.until_us), f"{counts.late.get(name, 0):,}")
    out.print(queries)
