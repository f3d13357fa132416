"""Random workloads through the shared engine, against plain Spark: `make fuzz`, or `python -m tools.fuzz`.

Each seed is one workload of up to 20 queries over a table of its own. tests/harness/fuzz.py says in which ways it
is run. A difference is shown at once, with the command that repeats it; the table at the end counts everything.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated, TextIO

import typer
from pyspark.sql import SparkSession
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from tests.harness.fuzz import SETTINGS, Report, fuzz

from headrace.runtime.session import start_session

console = Console(soft_wrap=True, highlight=False)


def main(
    workloads: Annotated[int, typer.Option(min=1, help="how many workloads")] = 500,
    first_seed: Annotated[
        int | None, typer.Option(help="the first seed; random, and printed, if left out")
    ] = None,
    max_queries: Annotated[int, typer.Option(min=1, help="queries of a workload, at most")] = 20,
    jobs: Annotated[int, typer.Option(min=1, help="processes, each with a Spark of its own")] = 1,
    record: Annotated[Path | None, typer.Option(help="write a line of JSON for each workload")] = None,
) -> None:
    """Compare the answers of random workloads with plain Spark's."""
    first = random.SystemRandom().randrange(10**9) if first_seed is None else first_seed
    console.print(f"seeds {first} to {first + workloads - 1}, up to {max_queries} queries each")
    lines = record.open("w") if record else None
    started = time.monotonic()
    reports: list[Report] = []
    with _progress() as progress:
        bar = progress.add_task("starting Spark", total=workloads)
        for report in _reports(range(first, first + workloads), max_queries, jobs):
            reports.append(report)
            _show(report, max_queries)
            _record(report, max_queries, lines)
            bad = sum(len(done.differences) for done in reports)
            progress.update(bar, advance=1, description=f"seed {report.seed}, {bad} differences")
    console.print(_summary(reports, time.monotonic() - started))
    if any(report.differences for report in reports):
        raise typer.Exit(1)


def _progress() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)


def _reports(seeds: range, max_queries: int, jobs: int) -> Iterator[Report]:
    """The reports, as they come."""
    with tempfile.TemporaryDirectory(prefix="headrace-fuzz-") as folder:
        if jobs == 1:
            spark = _session()
            for seed in seeds:
                yield fuzz(spark, seed, max_queries, Path(folder))
            return
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            for done in as_completed([pool.submit(_fuzz_in_process, seed, max_queries, folder) for seed in seeds]):
                yield done.result()


def _session() -> SparkSession:
    return start_session("headrace-fuzz", cores=2, conf=SETTINGS)


def _fuzz_in_process(seed: int, max_queries: int, folder: str) -> Report:
    return fuzz(_session(), seed, max_queries, Path(folder))  # the session of a process is there after its first


def _show(report: Report, max_queries: int) -> None:
    if not report.differences:
        return
    for difference in report.differences:
        console.print(f"DIFFERENCE {difference}", markup=False)
    console.print(f"the workload of seed {report.seed}:")
    for name, text in report.texts.items():
        console.print(f"  {name}: {text}", markup=False)
    console.print(
        f"again: python -m tools.fuzz --workloads 1 --first-seed {report.seed} --max-queries {max_queries}\n"
    )


def _record(report: Report, max_queries: int, lines: TextIO | None) -> None:
    if lines is not None:
        print(json.dumps(report.as_json() | {"max_queries": max_queries}), file=lines, flush=True)


def _summary(reports: list[Report], seconds: float) -> Table:
    beside: Counter[str] = sum((report.beside for report in reports), Counter())
    table = Table("", "", show_header=False)
    table.add_row("workloads", str(len(reports)))
    table.add_row("queries", str(sum(len(report.texts) for report in reports)))
    table.add_row("shared", str(sum(report.shared for report in reports)))
    table.add_row("beside, by plain Spark", str(beside.total()))
    for reason, count in beside.most_common():
        table.add_row(f"  {reason}", str(count))
    table.add_row("fail in plain Spark", str(sum(report.refused for report in reports)))
    table.add_row("differences", str(sum(len(report.differences) for report in reports)))
    table.add_row("seconds per workload", f"{seconds / len(reports):.2f}")
    return table


if __name__ == "__main__":
    typer.run(main)
