"""Every aggregate that has a state, against Spark: lift, combine in pieces, lower; values, types and nulls."""

from __future__ import annotations

import decimal
import math
import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import ArithmeticException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import from_arrow_type

from headrace.algebra.lift import lift
from headrace.algebra.lower import Overflow, lower
from headrace.algebra.states import Fact, NoState, Recipe, State, make_recipe
from headrace.kernel.table import Table
from headrace.query import Aggregate, parse_query
from tests.harness.compare import compare
from tests.harness.result import Result, collect
from tests.harness.tolerance import EXACT

INTEGERS = ["byte", "short", "int", "long"]
NUMBERS = [*INTEGERS, "float", "double"]
WORDS = [*NUMBERS, "flag", "day", "moment", "local", "price"]

EXACT_CALLS = [
    "count(*)",
    "count(1)",
    "count(double)",
    "count(int, flag)",
    "count_if(int > 0)",
    "count_if(flag) FILTER (WHERE long > 0)",
    *[f"sum({name})" for name in (*INTEGERS, "price")],
    "avg(price)",
    *[f"{function}({name})" for function in ("min", "max") for name in WORDS],
    "max(DISTINCT int)",
    *[f"{function}(flag)" for function in ("bool_and", "every", "bool_or", "any", "some")],
    *[f"{function}({name})" for function in ("bit_and", "bit_or", "bit_xor") for name in INTEGERS],
    "min(int) FILTER (WHERE flag)",
    "sum(long) FILTER (WHERE double > 0)",
    "min_by(double, id)",
    "max_by(day, id)",
    "max_by(int, id) FILTER (WHERE flag)",
    "any_value(k)",
]
NEAR_CALLS = [
    *[f"avg({name})" for name in NUMBERS],
    "sum(float)",
    "sum(double)",
    *[
        f"{function}({name})"
        for function in ("var_pop", "var_samp", "stddev_pop", "stddev_samp", "skewness", "kurtosis")
        for name in ("int", "double", "byte")
    ],
    *[f"{function}(int, double)" for function in ("covar_pop", "covar_samp", "corr")],
]


