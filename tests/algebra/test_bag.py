"""Every aggregate that is computed from a bag, against Spark and by hand; and what all bags have in common."""

from __future__ import annotations

import decimal
import math
import pickle
import random
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from headrace.algebra.bag import BagRecipe, bag_arguments, lower_bag, make_bag_recipe
from headrace.algebra.lower import Overflow
from headrace.algebra.ops import Op
from headrace.algebra.settle import NegativeFrequency
from headrace.algebra.states import Lift, NoState, State
from headrace.query import Aggregate, Expression, parse_query
from tests.harness.compare import canonical, compare
from tests.harness.result import Result, collect
from tests.harness.tolerance import EXACT

TYPES = {
    "k": (pa.int32(), "int"),
    "id": (pa.int64(), "bigint"),
    "int": (pa.int32(), "int"),
    "long": (pa.int64(), "bigint"),
    "float": (pa.float32(), "float"),
    "double": (pa.float64(), "double"),
    "number": (pa.float64(), "double"),
    "flag": (pa.bool_(), "boolean"),
    "day": (pa.date32(), "date"),
    "price": (pa.decimal128(12, 2), "decimal(12,2)"),
    "exact": (pa.decimal128(18, 4), "decimal(18,4)"),
    "wide": (pa.decimal128(25, 3), "decimal(25,3)"),
    "broad": (pa.decimal128(38, 10), "decimal(38,10)"),
    "name": (pa.string(), "string"),
    "blob": (pa.binary(), "binary"),
    "often": (pa.int32(), "int"),
}
NUMBERS = ["int", "long", "float", "double", "price", "exact", "wide", "broad"]
EVERY = [*NUMBERS, "flag", "day", "name", "blob"]
TEXTS = ["", "a", "A", "b", "ab", "é", "z", "z\U0001f600", "z￿", "ÿ", "日本"]

ONCE = [
    *[f"count(DISTINCT {name})" for name in EVERY],
    "count(DISTINCT 1)",
    "count(DISTINCT int, name)",
    "count(DISTINCT name, double, broad)",
    "count(DISTINCT int) FILTER (WHERE flag)",
    "count_if(DISTINCT flag)",
    *[f"sum(DISTINCT {name})" for name in ("int", "long", "price", "wide", "broad")],
    *[f"avg(DISTINCT {name})" for name in ("price", "exact", "wide", "broad")],
    "sum(DISTINCT long) FILTER (WHERE flag)",
    *[f"{function}(DISTINCT int)" for function in ("bit_xor", "bit_and", "bit_or")],
    "bool_and(DISTINCT flag)",
    "max(DISTINCT name)",
    "max_by(DISTINCT name, id)",
]
ONCE_NEAR = [
    "sum(DISTINCT float)",
    "sum(DISTINCT double)",
    "sum(DISTINCT number)",
    *[f"avg(DISTINCT {name})" for name in ("int", "double", "number")],
    *[
        f"{function}(DISTINCT {name})"
        for function in ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "skewness", "kurtosis")
        for name in ("int", "number")
    ],
    *[f"{function}(DISTINCT int, number)" for function in ("covar_pop", "covar_samp", "corr")],
]
TAKEN = [
    *[f"{function}({name})" for function in ("min", "max") for name in EVERY],
    "min(name) FILTER (WHERE flag)",
    "min_by(name, id)",
    "max_by(broad, id)",
    "max_by(blob, id) FILTER (WHERE flag)",
    "any_value(k)",
    "any_value(k, true)",
    *[f"mode({name}, true)" for name in EVERY],
    "mode() WITHIN GROUP (ORDER BY int)",
    "mode() WITHIN GROUP (ORDER BY name DESC) FILTER (WHERE flag)",
    "sum(wide)",
    "sum(broad)",
    "avg(wide)",
    "avg(broad)",
    "avg(wide) FILTER (WHERE flag)",
]
PERCENTILES = [
    *[f"percentile({name}, 0.3)" for name in NUMBERS],
    *[f"median({name})" for name in NUMBERS],
    "percentile(double, array(0, 0.1, 0.25, 0.5, 9e-1, 1.0))",
    "percentile(int, array(.77))",
    "percentile(int, 0.4, often)",
    "percentile(number, array(0.2, 0.9), often) FILTER (WHERE flag)",
    "percentile(DISTINCT int, 0.3)",
    "percentile(DISTINCT int, 0.3, often)",
    "median(DISTINCT wide)",
    "percentile_cont(0.35) WITHIN GROUP (ORDER BY double DESC)",
    "percentile_cont(0.35) WITHIN GROUP (ORDER BY price)",
    "percentile_cont(array(0.35, 0.9)) WITHIN GROUP (ORDER BY int desc NULLS LAST)",
    "percentile_disc(0.35) WITHIN GROUP (ORDER BY double DESC)",
    "percentile_disc(0.5) WITHIN GROUP (ORDER BY broad) FILTER (WHERE flag)",
    "percentile_disc(array(0, 0.2, 0.25, 0.5, 0.75, 1)) WITHIN GROUP (ORDER BY int)",
]
CALLS = [*ONCE, *ONCE_NEAR, *TAKEN, *PERCENTILES]


