"""The operations of `ops.py`, compiled: the states of some rows combined into those of others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numba
import numpy as np

from headrace.algebra.ops import Op, Words, identity_row

(ADD, MIN, MAX, AND, OR, XOR, WIDE_ADD, FLOAT_ADD, VARIANCE, MOMENTS, COMOMENTS, TAKE, TAKE_LEAST, _) = map(
    int, Op
)
"""Operations as compiled functions know them."""


@numba.njit(nogil=True, cache=True, error_model="numpy")
def combine(op, at, rows, row_floats, into, batch, batch_floats, known):  # type: ignore[no-untyped-def]
    """Combine those rows of a batch that are `known` into the table's rows `into[...]`, from slot `at` on.

    `combine_one` for each of them would ask for each which operation it is.
    """
    if op == ADD:
        for i in known:
            g = np.uint64(into[i])
            rows[g, at] += batch[i, at]
    elif op == MIN:
        for i in known:
            g = np.uint64(into[i])
            rows[g, at] = min(rows[g, at], batch[i, at])
    elif op == MAX:
        for i in known:
            g = np.uint64(into[i])
            rows[g, at] = max(rows[g, at], batch[i, at])
    elif op == AND:
        for i in known:
            g = np.uint64(into[i])
            rows[g, at] &= batch[i, at]
    elif op == OR:
        for i in known:
            g = np.uint64(into[i])
            rows[g, at] |= batch[i, at]
    elif op == XOR:
        for i in known:
            g = np.uint64(into[i])
            rows[g, at] ^= batch[i, at]
    elif op == WIDE_ADD:
        for i in known:
            add_wide(rows, np.uint64(into[i]), batch, i, at)
    elif op == FLOAT_ADD:
        for i in known:
            _add_floats(row_floats, into[i], batch_floats, i, at)
    elif op == VARIANCE:
        for i in known:
            _merge_variance(row_floats, into[i], batch_floats, i, at)
    elif op == MOMENTS:
        for i in known:
            _merge_moments(row_floats, into[i], batch_floats, i, at)
    elif op == COMOMENTS:
        for i in known:
            _merge_comoments(row_floats, into[i], batch_floats, i, at)
    elif op == TAKE:
        for i in known:
            _take(rows, into[i], batch, i, at)
    else:
        for i in known:
            _take_by_order(op == TAKE_LEAST, rows, into[i], batch, i, at)


@numba.njit(nogil=True, cache=True, inline="always")
def add_wide(rows, g, batch, i, at):  # type: ignore[no-untyped-def]
    """A 128-bit number of a batch more in a row."""
    total = np.uint64(rows[g, at]) + np.uint64(batch[i, at])
    carry = np.int64(1) if total < np.uint64(batch[i, at]) else np.int64(0)
    rows[g, at] = np.int64(total)
    rows[g, at + 1] += batch[i, at + 1] + carry


@numba.njit(nogil=True, cache=True, inline="always")
def _take(rows, g, batch, i, at):  # type: ignore[no-untyped-def]
    if rows[g, at] == 0 and batch[i, at] != 0:
        rows[g, at] = batch[i, at]
        rows[g, at + 1] = batch[i, at + 1]


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
def plus_floats(x, x_rest, y, y_rest):  # type: ignore[no-untyped-def]
    """Two floating sums together, each with what it has lost."""
    total = x + y
    lost = (x - total) + y if abs(x) >= abs(y) else (y - total) + x
    # An infinite or undefined total has lost nothing that could be given back.
    if not math.isfinite(total):
        lost = 0.0
    return total, x_rest + (lost + y_rest)


@numba.njit(nogil=True, cache=True, inline="always")
def _add_floats(rows, g, batch, i, at):  # type: ignore[no-untyped-def]
    total, rest = plus_floats(rows[g, at], rows[g, at + 1], batch[i, at], batch[i, at + 1])
    rows[g, at] = total
    rows[g, at + 1] = rest


@numba.njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _merge_variance(rows, g, batch, i, at):  # type: ignore[no-untyped-def]
    n1, n2 = rows[g, at], batch[i, at]
    if n2 == 0.0:
        return
    if n1 == 0.0:
        for slot in range(at, at + 3):
            rows[g, slot] = batch[i, slot]
        return
    n = n1 + n2
    delta = batch[i, at + 1] - rows[g, at + 1]
    step = delta / n
    rows[g, at] = n
    rows[g, at + 1] += step * n2
    rows[g, at + 2] = rows[g, at + 2] + batch[i, at + 2] + delta * step * (n1 * n2)


@numba.njit(nogil=True, cache=True, inline="always", error_model="numpy")
def _merge_moments(rows, g, batch, i, at):  # type: ignore[no-untyped-def]
    n1, n2 = rows[g, at], batch[i, at]
    if n2 == 0.0:
        return
    if n1 == 0.0:
        for slot in range(at, at + 5):
            rows[g, slot] = batch[i, slot]
        return
    delta = batch[i, at + 1] - rows[g, at + 1]
    step = delta / (n1 + n2)
    a2, a3, a4 = rows[g, at + 2], rows[g, at + 3], rows[g, at + 4]
    b2, b3, b4 = batch[i, at + 2], batch[i, at + 3], batch[i, at + 4]
    both = n1 * n2
    _merge_variance(rows, g, batch, i, at)
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


@numba.njit(nogil=True, cache=True, error_model="numpy")
def combine_one(op, at, rows, row_floats, g, batch, batch_floats, i):  # type: ignore[no-untyped-def]
    """Combine one row of a batch into one row, both with the state from slot `at` on."""
    if op == ADD:
        rows[g, at] += batch[i, at]
    elif op == MIN:
        rows[g, at] = min(rows[g, at], batch[i, at])
    elif op == MAX:
        rows[g, at] = max(rows[g, at], batch[i, at])
    elif op == AND:
        rows[g, at] &= batch[i, at]
    elif op == OR:
        rows[g, at] |= batch[i, at]
    elif op == XOR:
        rows[g, at] ^= batch[i, at]
    elif op == WIDE_ADD:
        add_wide(rows, g, batch, i, at)
    elif op == FLOAT_ADD:
        _add_floats(row_floats, g, batch_floats, i, at)
    elif op == VARIANCE:
        _merge_variance(row_floats, g, batch_floats, i, at)
    elif op == MOMENTS:
        _merge_moments(row_floats, g, batch_floats, i, at)
    elif op == COMOMENTS:
        _merge_comoments(row_floats, g, batch_floats, i, at)
    elif op == TAKE:
        _take(rows, g, batch, i, at)
    else:
        _take_by_order(op == TAKE_LEAST, rows, g, batch, i, at)


def fold(op: Op, slots: Sequence[Words], groups: Words, number: int) -> list[Words]:
    """The slots of groups 0..number-1 from those of rows; the identity where a group has no row."""
    folded = np.tile(identity_row((op,)), (number, 1))
    groups = np.require(groups, requirements=["C", "W"])  # to compiled functions, others are of another type
    _fold(int(op), np.stack(slots), groups, folded, folded.view(np.float64))
    return [*folded.T]


@numba.njit(nogil=True, cache=True)
def _fold(op, slots, groups, rows, row_floats):  # type: ignore[no-untyped-def]
    batch, batch_floats = slots.T, slots.view(np.float64).T
    combine(op, 0, rows, row_floats, groups, batch, batch_floats, np.arange(len(groups)))
