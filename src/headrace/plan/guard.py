"""Expressions that may raise, for the records alone for which Spark computes them.

Spark filters before it computes: `SELECT sum(a / b) ... WHERE b <> 0` never divides by zero. One pass for many
queries computes expressions of all records. So each that is more than a column becomes a CASE, which computes it
where the filter is true.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from headrace.query import Aggregate, Expression, Query


def guarded(query: Query) -> Query:
    """The same query over records that its filter may not have chosen; its outputs are not rewritten."""
    keys = tuple(_guard(key, query.where) for key in query.keys)
    return replace(query, keys=keys, aggregates=tuple(_aggregate(a, query.where) for a in query.aggregates))


def _aggregate(aggregate: Aggregate, where: Expression | None) -> Aggregate:
    condition = _guard(aggregate.filter, where) if aggregate.filter is not None else None
    both = where
    if aggregate.filter is not None:
        both = (
            aggregate.filter if where is None else Expression.parse(f"({where.sql}) AND ({aggregate.filter.sql})")
        )
    arguments = tuple(_guard(argument, both) for argument in aggregate.arguments)
    return replace(aggregate, arguments=arguments, filter=condition)


def _guard(expression: Expression, where: Expression | None) -> Expression:
    if where is None or expression.column is not None or _is_constant(expression):
        return expression
    return Expression.parse(f"CASE WHEN {where.sql} THEN {expression.sql} END")


def _is_constant(expression: Expression) -> bool:
    return expression.sql == "*" or not any(expression.tree.find_all(exp.Column))
