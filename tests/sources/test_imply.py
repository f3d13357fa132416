"""Which condition is true wherever another one is: never claimed wrongly, and found where it is plain."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.words import truth
from headrace.sources.imply import implies
from tests.sources.test_skip import compiled


@pytest.mark.parametrize(
    ("condition", "other"),
    [
        ("a = 443", "a < 1024"),
        ("a < 5", "a <= 4"),
        ("a <= 4", "a < 5"),
        ("443 = a", "a = 443"),
        ("a BETWEEN 3 AND 4", "a > 2"),
        ("a > 2 AND b = 7", "b >= 7"),
        ("a > 2 AND b = 7", "a > 2"),
        ("a IN (3, 5)", "a BETWEEN 3 AND 5"),
        ("a = 3 OR a = 5", "a >= 3"),
        ("a = 3", "a = 3 OR b = 1"),
        ("a = 3", "a IS NOT NULL"),
        ("a = 3", "a <> 4"),
        ("tiny = 3", "tiny < 1000"),
        ("ts >= TIMESTAMP '2024-01-02 00:00:00'", "ts > TIMESTAMP '2024-01-01 00:00:00'"),
        ("x LIKE 'p%' AND a = 1", "x LIKE 'p%'"),
        ("f > 1.5 AND a = 1", "a < 2"),
    ],
)
def test_what_one_says_of_another(condition: str, other: str) -> None:
    assert implies(compiled(condition), compiled(other))


@pytest.mark.parametrize(
    ("condition", "other"),
    [
        ("a < 1024", "a = 443"),
        ("a < 5", "a < 4"),
        ("a = 3 OR b = 1", "a = 3"),
        ("a > 2", "b > 2"),
        ("a <> 3", "a < 3"),
        ("NOT a = 3", "a = 3"),
        ("a IS NULL", "a < 3"),
        ("x LIKE 'p%'", "x LIKE 'pq%'"),
        ("f = 1.5", "f > 1"),  # true, but floating numbers are not looked into
    ],
)
def test_what_it_does_not(condition: str, other: str) -> None:
    assert not implies(compiled(condition), compiled(other))


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        parts = [draw(conditions(depth=depth - 1)) for _ in range(2)]
        return draw(st.sampled_from([f"({parts[0]}) AND ({parts[1]})", f"({parts[0]}) OR ({parts[1]})"]))
    column, number = draw(st.sampled_from(["a", "b", "tiny"])), draw(st.integers(0, 4))
    return draw(
        st.sampled_from(
            [
                *(f"{column} {sign} {number}" for sign in ("<", "<=", "=", ">=", ">", "<>", "<=>")),
                f"{number} < {column}",
                f"{column} IS NULL",
                f"{column} IN ({number}, {number + 2})",
                f"{column} BETWEEN {number} AND {number + 1}",
                f"NOT ({column} = {number})",
            ]
        )
    )


VALUES = [None, -1, 0, 1, 2, 3, 4, 5, 6, 7]
RECORDS = {
    "a": pa.array([a for a in VALUES for _ in range(100)], pa.int32()),
    "b": pa.array([b for _ in range(10) for b in VALUES for _ in range(10)], pa.int64()),
    "tiny": pa.array(VALUES * 100, pa.int8()),
}


@given(conditions(), conditions())
def test_what_is_claimed_holds_for_every_record(condition: str, other: str) -> None:
    one, two = compiled(condition), compiled(other)
    if implies(one, two):
        true, also = truth(one(RECORDS)), truth(two(RECORDS))
        assert also[true].all()
