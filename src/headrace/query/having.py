"""Conditions of HAVING about keys alone choose records, not groups: they belong to WHERE, where Spark tests them.

`HAVING port = 443 AND count(*) > 9` is `WHERE port = 443 ... HAVING count(*) > 9`. Groups that are not wanted are
then never made, and what would raise an error in them does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sqlglot import exp

from headrace.query.aggregate import find_aggregates
from headrace.query.expression import Expression
from headrace.query.query import Output
from headrace.query.rewrite import rewrite
from headrace.query.source import Source
from headrace.query.window import is_window_call


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


def aliases(outputs: Sequence[tuple[Output, str]], names: Sequence[str]) -> dict[Expression, str]:
    """What stands for an alias in HAVING: the output of that alias, unless a key has its name."""
    keys = {name.lower() for name in names}
    return {
        Expression.parse(output.alias): f"({sql})"
        for output, sql in outputs
        if output.alias and output.alias.strip("`").lower() not in keys
    }


def early_conditions(
    where: Expression | None, having: Expression, keys: Sequence[Expression], outputs: Sequence[Output]
) -> tuple[Expression | None, Expression | None]:
    """WHERE and HAVING of a query, with every condition where Spark tests it."""
    written = [(output, output.expression.sql) for output in outputs]
    named = aliases(written, [key.column for key in keys if key.column is not None])
    early, late = [], []
    for part in parts_of(having):
        meant = Expression.parse(rewrite(part, named))
        if _about(meant, keys):
            early.append(meant)
        else:
            late.append(part)
    if not early:
        return where, having
    return all_of(where, *early), all_of(*late)


def _about(condition: Expression, keys: Sequence[Expression]) -> bool:
    """Whether a condition needs nothing but keys."""
    rest = Expression.parse(rewrite(condition, dict.fromkeys(keys, "0"))).tree
    calls = rest.find_all(exp.Anonymous)
    return is_constant(rest) and not any(is_window_call(call) for call in calls)
