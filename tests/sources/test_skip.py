"""Row groups that need not be read: extents prove it, and none is left out that has a record for the query."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernel.evaluate import Evaluator, compile_expression
from headrace.query import Expression
from headrace.sources.parquet import Extent
from headrace.sources.skip import may_match

TYPES = {
    "a": pa.int32(),
    "b": pa.int64(),
    "tiny": pa.int8(),
    "x": pa.string(),
    "f": pa.float64(),
    "p": pa.bool_(),
    "ts": pa.timestamp("us", "UTC"),
    "local": pa.timestamp("us"),
}


def compiled(sql: str, zone: str = "UTC") -> Evaluator:
    evaluator = compile_expression(Expression.parse(sql), TYPES, pa.bool_(), zone)
    assert evaluator is not None, f"not known: {sql}"
    return evaluator


def micros(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1_000_000)


HERE = {
    "a": Extent(10, 20, 0),
    "b": Extent(-5, 2**53 + 1, 3),
    "tiny": Extent(7, 7, 2),
    "ts": Extent(micros("2024-03-04T09:00:00Z"), micros("2024-03-04T10:00:00Z"), 0),
    "local": Extent(micros("2024-03-04T09:00:00Z"), micros("2024-03-04T10:00:00Z"), 0),
}


@pytest.mark.parametrize(
    "sql",
    [
        "a < 10",
        "a <= 9.99",
        "a > 20",
        "20 < a",
        "A >= 21",
        "a = 9",
        "a <=> 21",
        "a > 2e1",
        "a = '21'",
        "a > 3000000000",
        "a <> 7 AND tiny <> 7",
        "tiny <=> 8",
        "b < -5.5",
        "b = NULL",
        "a BETWEEN 1 AND 9",
        "a BETWEEN 12 AND 11 AND a > 20",
        "a NOT BETWEEN 5 AND 25",
        "a IN (1, 2, 300)",
        "a IN (1, NULL)",
        "tiny NOT IN (6, 7)",
        "tiny NOT IN (6, NULL)",
        "a IS NULL",
        "a IS NULL OR b IS NULL AND a > 20",
        "NOT (a >= 10)",
        "NOT a IS NOT NULL",
        "a > 20 AND x = 'y' AND p",
        "(a > 20 OR b < -5) AND f > 0",
        "a > b AND b > 100 AND a < 10",
        "false",
        "ts < TIMESTAMP '2024-03-04 09:00:00'",
        "ts >= '2024-03-04 10:00:00.000001'",
        "ts = DATE '2024-03-05'",
        "ts IN (TIMESTAMP '2024-03-04 08:00:00', TIMESTAMP '2024-03-04 11:00:00')",
        "local > TIMESTAMP_NTZ '2024-03-04 10:00:00'",
        "local < '2024-03-04 09:00:00'",
    ],
)
def test_what_extents_prove(sql: str) -> None:
    assert not may_match(compiled(sql), HERE)


@pytest.mark.parametrize(
    "sql",
    [
        "a < 11",
        "a <= 10",
        "a >= 20",
        "a = 15",
        "a <> 15",
        "tiny = 7",
        "tiny IS NULL",
        "tiny <=> NULL",
        "a IS NOT NULL",
        "a BETWEEN 1 AND 10",
        "a NOT BETWEEN 11 AND 25",
        "a IN (1, 11)",
        "a NOT IN (10, 11)",
        "a > 20 OR x = 'y'",
        "a > 20 OR p",
        "a = 12 OR a = 13",
        "NOT p",
        "f < 0",
        "f = 0 OR f IS NULL",
        "b >= 9007199254740992e0",
        "a + 1 > 100",
        "a / b > 100",
        "CASE WHEN a > 20 THEN true END",
        "ts <= '2024-03-04 09:00:00'",
        "ts >= TIMESTAMP '2024-03-04 10:00:00'",
        "local >= '2024-03-04 10:00:00'",
    ],
)
def test_what_they_do_not_prove(sql: str) -> None:
    assert may_match(compiled(sql), HERE)


def test_nothing_is_known_without_an_extent() -> None:
    assert may_match(compiled("a > 20"), {})
    assert may_match(compiled("a IS NULL"), {})
    assert not may_match(compiled("a > 20 AND b > 100"), {"b": Extent(0, 100, 0)})


def test_times_are_those_of_the_session() -> None:
    assert not may_match(compiled("ts > TIMESTAMP '2024-03-04 10:00:00'"), HERE)
    assert may_match(compiled("ts > TIMESTAMP '2024-03-04 10:00:00'", "Europe/Berlin"), HERE)
    assert not may_match(compiled("ts > TIMESTAMP '2024-03-04 11:00:00'", "Europe/Berlin"), HERE)
    assert not may_match(compiled("local > TIMESTAMP_NTZ '2024-03-04 10:00:00'", "Europe/Berlin"), HERE)


def test_what_can_raise_is_computed() -> None:
    assert may_match(compiled("a > (20 + b)"), HERE | {"b": Extent(1, 1, 0)})


def conditions() -> st.SearchStrategy[str]:
    column, comparison = (
        st.sampled_from(["a", "b", "tiny"]),
        st.sampled_from(["<", "<=", "=", "<>", ">=", ">", "<=>"]),
    )
    literal = st.one_of(
        st.integers(-6, 6).map(str),
        st.sampled_from(["NULL", "2.5", "-0.5", "3.0", "1e0", "-15e-1", "4294967296", "'3'"]),
    )
    listed = st.lists(st.integers(-6, 6).map(str), min_size=1, max_size=3)
    whole = st.tuples(listed, st.sampled_from(["", ", NULL"])).map(lambda parts: ", ".join(parts[0]) + parts[1])
    either = st.sampled_from(["", "NOT "])
    test = st.one_of(
        st.builds("{} {} {}".format, column, comparison, st.one_of(literal, column)),
        st.builds("{} {} {}".format, st.integers(-6, 6), comparison, column),
        st.builds("{} {}BETWEEN {} AND {}".format, column, either, st.integers(-6, 6), literal),
        st.builds("{} {}IN ({})".format, column, either, whole),
        st.builds("{} IS {}NULL".format, column, either),
        st.builds("{} % 2 = {}".format, column, st.integers(-1, 1)),
        st.sampled_from(["true", "false", "NULL", "p"]),
    )
    return st.recursive(
        test.map("({})".format),
        lambda inner: st.one_of(
            st.builds("({} {} {})".format, inner, st.sampled_from(["AND", "OR"]), inner),
            st.builds("(NOT {})".format, inner),
        ),
        max_leaves=5,
    )


def row_groups() -> st.SearchStrategy[dict[str, list[int | None]]]:
    def columns(rows: int) -> st.SearchStrategy[dict[str, list[int | None]]]:
        def values(least: int) -> st.SearchStrategy[list[int | None]]:
            value = st.one_of(st.none(), st.integers(least, least + 2))
            return st.one_of(
                st.lists(value, min_size=rows, max_size=rows),
                st.lists(st.integers(least, least + 2), min_size=rows, max_size=rows),
            )

        column = st.integers(-5, 3).flatmap(values)
        return st.fixed_dictionaries({"a": column, "b": column, "tiny": column})

    return st.integers(1, 5).flatmap(columns)


def extents_of(columns: Mapping[str, Iterable[int | None]]) -> dict[str, Extent]:
    """What a footer would tell."""
    found = {}
    for name, values in columns.items():
        listed = list(values)
        given = [value for value in listed if value is not None]
        if given:
            found[name] = Extent(min(given), max(given), len(listed) - len(given))
    return found


@settings(max_examples=500)
@given(conditions(), row_groups())
def test_no_record_that_is_wanted_is_left_out(sql: str, columns: dict[str, list[int | None]]) -> None:
    evaluator = compile_expression(Expression.parse(sql), TYPES, pa.bool_(), "UTC")
    if evaluator is None or may_match(evaluator, extents_of(columns)):
        return
    rows = len(columns["a"])
    arrays = {name: pa.array(columns.get(name, [None] * rows), kind) for name, kind in TYPES.items()}
    arrays["p"] = pa.array([True] * rows)
    assert not pc.any(evaluator(arrays)).as_py()
