"""Expressions over Arrow columns, by hand; test_evaluate_spark.py compares with Spark."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from headrace.kernel.evaluate import Evaluator, compile_expression, never_raises
from headrace.query.expression import Expression

NAN = math.nan
ZONED = pa.timestamp("us", "UTC")
COLUMNS = {
    "a": pa.array([1, None, 3, 0], pa.int32()),
    "b": pa.array([10, 20, None, -7], pa.int64()),
    "tiny": pa.array([127, -128, None, 1], pa.int8()),
    "f": pa.array([1.5, NAN, None, -0.0], pa.float64()),
    "g": pa.array([0.1, NAN, 2.5, None], pa.float32()),
    "x": pa.array(["ab", None, "", "Äbc"]),
    "p": pa.array([True, None, False, True]),
    "dec": pa.array([Decimal("1.50"), None, Decimal("2.00"), Decimal("-3.25")], pa.decimal128(10, 2)),
    "d": pa.array([dt.date(2024, 2, 29), None, dt.date(1900, 1, 1), dt.date(9999, 12, 31)]),
    "ts": pa.array(
        [
            dt.datetime(2024, 3, 31, 1, 2, 3, 4),
            None,
            dt.datetime(1969, 12, 31, 23, 59, 59, 999999),
            dt.datetime(1900, 1, 1),
        ],
        ZONED,
    ),
    "Local": pa.array([dt.datetime(2024, 3, 31, 1, 2, 3), None, None, None], pa.timestamp("us")),
}
TYPES = {name: column.type for name, column in COLUMNS.items()}


def compiled(sql: str, result: pa.DataType, zone: str = "UTC") -> Evaluator | None:
    return compile_expression(Expression.parse(sql), TYPES, result, zone)


def evaluate(sql: str, result: pa.DataType) -> list[Any]:
    """The values, which must be the same where the text comes dictionary-encoded, and after a journey."""
    evaluator = compiled(sql, result)
    assert evaluator is not None, f"not known: {sql}"
    evaluator = pickle.loads(pickle.dumps(evaluator))
    encoded = COLUMNS | {"x": COLUMNS["x"].dictionary_encode()}
    found, again = evaluator(COLUMNS), evaluator(encoded)
    for values in (found, again):
        values.validate(full=True)
        assert values.type == result
    assert repr(found.to_pylist()) == repr(again.to_pylist())
    listed: list[Any] = found.to_pylist()
    return listed


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a = 1", [True, None, False, False]),
        ("A <> 1", [False, None, True, True]),
        ("1 < a", [False, None, True, False]),
        ("a >= 3000000000", [False, None, False, False]),
        ("tiny < 300", [True, True, None, True]),
        ("a > 1.5", [False, None, True, False]),
        ("a = '3'", [False, None, True, False]),
        ("a <=> NULL", [False, True, False, False]),
        ("b <=> 10", [True, False, False, False]),
        ("b = NULL", [None, None, None, None]),
        ("f > 1.5", [False, True, None, False]),
        ("f >= 0", [True, True, None, True]),
        ("f < 100", [True, False, None, True]),
        ("f = 0", [False, False, None, True]),
        ("f = f", [True, True, None, True]),
        ("f < g", [False, False, None, None]),
        ("g < f", [True, False, None, None]),
        ("f <=> CAST('nan' AS DOUBLE)", [False, True, False, False]),
        ("f <= CAST('nan' AS DOUBLE)", [True, True, None, True]),
        ("f IN (0, CAST('nan' AS DOUBLE))", [False, True, None, True]),
        ("g = 0.1D", [False, False, False, None]),  # 0.1 as a float is another number
        ("g IN (2.5, NULL)", [None, None, True, None]),
        ("dec > 1.5", [False, None, True, False]),
        ("dec = 2", [False, None, True, False]),
        ("dec IN (1.50, -3.25)", [True, None, False, True]),
        ("x > 'a'", [True, None, False, True]),
        ("x IN ('ab', 'it''s', NULL)", [True, None, None, None]),
        ("x NOT IN ('ab', '')", [False, None, False, True]),
        ("tiny IN (1, 300)", [False, False, None, True]),
        ("a NOT IN (1, NULL)", [False, None, None, None]),
        ("a BETWEEN 1 AND 2", [True, None, False, False]),
        ("a NOT BETWEEN 1 AND 2 AND p", [False, None, False, True]),
        ("p", [True, None, False, True]),
        ("NOT p", [False, None, True, False]),
        ("p IS TRUE", [True, False, False, True]),
        ("p IS NOT FALSE", [True, True, False, True]),
        ("p AND NULL", [None, None, False, None]),
        ("p OR a = 0", [True, None, False, True]),
        ("p OR a = 3", [True, None, True, True]),
        ("x IS NULL AND a IS NULL", [False, True, False, False]),
        ("d = '2024-02-29'", [True, None, False, False]),
        ("ts >= '2000-01-01'", [True, None, False, False]),
        ("ts < TIMESTAMP '1970-01-01 00:00:00Z'", [False, None, True, True]),
        ("local >= TIMESTAMP_NTZ '2024-03-31 01:02:03'", [True, None, None, None]),
        ("ts > d", [True, None, True, False]),
        ("a IS DISTINCT FROM 1", [False, True, True, True]),
        ("contains(x, 'b')", [True, None, False, True]),
        ("a & 2 = 2", [False, None, True, False]),
    ],
)
def test_conditions(sql: str, expected: list[bool | None]) -> None:
    assert evaluate(sql, pa.bool_()) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("ab", [True, None, False, False]),
        ("a%", [True, None, False, False]),
        ("%b%", [True, None, False, True]),
        ("%c", [False, None, False, True]),
        ("_b", [True, None, False, False]),
        ("_b_", [False, None, False, True]),
        ("%", [True, None, True, True]),
        ("%%", [True, None, True, True]),
        ("", [False, None, True, False]),
        ("a%b", [True, None, False, False]),
        ("a\\\\%", [False, None, False, False]),
    ],
)
def test_like(pattern: str, expected: list[bool | None]) -> None:
    assert evaluate(f"x LIKE '{pattern}'", pa.bool_()) == expected
    contrary = [None if found is None else not found for found in expected]
    assert evaluate(f"x NOT LIKE '{pattern}'", pa.bool_()) == contrary


@pytest.mark.parametrize(
    ("sql", "result", "expected"),
    [
        ("a + 1", pa.int32(), [2, None, 4, 1]),
        ("a * b", pa.int64(), [10, None, None, 0]),
        ("tiny + a", pa.int32(), [128, None, None, 1]),
        ("a / 4", pa.float64(), [0.25, None, 0.75, 0.0]),
        ("b % 3", pa.int64(), [1, 2, None, -1]),
        ("b div 3", pa.int64(), [3, 6, None, -2]),
        ("-b", pa.int64(), [-10, -20, None, 7]),
        ("abs(b)", pa.int64(), [10, 20, None, 7]),
        ("f * 2", pa.float64(), [3.0, NAN, None, -0.0]),
        ("f + 1.5", pa.float64(), [3.0, NAN, None, 1.5]),
        ("CASE WHEN a > 0 THEN b / a ELSE 0 END", pa.float64(), [10.0, 0.0, None, 0.0]),
        ("IF(a = 0, 0, 9 / a)", pa.float64(), [9.0, None, 3.0, 0.0]),
        ("CASE a WHEN 1 THEN 'one' WHEN 3 THEN 'three' ELSE x END", pa.string(), ["one", None, "three", "Äbc"]),
        ("coalesce(a, b)", pa.int64(), [1, 20, 3, 0]),
        ("coalesce(nullif(a, 0), 6 div b)", pa.int64(), [1, 0, 3, 0]),
        ("nvl(x, 'none')", pa.string(), ["ab", "none", "", "Äbc"]),
        ("CAST(a AS DOUBLE)", pa.float64(), [1.0, None, 3.0, 0.0]),
        ("CAST(b AS SMALLINT)", pa.int16(), [10, 20, None, -7]),
        ("CAST(b AS STRING)", pa.string(), ["10", "20", None, "-7"]),
        ("CAST(ts AS BIGINT)", pa.int64(), [1711846923, None, -1, -2208988800]),
        ("unix_seconds(ts)", pa.int64(), [1711846923, None, -1, -2208988800]),
        ("unix_timestamp(ts)", pa.int64(), [1711846923, None, 0, -2208988800]),  # another rounding than CAST's
        ("length(x)", pa.int32(), [2, None, 0, 3]),
        ("octet_length(x)", pa.int32(), [2, None, 0, 4]),
        ("substring(x, 2, 1)", pa.string(), ["b", None, "", "b"]),
        ("left(x, 1) || right(x, 1)", pa.string(), ["ab", None, "", "Äc"]),
        ("year(d)", pa.int32(), [2024, None, 1900, 9999]),
        ("dayofweek(d)", pa.int32(), [5, None, 2, 6]),
        ("hour(ts)", pa.int32(), [1, None, 23, 0]),
        ("minute(local)", pa.int32(), [2, None, None, None]),
        ("trunc(d, 'MM')", pa.date32(), [dt.date(2024, 2, 1), None, dt.date(1900, 1, 1), dt.date(9999, 12, 1)]),
        (
            "CAST(ts AS DATE)",
            pa.date32(),
            [dt.date(2024, 3, 31), None, dt.date(1969, 12, 31), dt.date(1900, 1, 1)],
        ),
        ("floor(b / 4)", pa.int64(), [2, 5, None, -2]),
        ("ceil(a / -2)", pa.int64(), [0, None, -1, 0]),
        ("greatest(ts, NULL)", ZONED, COLUMNS["ts"].to_pylist()),
        ("greatest(a, b, 2)", pa.int64(), [10, 20, 3, 2]),
        ("least(f, g)", pa.float64(), [float(COLUMNS["g"][0].as_py()), NAN, 2.5, -0.0]),
        ("least(x, 'b')", pa.string(), ["ab", "b", "", "b"]),
        ("CAST(nullif(f, CAST('nan' AS DOUBLE)) AS TINYINT)", pa.int8(), [1, None, None, 0]),
        ("datediff(d, DATE '2024-02-01')", pa.int32(), [28, None, -45321, 2913142]),
        ("1 + 1", pa.int32(), [2, 2, 2, 2]),
        ("'it''s'", pa.string(), ["it's"] * 4),
    ],
)
def test_values(sql: str, result: pa.DataType, expected: list[Any]) -> None:
    assert repr(evaluate(sql, result)) == repr(expected)


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("SECOND", ["2024-03-31T01:02:03", "1969-12-31T23:59:59"]),
        ("hour", ["2024-03-31T01:00:00", "1969-12-31T23:00:00"]),
        ("DAY", ["2024-03-31", "1969-12-31"]),
        ("week", ["2024-03-25", "1969-12-29"]),
        ("MONTH", ["2024-03-01", "1969-12-01"]),
        ("quarter", ["2024-01-01", "1969-10-01"]),
        ("YEAR", ["2024-01-01", "1969-01-01"]),
    ],
)
def test_times_are_cut_to_their_unit(unit: str, expected: list[str]) -> None:
    values = evaluate(f"date_trunc('{unit}', ts)", ZONED)
    assert [values[0], values[2]] == [dt.datetime.fromisoformat(text).replace(tzinfo=dt.UTC) for text in expected]


@pytest.mark.parametrize(
    "sql",
    [
        "b / a",
        "b % a",
        "b div a",
        "tiny + 1Y",
        "-tiny",
        "abs(tiny)",
        "CAST(b * 1000 AS TINYINT)",
        "1 / f",
        "b / (a - a)",
    ],
)
def test_what_spark_refuses_raises(sql: str) -> None:
    kinds = (pa.float64(), pa.int64(), pa.int8())
    evaluator = next(found for kind in kinds if (found := compiled(sql, kind)) is not None)
    with pytest.raises(ArithmeticError):
        evaluator(COLUMNS)


@pytest.mark.parametrize(
    ("sql", "result"),
    [
        ("CASE WHEN a <> 0 THEN b % a END", pa.int64()),
        ("IF(a IS NULL OR a = 0, 0, b % a)", pa.int64()),
        ("coalesce(a, b div a)", pa.int64()),
        ("CASE WHEN a = 0 THEN 1 WHEN b % a = 0 THEN 2 END", pa.int32()),
        ("CASE WHEN tiny = 127 THEN 0Y WHEN tiny > 0 THEN tiny + 1Y END", pa.int8()),
        ("nullif(a, 1) + 0 * (b % nullif(a, 0))", pa.int64()),
    ],
)
def test_branches_not_taken_do_not_raise(sql: str, result: pa.DataType) -> None:
    assert len(evaluate(sql, result)) == 4


@pytest.mark.parametrize(
    "sql",
    [
        "a + 1 > 0 AND p",  # which side Spark looks at first would matter
        "b / a > 1 OR p",
        "a = 1 = p",  # sqlglot and Spark group these differently
        "a < 1 = p",
        "p = b IS NULL",
        "a | 1 & 2 = 0",
        "f > .5",  # sqlglot drops the dot
        "x = 'a\\tb'",
        "x ILIKE 'a%'",
        "upper(x) = 'AB'",
        "x = 1",
        "dec = f",
        "x LIKE 'a\\\\b'",
        "missing = 1",
        "x.y = 1",
        "try_cast(a AS TINYINT) = 1",
        "rand() > 0.5",
        "1 / 0 > 1",
        "a IN (1, b)",
        "x RLIKE 'a'",
        "floor(f) = 1",  # what is beyond BIGINT raises in some versions of Spark only
        "a IN (SELECT 1)",
    ],
)
def test_what_is_doubtful_is_left_to_spark(sql: str) -> None:
    assert compiled(sql, pa.bool_()) is None


@pytest.mark.parametrize(
    ("sql", "never"),
    [
        ("f * g", True),
        ("f / 2", True),
        ("tiny * 2", True),  # an INT, as 2 is
        ("CAST(a AS BIGINT) * a", True),
        ("b >= a", True),
        ("x LIKE 'a%' AND p", True),
        ("CASE WHEN p THEN f ELSE 0 END", True),
        ("year(ts)", True),
        ("a + a", False),
        ("a * b", False),
        ("f / a", False),
        ("f / a > 1", False),
        ("a % a", False),
        ("abs(tiny)", False),
        ("CAST(b AS INT)", False),
        ("CAST(f AS BIGINT)", False),
        ("CASE WHEN a > 0 THEN b / a END", False),
        ("CAST(x AS INT)", False),  # not known
        ("pow(f, 2)", False),
        ("nobody", False),
    ],
)
def test_what_raises_for_no_record(sql: str, never: bool) -> None:
    assert never_raises(Expression.parse(sql), TYPES, "UTC") == never


def test_another_type_than_sparks_is_not_known() -> None:
    assert compiled("a + 1", pa.int64()) is None
    assert compiled("a + 1", pa.int32()) is not None


def test_two_columns_of_one_name_are_not_known() -> None:
    assert (
        compile_expression(Expression.parse("q = 1"), {"q": pa.int32(), "Q": pa.int32()}, pa.bool_(), "UTC")
        is None
    )


@pytest.mark.parametrize("sql", ["hour(ts) = 1", "CAST(ts AS DATE) = '2024-01-01'", "ts > d"])
def test_parts_of_times_are_known_in_utc_only(sql: str) -> None:
    assert compiled(sql, pa.bool_()) is not None
    assert compiled(sql, pa.bool_(), "Europe/Berlin") is None


def test_a_time_without_zone_is_one_of_the_sessions() -> None:
    sql = "ts = TIMESTAMP '2024-03-31 03:02:03.000004'"
    berlin = compiled(sql, pa.bool_(), "Europe/Berlin")
    assert berlin is not None
    assert berlin(COLUMNS).to_pylist() == [True, None, False, False]
    # Skipped by the clocks, and repeated.
    for moment in ("2024-03-31 02:30:00", "2024-10-27 02:30:00"):
        assert compiled(f"ts = TIMESTAMP '{moment}'", pa.bool_(), "Europe/Berlin") is None


def test_names_are_those_of_the_stream() -> None:
    evaluator = compiled("LOCAL IS NULL OR A > b", pa.bool_())
    assert evaluator is not None
    assert evaluator.names == ("a", "b", "Local")


def test_slices_and_other_zones_names_are_taken_as_they_come() -> None:
    evaluator = compiled("hour(ts)", pa.int32())
    assert evaluator is not None
    column = COLUMNS["ts"].cast(pa.timestamp("us", "Europe/Berlin"))[2:]
    assert evaluator({"ts": column}).to_pylist() == [23, 0]
    remainder = compiled("b % 3", pa.int64())
    assert remainder is not None
    assert remainder({"b": COLUMNS["b"][1:]}).to_pylist() == [2, None, -1]
    assert remainder({"b": COLUMNS["b"][:0]}).to_pylist() == []


def test_a_column_of_another_type_is_refused() -> None:
    evaluator = compiled("a = 1", pa.bool_())
    assert evaluator is not None
    with pytest.raises(ValueError, match="column 'a' is int64, expected int32"):
        evaluator({"a": pa.array([1])})


def test_unused_and_null_entries_of_a_dictionary_do_no_harm() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 0, 2], pa.int32()), pa.array(["a", "b", None]))
    evaluator = compiled("coalesce(x, 'none')", pa.string())
    assert evaluator is not None
    assert evaluator({"x": column}).to_pylist() == ["a", "none", "none", "a", "none"]


def test_the_calendar_is_pythons() -> None:
    """Every so many days of ten thousand years, close together and far apart."""
    far = [dt.date.fromordinal(day) for day in range(1, dt.date.max.toordinal(), 997)]
    near = [dt.date(2023, 12, 20) + dt.timedelta(days=day % 100) for day in range(200)]
    for days in (far, near):
        column = pa.array(days)
        parts: dict[str, Callable[[dt.date], int]] = {
            "year(d)": lambda day: day.year,
            "quarter(d)": lambda day: (day.month + 2) // 3,
            "month(d)": lambda day: day.month,
            "day(d)": lambda day: day.day,
            "dayofyear(d)": lambda day: day.timetuple().tm_yday,
            "dayofweek(d)": lambda day: day.isoweekday() % 7 + 1,
            "weekday(d)": lambda day: day.weekday(),
        }
        for sql, part in parts.items():
            evaluator = compiled(sql, pa.int32())
            assert evaluator is not None
            assert evaluator({"d": column}).to_pylist() == [part(day) for day in days]
