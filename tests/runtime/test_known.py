"""A workload that is run again is not planned again, as long as its plan is right and good for what is there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace import Stream, Workload
from headrace.plan.build import Planner
from tests.harness.compare import compare
from tests.harness.result import collect

pytestmark = pytest.mark.spark

QUERIES = {
    "by_name": "SELECT window.start, name, sum(x), count(x) FROM t GROUP BY window(ts, '1 minute'), name",
    "all": "SELECT count(*), max(x) - 1 AS a, max(ts) FROM t",
    "hour": "SELECT hour(ts) AS h, min(x) FROM t GROUP BY hour(ts)",
    "beside": "SELECT first(name) IS NULL AS odd, count(*) FROM t",
}
START = datetime(2024, 3, 4, 9, tzinfo=UTC)


class Plans:
    """How often a plan was made."""

    made = 0


@pytest.fixture
def plans(monkeypatch: pytest.MonkeyPatch) -> Plans:
    counter, plan = Plans(), Planner.plan

    def counted(self: Planner, *arguments: Any) -> Any:
        counter.made += 1
        return plan(self, *arguments)

    monkeypatch.setattr(Planner, "plan", counted)
    return counter


def write(folder: Path, part: int, rows: int = 300, **columns: Any) -> None:
    """A file of records, one a second; `columns` replace the usual ones."""
    usual = {
        "ts": pa.array([START + timedelta(seconds=second) for second in range(rows)], pa.timestamp("us", "UTC")),
        "name": pa.array([f"n{number % 7}" for number in range(rows)]),
        "x": pa.array(range(rows), pa.int64()),
    }
    pq.write_table(pa.table({**usual, **columns}), folder / f"part-{part}.parquet")


def check(folder: Path, spark: SparkSession) -> None:
    """The answers of the workload are plain Spark's."""
    stream = Stream.parquet(str(folder), name="t", time="ts")
    workload = Workload(QUERIES)
    with workload.run(stream, spark=spark) as results:
        assert list(results) == list(QUERIES)
        expected = workload.reference(stream, spark=spark)
        for name in QUERIES:
            compare(collect(expected[name]), collect(results[name]))


def test_a_plan_is_made_once(spark: SparkSession, tmp_path: Path, plans: Plans) -> None:
    write(tmp_path, 0)
    check(tmp_path, spark)
    check(tmp_path, spark)
    assert plans.made == 1


def test_more_records_are_seen_and_need_no_other_plan(spark: SparkSession, tmp_path: Path, plans: Plans) -> None:
    write(tmp_path, 0)
    check(tmp_path, spark)
    write(tmp_path, 1, rows=250)
    check(tmp_path, spark)
    assert plans.made == 1
    write(tmp_path, 2, rows=2000)
    check(tmp_path, spark)
    assert plans.made == 2, "the stream is several times as large"


@pytest.mark.parametrize(
    "columns",
    [
        {"x": pa.array([2**57 - i for i in range(300)], pa.int64())},  # sums might need more than a word
        {"x": pa.array([None, *range(299)], pa.int64())},  # to count values is not to count records
        {"ts": pa.array([None] * 300, pa.timestamp("us", "UTC"))},  # records that are in no window
        {"x": pa.array([0.5] * 300, pa.float64())},  # another type, in all files
    ],
    ids=["large", "nulls", "no_times", "floats"],
)
def test_records_that_need_another_plan(
    spark: SparkSession, tmp_path: Path, plans: Plans, columns: dict[str, pa.Array]
) -> None:
    write(tmp_path, 0)
    check(tmp_path, spark)
    write(tmp_path, 0 if pa.types.is_floating(columns.get("x", pa.nulls(0)).type) else 1, **columns)
    check(tmp_path, spark)
    assert plans.made == 2


def test_settings_and_functions_are_part_of_what_queries_mean(
    spark: SparkSession, tmp_path: Path, plans: Plans
) -> None:
    write(tmp_path, 0)
    check(tmp_path, spark)
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        check(tmp_path, spark)
        assert plans.made == 2
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.udf.register("one_more", lambda x: x + 1, "long")
    try:
        check(tmp_path, spark)
        assert plans.made == 3
    finally:
        spark.sql("DROP TEMPORARY FUNCTION one_more")
    check(tmp_path, spark)
    assert plans.made == 3, "what was known before is known still"
