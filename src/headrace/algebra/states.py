"""From aggregate calls to the states that they keep.

A `Recipe` says which states an aggregate needs and how its answer comes from them. Equal states of different
aggregates are one value and are kept once: avg(x), sum(x) and count(x) need two states, not four.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa

from headrace.algebra.ops import Op, slot_count
from headrace.algebra.words import fits_word
from headrace.query import Aggregate, Expression


class Lift(Enum):
    """What of a record goes into a state."""

    ONE = "one"
    """1 for every record that counts."""
    WORD = "word"
    """The value as a word that orders as the value does."""
    BITS = "bits"
    """The integer itself, for bit operations."""
    WIDE = "wide"
    """The integer or unscaled decimal, in 128 bits."""
    FLOAT = "float"
    """The value as a float64, with nothing lost yet."""
    MOMENTS = "moments"
    COMOMENTS = "comoments"
    VALUE = "value"
    """That there is a value, and the value."""
    ORDERED_VALUE = "ordered value"
    """That there is a value, the word to order by, and the value."""


@dataclass(frozen=True, slots=True)
class State:
    """What is kept per group: an operation over slots, what records put into it, and which records count.

    A record counts when its `arguments` are all not null and `condition` is true (ANY argument may be null in
    VALUE and ORDERED_VALUE, see `lift.py`).
    """

    op: Op
    lift: Lift
    arguments: tuple[Expression, ...] = ()
    condition: Expression | None = None

    @property
    def slots(self) -> int:
        """How many 64-bit slots the state takes."""
        return slot_count(self.op)


@dataclass(frozen=True, slots=True)
class Recipe:
    """An aggregate's states and the way from them to its answer: a function of `lower.py`, by name."""

    states: tuple[State, ...]
    lower: str
    type: pa.DataType


class NoState(Exception):
    """An aggregate, or one over such a type, for which there is no state: plain Spark computes it."""


Types = Sequence[pa.DataType]
Make = Callable[[Aggregate, Types], Recipe]


def make_recipe(aggregate: Aggregate, types: Types) -> Recipe:
    """How to compute an aggregate whose arguments have these types; raises `NoState`."""
    make = _RECIPES.get(aggregate.function.name)
    if make is None or aggregate.within or aggregate.ignore_nulls:
        raise NoState(f"{aggregate.sql}: no state is known for it")
    if aggregate.distinct and aggregate.function.name not in _BLIND_TO_REPEATS:
        raise NoState(f"{aggregate.sql}: DISTINCT needs a finer node")
    return make(aggregate, types)


def _count(aggregate: Aggregate, arguments: tuple[Expression, ...]) -> State:
    return State(Op.ADD, Lift.ONE, arguments, aggregate.filter)


def _state(aggregate: Aggregate, op: Op, lift: Lift) -> State:
    return State(op, lift, aggregate.arguments, aggregate.filter)


def _count_recipe(aggregate: Aggregate, _: Types) -> Recipe:
    rows = aggregate.arguments == (Expression.parse("*"),)
    # A constant is never null, so count(1) is count(*).
    constant = all(argument.canonical.isdecimal() for argument in aggregate.arguments)
    arguments = () if rows or constant else aggregate.arguments
    return Recipe((_count(aggregate, arguments),), "count", pa.int64())


def _count_if_recipe(aggregate: Aggregate, _: Types) -> Recipe:
    (condition,) = aggregate.arguments
    if aggregate.filter is not None:
        condition = Expression.parse(f"({condition.sql}) AND ({aggregate.filter.sql})")
    return Recipe((State(Op.ADD, Lift.ONE, (), condition),), "count", pa.int64())


def _total_recipe(answer: str) -> Make:
    """Sum or average: the same states, with Spark's type for each."""

    def make(aggregate: Aggregate, types: Types) -> Recipe:
        (kind,) = types
        count = _count(aggregate, aggregate.arguments)
        if pa.types.is_floating(kind):
            return Recipe((_state(aggregate, Op.FLOAT_ADD, Lift.FLOAT), count), f"float_{answer}", pa.float64())
        wide = _state(aggregate, Op.WIDE_ADD, Lift.WIDE)
        if pa.types.is_integer(kind):
            return Recipe((wide, count), f"integer_{answer}", pa.int64() if answer == "sum" else pa.float64())
        if pa.types.is_decimal128(kind) and fits_word(kind):
            more = (10, 0) if answer == "sum" else (4, 4)
            return Recipe(
                (wide, count), f"decimal_{answer}", pa.decimal128(kind.precision + more[0], kind.scale + more[1])
            )
        raise NoState(f"{aggregate.sql}: no {answer} is known for {kind}")

    return make


def _extreme_recipe(op: Op) -> Make:
    def make(aggregate: Aggregate, types: Types) -> Recipe:
        (kind,) = types
        if not fits_word(kind):
            raise NoState(f"{aggregate.sql}: no word for {kind}")
        return Recipe((_state(aggregate, op, Lift.WORD), _count(aggregate, aggregate.arguments)), "extreme", kind)

    return make


def _bits_recipe(op: Op) -> Make:
    def make(aggregate: Aggregate, types: Types) -> Recipe:
        (kind,) = types
        if not pa.types.is_integer(kind):
            raise NoState(f"{aggregate.sql}: {kind} is no integer")
        return Recipe((_state(aggregate, op, Lift.BITS), _count(aggregate, aggregate.arguments)), "bits", kind)

    return make


def _numeric(aggregate: Aggregate, types: Types) -> None:
    for kind in types:
        if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
            raise NoState(f"{aggregate.sql}: Spark would cast {kind} first")


def _moments_recipe(lower: str) -> Make:
    def make(aggregate: Aggregate, types: Types) -> Recipe:
        _numeric(aggregate, types)
        return Recipe((_state(aggregate, Op.MOMENTS, Lift.MOMENTS),), lower, pa.float64())

    return make


def _comoments_recipe(lower: str) -> Make:
    def make(aggregate: Aggregate, types: Types) -> Recipe:
        _numeric(aggregate, types)
        return Recipe((_state(aggregate, Op.COMOMENTS, Lift.COMOMENTS),), lower, pa.float64())

    return make


def _take_recipe(aggregate: Aggregate, types: Types) -> Recipe:
    kind = types[0]
    if len(types) != 1 or not fits_word(kind):
        raise NoState(f"{aggregate.sql}: no word for {kind}")
    return Recipe((_state(aggregate, Op.TAKE, Lift.VALUE),), "taken", kind)


def _take_by_recipe(op: Op) -> Make:
    def make(aggregate: Aggregate, types: Types) -> Recipe:
        if not all(map(fits_word, types)):
            raise NoState(f"{aggregate.sql}: no word for one of {', '.join(map(str, types))}")
        return Recipe((_state(aggregate, op, Lift.ORDERED_VALUE),), "taken_by_order", types[0])

    return make


_BLIND_TO_REPEATS = frozenset({"min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "any_value"})

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
    "var_pop": _moments_recipe("variance"),
    "var_samp": _moments_recipe("sample_variance"),
    "stddev_pop": _moments_recipe("deviation"),
    "stddev_samp": _moments_recipe("sample_deviation"),
    "skewness": _moments_recipe("skewness"),
    "kurtosis": _moments_recipe("kurtosis"),
    "covar_pop": _comoments_recipe("covariance"),
    "covar_samp": _comoments_recipe("sample_covariance"),
    "corr": _comoments_recipe("correlation"),
    "any_value": _take_recipe,
    "min_by": _take_by_recipe(Op.TAKE_LEAST),
    "max_by": _take_by_recipe(Op.TAKE_GREATEST),
}
