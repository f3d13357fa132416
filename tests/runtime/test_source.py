"""At the source, against plain Spark: row groups that no query wants are not read, and a single one is shared."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace import Stream, Workload
from tests.harness.compare import compare
from tests.harness.result import collect

pytestmark = pytest.mark.spark

MINUTES = 60


@pytest.fixture(params=["files", "folders"])
def stream(request: pytest.FixtureRequest, tmp_path: Path) -> Stream:
    """Two hours, a record each half minute, in row groups of ten minutes; in two files, or two folders."""
    for hour in (9, 10):
        times = [datetime(2024, 3, 4, hour, n // 2, n % 2 * 30, tzinfo=UTC) for n in range(2 * MINUTES)]
        x = [None if n % 7 == 0 else 1000 * hour + n for n in range(2 * MINUTES)]
        table = pa.table(
            {
                "ts": pa.array(times, pa.timestamp("us", "UTC")),
                "name": [("a", "b", None)[n % 3] for n in range(2 * MINUTES)],
                "x": x,
            }
        )
        name = f"part-{hour}.parquet" if request.param == "files" else f"hour={hour}/part-0.parquet"
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pq.write_table(table, tmp_path / name, row_group_size=20)
    return Stream.parquet(str(tmp_path), name="t", time="ts")


def check(spark: SparkSession, stream: Stream, texts: dict[str, str]) -> int:
    """Compare with plain Spark; gives how many records were read."""
    workload = Workload(texts, stream)
    with workload.run(stream, spark=spark) as results:
        for name, query in workload.items():
            compare(collect(spark.sql(query.text)), collect(results[name]))
        measured = results.profile()
        roots = [measured.nodes[root].rows_in for root in measured.plan.roots if root in measured.nodes]
    assert len(set(roots)) == 1
    return roots[0]


def test_row_groups_that_no_query_wants_are_not_read(spark: SparkSession, stream: Stream) -> None:
    early = "ts < TIMESTAMP '2024-03-04 09:10:00'"
    texts = {
        "early": f"SELECT window, name, sum(x) FROM t WHERE {early} GROUP BY window(ts, '5 minutes'), name",
        "late": "SELECT name, count(*), max(x) FROM t WHERE x > 10100 AND name <> 'b' GROUP BY name",
        "sliding": f"SELECT window, count(x) FROM t WHERE {early} GROUP BY window(ts, '10 minutes', '4 minutes')",
    }
    assert check(spark, stream, texts) == 20 + 20
    late = {"late": texts["late"]}
    assert check(spark, stream, late) == 20
    assert check(spark, stream, late | {"all": "SELECT name, count(*) FROM t GROUP BY name"}) == 240
    assert check(spark, stream, late | {"text": "SELECT count(*) FROM t WHERE name = 'a'"}) == 240


def test_answers_where_nothing_is_read(spark: SparkSession, stream: Stream) -> None:
    texts = {
        "all": "SELECT count(*), sum(x), count(DISTINCT name), max(ts) FROM t WHERE x < 0",
        "by": "SELECT name, count(*) FROM t WHERE x BETWEEN 1 AND 8 GROUP BY name",
        "window": "SELECT window, avg(x) FROM t WHERE ts > '2024-03-05' GROUP BY window(ts, '5 minutes')",
    }
    assert check(spark, stream, texts) == 0


def test_several_tasks_share_a_row_group(spark: SparkSession, tmp_path: Path) -> None:
    rows = 20_000
    table = pa.table(
        {
            "ts": pa.array(range(rows), pa.timestamp("us", "UTC")),
            "name": [(None, "a", "b", f"n{n}")[n % 4] for n in range(rows)],
            "x": [None if n % 7 == 0 else n for n in range(rows)],
            "f": [None if n % 5 == 0 else n / 4 for n in range(rows)],
            "p": [(None, True, False)[n % 3] for n in range(rows)],
        }
    )
    pq.write_table(table, tmp_path / "t.parquet")
    stream = Stream.parquet(str(tmp_path), name="t", time="ts")
    texts = {
        "by": "SELECT name, p, count(*), sum(x), max(f) FROM t GROUP BY name, p",
        "all": "SELECT count(DISTINCT name), min(f), sum(x) FILTER (WHERE p), max(ts) FROM t",
        "some": "SELECT p, avg(x + 1) FROM t WHERE upper(name) <> 'A' GROUP BY p",
    }
    assert check(spark, stream, texts) == rows
