"""Row-level SQL: references to columns, and numbers computed from them.

Every expression carries what the aggregates above it must know: the family of its type, how its numbers are
spread, and whether arithmetics with it may overflow, which raises in ANSI mode.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.harness.choices import Choices
from tests.harness.schemas import NUMBERS, Column, Kind, Role, StreamSchema, quoted
from tests.harness.tolerance import Spread
from tests.harness.values import candidates, literal

ALIASES = ("n", "total", "Result", "my alias", "höhe", "m1", "m2", "m3", "m4", "m5", "m6", "m7", "m8", "m9")
QUALIFIERS = ("s", "src", "T2", "the alias")

_ONE = Spread(1.0, 1.0, dyadic=True)


@dataclass(frozen=True)
class Value:
    """An expression over one row."""

    sql: str
    kind: Kind
    spread: Spread | None = None
    extreme: bool = False


@dataclass(frozen=True)
class Theme:
    """What the queries of a workload have in common: columns to group by, windows over its time, conditions.

    `simple`: they keep to the aggregates that most queries have, so that most of them can be shared.
    """

    columns: tuple[Column, ...]
    windows: tuple[str, ...]
    conditions: tuple[str, ...]
    simple: bool


@dataclass
class Scope:
    """What is being written: the choices, the schema, the table's alias and the aliases in use.

    A column is written in one case throughout, unless `mixing`: then it may be `k` here and `K` there. What is
    written to be read under any alias of the table is not `qualifying`.
    """

    choices: Choices
    schema: StreamSchema
    qualifier: str | None = None
    used: set[str] = field(default_factory=set)
    mixing: bool = False
    qualifying: bool = True
    theme: Theme | None = None
    _spelled: dict[str, str] = field(default_factory=dict)

    def reference(self, column: Column) -> str:
        """A column's name, now and then qualified, quoted without need, or in another case."""
        choices, name = self.choices, self._spelled.get(column.name, column.name)
        # The case of letters outside ASCII is left alone: Spark and the reader may disagree about it.
        if name.isascii() and (self.mixing or column.name not in self._spelled) and choices.chance(8):
            name = name.swapcase()
        self._spelled[column.name] = name
        sql = quoted(name, always=choices.chance(4))
        prefix = self.qualifier or self.schema.table
        if self.qualifying and choices.chance(60 if self.qualifier else 6):
            return f"{quoted(prefix)}.{sql}"
        return sql

    def value(self, column: Column) -> Value:
        return Value(self.reference(column), column.kind, column.spread, column.role is Role.EXTREME)

    def fresh_alias(self) -> str:
        """An alias that neither a column nor another output has: references to it are not ambiguous."""
        free = [name for name in ALIASES if name.lower() not in self.used and not self.schema.taken(name)]
        alias = self.choices.pick(free) if free else f"out{len(self.used)}"
        self.used.add(alias.lower())
        return alias

    def literal(self, column: Column) -> str:
        return literal(column.kind, self.constant(column))

    def constant(self, column: Column) -> Any:
        """A value that the column may have; the first ones are those that data.py takes most."""
        values = candidates(column)
        return self.choices.pick(values[:4] if self.choices.chance(65) else values)


def number(scope: Scope) -> Value:
    """A bounded number: a column, or an expression over one or two."""
    choices = scope.choices
    # There is always one: the schema has an int that is bounded.
    columns = [c for c in scope.schema.columns if c.kind in NUMBERS and c.role is Role.BOUNDED]
    value = scope.value(choices.pick(columns))
    if choices.chance(65):
        return value
    other = scope.value(choices.pick(columns))
    return choices.pick((_shifted, _combined, _scaled, _guarded, _derived))(scope, value, other)


def _result(one: Kind, two: Kind) -> Kind:
    """Spark computes in double if one side is floating, else in decimal if one side is."""
    if Kind.FLOAT in (one, two):
        return Kind.FLOAT
    return Kind.DECIMAL if Kind.DECIMAL in (one, two) else Kind.INT


def _spread(value: Value) -> Spread:
    return value.spread or _ONE


def _shifted(scope: Scope, value: Value, _: Value) -> Value:
    constant = scope.choices.number(1, 3)
    sql = f"{value.sql} {scope.choices.pick('+-')} {constant}"
    return Value(sql, value.kind, _spread(value).plus(Spread(constant, 1.0, dyadic=True)))


def _combined(scope: Scope, value: Value, other: Value) -> Value:
    operator = scope.choices.pick("*+-")
    join = Spread.times if operator == "*" else Spread.plus
    kind = _result(value.kind, other.kind)
    return Value(f"{value.sql} {operator} {other.sql}", kind, join(_spread(value), _spread(other)))


def _scaled(scope: Scope, value: Value, _: Value) -> Value:
    choices, spread = scope.choices, _spread(value)
    if value.kind is Kind.DECIMAL:
        return Value(f"{value.sql} * 2", Kind.DECIMAL, spread.times(Spread(2.0, 2.0, dyadic=True)))
    # A division of integers is one of doubles in Spark; by 4 it is exact.
    quarter = Spread(0.25, 0.25, dyadic=True)
    scaled = Value(f"{value.sql} / 4", Kind.FLOAT, spread.times(quarter))
    as_double = Value(f"CAST({value.sql} AS DOUBLE)", Kind.FLOAT, spread)
    return choices.pick((scaled, as_double))


def _guarded(scope: Scope, value: Value, other: Value) -> Value:
    sql = scope.choices.pick(
        (
            f"coalesce({value.sql}, 0)",
            f"abs({value.sql})",
            f"CASE WHEN {other.sql} > 0 THEN {value.sql} ELSE 0 END",
            f"CASE WHEN {value.sql} > 0 THEN {value.sql} END",
            f"nullif({value.sql}, 0)",
        )
    )
    return Value(sql, value.kind, _spread(value))


def _derived(scope: Scope, value: Value, _: Value) -> Value:
    small = Spread(64.0, 1.0, dyadic=True)
    options = [Value(f"length({scope.reference(c)})", Kind.INT, small) for c in scope.schema.of(Kind.STRING)]
    if value.kind is Kind.INT:
        options += [Value(f"{value.sql} % 3", Kind.INT, small), Value(f"-{value.sql}", Kind.INT, value.spread)]
    options += [Value(f"minute({scope.reference(c)})", Kind.INT, small) for c in scope.schema.of(Kind.TIMESTAMP)]
    return scope.choices.pick(options)
