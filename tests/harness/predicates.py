"""Random conditions over one row, for WHERE, FILTER and boolean aggregates: all operators, three-valued logic."""

from __future__ import annotations

from collections.abc import Callable

from tests.harness.choices import Choices
from tests.harness.expressions import Scope, number
from tests.harness.schemas import NUMBERS, Column, Kind
from tests.harness.values import literal

# The ones that most rows pass stand twice: a filter that keeps nothing tests little.
_COMPARE = (">=", "<=", "<>", ">=", "<=", "!=", ">", "<", "=", "==", "<=>")
_PATTERNS = ("'a%'", "'%b%'", "'_'", "'%'", "''", "'a\\\\_c'", "'%\u00e9'")


def predicate(scope: Scope, depth: int = 2) -> str:
    """A condition: one test, or some joined by AND, OR and NOT."""
    choices = scope.choices
    if depth == 0 or choices.chance(60):
        return _test(scope)
    match choices.pick(("OR", "AND", "OR", "NOT")):
        case "NOT":
            return f"NOT ({predicate(scope, depth - 1)})"
        case word:
            sides = [predicate(scope, depth - 1) for _ in range(choices.number(2, 3))]
            # NOT binds tighter than AND, AND tighter than OR: with parentheses, and sometimes without.
            return f" {word} ".join(sides if choices.chance(30) else [f"({side})" for side in sides])


def _test(scope: Scope) -> str:
    choices = scope.choices
    column = choices.pick(scope.schema.columns)
    tests: list[Callable[[Scope, Column], str]] = [_compared, _compared, _in_list, _between, _null_test]
    if column.kind in NUMBERS:
        tests.append(_arithmetic)
    elif column.kind is Kind.STRING:
        tests += [_like, _like]
    elif column.kind is Kind.BOOL:
        tests += [_truth, _truth]
    elif column.kind in (Kind.TIMESTAMP, Kind.NTZ, Kind.DATE):
        tests.append(_part_of_time)
    return choices.pick(tests)(scope, column)


def _compared(scope: Scope, column: Column) -> str:
    name, value = scope.reference(column), scope.literal(column)
    operator = scope.choices.pick(_COMPARE)
    flipped = scope.choices.chance(15)
    return f"{value} {operator} {name}" if flipped else f"{name} {operator} {value}"


def _in_list(scope: Scope, column: Column) -> str:
    values = [scope.literal(column) for _ in range(scope.choices.number(1, 4))]
    if scope.choices.chance(10):
        values.append("NULL")  # x NOT IN (1, NULL) is never true
    return f"{scope.reference(column)} {_maybe_not(scope.choices)}IN ({', '.join(values)})"


def _between(scope: Scope, column: Column) -> str:
    ends = [scope.constant(column), scope.constant(column)]
    # Python cannot sort structs and arrays with nulls as Spark does; there the range may be empty.
    if column.kind not in (Kind.STRUCT, Kind.ARRAY) and scope.choices.chance(90):
        ends.sort()
    low, high = (literal(column.kind, end) for end in ends)
    return f"{scope.reference(column)} {_maybe_not(scope.choices)}BETWEEN {low} AND {high}"


def _null_test(scope: Scope, column: Column) -> str:
    test = scope.choices.weighted(((3, "IS NOT NULL"), (1, "IS NULL"), (1, "<=> NULL")))
    return f"{scope.reference(column)} {test}"


def _like(scope: Scope, column: Column) -> str:
    word = scope.choices.pick(("LIKE", "LIKE", "ILIKE"))
    pattern = scope.choices.pick(_PATTERNS)
    return f"{scope.reference(column)} {_maybe_not(scope.choices)}{word} {pattern}"


def _truth(scope: Scope, column: Column) -> str:
    name = scope.reference(column)
    return scope.choices.pick((name, f"NOT {name}", f"{name} IS TRUE", f"{name} IS NOT FALSE", f"{name} = TRUE"))


def _part_of_time(scope: Scope, column: Column) -> str:
    name = scope.reference(column)
    if column.kind is Kind.DATE:
        return f"year({name}) = 2024"
    return scope.choices.pick((f"minute({name}) < 30", f"hour({name}) IN (0, 1, 7)", f"second({name}) <> 0"))


def _arithmetic(scope: Scope, _: Column) -> str:
    left, right = number(scope), number(scope)
    if left.kind is Kind.INT and scope.choices.chance(40):
        return f"({left.sql}) % 2 = {scope.choices.number(0, 1)}"
    operator = scope.choices.pick(_COMPARE)
    return f"{left.sql} {operator} {right.sql}"


def _maybe_not(choices: Choices) -> str:
    return "NOT " if choices.chance(40) else ""
