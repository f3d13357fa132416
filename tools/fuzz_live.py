"""Random workloads over disordered streams against the rule written out: `python -m tools.fuzz_live`.

Each seed is one workload over a stream of its own; tests/harness/live.py says how it is run and what is expected.
With --spark, Spark's own streaming queries run over the same files too, and every row in which they differ must
come from a record that the two rules of lateness treat differently.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Annotated

import typer
from pyspark.sql import SparkSession
from rich.console import Console
from tests.harness.fuzz import SETTINGS
from tests.harness.live import LiveReport, fuzz_live

from headrace.runtime.session import start_session

console = Console(soft_wrap=True, highlight=False)


def main(
    workloads: Annotated[int, typer.Option(min=1, help="how many workloads")] = 100,
    first_seed: Annotated[
        int | None, typer.Option(help="the first seed; random, and printed, if left out")
    ] = None,
    max_queries: Annotated[int, typer.Option(min=1, help="queries of a workload, at most")] = 20,
    jobs: Annotated[int, typer.Option(min=1, help="processes, each with a Spark of its own")] = 1,
    spark: Annotated[bool, typer.Option("--spark", help="compare with Spark's own streaming queries too")] = False,
) -> None:
    """Compare what streams give with what they should."""
    first = random.SystemRandom().randrange(10**6) if first_seed is None else first_seed
    console.print(f"seeds {first} to {first + workloads - 1}, up to {max_queries} queries each")
    began = time.monotonic()
    reports = []
    for report in _reports(range(first, first + workloads), max_queries, jobs, spark):
        reports.append(report)
        for difference in report.differences:
            console.print(f"seed {report.seed}: {difference}", markup=False)
    queries = sum(report.queries for report in reports)
    late = sum(report.windows_with_late for report in reports)
    bad = sum(len(report.differences) for report in reports)
    console.print(
        f"{len(reports)} workloads, {sum(report.rows for report in reports):,} records, {queries} queries, "
        f"{late} windows that lost late records, {sum(report.at_once for report in reports):,} rows given without "
        f"the log, {sum(r.by_spark for r in reports)} queries by Spark too "
        f"({sum(report.explained for report in reports)} of their rows differ by the rule of lateness): "
        f"{bad} differences in {time.monotonic() - began:.0f} s"
    )
    if bad:
        raise typer.Exit(1)


def _reports(seeds: range, max_queries: int, jobs: int, by_spark: bool) -> Iterator[LiveReport]:
    with tempfile.TemporaryDirectory(prefix="headrace-live-") as folder:
        if jobs == 1:
            for seed in seeds:
                yield fuzz_live(_session(), seed, max_queries, Path(folder), by_spark)
            return
        with ProcessPoolExecutor(jobs, get_context("spawn")) as pool:
            waiting = [pool.submit(_one, seed, max_queries, folder, by_spark) for seed in seeds]
            for done in as_completed(waiting):
                yield done.result()


def _one(seed: int, max_queries: int, folder: str, by_spark: bool) -> LiveReport:
    return fuzz_live(_session(), seed, max_queries, Path(folder), by_spark)


def _session() -> SparkSession:
    return start_session("headrace-fuzz-live", cores=2, conf=SETTINGS)


if __name__ == "__main__":
    typer.run(main)
