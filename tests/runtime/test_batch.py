"""The two levels on a real Spark, against plain Spark: random workloads, both ways in, large and tiny budgets."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace import Stream, Workload
from headrace.errors import RunError
from headrace.generate import FlowOptions, generate_flows
from tests.harness.cases import Case, case_of_seed, check
from tests.harness.compare import compare
from tests.harness.result import Failure, collect, outcome
from tests.test_differential import FIRST_SEED, answer

pytestmark = pytest.mark.spark

NETFLOW = Path(__file__).parents[2] / "examples" / "netflow" / "queries"


def workload_of(spark: SparkSession, case: Case, stream: Stream) -> Workload:
    """The queries that Spark itself can run."""
    texts = {name: text for name, text in case.texts.items() if not isinstance(answer(spark, text), Failure)}
    return Workload(texts or {"n": f"SELECT count(*) FROM {case.schema.view}"}, stream)


@pytest.mark.parametrize("number", range(16))
def test_random_workloads(spark: SparkSession, number: int) -> None:
    seed = FIRST_SEED + number
    case = case_of_seed(seed, max_queries=6)
    frame = case.register(spark, partitions=1 + number % 3)
    stream = Stream(frame, name=case.schema.view.strip("`"), time=case.schema.time)
    workload = workload_of(spark, case, stream)
    results = workload.run(stream, spark=spark, budget=1 if number % 2 else 512 << 20)
    for name in set(workload) & set(case.workload):
        generated = case.workload[name]
        actual = outcome(lambda name=name: collect(results[name]))  # type: ignore[misc]
        try:
            check(generated, answer(spark, generated.text), actual, case.table.num_rows)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}, {name}: {error}") from error
    spark.catalog.clearCache()


@pytest.fixture
def small(tmp_path: Path) -> Stream:
    times = [datetime(1969, 12, 31, 23, minute, tzinfo=UTC) for minute in range(40, 60)] + [None]
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "name": ["a", "b", None] * 7,
            "x": [*range(20), 2**62],
        }
    )
    pq.write_table(table.slice(0, 7), tmp_path / "part-0.parquet")
    pq.write_table(table.slice(7), tmp_path / "part-1.parquet", row_group_size=3)
    return Stream.parquet(str(tmp_path), name="t", time="ts")


def test_conditions_that_are_values_too(spark: SparkSession, small: Stream) -> None:
    """Of many filters, which are computed together, one is a key of another query, or what it aggregates."""
    texts = {f"above_{k}": f"SELECT name, count(*) FROM t WHERE x > {k} GROUP BY name" for k in range(20)}
    texts["key"] = "SELECT x > 3, count(*) FROM t GROUP BY x > 3"
    texts["value"] = "SELECT name, bool_and(x > 3), count_if(x > 4) FROM t GROUP BY name"
    texts["filtered"] = "SELECT count(*) FILTER (WHERE x > 3), bool_or(x > 5) FROM t WHERE x > 2"
    workload = Workload(texts, small)
    results, reference = workload.run(small, spark=spark), workload.reference(small, spark=spark)
    for name in texts:
        compare(collect(reference[name]), collect(results[name]))


@pytest.mark.parametrize(
    "window",
    [
        "window(ts, '5 minutes')",
        "window(ts, '5 minutes', '5 minutes', '-1 minute')",
        "window(ts, '7 minutes', '3 minutes')",
        "window(ts, '10 minutes', '4 minutes', '-3 minutes')",
    ],
)
def test_windows_at_the_source(spark: SparkSession, small: Stream, window: str) -> None:
    text = f"SELECT window, name, sum(x) AS s, count(*) FROM t GROUP BY {window}, name ORDER BY 1, 2"
    workload = Workload({"q": text, "n": f"SELECT window.end, max(x) FROM t GROUP BY {window}"}, small)
    assert len(workload.plan(small, spark=spark).answers) == 2
    results = workload.run(small, spark=spark)
    for name, query in workload.items():
        compare(collect(spark.sql(query.text)), collect(results[name]), ordered=name == "q")


def test_one_group_even_without_records(spark: SparkSession, small: Stream) -> None:
    empty = Stream(small.dataframe(spark).where("x < 0"), name="t", time="ts")
    texts = {
        "all": "SELECT count(*), sum(x), avg(x) + 1 FROM t",
        "by": "SELECT name, count(*) FROM t GROUP BY name",
    }
    results = Workload(texts, empty).run(empty, spark=spark)
    assert results["all"].collect() == [(0, None, None)]
    assert results["by"].collect() == []


def test_overflow_names_the_query(spark: SparkSession, small: Stream) -> None:
    with pytest.raises(RunError, match=r"x \* 2.*overflow"):
        Workload({"huge": "SELECT sum(x * 2) FROM t WHERE x > 100"}, small).run(small, spark=spark)
    doubled = Stream(small.dataframe(spark).union(small.dataframe(spark)), name="t", time="ts")
    with pytest.raises(RunError, match=r"query 'sums', sum\(x\): the sum of integers exceeds 64 bits"):
        Workload({"sums": "SELECT sum(x) FROM t"}, doubled).run(doubled, spark=spark)


@pytest.mark.parametrize(
    "clauses",
    ["LIMIT 0", "LIMIT 1 - 1", "HAVING 1 = 0", "HAVING name <> 'a'", "HAVING count(*) > 0 AND upper(name) = 'B'"],
)
def test_sums_that_spark_does_not_compute_do_not_overflow(
    spark: SparkSession, tmp_path: Path, clauses: str
) -> None:
    table = pa.table(
        {
            "ts": pa.array([datetime(2024, 3, 4, 9, tzinfo=UTC)] * 4),
            "name": ["a", "a", "b", None],
            "x": [2**63 - 1, 1, 2, 3],
        }
    )
    pq.write_table(table, tmp_path / "part-0.parquet")
    stream = Stream.parquet(str(tmp_path), name="t", time="ts")
    workload = Workload({"q": f"SELECT name, sum(x) AS s FROM t GROUP BY name {clauses}"}, stream)
    results = workload.run(stream, spark=spark)
    compare(collect(spark.sql(workload["q"].text)), collect(results["q"]))


@pytest.fixture
def trades(tmp_path: Path) -> Stream:
    """Some of them without a volume, so that a price per unit is a division by zero."""
    table = pa.table(
        {
            "ts": pa.array([datetime(2024, 3, 4, 9, minute, tzinfo=UTC) for minute in range(60)]),
            "side": ["buy", "sell", None] * 20,
            "price": [float(minute % 7) for minute in range(60)],
            "volume": [(0.0, 1.0, 2.0, 4.0, 8.0)[minute % 5] for minute in range(60)],
            "day": ["?" if minute % 5 == 0 else "2024-03-04" for minute in range(60)],
            "big": [2**63 - 1 if minute % 5 == 0 else minute for minute in range(60)],
        }
    )
    pq.write_table(table, tmp_path / "part-0.parquet", row_group_size=17)
    return Stream.parquet(str(tmp_path), name="t", time="ts")


GUARDED = {
    "divided": "SELECT side, sum(price / volume) AS s FROM t WHERE volume <> 0 GROUP BY side",
    "in_a_key": "SELECT big + 1 AS k, count(*) AS n FROM t WHERE volume > 0 GROUP BY big + 1",
    "in_a_filter": "SELECT count(*) FILTER (WHERE price / volume > 1) AS n FROM t WHERE volume <> 0",
    "by_a_filter": "SELECT side, max(price / volume) FILTER (WHERE volume <> 0) AS m FROM t GROUP BY side",
    "distinct": "SELECT count(DISTINCT big * 2) AS n FROM t WHERE volume <> 0",
    "ordered": """
        SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY price / volume DESC) AS p
        FROM t WHERE volume <> 0""",
    "safe": """
        SELECT price > 3 AS k, sum(price * volume) FILTER (WHERE price < 5) AS s
        FROM t WHERE side = 'buy' GROUP BY price > 3""",
    "safe_bag": """
        SELECT side, count(DISTINCT price * volume) FILTER (WHERE price < 5) AS n
        FROM t WHERE volume > 1 GROUP BY side""",
    "safe_by_order": """
        SELECT min_by(price * volume, ts) FILTER (WHERE price > volume) AS m
        FROM t WHERE price <> 0""",
}


@pytest.mark.parametrize("at_the_source", [True, False])
def test_what_a_filter_excludes_raises_nothing(spark: SparkSession, trades: Stream, at_the_source: bool) -> None:
    stream = trades if at_the_source else Stream(trades.dataframe(spark), name="t", time="ts")
    workload = Workload(GUARDED, stream)
    assert len(workload.plan(stream, spark=spark).answers) == len(GUARDED)
    with workload.run(stream, spark=spark) as results:
        for name, query in workload.items():
            compare(collect(spark.sql(query.text)), collect(results[name]))


def test_a_windows_time_that_a_filter_excludes_raises_nothing(spark: SparkSession, trades: Stream) -> None:
    text = "SELECT window.start AS day, count(*) AS n FROM t WHERE volume <> 0 GROUP BY window({}, '1 day')"
    workload = Workload({"by_day": text.format("CAST(day AS TIMESTAMP)")}, trades)
    assert workload.plan(trades, spark=spark).answers
    with workload.run(trades, spark=spark) as results:
        compare(collect(spark.sql(workload["by_day"].text)), collect(results["by_day"]))


def test_filters_do_not_keep_states_apart(spark: SparkSession, trades: Stream) -> None:
    text = (
        "SELECT price > 3 AS k, sum(price * volume) FILTER (WHERE price < 5) AS s, avg(price / volume) AS q FROM t"
    )
    texts = {"all": f"{text} GROUP BY price > 3", "some": f"{text} WHERE volume <> 0 GROUP BY price > 3"}
    every, some = Workload(texts, trades).plan(trades, spark=spark).answers
    assert every.keys == some.keys
    assert every.recipes[0] == some.recipes[0]
    assert every.recipes[1] != some.recipes[1]  # a division may raise
    spark.conf.set("spark.sql.ansi.enabled", "false")
    try:
        every, some = Workload(texts, trades).plan(trades, spark=spark).answers
    finally:
        spark.conf.set("spark.sql.ansi.enabled", "true")
    assert every.keys != some.keys  # what the kernel knows of expressions holds in ANSI mode


def test_the_netflow_schemes_at_the_source(spark: SparkSession, tmp_path: Path) -> None:
    generate_flows(FlowOptions(30_000, profile="enterprise", nulls=0.01), tmp_path / "flows")
    stream = Stream.parquet(str(tmp_path / "flows"), name="flows", time="ts")
    workload = Workload.load(NETFLOW, stream)
    assert len(workload.plan(stream, spark=spark).roots) == 1
    reference = workload.reference(stream, spark=spark)
    results = workload.run(stream, spark=spark)
    for name in ("detail_as_matrix", "router_prefix", "protocol", "source_node"):
        compare(collect(reference[name]), collect(results[name]))


MIXED = {
    "minute": "SELECT window, name, sum(x) AS s FROM t GROUP BY window(ts, '1 minute'), name",
    "five": "SELECT window, count(*) AS n FROM t GROUP BY window(ts, '5 minutes')",
    "sliding": "SELECT window, name, max(x) AS m FROM t GROUP BY window(ts, '10 minutes', '5 minutes'), name",
    "all": "SELECT count(DISTINCT name) AS d, sum(x) AS s FROM t",
    "odd": "SELECT x % 2 AS odd, count(DISTINCT name) AS d FROM t WHERE x < 1000 GROUP BY x % 2",
}


@pytest.fixture
def in_order(tmp_path: Path) -> Stream:
    """An hour in order of time, in row groups of seven minutes."""
    times = [datetime(2024, 3, 4, 9, minute, second, tzinfo=UTC) for minute in range(60) for second in (0, 30)]
    table = pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "name": [("a", "b", None)[number % 3] for number in range(120)],
            "x": range(120),
        }
    )
    pq.write_table(table, tmp_path / "part-0.parquet", row_group_size=14)
    return Stream.parquet(str(tmp_path), name="t", time="ts")


@pytest.mark.parametrize("budget", [1, 512 << 20])
@pytest.mark.parametrize("kept_by_spark", [False, True])
def test_whole_epochs_windows_across_them_and_bags(
    spark: SparkSession, in_order: Stream, budget: int, kept_by_spark: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kept_by_spark:
        monkeypatch.setattr("headrace.runtime.batch.make_scratch", lambda spark: None)
    workload = Workload(MIXED, in_order)
    plan = workload.plan(in_order, spark=spark)
    assert len(plan.answers) == len(MIXED)
    assert any(plan.deal_of(root).epoch is not None for root in plan.roots)
    assert plan.split_nodes
    with workload.run(in_order, spark=spark, budget=budget) as results:
        for name, query in workload.items():
            compare(collect(spark.sql(query.text)), collect(results[name]))
        measured = results.profile()
        assert sum(measure.rows_out for measure in measured.answers.values()) == sum(
            results[name].count() for name in workload
        )
        assert "120 -> " in str(measured)
        assert measured.to_json().startswith('{"seconds": ')


def test_a_root_whose_groups_are_apart(spark: SparkSession, in_order: Stream) -> None:
    texts = {
        "top": "SELECT x % 3 AS r, x % 2 AS s, count(DISTINCT name) AS d FROM t GROUP BY x % 3, x % 2",
        "names": "SELECT name, count(*) AS n FROM t GROUP BY name",
        "names_again": "SELECT name, max(x) AS m FROM t GROUP BY name",
        "total": "SELECT avg(x) AS a FROM t",
    }
    workload = Workload(texts, in_order)
    assert workload.plan(in_order, spark=spark).split_nodes == (0,)
    with workload.run(in_order, spark=spark) as results:
        for name, query in workload.items():
            compare(collect(spark.sql(query.text)), collect(results[name]))


def test_an_epoch_ends_before_a_filter_has_chosen_a_record(spark: SparkSession, in_order: Stream) -> None:
    text = "SELECT window.start, count(*) AS n FROM t WHERE x {} GROUP BY window(ts, '1 minute')"
    workload = Workload({"late": text.format("> 100"), "never": text.format("< 0")}, in_order)
    with workload.run(in_order, spark=spark) as results:
        for name, query in workload.items():
            compare(collect(spark.sql(query.text)), collect(results[name]))


def test_released_answers_are_gone(spark: SparkSession, in_order: Stream) -> None:
    with Workload({"all": MIXED["all"]}, in_order).run(in_order, spark=spark) as results:
        frame = results["all"]
        assert frame.collect() == [(2, 7140)]
    assert isinstance(outcome(lambda: collect(frame)), Failure)


@pytest.mark.parametrize("budget", [1, 512 << 20])
def test_keys_that_decide_others_but_for_one_record(spark: SparkSession, tmp_path: Path, budget: int) -> None:
    rows = 200_000
    addresses = [number * 7919 % 500 for number in range(rows)]
    table = pa.table(
        {
            "ts": pa.array([number * 10_000 for number in range(rows)], pa.timestamp("us", "UTC")),
            "addr": addresses,
            "asn": [*(f"AS{address // 9}" for address in addresses[:-1]), "elsewhere"],
            "port": [number % 7 for number in range(rows)],
        }
    )
    pq.write_table(table, tmp_path / "part.parquet", row_group_size=20_000)
    stream = Stream.parquet(str(tmp_path), name="t", time="ts")
    sets = ("addr", "addr, asn", "asn, port", "port, addr", "port, asn, addr")
    texts = {
        f"q{n}_{length}": f"SELECT window, {keys}, count(*) FROM t GROUP BY window(ts, '{length} minutes'), {keys}"
        for n, keys in enumerate(sets)
        for length in (5, 10)
    }
    workload = Workload(texts, stream)
    plan = workload.plan(stream, spark=spark)
    assert {str(assumed) for answer in plan.answers for assumed in answer.assumed} == {"addr decides asn"}
    assert len([node for node in range(len(plan.nodes)) if len(plan.names(node)) == 2]) == 4
    results = workload.run(stream, spark=spark, budget=budget)
    for name, query in workload.items():
        compare(collect(spark.sql(query.text)), collect(results[name]), ordered=False)
