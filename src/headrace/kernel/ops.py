"""How the states of two rows combine: one operation a kind of state, each over one or more 64-bit slots.

A row of a table is key words followed by slots. A slot holds an int64 or, seen through a view, a float64.
Every operation is associative and commutative and has an identity, so rows may come in any number of pieces,
in any order (floating sums and moments: up to rounding).
"""

from __future__ import annotations

import math
from enum import IntEnum

import numba
import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]

INT_MAX = 2**63 - 1
INT_MIN = -(2**63)


class Op(IntEnum):
    """What to do with the slots of two states."""

    ADD = 0
    """x + y, modulo 2**64: the caller sees to it that nothing overflows, or takes WIDE_ADD."""
    MIN = 1
    MAX = 2
    AND = 3
    OR = 4
    XOR = 5
    WIDE_ADD = 6
    """128-bit x + y: low word (unsigned), high word."""
    FLOAT_ADD = 7
    """Sum and what rounding lost of it (Neumaier's compensation)."""
    MOMENTS = 8
    """n, mean, and the sums of the 2nd, 3rd and 4th powers of the distance from the mean (Chan, Pébay)."""
    COMOMENTS = 9
    """n, both means, the sum of products of the distances, and both sums of squares."""
    TAKE = 10
    """Whether there is a value, and the value: of two, the first."""
    TAKE_LEAST = 11
    """Whether there is a value, what to order by, the value: of two, the one with the smaller order."""
    TAKE_GREATEST = 12
    """As TAKE_LEAST, with the greater order."""


SLOTS = {
    Op.WIDE_ADD: 2,
    Op.FLOAT_ADD: 2,
    Op.MOMENTS: 5,
    Op.COMOMENTS: 6,
    Op.TAKE: 2,
    Op.TAKE_LEAST: 3,
    Op.TAKE_GREATEST: 3,
}
"""Slots of an operation's state; 1 where it is not listed."""

IDENTITY = {Op.MIN: INT_MAX, Op.MAX: INT_MIN, Op.AND: -1}
"""The value that changes nothing; 0 (and 0.0, which has the same bits) where it is not listed."""


def slot_count(op: Op) -> int:
    """How many slots the state of an operation has."""
    return SLOTS.get(op, 1)


def identity_row(ops: tuple[Op, ...]) -> Words:
    """The slots of a state that no row has touched."""
    return np.array([IDENTITY.get(op, 0) for op in ops for _ in range(slot_count(op))], dtype=np.int64)


@numba.njit(nogil=True, cache=True, error_model="numpy")
def combine(op, at, rows, row_floats, into, batch, batch_floats, low, high):  # type: ignore[no-untyped-def]
    """Combine rows low..high of a batch into the table's rows `into[0..]`, in the slots from `at` on."""
    if op == 0:
        for i in range(low, high):
            rows[into[i - low], at] += batch[i, at]
    elif op == 1:
        for i in range(low, high):
            g = into[i - low]
            rows[g, at] = min(rows[g, at], batch[i, at])
    elif op == 2:
        for i in range(low, high):
            g = into[i - low]
            rows[g, at] = max(rows[g, at], batch[i, at])
    elif op == 3:
        for i in range(low, high):
            rows[into[i - low], at] &= batch[i, at]
    elif op == 4:
        for i in range(low, high):
            rows[into[i - low], at] |= batch[i, at]
    elif op == 5:
        for i in range(low, high):
            rows[into[i - low], at] ^= batch[i, at]
    elif op == 6:
        for i in range(low, high):
            g = into[i - low]
            total = np.uint64(rows[g, at]) + np.uint64(batch[i, at])
            carry = np.int64(1) if total < np.uint64(batch[i, at]) else np.int64(0)
            rows[g, at] = np.int64(total)
            rows[g, at + 1] += batch[i, at + 1] + carry
    elif op == 7:
        for i in range(low, high):
            _add_floats(row_floats, into[i - low], batch_floats, i, at)
    elif op == 8:
        for i in range(low, high):
            _merge_moments(row_floats, into[i - low], batch_floats, i, at)
    elif op == 9:
        for i in range(low, high):
            _merge_comoments(row_floats, into[i - low], batch_floats, i, at)
    elif op == 10:
        for i in range(low, high):
            g = into[i - low]
            if rows[g, at] == 0 and batch[i, at] != 0:
                rows[g, at] = batch[i, at]
                rows[g, at + 1] = batch[i, at + 1]
    else:
        for i in range(low, high):
            _take_by_order(op == 11, rows, into[i - low], batch, i, at)


@numba.njit(nogil=True, cache=True, inline="always")
def _take_by_order(least, rows, g, batch, i, at):  # type: ignore[no-untyped-def]
    if batch[i, at] == 0:
        return
    mine, other = rows[g, at + 1], batch[i, at + 1]
    if rows[g, at] == 0 or (other < mine if least else other > mine):
        rows[g, at] = batch[i, at]
        rows[g, at + 1] = other
        rows[g, at + 2] = batch[i, at + 2]


@numba.njit(nogil=True, cache=True, inline="always")
def _add_floats(rows, g, batch, i, at):  # type: ignore[no-untyped-def]
    x, y = rows[g, at], batch[i, at]
    total = x + y
    lost = (x - total) + y if abs(x) >= abs(y) else (y - total) + x
    # An infinite or undefined total has lost nothing that could be given back.
    if not math.isfinite(total):
        lost = 0.0
    rows[g, at] = total
    rows[g, at + 1] += lost + batch[i, at + 1]


@numba.njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _merge_moments(rows, g, batch, i, at):  # type: ignore[no-untyped-def]
    n1, n2 = rows[g, at], batch[i, at]
    if n2 == 0.0:
        return
    if n1 == 0.0:
        for slot in range(at, at + 5):
            rows[g, slot] = batch[i, slot]
        return
    n = n1 + n2
    delta = batch[i, at + 1] - rows[g, at + 1]
    step = delta / n
    a2, a3, a4 = rows[g, at + 2], rows[g, at + 3], rows[g, at + 4]
    b2, b3, b4 = batch[i, at + 2], batch[i, at + 3], batch[i, at + 4]
    both = n1 * n2
    rows[g, at] = n
    rows[g, at + 1] += step * n2
    rows[g, at + 2] = a2 + b2 + delta * step * both
    rows[g, at + 3] = a3 + b3 + step * step * delta * both * (n1 - n2) + 3.0 * step * (n1 * b2 - n2 * a2)
    rows[g, at + 4] = (
        a4
        + b4
        + step * step * step * delta * both * (n1 * n1 - both + n2 * n2)
        + 6.0 * step * step * (n1 * n1 * b2 + n2 * n2 * a2)
        + 4.0 * step * (n1 * b3 - n2 * a3)
    )


@numba.njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _merge_comoments(rows, g, batch, i, at):  # type: ignore[no-untyped-def]
    n1, n2 = rows[g, at], batch[i, at]
    if n2 == 0.0:
        return
    if n1 == 0.0:
        for slot in range(at, at + 6):
            rows[g, slot] = batch[i, slot]
        return
    n = n1 + n2
    dx = batch[i, at + 1] - rows[g, at + 1]
    dy = batch[i, at + 2] - rows[g, at + 2]
    share = n1 * n2 / n
    rows[g, at] = n
    rows[g, at + 1] += dx * n2 / n
    rows[g, at + 2] += dy * n2 / n
    rows[g, at + 3] += batch[i, at + 3] + dx * dy * share
    rows[g, at + 4] += batch[i, at + 4] + dx * dx * share
    rows[g, at + 5] += batch[i, at + 5] + dy * dy * share
