"""`headrace bench sharing`: the studies of two papers about shared aggregation, counted and timed."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.table import Table

from headrace.bench.measure import Tell
from headrace.bench.sharing import papers
from headrace.bench.sharing.report import Counted, Report, SparkTimed, Timed, write_json
from headrace.bench.sharing.study import (
    FIGURE8_HOURS,
    FIGURE8_ROWS,
    Field,
    count,
    draw_figure8,
    draw_point,
    draw_study,
    measure,
)
from headrace.bench.sharing.subject import prepare_trades
from headrace.bench.sharing.workloads import QuerySet
from headrace.cli.console import out, telling, waiting

ROWS = 1_138_636
"""As many trades as the paper's hour has."""


def bench_sharing(
    rows: int | None,
    queries: int | None,
    rounds: int,
    cores: int,
    data: Path | None,
    study: bool,
    seed: int,
    spark: bool,
    json_file: Path | None,
) -> None:
    """Count and time the query sets of the papers, one number of queries or all; answers must agree."""
    if data is not None and rows is not None:
        raise typer.BadParameter("--data is taken whole: leave --rows out", param_hint="--data")
    number = queries or papers.QUERIES
    with _field(data, rows or ROWS) as field, telling() as tell:
        sets = [*draw_study(field, number, seed)] if study else draw_point(field, number, seed)
        timed, counted = _all(field, sets, rounds, tell)
        if study:
            more = _figure8(field, data, rounds, seed, tell)
            timed, counted = timed + more[0], counted + more[1]
        on_spark = _on_spark(field, number, seed, rounds, cores, tell) if spark else None
        size = len(field.records)
        report = Report(field.subject.name, size, number, rounds, seed, tuple(timed), tuple(counted), on_spark)
    _print(report)
    if json_file is not None:
        write_json(report, json_file)


@contextmanager
def _field(
    data: Path | None, rows: int, hours: float = 1.0, start: str = "2024-03-04 12:00:00"
) -> Iterator[Field]:
    """Given records, or trades that are made for it."""
    if data is not None:
        with waiting("reading the records ..."):
            field = Field.of(data)
        yield field
        return
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as scratch:
        with waiting(f"making {rows:,} records ..."):
            field = Field.of(prepare_trades(rows, Path(scratch) / "trades", hours, start))
        yield field


def _all(field: Field, sets: list[QuerySet], rounds: int, tell: Tell) -> tuple[list[Timed], list[Counted]]:
    from headrace.kernel.compiled import load_kernels

    tell("loading compiled functions")
    load_kernels()
    timed: list[Timed] = []
    counted: list[Counted] = []
    for queries in sets:
        tell(f"counting {queries.name}, {len(queries)} queries")
        counted += count(field, queries)
        for grouped in (False, True):
            timed += measure(field, queries, grouped, rounds, tell)
    return timed, counted


def _figure8(
    field: Field, data: Path | None, rounds: int, seed: int, tell: Tell
) -> tuple[list[Timed], list[Counted]]:
    """On given records, or on a day of trades with as many records as the paper's day."""
    if data is not None:
        return _all(field, [*draw_figure8(field, seed)], rounds, tell)
    tell(f"making {FIGURE8_ROWS:,} records of a day")
    with _field(None, FIGURE8_ROWS, FIGURE8_HOURS, "2024-03-04 09:30:00") as day:
        return _all(day, [*draw_figure8(day, seed)], rounds, tell)


def _on_spark(field: Field, queries: int, seed: int, rounds: int, cores: int, tell: Tell) -> SparkTimed:
    from headrace.bench.sharing.on_spark import measure_spark
    from headrace.runtime.session import open_session

    with open_session("headrace-bench", cores=cores) as spark:
        return measure_spark(field.draw("c_regular", queries, seed), field.path, spark, rounds, tell)


def _print(report: Report) -> None:
    title = f"sharing: {report.rows:,} {report.data}, {report.queries} queries, median of {report.rounds}"
    table = Table("workload", "queries", "strategy", title=title, title_justify="left")
    for heading in ("partial", "final", "papers' total", "seconds", "grouped: partial", "final", "seconds"):
        table.add_column(heading, justify="right")
    counts = {(c.workload, c.queries, c.strategy, c.grouped): c for c in report.counted}
    times = {(t.workload, t.queries, t.strategy, t.grouped): t for t in report.timed}
    for workload, queries, strategy in dict.fromkeys(place[:3] for place in counts):
        cells = [workload, str(queries), strategy]
        for grouped in (False, True):
            place = workload, queries, strategy, grouped
            cells += [f"{counts[place].partial:,}", f"{counts[place].final:,}"]
            if not grouped:
                published = papers.COUNTS.get((workload, strategy)) if queries == papers.QUERIES else None
                cells.append(f"{published.total:,}" if published else "")
            cells.append(f"{times[place].seconds:.2f}" if place in times else "")
        table.add_row(*cells)
    out.print(table)
    _print_ratios(report)


def _print_ratios(report: Report) -> None:
    table = Table("ratio", title="times as much as shared pairs", title_justify="left")
    columns = {
        "operations": report.count_ratios(grouped=False),
        "seconds": report.ratios(grouped=False),
        "grouped: operations": report.count_ratios(grouped=True),
        "seconds ": report.ratios(grouped=True),
    }
    for heading in columns:
        table.add_column(heading, justify="right")
    for name in dict.fromkeys(name for found in columns.values() for name in found):
        table.add_row(name, *(f"{found[name]:.2f}" if name in found else "" for found in columns.values()))
    out.print(table)
    if report.spark is not None and report.spark.timed < report.spark.queries:
        of_all = f"{report.spark.timed} of the {report.spark.queries} queries"
        out.print(f"plain Spark was timed on {of_all} of workload {report.spark.workload}, its time extrapolated")
