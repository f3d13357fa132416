"""`headrace bench sharing`: the studies of two papers about shared aggregation, counted and timed."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.table import Table

from headrace.bench.contest import Tell
from headrace.bench.report import write_json
from headrace.bench.sharing import papers
from headrace.bench.sharing.report import Counted, Report, SparkTimed, Timed, mean
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


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to count and time; no `rounds` says that nothing is timed."""

    rows: int
    queries: int
    rounds: int
    cores: int
    data: Path | None
    study: bool
    sets: int
    seed: int
    spark: bool


def bench_sharing(wanted: Wanted, json_file: Path | None) -> None:
    """Count and time the query sets of the papers, one number of queries or all; answers must agree."""
    with _field(wanted.data, wanted.rows) as field, _few(field, wanted) as few, telling() as tell:
        draw = draw_study if wanted.study else draw_point
        timed, counted = _all(field, few, draw, wanted, tell)
        if wanted.study:
            more = _figure8(field, wanted, tell)
            timed, counted = timed + more[0], counted + more[1]
        spark = _on_spark(field, wanted, tell) if wanted.spark else None
        labels = field.subject.name, len(field.records), wanted.queries, wanted.rounds, wanted.seed, wanted.sets
        report = Report(*labels, tuple(timed), tuple(counted), spark)
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


@contextmanager
def _few(field: Field, wanted: Wanted) -> Iterator[Field]:
    """Records for what the papers have done: the same, or as many as they had, if they are made."""
    if wanted.data is not None or wanted.rows <= papers.ROWS:
        yield field
        return
    with _field(None, papers.ROWS) as few:
        yield few


Draw = Callable[[Field, int, int], Iterable[QuerySet]]
"""All sets of some field, number of queries and seed."""


def _all(field: Field, few: Field, draw: Draw, wanted: Wanted, tell: Tell) -> tuple[list[Timed], list[Counted]]:
    """Counts are the mean of some sets, times those of the first; on a few records but for times by key."""
    counted = []
    for seed in range(wanted.seed, wanted.seed + wanted.sets):
        tell(f"counting, set {seed - wanted.seed + 1} of {wanted.sets}")
        counted.append([one for queries in draw(few, wanted.queries, seed) for one in count(few, queries)])
    timed: list[Timed] = []
    if wanted.rounds:
        from headrace.kernel.compiled import load_kernels
        from headrace.runtime.daemon import MOST_BYTES, keep_memory

        tell("loading compiled functions")
        load_kernels()
        keep_memory(MOST_BYTES)  # as workers do, which need less: what one strategy leaves is for the next
        for records, grouped in ((few, False), (field, True)):
            for queries in draw(records, wanted.queries, wanted.seed):
                timed += measure(records, queries, grouped, wanted.rounds, tell)
    return timed, [mean(same) for same in zip(*counted, strict=True)]


def _figure8(field: Field, wanted: Wanted, tell: Tell) -> tuple[list[Timed], list[Counted]]:
    """On given records, or on a day of trades with as many records as the paper's day."""
    if wanted.data is not None:
        return _all(field, field, draw_figure8, wanted, tell)
    tell(f"making {FIGURE8_ROWS:,} records of a day")
    with _field(None, FIGURE8_ROWS, FIGURE8_HOURS, "2024-03-04 09:30:00") as day:
        return _all(day, day, draw_figure8, wanted, tell)


def _on_spark(field: Field, wanted: Wanted, tell: Tell) -> SparkTimed:
    from headrace.bench.sharing.on_spark import measure_spark
    from headrace.runtime.session import open_session

    queries = field.draw("c_regular", wanted.queries, wanted.seed)
    with open_session("headrace-bench", cores=wanted.cores) as spark:
        return measure_spark(queries, field.path, spark, wanted.rounds, tell)


def _print(report: Report) -> None:
    title = f"sharing: {report.rows:,} {report.data}, {report.queries} queries"
    title += (
        f"; operations, and seconds ungrouped, of {papers.ROWS:,}"
        if report.data == "trades" and report.rows > papers.ROWS
        else ""
    )
    title += f"; counts are the mean of {report.sets} sets" if report.sets > 1 else ""
    title += f"; seconds the median of {report.rounds}" if report.rounds else ""
    table = Table("workload", "queries", "strategy", title=title, title_justify="left")
    for heading in ("partial", "final", "papers' total", "seconds", "grouped: partial", "final", "seconds"):
        table.add_column(heading, justify="right")
    counts = {(c.workload, c.queries, c.strategy, c.grouped): c for c in report.counted}
    times = {(t.workload, t.queries, t.strategy, t.grouped): t for t in report.timed}
    for workload, queries, strategy in dict.fromkeys(place[:3] for place in counts):
        cells = [workload, str(queries), strategy]
        as_published = queries == papers.QUERIES and report.data == "trades"
        for grouped in (False, True):
            place = workload, queries, strategy, grouped
            cells += [f"{counts[place].partial:,}", f"{counts[place].final:,}"]
            if not grouped:
                published = papers.COUNTS.get((workload, strategy)) if as_published else None
                cells.append(f"{published.total:,}" if published else "")
            cells.append(f"{times[place].seconds:.2f}" if place in times else "")
        table.add_row(*cells)
    out.print(table)
    _print_ratios(report)


def _print_ratios(report: Report) -> None:
    table = Table("ratio", title="times as much as shared pairs", title_justify="left")
    columns = {
        "operations": report.count_ratios(grouped=False),
        "merged once": report.count_ratios(grouped=False, once=True),
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
