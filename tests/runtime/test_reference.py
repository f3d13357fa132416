"""Streams and workloads on a real Spark: the reference runtime and what it says when Spark refuses."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace import Stream, Workload
from headrace.errors import OutputError, RunError, StreamError, WorkloadError
from headrace.query.functions import spark_functions
from headrace.runtime.results import Results
from headrace.runtime.session import builtin_functions

pytestmark = pytest.mark.spark

QUERIES = {
    "by_src": "SELECT window.start, src, sum(bytes) AS bytes FROM flows "
    "GROUP BY window(ts, '5 minutes'), src ORDER BY 1, 2",
    "total": "SELECT count(*) AS n FROM flows",
    "ranked": "SELECT src, rank() OVER (ORDER BY src) AS r FROM flows",
}


@pytest.fixture
def flows(tmp_path: Path) -> Stream:
    folder = tmp_path / "flows"
    folder.mkdir()
    times = [datetime(2024, 3, 4, 9, minute, tzinfo=UTC) for minute in (1, 2, 6)]
    table = pa.table(
        {"ts": pa.array(times, pa.timestamp("us", tz="UTC")), "src": ["a", "b", "a"], "bytes": [1, 2, 4]}
    )
    pq.write_table(table, folder / "part-0.parquet")
    return Stream.parquet(str(folder), name="flows", time="ts")


def test_each_query_gets_what_spark_gives(spark: SparkSession, flows: Stream) -> None:
    results = Workload(QUERIES).reference(flows, spark=spark)
    assert list(results) == list(QUERIES)
    assert results["total"].collect() == [(3,)]
    assert [(row.src, row.bytes) for row in results["by_src"].collect()] == [("a", 1), ("b", 2), ("a", 4)]
    assert results["ranked"].count() == 3
    with pytest.raises(KeyError, match="did you mean 'total'"):
        results["totl"]


def test_there_is_nothing_to_profile(spark: SparkSession, flows: Stream) -> None:
    with pytest.raises(RunError, match="there is no plan to profile"):
        Workload({"total": QUERIES["total"]}).reference(flows, spark=spark).profile()


def test_a_view_with_a_join_is_a_stream(spark: SparkSession, flows: Stream) -> None:
    names = spark.createDataFrame([("a", "Alice"), ("b", "Bob")], "src string, owner string")
    view = Stream(flows.dataframe(spark).join(names, "src"), name="owned", time="ts", lateness="30 seconds")
    assert view.column_names == ("src", "ts", "bytes", "owner")
    workload = Workload({"q": "SELECT owner, sum(bytes) AS b FROM owned GROUP BY owner ORDER BY owner"})
    assert workload.reference(view, spark=spark)["q"].collect() == [("Alice", 5), ("Bob", 2)]
    with pytest.raises(StreamError, match=r"'owner' of stream 'owned' is string"):
        Stream(view.dataframe(spark), name="owned", time="owner")


def test_functions_of_the_user_are_known(spark: SparkSession, flows: Stream) -> None:
    spark.udf.register("twice", lambda x: 2 * x, "bigint")
    workload = Workload({"q": "SELECT sum(twice(bytes)) AS s FROM flows"})
    assert workload.reference(flows, spark=spark)["q"].collect() == [(14,)]


def test_all_that_spark_refuses_is_in_one_report(spark: SparkSession, flows: Stream) -> None:
    workload = Workload(
        {
            "types": "SELECT count(*)\nFROM flows\nWHERE bytes + map(1, 2) > 3",
            "grouping": "SELECT src, sum(bytes) FROM flows GROUP BY ts",
            "right": QUERIES["total"],
        }
    )
    with pytest.raises(WorkloadError) as caught:
        workload.reference(flows, spark=spark)
    types, grouping = caught.value.problems
    assert (types.origin, types.line) == ("types", 3)
    assert "bytes + map(1, 2)" in types.message
    assert grouping.origin == "grouping"
    assert "SQLSTATE" not in str(caught.value)


def test_results_are_written_whole(spark: SparkSession, flows: Stream, tmp_path: Path) -> None:
    results = Workload(QUERIES).reference(flows, spark=spark)
    done: list[str] = []
    results.write(str(tmp_path / "out"), progress=done.append)
    assert done == list(QUERIES)
    assert pq.read_table(tmp_path / "out" / "total").to_pylist() == [{"n": 3}]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["flows", "out"]
    with pytest.raises(OutputError, match="is there already"):
        results.write(str(tmp_path / "out"))


def test_results_replace_others_only_on_purpose(spark: SparkSession, flows: Stream, tmp_path: Path) -> None:
    Workload(QUERIES).reference(flows, spark=spark).write(str(tmp_path / "out"))
    Workload({"n": QUERIES["total"]}).reference(flows, spark=spark).write(str(tmp_path / "out"), overwrite=True)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["n"]


def test_csv_and_json(spark: SparkSession, flows: Stream, tmp_path: Path) -> None:
    text = "SELECT window, collect_set(src) AS srcs, sum(bytes) AS b FROM flows GROUP BY window(ts, '1 hour')"
    results = Workload({"q": text}).reference(flows, spark=spark)
    results.write(str(tmp_path / "csv"), format="csv")
    results.write(str(tmp_path / "json"), format="json")
    (csv,) = (tmp_path / "csv" / "q").glob("*.csv")
    header, line = csv.read_text().splitlines()
    assert header == "window_start,window_end,srcs,b"
    assert line.startswith("2024-03-04T09:00:00.000Z,2024-03-04T10:00:00.000Z,")
    (lines,) = (tmp_path / "json" / "q").glob("*.json")
    assert json.loads(lines.read_text())["b"] == 7


def test_a_query_that_fails_leaves_no_output(spark: SparkSession, flows: Stream, tmp_path: Path) -> None:
    queries = {"right": QUERIES["total"], "wrong": "SELECT sum(bytes / 0) AS s FROM flows"}
    results = Workload(queries).reference(flows, spark=spark)
    with pytest.raises(RunError, match=r"query 'wrong' failed: .*DIVIDE_BY_ZERO"):
        results.write(str(tmp_path / "out"))
    assert [path.name for path in tmp_path.iterdir()] == ["flows"]


def test_a_failed_overwrite_keeps_what_was_there(spark: SparkSession, flows: Stream, tmp_path: Path) -> None:
    Workload({"n": QUERIES["total"]}).reference(flows, spark=spark).write(str(tmp_path / "out"))
    broken = Results({"wrong": lambda: spark.sql("SELECT raise_error('no') AS x")}, spark)
    with pytest.raises(RunError, match="query 'wrong' failed"):
        broken.write(str(tmp_path / "out"), overwrite=True)
    assert pq.read_table(tmp_path / "out" / "n").to_pylist() == [{"n": 3}]


def test_the_list_of_functions_is_sparks(spark: SparkSession) -> None:
    """If this fails after a change of Spark, run tools/spark_functions.py."""
    mine = {"twice"}  # registered above, in the same session
    theirs = {n: g for n, g in builtin_functions(spark).items() if n.isidentifier() and n not in mine}
    listed = {n: g for n, g in spark_functions().items() if n not in ("timestampadd", "timestampdiff")}
    assert listed == theirs
