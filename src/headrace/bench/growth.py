"""How headrace's time grows: with the records, and with the queries."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from headrace.bench.contest import Task, Tell
from headrace.bench.in_spark import InHeadrace
from headrace.bench.question import Data, read_data
from headrace.bench.report import Growth, QueryGrowth, Report, RowGrowth
from headrace.bench.workloads import Topic
from headrace.sources.stream import open_parquet

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERIES = (1, 5, 22, 64, 200)


def measure_growth(
    topic: Topic,
    base: Data,
    sizes: Sequence[Data],
    *,
    queries: int,
    cores: int,
    rounds: int,
    spark: SparkSession,
    tell: Tell,
    counts: Sequence[int] = QUERIES,
) -> Report:
    """The time for each of the sizes with the same queries, and for each count of queries on the base."""
    most = max(counts)
    first = {number: f"the first {number} queries" for number in counts}
    spread = {number: f"{number} of {most} queries" for number in counts} | {most: first[most]}
    by_rows = {size.rows: InHeadrace(Task(size, topic.take(queries), cores), spark) for size in sizes}
    contestants = {f"{rows:,} records": one for rows, one in by_rows.items()}
    drawn = {first[n]: topic.take(n) for n in counts} | {spread[n]: topic.spread(n, most) for n in counts}
    contestants |= {label: InHeadrace(Task(base, some, cores), spark) for label, some in drawn.items()}
    seconds: dict[str, list[float]] = {label: [] for label in contestants}
    workers: dict[str, float] = dict.fromkeys(contestants, 0.0)
    for number in range(rounds + 1):
        for label, contestant in contestants.items():
            tell(f"round {number} of {rounds}: {label}" if number else f"warming up: {label}")
            timing = contestant.measure_run()
            if number:
                seconds[label].append(timing.seconds)
                workers[label] = max(workers[label], timing.largest_worker_mb)
    growth = Growth(
        tuple(RowGrowth(n, median(seconds[key := f"{n:,} records"]), workers[key]) for n in by_rows),
        *(tuple(QueryGrowth(n, median(seconds[label])) for n, label in own.items()) for own in (first, spread)),
    )
    return Report(topic.name, base.rows, queries, cores, growth=growth)


def write_first(data: Data, rows: int, file: Path) -> Data:
    """The first so many records, as one file."""
    from pyarrow import parquet  # imports pandas, which takes half a second

    source = open_parquet(str(data.path))
    left = rows
    with parquet.ParquetWriter(file, source.schema) as writer:
        for batch in source.to_batches():
            writer.write_batch(batch.slice(0, left))
            left -= min(left, batch.num_rows)
            if not left:
                break
    return read_data(file, data.stream, data.time)
