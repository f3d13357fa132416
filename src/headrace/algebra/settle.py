"""Bags to answers, of the type and with the nulls that Spark gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.algebra.combine import fold
from headrace.algebra.lift import lift
from headrace.algebra.lower import Overflow, divide_decimals, lower, with_nulls
from headrace.algebra.ops import Floats, Op, Words
from headrace.algebra.ranks import first_rows, identify, rank, sort_rows
from headrace.algebra.states import Recipe
from headrace.algebra.words import Valid, truth, valid_of, wide_words

_HALF = np.int64(2**32 - 1)
_EXACT_INTEGER = 2**53
_EXACT_POWER = 22
"""Up to these, integers and powers of ten are float64 without rounding."""


class NegativeFrequency(ValueError):
    """A frequency below 0 in a percentile: Spark raises an error too."""


@dataclass(frozen=True, slots=True)
class Bag:
    """Rows of groups 0..number-1: a tuple of values and how many records have it."""

    groups: Words
    number: int
    values: tuple[pa.Array, ...]
    counts: Words

    def only(self, keep: Valid | None) -> Bag:
        """The rows that are kept; None keeps all."""
        if keep is None or keep.all():
            return self
        return self.take(np.flatnonzero(keep))

    def take(self, rows: Words) -> Bag:
        """These rows, in this order."""
        taken = pa.array(rows)
        values = tuple(value.take(taken) for value in self.values)
        return Bag(self.groups[rows], self.number, values, self.counts[rows])

    def once(self, unique: bool) -> Bag:
        """Each tuple of a group once, as if one record had it; `unique` says that none stands there twice."""
        bag = self
        if not unique:
            columns = [self.groups]
            for value in self.values:
                codes, valid = identify(value)
                columns += [codes] if valid is None else [codes, valid.astype(np.int64)]
            order = sort_rows(columns)
            bag = self.take(order[first_rows(*(column[order] for column in columns))])
        return Bag(bag.groups, bag.number, bag.values, np.ones(len(bag.groups), dtype=np.int64))


def states(bag: Bag, recipe: Recipe) -> pa.Array:
    """The answers of an aggregate that has states, each row of the bag lifted as one record."""
    slots: list[Words] = []
    for state in recipe.states:
        lifted = lift(state, len(bag.groups), bag.values if state.arguments else (), None)
        slots += fold(state.op, lifted, bag.groups, bag.number)
    return lower(recipe, slots)


def _count_true(bag: Bag, _: pa.DataType, __: Sequence[float]) -> pa.Array:
    return pa.array(np.bincount(bag.groups[truth(bag.values[0])], minlength=bag.number), pa.int64())


def _decimal_sum(bag: Bag, kind: pa.DataType, _: Sequence[float]) -> pa.Array:
    low, high, count = _wide_totals(bag, kind)
    return lower(Recipe((), "decimal_sum", kind), [low, high, count])


def _decimal_average(bag: Bag, kind: pa.DataType, _: Sequence[float]) -> pa.Array:
    return divide_decimals(*_wide_totals(bag, kind), kind.scale - bag.values[0].type.scale, kind)


def _wide_totals(bag: Bag, kind: pa.DataType) -> tuple[Words, Words, Words]:
    """Low and high words of each group's sum, and how many records it has; raises `Overflow`.

    Values times counts need up to 191 bits, so they are added in columns of 32 bits, which carry at the end.
    """
    bag = bag.only(valid_of(bag.values[0]))
    low, high = wide_words(bag.values[0])
    limbs = [low & _HALF, (low >> 32) & _HALF, high & _HALF, high >> 32]
    columns = [np.zeros(len(low), dtype=np.int64) for _ in range(6)]
    for i, limb in enumerate(limbs):
        for j, part in enumerate((bag.counts & _HALF, bag.counts >> 32)):
            product = limb * part
            # The last limb has the sign; products of the others are unsigned.
            rest = product >> 32 if i == 3 else (product.view(np.uint64) >> np.uint64(32)).view(np.int64)
            columns[i + j] += product & _HALF
            columns[i + j + 1] += rest
    totals = (fold(Op.ADD, [column], bag.groups, bag.number)[0] for column in (*columns, bag.counts))
    *sums, count = totals
    carry = np.zeros(bag.number, dtype=np.int64)
    words = []
    for column in sums:
        total = column + carry
        words.append(total & _HALF)
        carry = total >> 32
    total_low, total_high = words[0] | words[1] << 32, words[2] | words[3] << 32
    beyond = words[4] | words[5] << 32
    if (beyond != total_high >> 63).any() or (carry != total_high >> 63).any():
        raise Overflow(f"a sum of decimals exceeds {kind}")
    return total_low, total_high, count


def _extreme(descending: bool) -> Settle:
    """The least or greatest value."""

    def settle(bag: Bag, _: pa.DataType, __: Sequence[float]) -> pa.Array:
        bag = bag.only(valid_of(bag.values[0]))
        return _chosen(bag, np.flatnonzero(_is_extreme(bag, bag.values[0], descending)))

    return settle


def _by_order(descending: bool) -> Settle:
    """Of the records with an order, the value of the first; of equal ones the least value that is not null."""

    def settle(bag: Bag, kind: pa.DataType, _: Sequence[float]) -> pa.Array:
        bag = bag.only(valid_of(bag.values[1]))
        bag = bag.only(_is_extreme(bag, bag.values[1], descending))
        return _extreme(descending=False)(bag, kind, ())

    return settle


def _is_extreme(bag: Bag, values: pa.Array, descending: bool) -> Valid:
    """Which rows have the least (or greatest) of their group's values, none of which is null."""
    ranks = rank(values)
    (best,) = fold(Op.MAX if descending else Op.MIN, [ranks], bag.groups, bag.number)
    extreme: Valid = ranks == best[bag.groups]
    return extreme


