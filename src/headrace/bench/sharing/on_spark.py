"""A query set through headrace on Spark, beside plain Spark query by query."""

from __future__ import annotations

import time
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from headrace.bench.check import Sum
from headrace.bench.contest import Tell
from headrace.bench.in_spark import write_nowhere
from headrace.bench.sharing.report import SparkTimed
from headrace.bench.sharing.workloads import QuerySet
from headrace.errors import BenchError
from headrace.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

TIMED = 32
"""Plain Spark is timed on so many queries at most, and its time extrapolated."""


def measure_spark(queries: QuerySet, path: Path, spark: SparkSession, rounds: int, tell: Tell) -> SparkTimed:
    """Grouped queries both ways, after a round in which answers are compared; raises `BenchError`."""
    stream = queries.subject.stream(path)
    texts = queries.texts(grouped=True)
    workload = Workload(texts, stream)
    timed = [*texts][:: max(1, len(texts) // TIMED)][:TIMED]
    label = f"{queries.name}, {len(queries)} queries, on Spark"
    tell(f"checking {label}")
    stream.register(spark)
    with workload.run(stream, spark=spark) as results:
        for name in timed:
            if not _check(results[name]).agrees(_check(spark.sql(texts[name]))):
                raise BenchError(f"headrace and plain Spark answer query '{name}' differently: {texts[name]}")
    ours, plain = [], []
    for number in range(1, rounds + 1):
        tell(f"round {number} of {rounds}, {label}: headrace")
        begin = time.perf_counter()
        results = workload.run(stream, spark=spark)
        ours.append(time.perf_counter() - begin)
        results.release()
        tell(f"round {number} of {rounds}, {label}: plain Spark, {len(timed)} of {len(texts)} queries")
        begin = time.perf_counter()
        for name in timed:
            write_nowhere(spark.sql(texts[name]))
        plain.append((time.perf_counter() - begin) * len(texts) / len(timed))
    return SparkTimed(queries.name, len(texts), len(timed), median(ours), median(plain))


def _check(frame: DataFrame) -> Sum:
    (row,) = frame.selectExpr("count(1)", "sum(total)").collect()
    total = float(row[1] or 0)
    return Sum(int(row[0]), total, abs(total))
