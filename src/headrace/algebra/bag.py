"""Aggregates through a finer node: those whose state is no fixed number of words.

Their answers come from a *bag*: for each group, the distinct tuples of the aggregate's arguments, each with the
number of records that have it. The bag of a query with keys k is the node with keys (k, arguments) and one count,
so it is kept, shared and derived as every other node; only the last step, `lower_bag`, is of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
from sqlglot import exp

from headrace.algebra import settle
from headrace.algebra.ops import Op, Words
from headrace.algebra.ranks import has_order
from headrace.algebra.settle import Bag
from headrace.algebra.states import Fact, Lift, NoState, Recipe, State, decimal_type, make_recipe
from headrace.algebra.words import fits_word
from headrace.query import Aggregate, Expression

_MOST_CHARACTERS = 18
"""Of a fraction: Spark may round longer ones when it brings those of an array to one type."""


Types = Sequence[pa.DataType]


@dataclass(frozen=True, slots=True)
class BagRecipe:
    """What a bag holds and the way from it to an aggregate's answer: a function of `settle.py`, by name."""

    arguments: tuple[Expression, ...]
    """What the finer node has as keys beside the query's."""
    count: State
    """The multiplicity: how many records count, of those that have the same arguments."""
    lower: str
    type: pa.DataType
    types: Types = ()
    """Those of the arguments."""
    parameters: tuple[float, ...] = ()
    """The fractions of percentiles."""
    distinct: bool = False
    """Whether a tuple counts once, however many records have it."""
    inner: Recipe | None = None
    """How the answer comes from states, where each tuple is lifted as a record."""

    @property
    def states(self) -> tuple[State, ...]:
        """What the finer node keeps for it."""
        return (self.count,)


Make = Callable[[Aggregate, Types], BagRecipe]


def bag_arguments(aggregate: Aggregate) -> tuple[Expression, ...]:
    """The expressions of the records that the aggregate is about, without constants that only say how.

    >>> from headrace.query import parse_query
    >>> text = "SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY size DESC) AS a, mode(port, true) AS b FROM t"
    >>> [str(argument) for call in parse_query("q", text).aggregates for argument in bag_arguments(call)]
    ['size', 'port']
    """
    if aggregate.within:
        return tuple(item.expression for item in aggregate.within)
    if aggregate.function.name == "percentile":
        return (*aggregate.arguments[:1], *aggregate.arguments[2:])
    return aggregate.arguments[:1] if aggregate.function.name in ("mode", "any_value") else aggregate.arguments


def make_bag_recipe(aggregate: Aggregate, types: Types) -> BagRecipe:
    """How to compute an aggregate from its bag, whose `bag_arguments` have these types; raises `NoState`."""
    name = aggregate.function.name
    if aggregate.ignore_nulls and name != "any_value":
        raise NoState(f"{aggregate.sql}: no bag is known for IGNORE NULLS")
    if aggregate.within and (aggregate.distinct or name not in _WITHIN or len(aggregate.within) != 1):
        raise NoState(f"{aggregate.sql}: no bag is known for its WITHIN GROUP")
    if len(types) != len(bag_arguments(aggregate)):
        raise NoState(f"{aggregate.sql}: no bag holds whole records")
    for kind in types:
        if not has_order(kind):
            raise NoState(f"{aggregate.sql}: no order is known for {kind}")
    make = _MAKE.get(name, _make_distinct)
    return replace(make(aggregate, types), types=tuple(types))


def lower_bag(
    recipe: BagRecipe,
    groups: Words,
    number: int,
    values: Sequence[pa.Array],
    counts: Words,
    *,
    unique: bool = False,
) -> pa.Array:
    """The answers of groups 0..number-1; raises `Overflow`.

    Row i says that `counts[i]` records of group `groups[i]` have the arguments `values[..][i]`. Rows come in any
    order. A count may be 0 (FILTER excluded all such records): the row does not count, but its group exists.
    `unique` vouches that no two rows have the same group and arguments, which spares a sort for DISTINCT.
    """
    bag = Bag(groups, number, tuple(values), counts).only(counts > 0)
    if recipe.distinct:
        bag = bag.once(unique)
    if recipe.inner is not None:
        return settle.states(bag, recipe.inner)
    return settle.SETTLE[recipe.lower](bag, recipe.type, recipe.parameters)


def _recipe(aggregate: Aggregate, lower: str, kind: pa.DataType, fractions: tuple[float, ...] = ()) -> BagRecipe:
    count = State(Op.ADD, Lift.ONE, (), aggregate.filter)
    return BagRecipe(bag_arguments(aggregate), count, lower, kind, parameters=fractions)


def _make_distinct(aggregate: Aggregate, types: Types) -> BagRecipe:
    """DISTINCT of whatever has a state: each tuple of the bag is one record."""
    if not aggregate.distinct:
        raise NoState(f"{aggregate.sql}: no bag is known for it")
    inner = make_recipe(replace(aggregate, distinct=False, filter=None), [Fact(kind) for kind in types])
    return replace(_recipe(aggregate, inner.lower, inner.type), distinct=True, inner=inner)


