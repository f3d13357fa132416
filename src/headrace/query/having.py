"""Conditions of HAVING about keys alone choose records, not groups: they belong to WHERE, where Spark tests them.

`HAVING port = 443 AND count(*) > 9` is `WHERE port = 443 ... HAVING count(*) > 9`. Groups that are not wanted are
then never made, and what would raise an error in them does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from headrace.query.condition import all_of, is_constant, parts_of
from headrace.query.expression import Expression
from headrace.query.query import Output
from headrace.query.rewrite import rewrite
from headrace.query.window import is_window_call


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