def _mode(descending: bool) -> Settle:
    """The value that most records have; of several the least, or the greatest."""

    def settle(bag: Bag, _: pa.DataType, __: Sequence[float]) -> pa.Array:
        bag = bag.only(valid_of(bag.values[0]))
        ranks = rank(bag.values[0])
        columns = [bag.groups, ~ranks if descending else ranks]
        order = sort_rows(columns)
        starts = first_rows(*(column[order] for column in columns))
        if len(starts) == 0:
            return _chosen(bag, starts)
        counts = np.add.reduceat(bag.counts[order], starts)
        rows = order[starts]
        groups = bag.groups[rows]
        most = fold(Op.MAX, [counts], groups, bag.number)[0]
        best = rows[counts == most[groups]]
        return _chosen(bag, best[first_rows(bag.groups[best])])

    return settle


def _percentile(discrete: bool, descending: bool) -> Settle:
    """Between which records a fraction lies, and the value there; discrete ones are never in between."""

    def settle(bag: Bag, kind: pa.DataType, fractions: Sequence[float]) -> pa.Array:
        bag = _weighted(bag)
        ranks = rank(bag.values[0])
        if descending:
            ranks = ~ranks
        order = sort_rows([bag.groups, ranks])
        until = np.cumsum(bag.counts[order])
        bounds = np.searchsorted(bag.groups[order], np.arange(bag.number + 1))
        edges = np.concatenate(([0], until))[bounds]
        total = np.diff(edges)
        valid = total > 0
        before, total = edges[:-1][valid], total[valid]
        answers = np.zeros((bag.number, len(fractions)))
        for place, fraction in enumerate(fractions):
            position = total * fraction if discrete else (total - 1) * fraction
            low, high = np.floor(position), np.ceil(position)
            if discrete:
                low = high = np.maximum(high - 1, 0)
            sides = [before + np.minimum(side.astype(np.int64), total - 1) for side in (low, high)]
            rows = [order[np.searchsorted(until, side, side="right")] for side in sides]
            one, two = (_doubles(bag.values[0].take(pa.array(row))) for row in rows)
            with np.errstate(all="ignore"):
                between = one + (two - one) * (position - low)
            answers[valid, place] = np.where(ranks[rows[0]] == ranks[rows[1]], one, between)
        return _listed(answers, valid) if pa.types.is_list(kind) else with_nulls(answers[:, 0], valid)

    return settle


def _weighted(bag: Bag) -> Bag:
    """The rows that have a value, with counts times frequencies where the bag has a second column."""
    bag = bag.only(valid_of(bag.values[0]))
    if len(bag.values) == 1:
        return bag
    bag = bag.only(valid_of(bag.values[1]))
    frequencies = np.asarray(bag.values[1].cast(pa.int64()))
    if (frequencies < 0).any():
        raise NegativeFrequency(f"a percentile's frequency is {frequencies.min()}")
    if (bag.counts.astype(np.float64) * frequencies).sum() >= 2.0**63:
        raise Overflow("the frequencies of a percentile exceed 64 bits")
    return Bag(bag.groups, bag.number, bag.values, bag.counts * frequencies).only(frequencies > 0)


def _doubles(array: pa.Array) -> Floats:
    """Numbers as float64, each the nearest."""
    if not pa.types.is_decimal128(array.type):
        return np.asarray(array.cast(pa.float64(), safe=False))
    low, high = wide_words(array)
    short = (high == low >> 63) & (np.abs(low) < _EXACT_INTEGER)
    if array.type.scale <= _EXACT_POWER and bool(short.all()):
        exact: Floats = low / 10.0**array.type.scale
        return exact
    return np.array([float(value) for value in array.to_pylist()], dtype=np.float64)


def _chosen(bag: Bag, rows: Words) -> pa.Array:
    """The values of these rows, those of a group all equal; null for groups that have none."""
    taken = np.zeros(bag.number, dtype=np.int64)
    missing = np.ones(bag.number, dtype=np.bool_)
    taken[bag.groups[rows]] = rows
    missing[bag.groups[rows]] = False
    return bag.values[0].take(pa.array(taken, mask=missing))


def _listed(answers: Floats, valid: Valid) -> pa.Array:
    offsets = np.arange(len(answers) + 1, dtype=np.int32) * answers.shape[1]
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), pa.array(answers.ravel()), mask=pa.array(~valid)
    )


Settle = Callable[[Bag, pa.DataType, Sequence[float]], pa.Array]

SETTLE: Mapping[str, Settle] = {
    "count_true": _count_true,
    "decimal_sum": _decimal_sum,
    "decimal_average": _decimal_average,
    "min": _extreme(descending=False),
    "max": _extreme(descending=True),
    "min_by": _by_order(descending=False),
    "max_by": _by_order(descending=True),
    "mode": _mode(descending=False),
    "mode_descending": _mode(descending=True),
    "percentile": _percentile(discrete=False, descending=False),
    "percentile_descending": _percentile(discrete=False, descending=True),
    "percentile_disc": _percentile(discrete=True, descending=False),
    "percentile_disc_descending": _percentile(discrete=True, descending=True),
}
"""The last steps, by the names that recipes use."""
