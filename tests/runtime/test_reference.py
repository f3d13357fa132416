"""Streams and workloads on a real Spark: the reference runtime and what it says when Spark refuses."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tools.spark_functions import builtin_functions

from headrace import Stream, Workload
from headrace.errors import OutputError, RunError, StreamError, WorkloadError
from headrace.query.functions import spark_functions
from headrace.runtime.results import Results

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


def answers(spark: SparkSession, stream: Stream, text: str, *, shared: bool = False) -> list[tuple[Any, ...]]:
    workload = Workload({"q": text})
    results = workload.run(stream, spark=spark) if shared else workload.reference(stream, spark=spark)
    return sorted(map(tuple, results["q"].collect()))


@pytest.fixture
def quarter_hours(tmp_path: Path) -> Stream:
    """A record every quarter of an hour over four days, in the spring night on which Berlin changes its clocks."""
    begin = datetime(2024, 3, 29, 22, tzinfo=UTC)
    times = [begin + timedelta(minutes=15 * number) for number in range(4 * 24 * 4)]
    columns = {
        "ts": pa.array([*times, None], pa.timestamp("us", tz="UTC")),
        "local": pa.array([*(time.replace(tzinfo=None) for time in times), None], pa.timestamp("us")),
        "src": [f"s{number % 3}" for number in range(len(times) + 1)],
        "bytes": list(range(len(times) + 1)),
    }
    pq.write_table(pa.table(columns), tmp_path / "quarters.parquet")
    return Stream.parquet(str(tmp_path / "quarters.parquet"), name="t", time="ts")


@pytest.mark.parametrize(
    ("inside", "call"),
    [
        ("RANGE '18 min' SLIDE '15 min'", "window(ts, '18 minutes', '15 minutes')"),
        ("RANGE '2 h'", "window(ts, '2 hours')"),
        ("range '1 day' offset '-3 hrs'", "window(ts, '1 day', '1 day', '-3 hours')"),
    ],
)
def test_a_window_in_brackets_is_that_of_the_call(
    spark: SparkSession, quarter_hours: Stream, inside: str, call: str
) -> None:
    text = (
        "SELECT window.start, window, src, sum(bytes) AS b, date_format(window.end, 'HH:mm') AS e FROM t {} "
        "WHERE bytes > 3 GROUP BY src{} HAVING window.end > '2024-03-30' AND count(*) > 0 ORDER BY window.start, b"
    )
    expected = answers(spark, quarter_hours, text.format("", f", {call}"))
    assert expected
    for shared in (False, True):
        assert answers(spark, quarter_hours, text.format(f"[{inside}]", ""), shared=shared) == expected


def test_brackets_without_a_group_by_have_one_group_a_window(spark: SparkSession, quarter_hours: Stream) -> None:
    for shared in (False, True):
        found = answers(spark, quarter_hours, "SELECT count(*) AS n FROM t AS s [RANGE '1 h']", shared=shared)
        assert found == [(4,)] * (4 * 24)


@pytest.mark.parametrize("time", ["ts", "local"])
def test_a_window_with_gaps_leaves_records_out(spark: SparkSession, quarter_hours: Stream, time: str) -> None:
    """20 minutes of each hour, from five past on: the records at :15 alone, one for each window."""
    stream = Stream.parquet(str(quarter_hours.data), name="t", time=time)
    text = "SELECT window.start, window.end, sum(bytes) AS b FROM t [RANGE '20 min' SLIDE '1 h' OFFSET '5 min']"
    frame = Workload({"q": text}).reference(stream, spark=spark)["q"]
    starts = frame.selectExpr("date_format(start, 'dd HH:mm:ss')", "end - start", "b").collect()
    assert sorted(row[2] for row in starts) == [4 * hour + 1 for hour in range(4 * 24)]
    assert {row[1] for row in starts} == {timedelta(minutes=20)}
    assert {row[0][-6:] for row in starts} == {":05:00"}


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin"])
def test_a_window_with_gaps_is_a_filtered_one(spark: SparkSession, quarter_hours: Stream, zone: str) -> None:
    """Days of 24 hours, also where one has 23 by the clock, out of every two days."""
    hopping = (
        "SELECT window, src, count(*) AS n, sum(bytes) AS b FROM t [RANGE '1 day' SLIDE '2 days'] "
        "WHERE src <> 's1' GROUP BY src HAVING window.start IS NOT NULL ORDER BY window.start DESC, src"
    )
    tumbling = (
        "SELECT window, src, count(*) AS n, sum(bytes) AS b FROM t WHERE src <> 's1' "
        "AND pmod(unix_seconds(ts), 172800) < 86400 GROUP BY window(ts, '1 day'), src"
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    assert before is not None
    spark.conf.set("spark.sql.session.timeZone", zone)
    try:
        found = answers(spark, quarter_hours, hopping)
        assert found == answers(spark, quarter_hours, tumbling)
        assert len(found) == 2 * 2
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)


def test_what_spark_refuses_of_a_query_with_brackets(spark: SparkSession, quarter_hours: Stream) -> None:
    """Spark has read another text; a word that is there once tells the place all the same."""
    workload = Workload(
        {
            "types": "SELECT count(*)\nFROM t [RANGE '15 min' SLIDE '1 h']\nWHERE bytes + map(1, 2) > 3",
            "grouping": "SELECT src, sum(bytes) FROM t [RANGE '1 h']",
        }
    )
    with pytest.raises(WorkloadError) as caught:
        workload.reference(quarter_hours, spark=spark)
    types, grouping = caught.value.problems
    assert (types.origin, types.line) == ("types", 3)
    assert "bytes + map(1, 2)" in types.message
    assert grouping.origin == "grouping"


def test_the_window_in_an_aggregate_is_left_to_spark(spark: SparkSession, quarter_hours: Stream) -> None:
    text = "SELECT max(window.end - ts) AS m, {} AS h FROM t GROUP BY window(ts, '1 hour'), {}"
    aggregate = text.format("hour(window.start)", "hour(window.start)")
    assert answers(spark, quarter_hours, aggregate, shared=True) == answers(spark, quarter_hours, aggregate)
    keys = aggregate.replace("max(window.end - ts)", "max(ts)")
    assert answers(spark, quarter_hours, keys, shared=True) == answers(spark, quarter_hours, keys)
    assert Workload({"q": keys}, quarter_hours)["q"].shareable
