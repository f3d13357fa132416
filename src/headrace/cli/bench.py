"""`headrace bench`: one workload by plain Spark, headrace and other engines, answers compared."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from headrace.bench.contest import ENGINES, STREAM_ENGINES, Task, check_installed
from headrace.bench.question import Data, all_keys, read_data
from headrace.bench.report import Growth, Report, write_json
from headrace.bench.sharing import papers
from headrace.bench.workloads import TOPICS, Topic
from headrace.cli.console import Debug, check_known, out, telling, waiting
from headrace.errors import StreamError
from headrace.generate import FlowOptions, TradeOptions, generate_flows, generate_trades
from headrace.machine import core_count

_ROWS = 10_000_000
_ALL = ",".join(ENGINES)
_FLIGHTS = (
    "flights are recorded, not made: give their Parquet with --data (examples/flights says where it is from)"
)


def bench(
    workload: Annotated[
        str,
        typer.Argument(help="netflow, trades, flights, stream, or sharing (the studies of two papers)."),
    ],
    rows: Annotated[
        int | None, typer.Option("--rows", min=1, help=f"How many records to make. [default: {_ROWS:,}]")
    ] = None,
    queries: Annotated[
        int | None,
        typer.Option("--queries", min=1, help="How many queries; beyond the usual ones, more are drawn."),
    ] = None,
    profile: Annotated[
        str | None, typer.Option("--profile", help="netflow: backbone or enterprise. [default: backbone]")
    ] = None,
    engines: Annotated[str, typer.Option("--engines", help="Which take part.")] = _ALL,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="The median of so many counts.")] = 3,
    cores: Annotated[
        int | None, typer.Option("--cores", min=1, help="Cores that all engines are given. [default: all]")
    ] = None,
    data: Annotated[
        Path | None, typer.Option("--data", help="A Parquet file or folder, instead of records made for it.")
    ] = None,
    growth: Annotated[
        bool, typer.Option("--growth", help="headrace alone: time by number of records and of queries.")
    ] = False,
    study: Annotated[
        bool, typer.Option("--study", help="sharing: 16 to 256 queries and Figure 8, not one number of them.")
    ] = False,
    count_only: Annotated[bool, typer.Option("--count", help="sharing: count operations, time nothing.")] = False,
    sets: Annotated[
        int, typer.Option("--sets", min=1, help="sharing: counts are the mean of so many sets of queries.")
    ] = 1,
    seed: Annotated[int, typer.Option("--seed", min=0, help="sharing: another seed draws other queries.")] = 0,
    files_per_batch: Annotated[
        int, typer.Option("--files-per-batch", min=1, help="stream: files that are read at a time.")
    ] = 5,
    seconds: Annotated[
        int, typer.Option("--seconds", min=0, help="stream: how long to measure the time to answers; 0: not.")
    ] = 40,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
    plot_file: Annotated[Path | None, typer.Option("--plot", help="Draw the figures into this PNG.")] = None,
    debug: Debug = False,
) -> None:
    """Time all answers of a workload, each engine in its best form; fails if their answers differ.

    Example: headrace bench netflow --rows 1000000 --json bench.json
    """
    check_known(workload, (*TOPICS, "stream", "sharing"))
    made = [option for option, value in {"--rows": rows, "--profile": profile}.items() if value is not None]
    if data is not None and made:
        message = f"--data is taken whole: leave {' and '.join(made)} out"
        raise typer.BadParameter(message, param_hint="--data")
    if workload != "sharing" and (study or count_only or seed or sets > 1):
        raise typer.BadParameter("only sharing has --study, --count, --sets and --seed")
    if workload == "sharing":
        if profile is not None or growth or plot_file is not None:
            message = "sharing has no --profile, --growth or --plot (benchmarks/sharing_plot.py draws its JSON)"
            raise typer.BadParameter(message)
        with_spark = "spark" in _engines(engines, ENGINES) and not count_only
        check_installed((), plot=False)
        from headrace.cli.sharing import Wanted, bench_sharing  # loads the kernel

        wanted = Wanted(
            rows or (papers.ROWS if count_only or study else _ROWS),
            queries or papers.QUERIES,
            0 if count_only else rounds,
            _limit_cores(cores),
            data,
            study,
            sets,
            seed,
            spark=with_spark,
        )
        bench_sharing(wanted, json_file)
        return
    topic = TOPICS["netflow" if workload == "stream" else workload]
    if profile is not None and topic.name != "netflow":
        raise typer.BadParameter("only netflow has profiles", param_hint="--profile")
    if workload == "stream":
        if growth or plot_file is not None:
            raise typer.BadParameter("stream has no --growth and --plot")
        chosen = _stream_engines(engines)
    else:
        chosen = ("headrace",) if growth else _engines(engines, ENGINES)
    check_installed(chosen, plot=plot_file is not None)
    count = _limit_cores(cores)
    number = queries or topic.usual
    profile = profile or "backbone"
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as scratch:
        prepare = _Preparation(topic, profile, data, rows or _ROWS, Path(scratch))
        if workload == "stream":
            from headrace.cli.bench_stream import bench_stream  # needs psutil

            task = Task(prepare.base(), topic.take(number), count)
            bench_stream(task, chosen, files_per_batch, seconds, Path(scratch), json_file)
            return
        if growth:
            report = _measure_growth(topic, prepare, number, count, rounds)
        else:
            report = _measure(topic, prepare, number, count, rounds, chosen)
    if workload == "netflow" and data is None:
        report = dataclasses.replace(report, profile=profile)
    _print(report)
    if json_file is not None:
        write_json(report, json_file)
    if plot_file is not None:
        from headrace.bench.plot import write_plot  # needs matplotlib

        write_plot(report, plot_file)


class _Preparation:
    """The data of a benchmark, given or made in a scratch folder."""

    def __init__(self, topic: Topic, profile: str, given: Path | None, rows: int, scratch: Path) -> None:
        if given is None and topic.name == "flights":
            raise StreamError(_FLIGHTS)
        self._topic, self._profile, self._given, self._rows, self._scratch = topic, profile, given, rows, scratch

    def base(self) -> Data:
        """The given records, or as many new ones as were asked for."""
        return self._read(self._given) if self._given else self._make(self._rows)

    def sizes(self, base: Data) -> list[Data]:
        """Once, twice and four times as many records; of given data a quarter, the half and all."""
        if not self._given:
            return [base, self._make(2 * self._rows), self._make(4 * self._rows)]
        from headrace.bench.growth import write_first

        parts = [max(1, base.rows // 4), max(1, base.rows // 2)]
        return [*(write_first(base, part, self._scratch / f"{part}.parquet") for part in parts), base]

    def _make(self, rows: int) -> Data:
        folder = self._scratch / str(rows)
        with waiting(f"making {rows:,} records ..."):
            if self._topic.name == "netflow":
                generate_flows(FlowOptions(rows, profile=self._profile), folder)  # type: ignore[arg-type]
            else:
                generate_trades(TradeOptions(rows), folder)
        return self._read(folder)

    def _read(self, path: Path) -> Data:
        data = read_data(path, self._topic.stream, self._topic.time)
        used = {*all_keys(self._topic.questions), self._topic.time}
        if lacking := sorted(used - data.kinds.keys()):
            raise StreamError(f"'{path}' is no stream for {self._topic.name}: it lacks {', '.join(lacking)}")
        return data


def _measure(
    topic: Topic, prepare: _Preparation, number: int, cores: int, rounds: int, engines: tuple[str, ...]
) -> Report:
    from headrace.bench.measure import measure  # needs psutil
    from headrace.runtime.session import open_session

    task = Task(prepare.base(), topic.take(number), cores)
    with_spark = {"spark", "headrace"} & set(engines)
    session = open_session("headrace-bench", cores=cores) if with_spark else nullcontext()
    with session as spark, telling() as tell:
        return measure(topic.name, task, engines, rounds=rounds, spark=spark, tell=tell)


def _measure_growth(topic: Topic, prepare: _Preparation, number: int, cores: int, rounds: int) -> Report:
    from headrace.bench.growth import measure_growth  # needs psutil
    from headrace.runtime.session import open_session

    base = prepare.base()
    sizes = prepare.sizes(base)
    with open_session("headrace-bench", cores=cores) as spark, telling() as tell:
        return measure_growth(
            topic, base, sizes, queries=number, cores=cores, rounds=rounds, spark=spark, tell=tell
        )


def _engines(text: str, known: Sequence[str]) -> tuple[str, ...]:
    """Engines by their names, which are separated by commas."""
    names = tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))
    if not names:
        raise typer.BadParameter("name at least one engine", param_hint="--engines")
    for name in names:
        check_known(name, known, "--engines")
    return names


def _stream_engines(text: str) -> tuple[str, ...]:
    """Those of a stream; Flink, which is in no extra, takes part only where it is named."""
    if text == _ALL:
        return tuple(engine for engine in STREAM_ENGINES if engine != "flink")
    return _engines(text, STREAM_ENGINES)


def _limit_cores(cores: int | None) -> int:
    """Keep this process, and so all that it starts, to the first so many cores (where the system can)."""
    there = core_count()
    if cores is None or cores >= there:
        return there
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    return cores


def _print(report: Report) -> None:
    if report.growth is not None:
        _print_growth(report.growth, report.title)
    else:
        _print_runs(report, report.title)


def _print_runs(report: Report, title: str) -> None:
    table = Table("engine", "variant", title=title, title_justify="left")
    for heading in ("seconds", "x headrace", "rows out", "peak MB"):
        table.add_column(heading, justify="right")
    own = report.run_of("headrace", "run")
    for run in report.runs:
        ratio = f"{run.seconds / own.seconds:.2f}" if own else ""
        table.add_row(
            run.engine, run.variant, f"{run.seconds:.2f}", ratio, f"{run.rows_out:,}", f"{run.peak_rss_mb:,.0f}"
        )
    out.print(table)
    peer = report.best_peer
    meanings = {
        "spark": "plain Spark takes {:.2f} times as long as headrace",
        "spark_anew": "plain Spark takes {:.2f} times as long as headrace with a plan that is made anew",
        "spark_read": "plain Spark takes {:.2f} times as long as headrace and reading its answers",
        "best_peer": f"{peer.engine} ({peer.variant}) takes {{:.2f}} times as long as headrace" if peer else "",
    }
    for name, times in report.ratios.items():
        out.print(meanings[name].format(times))
    if report.spark_timed < report.queries and report.run_of("spark", "queries"):
        out.print(f"plain Spark was timed on {report.spark_timed} of the queries, and its time extrapolated")


def _print_growth(growth: Growth, title: str) -> None:
    out.print(title)
    rows = Table(title="by records", title_justify="left")
    for heading in ("records", "seconds", "records/s", "largest worker MB"):
        rows.add_column(heading, justify="right")
    for point in growth.rows:
        rate = f"{point.rows / point.seconds:,.0f}"
        rows.add_row(f"{point.rows:,}", f"{point.seconds:.2f}", rate, f"{point.peak_worker_mb:,.0f}")
    out.print(rows)
    most = max(count.queries for count in growth.queries)
    titles = {"by queries, the first ones": growth.queries, f"spread over the {most}": growth.spread}
    for name, counts in titles.items():
        queries = Table(title=name, title_justify="left")
        for heading in ("queries", "seconds", "ms/query"):
            queries.add_column(heading, justify="right")
        for count in counts:
            each = f"{count.seconds / count.queries * 1000:,.1f}"
            queries.add_row(str(count.queries), f"{count.seconds:.2f}", each)
        out.print(queries)
