"""From aggregate calls to the states that they keep.

A `Recipe` says which states an aggregate needs and how its answer comes from them. Equal states of different
aggregates are one value and are kept once: avg(x), sum(x) and count(x) need two states, not four.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from headrace.algebra.ops import INT_MAX, Op, slot_count
from headrace.algebra.words import MOST_DECIMAL_DIGITS, fits_word
from headrace.query import Aggregate, Expression
from headrace.query.condition import all_of


class Lift(Enum):
    """What of a record goes into a state."""

    ONE = "one"
    """1 for every record that counts."""
    WORD = "word"
    """The value as a word that orders as the value does: of an integer or unscaled decimal, itself."""
    WIDE = "wide"
    """The integer or unscaled decimal, in 128 bits."""
    FLOAT = "float"
    """The value as a float64, with nothing lost yet."""
    VARIANCE = "variance"
    MOMENTS = "moments"
    COMOMENTS = "comoments"
    VALUE = "value"
    """That there is a value, and the value."""
    ORDERED_VALUE = "ordered value"
    """That there is a value, the word to order by, and the value."""


@dataclass(frozen=True, slots=True)
class State:
    """What is kept per group: an operation over slots, what records put into it, and which records count.

    A record counts when its `arguments` are all not null and `condition` is true (in VALUE and ORDERED_VALUE the
    first argument, which is the value, may be null).
    """

    op: Op
    lift: Lift
    arguments: tuple[Expression, ...] = ()
    condition: Expression | None = None

    @property
    def slots(self) -> int:
        """How many 64-bit slots the state takes."""
        return slot_count(self.op)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """The expressions that the state reads of a record."""
        return self.arguments if self.condition is None else (*self.arguments, self.condition)


@dataclass(frozen=True, slots=True)
class Recipe:
    """An aggregate's states and the way from them to its answer: a function of `lower.py`, by name."""

    states: tuple[State, ...]
    lower: str
    type: pa.DataType


class NoState(Exception):
    """An aggregate, or one over such a type, for which there is no state: plain Spark computes it."""


MOST_RECORDS = 2**31
"""Sums of one word hold the values of so many records; `lower` sees to it that there are no more."""


@dataclass(frozen=True, slots=True)
class Fact:
    """What is known of an expression's values: their type, how large they get, and whether one may be null."""

    type: pa.DataType
    most: int | None = None
    """No integer (or unscaled decimal) is farther from 0; None where that is not known."""
    nullable: bool = True
    records: int = MOST_RECORDS
    """There are no more values than this."""

    @property
    def reach(self) -> int:
        """The largest distance from 0 that a value can have."""
        if self.most is not None:
            return self.most
        if pa.types.is_decimal(self.type):
            return int(10**self.type.precision)
        return int(2 ** (self.type.bit_width - 1))


Facts = Sequence[Fact]
Make = Callable[[Aggregate, Facts], Recipe]


def make_recipe(aggregate: Aggregate, facts: Facts) -> Recipe:
    """How to compute an aggregate of whose arguments this is known; raises `NoState`."""
    make = _RECIPES.get(aggregate.function.name)
    if make is None or aggregate.within or aggregate.ignore_nulls:
        raise NoState(f"{aggregate.sql}: no state is known for it")
    if aggregate.once:
        raise NoState(f"{aggregate.sql}: DISTINCT needs a finer node")
    return make(aggregate, facts)


def _count(aggregate: Aggregate, facts: Facts) -> State:
    """How many records have all arguments; one that is never null need not be looked at."""
    nullable = [a for a, fact in zip(aggregate.arguments, facts, strict=True) if fact.nullable]
    return State(Op.ADD, Lift.ONE, tuple(nullable), aggregate.filter)


def _state(aggregate: Aggregate, op: Op, lift: Lift) -> State:
    return State(op, lift, aggregate.arguments, aggregate.filter)


def _count_recipe(aggregate: Aggregate, facts: Facts) -> Recipe:
    rows = aggregate.arguments == (Expression.parse("*"),)
    # A constant is never null, so count(1) is count(*).
    constant = all(argument.canonical.isdecimal() for argument in aggregate.arguments)
    state = State(Op.ADD, Lift.ONE, (), aggregate.filter) if rows or constant else _count(aggregate, facts)
    return Recipe((state,), "count", pa.int64())


def _count_if_recipe(aggregate: Aggregate, _: Facts) -> Recipe:
    (condition,) = aggregate.arguments
    state = State(Op.ADD, Lift.ONE, (), all_of(condition, aggregate.filter))
    return Recipe((state,), "count", pa.int64())


MORE_DIGITS = {"sum": (10, 0), "average": (4, 4)}
"""By how much the precision and the scale of decimals grow, in Spark's type of the answer."""


def decimal_type(answer: str, kind: pa.DataType) -> pa.DataType:
    """Spark's type for the sum or average of decimals.

    >>> decimal_type("average", pa.decimal128(36, 2))
    Decimal128Type(decimal128(38, 6))
    """
    precision, scale = MORE_DIGITS[answer]
    return pa.decimal128(
        min(kind.precision + precision, MOST_DECIMAL_DIGITS), min(kind.scale + scale, MOST_DECIMAL_DIGITS)
    )


