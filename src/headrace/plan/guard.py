"""Expressions that may raise, for the records alone for which Spark computes them.

Spark filters before it computes: `SELECT sum(a / b) ... WHERE b <> 0` never divides by zero. One pass for many
queries computes expressions of all records. So each that may raise becomes a CASE, which computes it where the
filter is true. One that never raises stays as it is, the same for queries with other filters: records that the
filter does not choose are dropped anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.query import Aggregate, Expression, Query
from headrace.query.condition import all_of, is_constant

Safe = Callable[[Expression], bool]
"""Says that an expression raises for no record, whatever is in it."""


@dataclass(frozen=True, slots=True)
class Guarded:
    """A query, and its keys and aggregates as they are computed of records that its filter may not have chosen."""

    query: Query
    """As it was, other than the time of its window."""
    keys: tuple[Expression, ...]
    aggregates: tuple[Aggregate, ...]


def guarded(query: Query, safe: Safe) -> Guarded:
    """A query whose expressions can be computed of all records; those that are `safe` stay as they are."""
    if query.window is not None:
        time = _guard(query.window.time, query.where, safe)
        query = replace(query, window=replace(query.window, time=time))
    keys = tuple(_guard(key, query.where, safe) for key in query.keys)
    return Guarded(query, keys, tuple(_aggregate(aggregate, query.where, safe) for aggregate in query.aggregates))


def _aggregate(aggregate: Aggregate, where: Expression | None, safe: Safe) -> Aggregate:
    condition = _guard(aggregate.filter, where, safe) if aggregate.filter is not None else None
    both = all_of(where, aggregate.filter)
    arguments = tuple(_guard(argument, both, safe) for argument in aggregate.arguments)
    within = tuple(replace(item, expression=_guard(item.expression, both, safe)) for item in aggregate.within)
    return replace(aggregate, arguments=arguments, within=within, filter=condition)


def _guard(expression: Expression, where: Expression | None, safe: Safe) -> Expression:
    if where is None or expression.column is not None or is_constant(expression.tree) or safe(expression):
        return expression
    return Expression.parse(f"CASE WHEN {where.sql} THEN {expression.sql} END")
