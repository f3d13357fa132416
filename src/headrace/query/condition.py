"""Conditions as parts: those that all have to hold, and one for all of them."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from headrace.query.aggregate import find_aggregates
from headrace.query.expression import Expression
from headrace.query.source import Source


def conjuncts(condition: exp.Expr) -> Iterator[exp.Expr]:
    """The conditions that all have to hold.

    >>> [part.sql() for part in conjuncts(Expression.parse("a = 1 AND (b = 2 AND c = 3 OR d)").tree)]
    ['a = 1', '(b = 2 AND c = 3 OR d)']
    """
    inner = condition.unnest()
    if isinstance(inner, exp.And):
        yield from conjuncts(inner.left)
        yield from conjuncts(inner.right)
    else:
        yield condition


def parts_of(condition: Expression) -> list[Expression]:
    """The conditions that all have to hold, each by itself."""
    return [Expression.of(Source(condition.sql, ""), node) for node in conjuncts(condition.tree)]


def all_of(*conditions: Expression | None) -> Expression | None:
    """One condition for all that are not None; None where there is none.

    >>> print(all_of(Expression.parse("a = 1"), None, Expression.parse("b = 2 OR c = 3")))
    (a = 1) AND (b = 2 OR c = 3)
    """
    there = [condition for condition in conditions if condition is not None]
    if len(there) < 2:
        return there[0] if there else None
    return Expression.parse(" AND ".join(f"({condition.sql})" for condition in there))


def is_constant(expression: exp.Expr) -> bool:
    """Whether an expression is the same for every record and every group."""
    return expression.find(exp.Column) is None and not any(find_aggregates(expression))