def make_table(seed: int) -> pa.Table:
    """Groups of many sizes with few different values, so that they repeat; one group has nulls only."""
    draw = random.Random(seed)
    rows: list[dict[str, Any]] = []
    for k, size in enumerate((1, 2, 3, 4, 5, 12, 40, 90)):
        for _ in range(size):
            x = draw.randint(-6, 6)
            row = {
                "int": x * 1000 + 7,
                "long": x * (10**17 + 3),
                "float": x / 8 + 0.1,
                "double": draw.choice([math.nan, -0.0, 0.0, math.inf, -math.inf, x / 3, x / 7]),
                "number": x / 3 + draw.randint(0, 1),
                "flag": draw.random() > 0.4,
                "day": date(2000, 1, 1) + timedelta(days=x),
                "price": decimal.Decimal(x * 37).scaleb(-2),
                "exact": decimal.Decimal(x * (10**13 + 7)).scaleb(-4),
                "wide": decimal.Decimal(x * (10**20 + 9)).scaleb(-3),
                "broad": decimal.Decimal(f"{x * 10**14}.1234567891"),
                "name": draw.choice(TEXTS),
                "blob": draw.choice([b"", b"\x00", b"\x7f", b"\x80", b"\xff", b"\xff\x00"]),
                "often": draw.randint(0, 4),
            }
            share = 1.0 if k == 3 else 0.15
            rows.append({name: None if draw.random() < share else value for name, value in row.items()})
            rows[-1] |= {"k": k, "id": len(rows)}
    return pa.Table.from_pylist(rows, pa.schema([(name, kind) for name, (kind, _) in TYPES.items()]))


TABLES = {seed: make_table(seed) for seed in (1, 2)}


def aggregate_of(call: str) -> Aggregate:
    (aggregate,) = parse_query("q", f"SELECT {call} AS a FROM t").aggregates
    return aggregate


def kind_of(argument: Expression) -> pa.DataType:
    return pa.int32() if argument.sql == "1" else TYPES[argument.canonical][0]


def recipe_of(call: str) -> BagRecipe:
    aggregate = aggregate_of(call)
    return make_bag_recipe(aggregate, [kind_of(argument) for argument in bag_arguments(aggregate)])


def bag_of(recipe: BagRecipe, table: pa.Table) -> tuple[Any, list[pa.Array], Any]:
    """Groups, values and counts, as the finer node has them: `flag` is the only condition in this file."""
    every = pa.array([True] * table.num_rows)
    counted = pc.fill_null(table["flag"], False) if recipe.count.condition else every
    columns = {"k": table["k"], "counted": counted.cast(pa.int64())}
    for place, argument in enumerate(recipe.arguments):
        columns[f"a{place}"] = every.cast(pa.int32()) if argument.sql == "1" else table[argument.sql]
    names = [name for name in columns if name != "counted"]
    rows = pa.table(columns).group_by(names).aggregate([("counted", "sum")]).combine_chunks()
    values = [rows[name].combine_chunks() for name in names[1:]]
    return rows["k"].to_numpy().astype(np.int64), values, rows["counted_sum"].to_numpy()


