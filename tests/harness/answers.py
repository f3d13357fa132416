"""The aggregate part of a SELECT list: aggregates, and expressions over them.

A floating sum stays comparable only through what is linear (adding, scaling, rounding): nothing divides by one,
compares one or casts one, since the smallest difference could then become any difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tests.harness.aggregates import Aggregate, aggregate
from tests.harness.expressions import Scope
from tests.harness.keys import Key, Output
from tests.harness.schemas import NUMBERS, Kind, quoted
from tests.harness.tolerance import EXACT, Comparison, Mode, Moment, near

_SUMMABLE = (Moment.SUM, Moment.MEAN)


@dataclass(frozen=True)
class Answer:
    """An item of the SELECT list that aggregates, and whether it may raise."""

    output: Output
    may_fail: bool = False
    lateral: bool = False  # refers to the alias of another item


def answers(scope: Scope, keys: Sequence[Key], lateral: bool) -> list[Answer]:
    """One to five items. `lateral`: one may refer to the alias of one before it, which Spark allows."""
    choices = scope.choices
    made: list[Answer] = []
    for _ in range(choices.number(1, 5)):
        first = aggregate(scope, keys)
        expression = _over(scope, keys, first) if choices.chance(28) else first
        alias = scope.fresh_alias() if choices.chance(60) else None
        comparison, kind = expression.comparison, expression.kind
        output = Output(expression.sql, alias, comparison, kind, witness=expression.witness)
        made.append(Answer(output, expression.may_fail))
    if lateral and choices.chance(8):
        made += _lateral(scope, made)
    return made


def _lateral(scope: Scope, before: Sequence[Answer]) -> list[Answer]:
    """An item like `total * 2`, where `total` is an item before it."""
    for answer in before:
        output = answer.output
        if output.alias and output.comparison is EXACT and output.kind is Kind.INT and not answer.may_fail:
            sql = f"{quoted(output.alias)} {scope.choices.pick(('IS NULL', '% 2', '/ 4'))}"
            alias = scope.fresh_alias() if scope.choices.chance(60) else None
            return [Answer(Output(sql, alias), lateral=True)]
    return []


def _over(scope: Scope, keys: Sequence[Key], one: Aggregate) -> Aggregate:
    """An expression over an aggregate, if there is one for its type; else the aggregate."""
    mode = one.comparison.mode
    if one.kind in NUMBERS and one.spread and mode in (Mode.EXACT, Mode.NEAR):
        if mode is Mode.NEAR or scope.choices.chance(70):
            return scope.choices.pick((_combined, _ratio, _scaled, _rounded, _combined))(scope, keys, one)
        return scope.choices.pick((_compared, _text))(scope, one)
    if one.kind is Kind.ARRAY and mode is Mode.MULTISET:
        sql = f"{scope.choices.pick(('size', 'sort_array'))}({one.sql})"
        return Aggregate(sql, Kind.INT if sql.startswith("size") else Kind.ARRAY)
    if one.kind is Kind.STRING and mode is Mode.EXACT:
        return Aggregate(f"concat({one.sql}, '!')", Kind.STRING)
    if mode is Mode.EXACT:
        return Aggregate(f"{one.sql} IS NULL", Kind.BOOL)
    return one


def _ratio(scope: Scope, _: Sequence[Key], one: Aggregate) -> Aggregate:
    column = scope.reference(scope.choices.pick(scope.schema.columns))
    sql = scope.choices.pick(
        (
            f"{one.sql} / count(*)",  # without keys and rows both are 0 or NULL: NULL / 0 is NULL
            f"try_divide({one.sql}, count({column}))",
            f"{one.sql} / nullif(count({column}), 0)",
        )
    )
    if "count(*)" in sql and one.sql.startswith("count"):
        sql = f"try_divide({one.sql}, count(*))"
    kind = Kind.DECIMAL if one.kind is Kind.DECIMAL else Kind.FLOAT
    # Dividing by a count makes the error smaller, if anything.
    return Aggregate(sql, kind, one.comparison, may_fail=one.may_fail)


def _scaled(scope: Scope, _: Sequence[Key], one: Aggregate) -> Aggregate:
    sql, factor = scope.choices.pick(
        (
            (f"{one.sql} * 2", 2.0),
            (f"coalesce({one.sql}, 0)", 1.0),
            (f"-{one.sql}", 1.0),
            (f"abs({one.sql})", 1.0),
            (f"({one.sql})", 1.0),
        )
    )
    comparison = one.comparison
    if comparison.tolerance:
        comparison = near(comparison.tolerance.times(factor))
    return Aggregate(sql, one.kind, comparison, may_fail=one.may_fail)


def _rounded(scope: Scope, _: Sequence[Key], one: Aggregate) -> Aggregate:
    digits = scope.choices.number(0, 3)
    comparison = one.comparison
    if comparison.tolerance:
        comparison = near(comparison.tolerance.rounded(digits))
    return Aggregate(f"round({one.sql}, {digits})", one.kind, comparison, may_fail=one.may_fail)


def _combined(scope: Scope, keys: Sequence[Key], one: Aggregate) -> Aggregate:
    """A sum or difference of two aggregates: `max(x) - min(x)`, `sum(x) + sum(y)`."""
    if one.sql.startswith(("max(", "min(")):
        largest, smallest = (f"{name}{one.sql[3:]}" for name in ("max", "min"))
        return Aggregate(f"{largest} - {smallest}", one.kind)
    other = aggregate(scope, keys)
    if other.kind not in NUMBERS or not other.spread:
        other = Aggregate("count(*)", Kind.INT)
    comparison = _joined(one.comparison, other.comparison)
    if comparison is None or _may_overflow(one, other):
        return one
    sql = f"{one.sql} {scope.choices.pick('-+')} {other.sql}"
    kinds = (one.kind, other.kind)
    kind = Kind.FLOAT if Kind.FLOAT in kinds else Kind.DECIMAL if Kind.DECIMAL in kinds else Kind.INT
    return Aggregate(sql, kind, comparison, may_fail=one.may_fail or other.may_fail)


def _may_overflow(one: Aggregate, other: Aggregate) -> bool:
    """Whether a sum of two bigint could leave bigint."""
    spreads = [each.spread for each in (one, other) if each.spread]
    return any(spread.magnitude > 1e18 for spread in spreads) and Kind.INT in (one.kind, other.kind)


def _joined(one: Comparison, other: Comparison) -> Comparison | None:
    """The comparison of a sum of two results; None if they cannot be added up."""
    tolerances = [each.tolerance for each in (one, other) if each.tolerance]
    if any(tolerance.moment not in _SUMMABLE for tolerance in tolerances):
        return None
    if {one.mode, other.mode} - {Mode.EXACT, Mode.NEAR}:
        return None
    if len(tolerances) == 2:
        return near(tolerances[0].plus(tolerances[1]))
    return near(tolerances[0]) if tolerances else EXACT


def _compared(scope: Scope, one: Aggregate) -> Aggregate:
    sql = scope.choices.pick(
        (f"{one.sql} > 1", f"CASE WHEN {one.sql} > 1 THEN 'many' ELSE 'few' END", f"{one.sql} = count(*)")
    )
    kind = Kind.STRING if sql.startswith("CASE") else Kind.BOOL
    return Aggregate(sql, kind, may_fail=one.may_fail)


def _text(scope: Scope, one: Aggregate) -> Aggregate:
    # -0.0 and 0.0 are equal, but not as text.
    if one.kind is Kind.FLOAT:
        return _compared(scope, one)
    return Aggregate(f"CAST({one.sql} AS STRING)", Kind.STRING, may_fail=one.may_fail)
