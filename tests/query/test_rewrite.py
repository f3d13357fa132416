"""Parts of an expression are replaced where they stand, and nowhere else."""

from __future__ import annotations

import pytest

from headrace.query import Expression
from headrace.query.rewrite import rewrite


@pytest.mark.parametrize(
    ("text", "parts", "expected"),
    [
        ("sum(a) / sum(b)", {"sum(a)": "x", "sum(b)": "y"}, "x / y"),
        ("a % 3 + 1", {"a % 3": "k"}, "k + 1"),
        ("1 + a % 3", {"a % 3": "k"}, "1 + k"),
        ("(a % 3) * 2", {"a % 3": "k"}, "(k) * 2"),
        ("a + b + c", {"a + b": "k"}, "k + c"),
        ("CASE WHEN count(*) > 1 THEN max(a) ELSE min(a) END", {"max(a)": "m", "count(*)": "n"},
         "CASE WHEN n > 1 THEN m ELSE min(a) END"),
        ("max(a) FILTER (WHERE b > 1) - max(a)", {"max(a)": "m", "max(a) FILTER (WHERE b > 1)": "f"}, "f - m"),
        ("window(ts, '5 minutes').start", {"window(ts, '5 minutes')": "window"}, "window.start"),
        ("count(DISTINCT a, b) IN (1, 2)", {"count(DISTINCT a, b)": "d"}, "d IN (1, 2)"),
        ("NOT upper(s) LIKE 'A%' AND s IS NULL", {"upper(s)": "k", "s": "t"}, "NOT k LIKE 'A%' AND t IS NULL"),
        ("x IS NULL", {"x IS NULL": "k"}, "k"),
        ("(x IS NULL = FALSE) = TRUE", {"x IS NULL": "k"}, "(k = FALSE) = TRUE"),
        ("coalesce(x IS NULL, NOT (a BETWEEN 1 AND 2))", {"x IS NULL": "k", "a BETWEEN 1 AND 2": "j"},
         "coalesce(k, NOT (j))"),
        ("sum(a)", {"a": "k"}, "sum(k)"),
        ("-sum(a) || 'sum(a)'", {"sum(a)": "x"}, "-x || 'sum(a)'"),
        ("CAST(sum(a) AS STRING)", {"sum(a)": "x"}, "CAST(x AS STRING)"),
        ("sum(a)::string", {"sum(a)": "x"}, "x::string"),
    ],
)  # fmt: skip
def test_rewrite(text: str, parts: dict[str, str], expected: str) -> None:
    replacements = {Expression.parse(part): replacement for part, replacement in parts.items()}
    assert rewrite(Expression.parse(text), replacements) == expected
