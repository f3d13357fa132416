"""Expressions are computed for the records alone for which Spark computes them."""

from __future__ import annotations

import pyarrow as pa
import pytest

from headrace import Workload
from headrace.kernel.evaluate import never_raises
from headrace.plan.guard import Safe, guarded
from headrace.query import Expression

COLUMNS = {
    "a": pa.int64(),
    "b": pa.int64(),
    "c": pa.int32(),
    "price": pa.float64(),
    "volume": pa.float64(),
    "name": pa.string(),
}


def nothing(_: Expression) -> bool:
    return False


def as_the_kernel_knows(expression: Expression) -> bool:
    return never_raises(expression, COLUMNS, "UTC")


def parts(text: str, safe: Safe = nothing) -> tuple[list[str], list[str]]:
    query = guarded(Workload({"q": text})["q"], safe)
    inner = [argument.sql for aggregate in query.aggregates for argument in aggregate.arguments]
    inner += [aggregate.filter.sql for aggregate in query.aggregates if aggregate.filter]
    return [key.sql for key in query.keys], inner


def test_what_is_more_than_a_column_is_guarded_by_the_filter() -> None:
    keys, inner = parts("SELECT a % b, c, sum(a / b), count(*), max(c) FROM t WHERE b <> 0 GROUP BY a % b, c")
    assert keys == ["CASE WHEN b <> 0 THEN a % b END", "c"]
    assert inner == ["CASE WHEN b <> 0 THEN a / b END", "*", "c"]


def test_both_filters_guard_an_argument() -> None:
    _, inner = parts("SELECT sum(a / b) FILTER (WHERE b <> 0) FROM t WHERE c = 1 OR c = 2")
    assert inner == [
        "CASE WHEN (c = 1 OR c = 2) AND (b <> 0) THEN a / b END",
        "CASE WHEN c = 1 OR c = 2 THEN b <> 0 END",
    ]


def test_what_an_aggregate_orders_by_is_guarded() -> None:
    call = "percentile_cont(0.5) WITHIN GROUP (ORDER BY {})"
    workload = Workload({"q": f"SELECT {call.format('a / b DESC')}, {call.format('a')} FROM t WHERE b <> 0"})
    first, second = guarded(workload["q"], nothing).aggregates
    assert [item.sql for item in first.within] == ["CASE WHEN b <> 0 THEN a / b END DESC"]
    assert [item.sql for item in second.within] == ["a"]


def test_the_time_of_a_window_is_guarded() -> None:
    text = "SELECT window.start, count(*) FROM t WHERE b = 1 GROUP BY window({}, '1 day')"
    for time, expected in {"a": "a", "date(name)": "CASE WHEN b = 1 THEN date(name) END"}.items():
        window = guarded(Workload({"q": text.format(time)})["q"], nothing).query.window
        assert window is not None
        assert window.time.sql == expected


def test_nothing_to_guard() -> None:
    assert parts("SELECT a % b, sum(a / b) FROM t GROUP BY a % b") == (["a % b"], ["a / b"])
    assert parts("SELECT count(1), percentile(a, 0.5) FROM t WHERE b = 1") == ([], ["1", "a", "0.5"])


@pytest.mark.parametrize(
    "safe",
    ["price * volume", "price + a", "a < b", "name = 'x' OR a IS NULL", "c % 7", "a / 2", "CAST(c AS BIGINT) + 1"],
)
def test_what_never_raises_needs_no_guard(safe: str) -> None:
    text = f"SELECT {safe}, max({safe}) FROM t WHERE b <> 0 GROUP BY {safe}"
    assert parts(text, as_the_kernel_knows) == ([safe], [safe])


@pytest.mark.parametrize(
    "risky",
    ["a / b", "a + b", "a % b", "-a", "CAST(price AS INT)", "CAST(name AS INT)", "a + b < 7", "price * pow(a, 2)"],
)
def test_what_may_raise_or_is_not_known_is_guarded(risky: str) -> None:
    text = f"SELECT {risky}, max({risky}) FROM t WHERE b <> 0 GROUP BY {risky}"
    case = f"CASE WHEN b <> 0 THEN {risky} END"
    assert parts(text, as_the_kernel_knows) == ([case], [case])


def test_each_part_of_a_query_is_judged_for_itself() -> None:
    text = (
        "SELECT c % 2, sum(a / b) FILTER (WHERE price > 1), count_if(a + b > 0) FROM t WHERE b <> 0 GROUP BY c % 2"
    )
    keys, inner = parts(text, as_the_kernel_knows)
    assert keys == ["c % 2"]
    assert inner == [
        "CASE WHEN (b <> 0) AND (price > 1) THEN a / b END",
        "CASE WHEN b <> 0 THEN a + b > 0 END",
        "price > 1",
    ]
    _, inner = parts("SELECT sum(price * 2) FILTER (WHERE a / b > 1) FROM t WHERE b <> 0", as_the_kernel_knows)
    assert inner == ["price * 2", "CASE WHEN b <> 0 THEN a / b > 1 END"]