def make_table() -> pa.Table:
    """Groups: many rows, one row, all nulls, all the same value, values that cancel."""
    draw = random.Random(4)
    columns: dict[str, list[Any]] = {name: [] for name in ("k", "id", *WORDS)}

    def add(k: int, present: bool, x: float) -> None:
        n = len(columns["k"])
        row = {
            "byte": int(x) % 100,
            "short": int(x * 7) % 3000,
            "int": int(x * 1000),
            "long": int(x * 10**12),
            "float": x / 8,
            "double": x / 3,
            "flag": x > 0,
            "day": date(2000, 1, 1) + timedelta(days=int(x)),
            "moment": datetime(2024, 1, 1, tzinfo=UTC) + timedelta(seconds=x),
            "local": datetime(1969, 1, 1) + timedelta(seconds=x),
            "price": decimal.Decimal(int(x * 100)) / 100,
        }
        columns["k"].append(k)
        columns["id"].append(n)
        for name, value in row.items():
            columns[name].append(value if present and (k != 0 or draw.random() > 0.2) else None)

    for _ in range(300):
        add(0, True, draw.uniform(-500, 500))
    add(1, True, 42.5)
    for _ in range(5):
        add(2, False, 1.0)
        add(3, True, 7.25)
    for x in (1e-3, 400.0, -400.0, 123.456, -123.456):
        add(4, True, x)
    kinds = [
        pa.int32(), pa.int64(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64(),
        pa.bool_(), pa.date32(), pa.timestamp("us", "UTC"), pa.timestamp("us"), pa.decimal128(12, 2),
    ]  # fmt: skip
    return pa.table(
        {name: pa.array(values, kind) for (name, values), kind in zip(columns.items(), kinds, strict=True)}
    )


TABLE = make_table()


def aggregate_of(call: str) -> Aggregate:
    (aggregate,) = parse_query("q", f"SELECT {call} AS a FROM t").aggregates
    return aggregate


def recipe_of(call: str) -> Recipe:
    aggregate = aggregate_of(call)
    named = [
        TABLE.schema.field(a.canonical).type for a in aggregate.arguments if a.canonical in TABLE.column_names
    ]
    return make_recipe(aggregate, [Fact(kind) for kind in named])


def condition_of(state: State, table: pa.Table) -> Any:
    """The few conditions of this file, by hand: Spark or the source computes them in the engine."""
    if state.condition is None:
        return None
    known = {
        "int > 0": lambda: pc.greater(table["int"], 0),
        "(flag) AND (long > 0)": lambda: pc.and_kleene(table["flag"], pc.greater(table["long"], 0)),
        "flag": lambda: table["flag"],
        "double > 0": lambda: pc.greater(table["double"], 0),
    }
    return np.asarray(pc.fill_null(known[state.condition.sql](), False))


def pieces(rows: int) -> Iterator[tuple[int, int]]:
    draw = random.Random(rows)
    cuts = sorted(draw.sample(range(1, rows), 6))
    yield from zip([0, *cuts], [*cuts, rows], strict=True)


def compute(recipe: Recipe, table: pa.Table) -> tuple[list[int], pa.Array]:
    """Each piece into a table of its own, these into one: the way of partials."""
    ops = tuple(state.op for state in recipe.states)
    whole = Table(1, ops)
    for low, high in pieces(table.num_rows):
        part = table.slice(low, high - low).combine_chunks()
        slots = [part["k"].cast(pa.int64()).to_numpy()]
        for state in recipe.states:
            arguments = [part[argument.sql].chunk(0) for argument in state.arguments]
            slots += lift(state, part.num_rows, arguments, condition_of(state, part))
        partial = Table(1, ops)
        partial.add(np.stack(slots, axis=1))
        whole.add(partial.rows)
    columns = [np.ascontiguousarray(whole.rows[:, index]) for index in range(whole.width)]
    return columns[0].tolist(), lower(recipe, columns[1:])


@pytest.mark.spark
@pytest.mark.parametrize("call", [*EXACT_CALLS, *NEAR_CALLS])
def test_answers_are_sparks(spark: SparkSession, call: str) -> None:
    kinds = "k int, id bigint, byte tinyint, short smallint, int int, long bigint, float float, double double, "
    kinds += "flag boolean, day date, moment timestamp, local timestamp_ntz, price decimal(12,2)"
    spark.createDataFrame(TABLE, schema=kinds).coalesce(1).createOrReplaceTempView("t")
    expected = collect(spark.sql(f"SELECT k, {call} AS a FROM t GROUP BY k ORDER BY k"))
    keys, answers = compute(recipe_of(call), TABLE)
    actual_table = pa.table({"k": pa.array(keys, pa.int32()), "a": answers}).sort_by("k")
    assert from_arrow_type(answers.type, prefer_timestamp_ntz=True).simpleString() == expected.columns[1][1]
    if call in EXACT_CALLS:
        compare(expected, Result.of_arrow(expected.columns, actual_table), [EXACT, EXACT], ordered=True)
        return
    for (k, want), (_, got) in zip(
        expected.rows, Result.of_arrow(expected.columns, actual_table).rows, strict=True
    ):
        assert (want is None) == (got is None), k
        assert want is None or got == pytest.approx(want, rel=1e-9, abs=1e-9, nan_ok=True), k


def test_equal_states_are_one() -> None:
    states = [state for call in ("avg(int)", "sum( INT )", "count(int)") for state in recipe_of(call).states]
    assert len(states) == 5
    assert len(set(states)) == 2


def test_variances_keep_no_more_than_they_need() -> None:
    variances = [f"{name}(double)" for name in ("var_pop", "var_samp", "stddev_pop", "stddev_samp")]
    (narrow,) = {state for call in variances for state in recipe_of(call).states}
    (wide,) = {state for call in ("skewness(double)", "kurtosis(double)") for state in recipe_of(call).states}
    assert (narrow.slots, wide.slots) == (3, 5)


@pytest.mark.parametrize(
    "call",
    ["count(DISTINCT int)", "sum(DISTINCT int)", "median(int)", "first(int)", "sum(day)", "min_by(int, name)"],
)
def test_what_has_no_state(call: str) -> None:
    aggregate = aggregate_of(call)
    kinds = {"int": pa.int32(), "day": pa.date32(), "name": pa.string()}
    with pytest.raises(NoState):
        make_recipe(aggregate, [Fact(kinds[argument.sql]) for argument in aggregate.arguments])


def totals(call: str, kind: pa.DataType, values: list[Any], arguments: int = 1) -> Any:
    recipe = make_recipe(aggregate_of(call), [Fact(kind)] * arguments)
    table = Table(1, tuple(state.op for state in recipe.states))
    array = pa.array(values, kind)
    slots = [np.zeros(len(values), dtype=np.int64)]
    for state in recipe.states:
        slots += lift(state, len(values), [array] * len(state.arguments), None)
    table.add(np.stack(slots, axis=1))
    return lower(recipe, [np.ascontiguousarray(table.rows[:, i]) for i in range(1, table.width)])[0].as_py()


def test_a_sum_that_exceeds_64_bits_is_an_error() -> None:
    assert totals("sum(x)", pa.int64(), [2**63 - 1, 1, -1]) == 2**63 - 1
    with pytest.raises(Overflow, match="64 bits"):
        totals("sum(x)", pa.int64(), [2**63 - 1, 1])
    assert totals("avg(x)", pa.int64(), [2**63 - 1] * 4) == pytest.approx(2.0**63)


def test_sums_of_floats_lose_nothing_to_cancelling() -> None:
    assert totals("sum(x)", pa.float64(), [1.0, 1e100, 1.0, -1e100]) == 2.0
    assert math.isnan(totals("sum(x)", pa.float64(), [math.inf, -math.inf]))
    assert totals("sum(x)", pa.float64(), [math.inf, 1.0]) == math.inf


def test_an_average_of_decimals_rounds_half_away_from_zero() -> None:
    cents = [decimal.Decimal("0.01"), decimal.Decimal("0.02"), decimal.Decimal("0.02")]
    assert totals("avg(x)", pa.decimal128(5, 2), cents) == decimal.Decimal("0.016667")
    assert totals("avg(x)", pa.decimal128(5, 2), [-cent for cent in cents]) == decimal.Decimal("-0.016667")


ODD = {
    "one": [1.0],
    "one without end": [-math.inf],
    "one that is no number": [math.nan],
    "equal": [2.0, 2.0],
    "squares vanish": [1e-170, 3e-170],
    "products of squares vanish": [1e-120, 3e-120, 2e-120],
    "cubes of squares vanish": [1e-60, 3e-60, 2e-60],
    "all without end": [math.inf, math.inf],
}
"""Values with which Spark has nothing to divide by, or a zero: null, NaN or an error."""


@pytest.mark.parametrize(
    "call", ["corr(x, x)", "skewness(x)", "kurtosis(x)", "stddev_samp(x)", "covar_samp(x, x)"]
)
@pytest.mark.parametrize("values", ODD.values(), ids=list(ODD))
def test_where_nothing_can_be_divided(spark: SparkSession, call: str, values: list[float]) -> None:
    frame = spark.createDataFrame([(value,) for value in values], "x double").coalesce(1)
    arguments = call.count("x,") + 1
    try:
        ((expected,),) = frame.selectExpr(call).collect()
    except ArithmeticException:
        with pytest.raises(Overflow, match="division by zero"):
            totals(call, pa.float64(), values, arguments)
        return
    found = totals(call, pa.float64(), values, arguments)
    assert (found is None) == (expected is None)
    assert found is None or found == pytest.approx(expected, nan_ok=True)