def _total_recipe(answer: str) -> Make:
    """Sum or average: the same states, with Spark's type for each."""

    def make(aggregate: Aggregate, facts: Facts) -> Recipe:
        (fact,) = facts
        kind, count = fact.type, _count(aggregate, facts)
        if pa.types.is_floating(kind):
            return Recipe((_state(aggregate, Op.FLOAT_ADD, Lift.FLOAT), count), f"float_{answer}", pa.float64())
        if not (pa.types.is_integer(kind) or (pa.types.is_decimal128(kind) and fits_word(kind))):
            raise NoState(f"{aggregate.sql}: no {answer} is known for {kind}")
        narrow = fact.reach * fact.records <= INT_MAX
        total = _state(aggregate, *((Op.ADD, Lift.WORD) if narrow else (Op.WIDE_ADD, Lift.WIDE)))
        if pa.types.is_integer(kind):
            return Recipe((total, count), f"integer_{answer}", pa.int64() if answer == "sum" else pa.float64())
        return Recipe((total, count), f"decimal_{answer}", decimal_type(answer, kind))

    return make


def _extreme_recipe(op: Op) -> Make:
    def make(aggregate: Aggregate, facts: Facts) -> Recipe:
        kind = facts[0].type
        if not fits_word(kind):
            raise NoState(f"{aggregate.sql}: no word for {kind}")
        return Recipe((_state(aggregate, op, Lift.WORD), _count(aggregate, facts)), "word", kind)

    return make


def _bits_recipe(op: Op) -> Make:
    def make(aggregate: Aggregate, facts: Facts) -> Recipe:
        kind = facts[0].type
        if not pa.types.is_integer(kind):
            raise NoState(f"{aggregate.sql}: {kind} is no integer")
        return Recipe((_state(aggregate, op, Lift.WORD), _count(aggregate, facts)), "word", kind)

    return make


def _numeric(aggregate: Aggregate, facts: Facts) -> None:
    for fact in facts:
        if not (pa.types.is_integer(fact.type) or pa.types.is_floating(fact.type)):
            raise NoState(f"{aggregate.sql}: Spark would cast {fact.type} first")


def _distances_recipe(op: Op, lift: Lift, lower: str) -> Make:
    """What comes from the distances between numbers and their mean."""

    def make(aggregate: Aggregate, facts: Facts) -> Recipe:
        _numeric(aggregate, facts)
        return Recipe((_state(aggregate, op, lift),), lower, pa.float64())

    return make


def _variance_recipe(lower: str) -> Make:
    return _distances_recipe(Op.VARIANCE, Lift.VARIANCE, lower)


def _moments_recipe(lower: str) -> Make:
    return _distances_recipe(Op.MOMENTS, Lift.MOMENTS, lower)


def _comoments_recipe(lower: str) -> Make:
    return _distances_recipe(Op.COMOMENTS, Lift.COMOMENTS, lower)


def _take_recipe(aggregate: Aggregate, facts: Facts) -> Recipe:
    kind = facts[0].type
    if len(facts) != 1 or not fits_word(kind):
        raise NoState(f"{aggregate.sql}: no word for {kind}")
    return Recipe((_state(aggregate, Op.TAKE, Lift.VALUE),), "taken", kind)


def _take_by_recipe(op: Op) -> Make:
    def make(aggregate: Aggregate, facts: Facts) -> Recipe:
        kinds = [fact.type for fact in facts]
        if not all(map(fits_word, kinds)):
            raise NoState(f"{aggregate.sql}: no word for one of {', '.join(map(str, kinds))}")
        return Recipe((_state(aggregate, op, Lift.ORDERED_VALUE),), "taken", kinds[0])

    return make


_RECIPES: Mapping[str, Make] = {
    "count": _count_recipe,
    "count_if": _count_if_recipe,
    "sum": _total_recipe("sum"),
    "avg": _total_recipe("average"),
    "min": _extreme_recipe(Op.MIN),
    "max": _extreme_recipe(Op.MAX),
    "bool_and": _extreme_recipe(Op.MIN),
    "bool_or": _extreme_recipe(Op.MAX),
    "bit_and": _bits_recipe(Op.AND),
    "bit_or": _bits_recipe(Op.OR),
    "bit_xor": _bits_recipe(Op.XOR),
    "var_pop": _variance_recipe("variance"),
    "var_samp": _variance_recipe("sample_variance"),
    "stddev_pop": _variance_recipe("deviation"),
    "stddev_samp": _variance_recipe("sample_deviation"),
    "skewness": _moments_recipe("skewness"),
    "kurtosis": _moments_recipe("kurtosis"),
    "covar_pop": _comoments_recipe("covariance"),
    "covar_samp": _comoments_recipe("sample_covariance"),
    "corr": _comoments_recipe("correlation"),
    "any_value": _take_recipe,
    "min_by": _take_by_recipe(Op.TAKE_LEAST),
    "max_by": _take_by_recipe(Op.TAKE_GREATEST),
}