def compute(call: str, table: pa.Table) -> pa.Array:
    recipe = recipe_of(call)
    groups, values, counts = bag_of(recipe, table)
    return lower_bag(recipe, groups, 8, values, counts)


@pytest.mark.spark
@pytest.mark.parametrize("seed", TABLES)
@pytest.mark.parametrize(
    "calls", [ONCE, ONCE_NEAR, TAKEN, PERCENTILES], ids=["once", "near", "taken", "percentiles"]
)
def test_answers_are_sparks(spark: SparkSession, calls: Sequence[str], seed: int) -> None:
    table = TABLES[seed]
    schema = ", ".join(f"{name} {kind}" for name, (_, kind) in TYPES.items())
    spark.createDataFrame(table, schema=schema).coalesce(1).createOrReplaceTempView("t")
    outputs = ", ".join(f"{call} AS `{call}`" for call in calls)
    expected = collect(spark.sql(f"SELECT {outputs} FROM t GROUP BY k ORDER BY k"))
    answers = pa.table([compute(call, table) for call in calls], names=list(calls))
    kinds = [from_arrow_type(field.type, prefer_timestamp_ntz=True).simpleString() for field in answers.schema]
    actual = Result.of_arrow(tuple(zip(calls, kinds, strict=True)), answers)
    if calls is not ONCE_NEAR:
        compare(expected, actual, [EXACT] * len(calls), ordered=True)
        return
    assert actual.columns == expected.columns
    for want_row, got_row in zip(expected.rows, actual.rows, strict=True):
        for call, want, got in zip(calls, want_row, got_row, strict=True):
            assert (want is None) == (got is None), call
            assert want is None or got == pytest.approx(want, rel=1e-9, abs=1e-9, nan_ok=True), call


@pytest.mark.parametrize(
    "call", [*CALLS, "mode(name)", "any_value(name)", "min_by(name, int)", "max_by(blob, flag)"]
)
def test_order_and_pieces_of_rows_do_not_matter(call: str) -> None:
    table = TABLES[1]
    recipe = recipe_of(call)
    groups, values, counts = bag_of(recipe, table)
    expected = lower_bag(recipe, groups, 9, values, counts)
    assert len(expected) == 9
    assert expected.type == recipe.type
    draw = np.random.default_rng(len(call))
    part = draw.integers(0, counts + 1)
    order = draw.permutation(2 * len(groups))
    twice = [pa.concat_arrays([value, value]).take(pa.array(order)) for value in values]
    again = lower_bag(recipe, np.tile(groups, 2)[order], 9, twice, np.concatenate((part, counts - part))[order])
    if call in ONCE_NEAR:
        for want, got in zip(expected.to_pylist(), again.to_pylist(), strict=True):
            assert (want is None) == (got is None)
            assert want is None or got == pytest.approx(want, rel=1e-12, abs=1e-9, nan_ok=True)
    else:
        assert canonical(again.to_pylist()) == canonical(expected.to_pylist())


@pytest.mark.parametrize("call", CALLS)
def test_no_rows_and_rows_without_records(call: str) -> None:
    recipe = recipe_of(call)
    groups, values, counts = bag_of(recipe, TABLES[1])
    nothing: Any = [0, 0] if call.startswith("count") else [None, None]
    none = [value.slice(0, 0) for value in values]
    assert lower_bag(recipe, groups[:0], 0, none, counts[:0]).to_pylist() == []
    assert lower_bag(recipe, groups[:0], 2, none, counts[:0]).to_pylist() == nothing
    assert lower_bag(recipe, groups % 2, 2, values, np.zeros_like(counts)).to_pylist() == nothing


@pytest.mark.parametrize("call", ONCE)
def test_unique_rows_need_no_sort(call: str) -> None:
    recipe = recipe_of(call)
    table = TABLES[2].drop_columns(["double"]).append_column("double", TABLES[2]["number"])
    groups, values, counts = bag_of(recipe, table)
    vouched = lower_bag(recipe, groups, 8, values, counts, unique=True)
    assert vouched.equals(lower_bag(recipe, groups, 8, values, counts))


