"""Expressions are computed for the records alone for which Spark computes them."""

from __future__ import annotations

from headrace import Workload
from headrace.plan.guard import guarded


def parts(text: str) -> tuple[list[str], list[str]]:
    query = guarded(Workload({"q": text})["q"])
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


def test_nothing_to_guard() -> None:
    assert parts("SELECT a % b, sum(a / b) FROM t GROUP BY a % b") == (["a % b"], ["a / b"])
    assert parts("SELECT count(1), percentile(a, 0.5) FROM t WHERE b = 1") == ([], ["1", "a", "0.5"])
