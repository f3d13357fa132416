"""An expression with parts of its text replaced: `sum(a) / sum(b)` over the columns that hold the two sums."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from sqlglot import exp

from headrace.query.dialect import span_of
from headrace.query.expression import Expression


def rewrite(expression: Expression, replacements: Mapping[Expression, str]) -> str:
    """The text with every outermost part that equals a key of `replacements` replaced by its value.

    >>> total = Expression.parse("sum(a)")
    >>> rewrite(Expression.parse("round(SUM( a ) / 2, 1)"), {total: "`a0`"})
    'round(`a0` / 2, 1)'
    """
    text, position = [], 0
    for (start, end), replacement in _found(expression.tree, expression.sql, replacements):
        text += [expression.sql[position:start], replacement]
        position = end
    return "".join(text) + expression.sql[position:]


def _found(
    node: exp.Expr, sql: str, replacements: Mapping[Expression, str]
) -> Iterator[tuple[tuple[int, int], str]]:
    span = span_of(node)
    if span is not None:
        replacement = replacements.get(Expression.parse(sql[span[0] : span[1]]))
        if replacement is not None:
            yield span, replacement
            return
    parts = [(span_of(part) or (0, 0), part) for part in node.iter_expressions()]
    for _, part in sorted(parts, key=lambda pair: pair[0]):
        yield from _found(part, sql, replacements)
