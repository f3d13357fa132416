"""How the states of two rows combine: one operation a kind of state, each over one or more 64-bit slots.

A row of a table is key words followed by slots. A slot holds an int64 or, seen through a view, a float64.
Every operation is associative and has an identity, so rows may come in any number of pieces. It is commutative too
(floating sums and moments: up to rounding), so they may come in any order. The exceptions are TAKE, and TAKE_LEAST
and TAKE_GREATEST of equal orders: they take the first of two, and are for answers that may be either.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Words = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

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
    VARIANCE = 8
    """n, mean, and the sum of the squares of the distance from the mean (Chan)."""
    MOMENTS = 9
    """As VARIANCE, and the sums of the 3rd and 4th powers of the distance (Pébay)."""
    COMOMENTS = 10
    """n, both means, the sum of products of the distances, and both sums of squares."""
    TAKE = 11
    """Whether there is a value, and the value: of two, the first."""
    TAKE_LEAST = 12
    """Whether there is a value, what to order by, the value: of two, the one with the smaller order."""
    TAKE_GREATEST = 13
    """As TAKE_LEAST, with the greater order."""


SLOTS = {
    Op.WIDE_ADD: 2,
    Op.FLOAT_ADD: 2,
    Op.VARIANCE: 3,
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


def count_slots(ops: Iterable[Op]) -> int:
    """How many slots the states of some operations have together."""
    return sum(map(slot_count, ops))


def identity_row(ops: tuple[Op, ...]) -> Words:
    """The slots of a state that no row has touched."""
    return np.array([IDENTITY.get(op, 0) for op in ops for _ in range(slot_count(op))], dtype=np.int64)
