"""States of rows to states of groups, in columns: operations of `ops.py` over whole arrays.

The kernel's tables do the same row by row, compiled. This is for rows that are all at hand at once. The three
TAKEs are not here: the aggregates that use them have answers of their own from bags (`settle.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.algebra.ops import IDENTITY, Floats, Op, Words

Combine = Callable[[Sequence[Words], Sequence[Words]], list[Words]]


def fold(op: Op, slots: Sequence[Words], groups: Words, number: int) -> list[Words]:
    """The slots of groups 0..number-1 from those of rows; the identity where a group has no row."""
    folded = [np.full(number, IDENTITY.get(op, 0), dtype=np.int64) for _ in slots]
    if op in _SIMPLE:
        for whole, slot in zip(folded, slots, strict=True):
            _SIMPLE[op].at(whole, groups, slot)
        return folded
    order = np.argsort(groups)
    present, columns = _fold_pairs(_PAIRED[op], [slot[order] for slot in slots], groups[order])
    for whole, column in zip(folded, columns, strict=True):
        whole[present] = column
    return folded


def first_rows(*columns: Words) -> Words:
    """Where a row differs from the one before it: where each group begins in rows that are sorted by group."""
    if len(columns[0]) == 0:
        return np.empty(0, dtype=np.int64)
    differs = np.ones(len(columns[0]), dtype=np.bool_)
    differs[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(differs)


def _fold_pairs(combine: Combine, columns: list[Words], groups: Words) -> tuple[Words, list[Words]]:
    """Neighbours of the same group become one, again and again: as many rounds as twos multiply to a group."""
    while True:
        starts = first_rows(groups)
        if len(starts) == len(groups):
            return groups, columns
        sizes = np.diff(np.append(starts, len(groups)))
        place = np.arange(len(groups)) - np.repeat(starts, sizes)
        second = np.flatnonzero(place % 2 == 1)
        both = combine([column[second - 1] for column in columns], [column[second] for column in columns])
        for column, combined in zip(columns, both, strict=True):
            column[second - 1] = combined
        kept = place % 2 == 0
        groups = groups[kept]
        columns = [column[kept] for column in columns]


def _add_wide(one: Sequence[Words], two: Sequence[Words]) -> list[Words]:
    low = one[0].view(np.uint64) + two[0].view(np.uint64)
    carry = (low < two[0].view(np.uint64)).astype(np.int64)
    return [low.view(np.int64), one[1] + two[1] + carry]


def _as_floats(combine: Callable[[Sequence[Floats], Sequence[Floats]], list[Floats]]) -> Combine:
    """An operation over slots that hold floating numbers."""

    def combined(one: Sequence[Words], two: Sequence[Words]) -> list[Words]:
        with np.errstate(all="ignore"):
            slots = combine([slot.view(np.float64) for slot in one], [slot.view(np.float64) for slot in two])
        return [slot.view(np.int64) for slot in slots]

    return combined


def _with_numbers(combine: Callable[[Sequence[Floats], Sequence[Floats]], list[Floats]]) -> Combine:
    """An operation whose first slot says of how many records: none changes nothing."""

    def combined(one: Sequence[Floats], two: Sequence[Floats]) -> list[Floats]:
        both = zip(one, two, combine(one, two), strict=True)
        return [np.where(two[0] == 0.0, x, np.where(one[0] == 0.0, y, z)) for x, y, z in both]

    return _as_floats(combined)


def _add_floats(one: Sequence[Floats], two: Sequence[Floats]) -> list[Floats]:
    x, y = one[0], two[0]
    total = x + y
    lost = np.where(np.abs(x) >= np.abs(y), (x - total) + y, (y - total) + x)
    # An infinite or undefined total has lost nothing that could be given back.
    return [total, one[1] + two[1] + np.where(np.isfinite(total), lost, 0.0)]


def _add_variances(one: Sequence[Floats], two: Sequence[Floats]) -> list[Floats]:
    n1, mean1, a2 = one
    n2, mean2, b2 = two
    n = n1 + n2
    delta = mean2 - mean1
    return [n, mean1 + delta * (n2 / n), a2 + b2 + delta**2 * (n1 / n) * n2]


def _add_moments(one: Sequence[Floats], two: Sequence[Floats]) -> list[Floats]:
    n1, mean1, a2, a3, a4 = one
    n2, mean2, b2, b3, b4 = two
    n, mean, m2 = _add_variances(one[:3], two[:3])
    delta = mean2 - mean1
    p, q = n1 / n, n2 / n
    m3 = a3 + b3 + delta**3 * p * n2 * (p - q) + 3.0 * delta * (p * b2 - q * a2)
    m4 = a4 + b4 + delta**4 * p * n2 * (p * p - p * q + q * q)
    m4 += 6.0 * delta**2 * (p * p * b2 + q * q * a2) + 4.0 * delta * (p * b3 - q * a3)
    return [n, mean, m2, m3, m4]


def _add_comoments(one: Sequence[Floats], two: Sequence[Floats]) -> list[Floats]:
    n1, x1, y1, products1, squares_x1, squares_y1 = one
    n2, x2, y2, products2, squares_x2, squares_y2 = two
    n = n1 + n2
    dx, dy = x2 - x1, y2 - y1
    q = n2 / n
    share = n1 * q
    return [
        n,
        x1 + dx * q,
        y1 + dy * q,
        products1 + products2 + dx * dy * share,
        squares_x1 + squares_x2 + dx * dx * share,
        squares_y1 + squares_y2 + dy * dy * share,
    ]


_SIMPLE: Mapping[Op, Any] = {
    Op.ADD: np.add,
    Op.MIN: np.minimum,
    Op.MAX: np.maximum,
    Op.AND: np.bitwise_and,
    Op.OR: np.bitwise_or,
    Op.XOR: np.bitwise_xor,
}

_PAIRED: Mapping[Op, Combine] = {
    Op.WIDE_ADD: _add_wide,
    Op.FLOAT_ADD: _as_floats(_add_floats),
    Op.VARIANCE: _with_numbers(_add_variances),
    Op.MOMENTS: _with_numbers(_add_moments),
    Op.COMOMENTS: _with_numbers(_add_comoments),
}