def small(call: str, kinds: Sequence[pa.DataType], *columns: Sequence[Any], counts: Sequence[int] = ()) -> Any:
    """The answer for one group of records, or with counts for one bag."""
    recipe = make_bag_recipe(aggregate_of(call), kinds)
    values = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
    numbers = np.array(counts or [1] * len(columns[0]), dtype=np.int64)
    return lower_bag(recipe, np.zeros(len(numbers), dtype=np.int64), 1, values, numbers)[0].as_py()


def test_a_recipe_says_what_the_finer_node_keeps() -> None:
    recipe = recipe_of("percentile_cont(0.5) WITHIN GROUP (ORDER BY price DESC) FILTER (WHERE flag)")
    assert recipe.arguments == (Expression.parse("price"),)
    assert recipe.count == State(Op.ADD, Lift.ONE, (), Expression.parse("flag"))
    assert recipe.parameters == (0.5,)
    assert pickle.loads(pickle.dumps(recipe)) == recipe
    same = recipe_of("percentile_cont( 0.5 ) within group (order by PRICE desc) filter(where Flag)")
    assert len({recipe, same}) == 1


@pytest.mark.parametrize(
    "call",
    [
        "count(DISTINCT *)",
        "sum(int)",
        "sum(price)",
        "var_pop(DISTINCT price)",
        "sum(DISTINCT day)",
        "collect_set(int)",
        "first(int)",
        "first(DISTINCT int)",
        "percentile(int, 50 / 100)",
        "percentile(int, 1.5)",
        "percentile(int, 0.1f)",
        "percentile(int, '0.5')",
        "percentile(int, array())",
        "percentile(name, 0.5)",
        "percentile(int, 0.5, double)",
        "percentile(int)",
        "percentile_disc(0.5)",
        "median(day)",
        "mode(int, id > 0)",
        "mode(DISTINCT int)",
        "mode()",
        "any_value(int, id > 0)",
        "percentile_approx(int, 0.5)",
    ],
)
def test_what_has_no_bag(call: str) -> None:
    aggregate = aggregate_of(call)
    kinds = [TYPES[argument.sql][0] for argument in bag_arguments(aggregate) if argument.sql in TYPES]
    with pytest.raises(NoState):
        make_bag_recipe(aggregate, kinds)


def test_types_without_an_order_have_no_bag() -> None:
    for kind in (pa.list_(pa.int32()), pa.duration("us"), pa.month_day_nano_interval(), pa.null()):
        for call in ("min(x)", "count(DISTINCT x)", "mode(x)", "median(x)"):
            with pytest.raises(NoState):
                make_bag_recipe(aggregate_of(call), [kind])


def test_text_is_ordered_by_bytes() -> None:
    shuffled = random.Random(3).sample(TEXTS, len(TEXTS))
    assert small("max(x)", [pa.string()], shuffled) == max(TEXTS, key=str.encode)
    # In UTF-16, which Java compares by itself, the order of these two is the other way round.
    assert small("max(x)", [pa.large_string()], ["\uffff", "\U0001f600"]) == "\U0001f600"
    assert small("min(x)", [pa.binary()], [b"\xff", b"\x7f"]) == b"\x7f"


def test_zero_and_minus_zero_are_one_value() -> None:
    zeros = [0.0, -0.0, 1.0]
    assert small("count(DISTINCT x)", [pa.float64()], zeros) == 2
    assert small("mode(x)", [pa.float64()], zeros, counts=[2, 2, 3]) == 0.0
    assert small("percentile(DISTINCT x, 0.5)", [pa.float64()], zeros) == 0.5