def _make_count_if(aggregate: Aggregate, types: Types) -> BagRecipe:
    if not aggregate.distinct or not pa.types.is_boolean(types[0]):
        raise NoState(f"{aggregate.sql}: no bag is needed for it")
    return replace(_recipe(aggregate, "count_true", pa.int64()), distinct=True)


def _make_total(answer: str) -> Make:
    """Sum or average."""

    def make(aggregate: Aggregate, types: Types) -> BagRecipe:
        (kind,) = types
        if not pa.types.is_decimal128(kind) or fits_word(kind):
            return _make_distinct(aggregate, types)
        recipe = _recipe(aggregate, f"decimal_{answer}", decimal_type(answer, kind))
        return replace(recipe, distinct=aggregate.distinct)

    return make


def _make_same_type(lower: str) -> Make:
    """The answer is one of the values of the first argument; that a value repeats does not matter."""

    def make(aggregate: Aggregate, types: Types) -> BagRecipe:
        return _recipe(aggregate, lower, types[0])

    return make


def _make_any_value(aggregate: Aggregate, types: Types) -> BagRecipe:
    _constant_flag(aggregate)
    return _recipe(aggregate, "min", types[0])  # so that equal bags give equal answers


def _make_mode(aggregate: Aggregate, types: Types) -> BagRecipe:
    if aggregate.distinct or (aggregate.within and aggregate.arguments) or not types:
        raise NoState(f"{aggregate.sql}: Spark knows no such mode")
    _constant_flag(aggregate)
    lower = "mode_descending" if _descends(aggregate) else "mode"
    return _recipe(aggregate, lower, types[0])


def _make_percentile(aggregate: Aggregate, types: Types) -> BagRecipe:
    """Both percentile(x, fraction[, frequency]) and percentile_cont(fraction) WITHIN GROUP (ORDER BY x)."""
    place = 0 if aggregate.within else 1
    if len(aggregate.arguments) <= place:
        raise NoState(f"{aggregate.sql}: Spark knows no such percentile")
    return _percentile(aggregate, types, "percentile", aggregate.arguments[place])


def _make_percentile_disc(aggregate: Aggregate, types: Types) -> BagRecipe:
    if not aggregate.within:
        raise NoState(f"{aggregate.sql}: Spark knows no such percentile")
    return _percentile(aggregate, types, "percentile_disc", aggregate.arguments[0])


def _make_median(aggregate: Aggregate, types: Types) -> BagRecipe:
    return _percentile(aggregate, types, "percentile", Expression.parse("0.5"))


def _percentile(aggregate: Aggregate, types: Types, lower: str, fraction: Expression) -> BagRecipe:
    kind = types[0]
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal128(kind)):
        raise NoState(f"{aggregate.sql}: Spark would cast {kind} first")
    if not all(map(pa.types.is_integer, types[1:])):
        raise NoState(f"{aggregate.sql}: a frequency is an integer")
    tree = fraction.tree
    listed = isinstance(tree, exp.Anonymous) and tree.name.lower() == "array"
    fractions = tuple(_fraction(aggregate, item) for item in (tree.expressions if listed else [tree]))
    if not fractions:
        raise NoState(f"{aggregate.sql}: no fractions")
    if _descends(aggregate):
        lower += "_descending"
    answer = pa.list_(pa.float64()) if listed else pa.float64()
    return replace(_recipe(aggregate, lower, answer, fractions), distinct=aggregate.distinct)


def _fraction(aggregate: Aggregate, node: exp.Expr) -> float:
    """A number as it stands in the text; Spark alone computes more than that."""
    if isinstance(node, exp.Literal) and not node.is_string and len(node.name) <= _MOST_CHARACTERS:
        number = float(node.name)
        if 0.0 <= number <= 1.0:
            return number
    raise NoState(f"{aggregate.sql}: {node.sql()} is no plain number between 0 and 1")


def _constant_flag(aggregate: Aggregate) -> None:
    """The second argument of mode and any_value is true or false, and either way the answer here is allowed."""
    if not all(isinstance(argument.tree, exp.Boolean) for argument in aggregate.arguments[1:]):
        raise NoState(f"{aggregate.sql}: {aggregate.arguments[1]} is not plainly true or false")


def _descends(aggregate: Aggregate) -> bool:
    return any(item.descends for item in aggregate.within)


_WITHIN = frozenset({"mode", "percentile", "percentile_disc"})

_MAKE: Mapping[str, Make] = {
    "count_if": _make_count_if,
    "sum": _make_total("sum"),
    "avg": _make_total("average"),
    "min": _make_same_type("min"),
    "max": _make_same_type("max"),
    "min_by": _make_same_type("min_by"),
    "max_by": _make_same_type("max_by"),
    "any_value": _make_any_value,
    "mode": _make_mode,
    "median": _make_median,
    "percentile": _make_percentile,
    "percentile_disc": _make_percentile_disc,
}
"""How the recipes are made; of all others, DISTINCT forms only."""
