"""Folding rows to groups gives what the definitions of the operations say of each group's records."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from headrace.algebra.combine import fold
from headrace.algebra.ops import INT_MAX, INT_MIN, Op, Words, identity_row

ROWS = [0, 1, 7, 500]
GROUPS, NUMBER = 9, 20
"""Every second one of NUMBER groups, and none from some place on."""


def drawn(rows: int) -> tuple[np.random.Generator, Words]:
    """Some chance, and the group of each row."""
    return np.random.default_rng(rows), np.random.default_rng(1).integers(0, GROUPS, rows) * 2


@pytest.mark.parametrize(
    ("op", "combined", "identity"),
    [
        (Op.ADD, lambda x, y: (x + y + 2**63) % 2**64 - 2**63, 0),
        (Op.MIN, min, INT_MAX),
        (Op.MAX, max, INT_MIN),
        (Op.AND, operator.and_, -1),
        (Op.OR, operator.or_, 0),
        (Op.XOR, operator.xor, 0),
    ],
)
@pytest.mark.parametrize("rows", ROWS)
def test_integers(op: Op, combined: Callable[[int, int], int], identity: int, rows: int) -> None:
    draw, groups = drawn(rows)
    values = draw.integers(INT_MIN, INT_MAX, rows)
    (folded,) = fold(op, [values], groups, NUMBER)
    assert folded.tolist() == [
        functools.reduce(combined, values[groups == group].tolist(), identity) for group in range(NUMBER)
    ]


@pytest.mark.parametrize("rows", ROWS)
def test_wide_sums_do_not_overflow(rows: int) -> None:
    draw, groups = drawn(rows)
    values = draw.integers(INT_MIN, INT_MAX, rows)
    low, high = fold(Op.WIDE_ADD, [values, values >> 63], groups, NUMBER)
    totals = [(above << 64) + below % 2**64 for below, above in zip(low.tolist(), high.tolist(), strict=True)]
    assert totals == [sum(values[groups == group].tolist()) for group in range(NUMBER)]


@pytest.mark.parametrize("rows", ROWS)
def test_floating_sums_lose_nothing_to_speak_of(rows: int) -> None:
    draw, groups = drawn(rows)
    values = draw.normal(3, 2, rows) * 10.0 ** draw.integers(0, 30, rows)
    total, lost = (slot.view(np.float64) for slot in fold(Op.FLOAT_ADD, bits(values, 0 * values), groups, NUMBER))
    exact = [float(sum(map(Fraction, values[groups == group].tolist()))) for group in range(NUMBER)]
    np.testing.assert_allclose(total + lost, exact, rtol=1e-15)


@pytest.mark.parametrize("rows", ROWS)
def test_moments(rows: int) -> None:
    draw, groups = drawn(rows)
    x, y, zero = draw.normal(3, 2, rows), draw.normal(-1, 9, rows), np.zeros(rows)
    counts = draw.random(rows) > 0.3  # the others are records whose value is null
    slots = {
        Op.VARIANCE: bits(zero + 1, x, zero),
        Op.MOMENTS: bits(zero + 1, x, zero, zero, zero),
        Op.COMOMENTS: bits(zero + 1, x, y, zero, zero, zero),
    }
    for op, told in slots.items():
        rest = identity_row((op,))
        counted = [np.where(counts, slot, nothing) for slot, nothing in zip(told, rest, strict=True)]
        folded = np.stack(fold(op, counted, groups, NUMBER), axis=1).view(np.float64)
        for group in range(NUMBER):
            own = counts & (groups == group)
            np.testing.assert_allclose(folded[group], defined(op, x[own], y[own]), rtol=1e-9, atol=1e-9)


def defined(op: Op, x: Any, y: Any) -> list[float]:
    """The slots by their definition."""
    if len(x) == 0:
        return [0.0] * len(identity_row((op,)))
    dx, dy = x - x.mean(), y - y.mean()
    if op is Op.COMOMENTS:
        return [len(x), x.mean(), y.mean(), (dx * dy).sum(), (dx**2).sum(), (dy**2).sum()]
    powers = (2,) if op is Op.VARIANCE else (2, 3, 4)
    return [len(x), x.mean(), *((dx**power).sum() for power in powers)]


@pytest.mark.parametrize("rows", ROWS)
def test_the_first_with_the_least_or_greatest_order_is_taken(rows: int) -> None:
    draw, groups = drawn(rows)
    there, order, values = draw.integers(0, 2, rows), draw.integers(-5, 5, rows), draw.integers(0, 1000, rows)
    slots = {
        Op.TAKE: [there, values],
        Op.TAKE_LEAST: [there, order, values],
        Op.TAKE_GREATEST: [there, order, values],
    }
    key: dict[Op, Callable[[int], int]] = {
        Op.TAKE: lambda row: row,
        Op.TAKE_LEAST: lambda row: int(order[row]),
        Op.TAKE_GREATEST: lambda row: -int(order[row]),
    }
    for op, told in slots.items():
        held, *_, value = fold(op, [np.where(there == 1, slot, 0) for slot in told], groups, NUMBER)
        for group in range(NUMBER):
            own = np.flatnonzero((there == 1) & (groups == group)).tolist()
            expected = (1, int(values[min(own, key=key[op])])) if own else (0, 0)
            assert (held[group], value[group]) == expected


def bits(*floats: Any) -> list[Words]:
    """Floating numbers as slots hold them."""
    return [column.view(np.int64) for column in floats]