def test_ties() -> None:
    assert small("mode(x)", [pa.string()], ["b", "a", None, "c"], counts=[2, 2, 9, 1]) == "a"
    within = "mode() WITHIN GROUP (ORDER BY x DESC)"
    assert small(within, [pa.string()], ["b", "a", None, "c"], counts=[2, 2, 9, 1]) == "b"
    kinds = [pa.string(), pa.int32()]
    assert small("min_by(x, y)", kinds, ["b", "a", None, "q"], [5, 5, 5, None]) == "a"
    assert small("min_by(x, y)", kinds, [None, "a"], [4, 5]) is None
    assert small("any_value(x)", [pa.string()], [None, "b", "a"]) == "a"


def test_percentiles_between_equal_neighbours_are_exact() -> None:
    assert small("percentile(x, 0.1)", [pa.float64()], [0.1, 0.3], counts=[1, 3]) == 0.1 + (0.3 - 0.1) * (3 * 0.1)
    assert small("percentile(x, 0.7)", [pa.float64()], [0.1, 0.3], counts=[1, 3]) == 0.3
    assert small("median(x)", [pa.float64()], [math.nan, 1.0, 2.0]) == 2.0
    assert math.isnan(small("median(x)", [pa.float64()], [math.nan, 1.0, 2.0], counts=[3, 1, 1]))


def test_frequencies() -> None:
    kinds = [pa.int32(), pa.int64()]
    assert small("percentile(x, 0.5, f)", kinds, [1, None, 3, 4, None], [2, -1, None, 0, 5]) == 1.0
    assert small("percentile(x, 0.5, f)", kinds, [1, 2], [1, 2], counts=[3, 2]) == 2.0
    with pytest.raises(NegativeFrequency):
        small("percentile(x, 0.5, f)", kinds, [1, 3], [2, -1])
    with pytest.raises(Overflow, match="64 bits"):
        small("percentile(x, 0.5, f)", kinds, [1, 3], [2, 2**63 - 1])


def test_sums_of_long_decimals() -> None:
    most, least = decimal.Decimal(10**38 - 1), decimal.Decimal(1 - 10**38)
    kind = [pa.decimal128(38, 0)]
    assert small("sum(x)", kind, [most, least, 5], counts=[7, 6, 0]) == most
    assert small("sum(x)", kind, [most, least], counts=[2**61, 2**61]) == 0
    assert small("sum(x)", kind, [decimal.Decimal(-(2**64)), 1], counts=[2**40 + 1, 3]) == -(2**104) - 2**64 + 3
    for call in ("sum(x)", "avg(x)"):
        for values, counts in (([most, 1], [1, 1]), ([least], [2]), ([most], [2**62]), ([most, -1], [2**62, 1])):
            with pytest.raises(Overflow):
                small(call, kind, values, counts=counts)


def test_averages_of_long_decimals() -> None:
    assert small("avg(x)", [pa.decimal128(38, 0)], [1, 2], counts=[1, 2]) == decimal.Decimal("1.6667")
    assert small("avg(x)", [pa.decimal128(38, 0)], [-1, -2], counts=[1, 2]) == decimal.Decimal("-1.6667")
    tiny = [decimal.Decimal("1e-38"), decimal.Decimal(0)]
    assert small("avg(x)", [pa.decimal128(38, 38)], tiny, counts=[1, 1]) == decimal.Decimal("1e-38")
    assert small("avg(x)", [pa.decimal128(38, 38)], tiny, counts=[1, 2]) == 0
    with pytest.raises(Overflow):  # 5e37 does not fit decimal(38,4)
        small("avg(x)", [pa.decimal128(38, 0)], [decimal.Decimal(10**38 - 2), 1])


def test_distinct_sums_lose_nothing_to_cancelling() -> None:
    values = [1.0, 1e100, 2.0, -1e100, 4.0, 3.5e99, -3.5e99]
    assert small("sum(DISTINCT x)", [pa.float64()], values * 3) == 7.0
    assert small("sum(DISTINCT x)", [pa.float64()], [math.inf, 1.0, math.inf]) == math.inf
    with pytest.raises(Overflow, match="64 bits"):
        small("sum(DISTINCT x)", [pa.int64()], [2**63 - 1, 1])
    assert small("sum(DISTINCT x)", [pa.int64()], [2**63 - 1, 1, 2**63 - 1, -1]) == 2**63 - 1
