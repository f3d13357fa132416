"""Windows of sums: what there was up to a window's end, less what was before it.

Needs a state that can be taken away again. Whole sums, counts and XOR can, also where they wrap around. Floating
sums can as long as the window's own part is not lost beside what is taken away: sums up to each row are kept in
twice the digits, and where a window has less than a billionth of the greatest of them (or one is infinite, or
NaN), its slices are combined one by one instead. Takes the same time for any window, and one state a row.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.algebra.ops import Op, Words
from headrace.kernel.combine import combine_one

FITTING = frozenset({Op.ADD, Op.XOR, Op.WIDE_ADD, Op.FLOAT_ADD})
_LEAST_PART = 2.0**-30
"""Sums of n states in twice the digits are off by n * 2**-104 of the greatest at most: not much beside this."""


def prepare(op: Op, slots: Words, lane_ends: Words) -> Words:
    """All states of a lane before each row, combined; of floating ones the greatest so far; and the states."""
    before = np.zeros((len(slots), slots.shape[1] + (op == Op.FLOAT_ADD)), dtype=np.int64)
    if op == Op.FLOAT_ADD:
        _add_up_floats(slots.view("f8"), lane_ends, before.view("f8"))
    else:
        _add_up(op, slots, before)
    return np.concatenate([before, slots], axis=1)


def fold(op: Op, table: Words, firsts: Words, ends: Words, out: Words) -> None:
    """The state of each window, from those of its slices: rows from one number to before another."""
    width = out.shape[1]
    if op == Op.FLOAT_ADD:
        slots = table[:, width + 1 :]
        _subtract_floats(table.view("f8"), slots, slots.view("f8"), firsts, ends, out, out.view("f8"))
    else:
        _subtract(op, table, width, firsts, ends, out)


@numba.njit(nogil=True, cache=True)
def _add_up(op, slots, before):  # type: ignore[no-untyped-def]
    for i in range(len(slots) - 1):
        if op == 5:
            before[i + 1, 0] = before[i, 0] ^ slots[i, 0]
            continue
        before[i + 1, 0] = before[i, 0] + slots[i, 0]
        if op == 6:
            carry = np.uint64(before[i + 1, 0]) < np.uint64(slots[i, 0])
            before[i + 1, 1] = before[i, 1] + slots[i, 1] + np.int64(carry)


@numba.njit(nogil=True, cache=True)
def _subtract(op, table, width, firsts, ends, out):  # type: ignore[no-untyped-def]
    for w in range(len(firsts)):
        first, last = firsts[w], ends[w] - 1
        if op == 5:
            out[w, 0] = table[last, 0] ^ table[last, width] ^ table[first, 0]
            continue
        low = table[last, 0] + table[last, width]
        out[w, 0] = low - table[first, 0]
        if op == 6:
            carry = np.uint64(low) < np.uint64(table[last, width])
            borrow = np.uint64(low) < np.uint64(table[first, 0])
            high = table[last, 1] + table[last, width + 1] + np.int64(carry)
            out[w, 1] = high - table[first, 1] - np.int64(borrow)


@numba.njit(nogil=True, cache=True)
def _add_up_floats(slots, lane_ends, before):  # type: ignore[no-untyped-def]
    begin = 0
    for end in lane_ends:
        for i in range(begin, end - 1):
            total, rest = _plus(before[i, 0], before[i, 1], slots[i, 0], slots[i, 1])
            before[i + 1, 0] = total
            before[i + 1, 1] = rest
            before[i + 1, 2] = max(before[i, 2], abs(total)) if total == total else np.inf
        begin = end


@numba.njit(nogil=True, cache=True)
def _subtract_floats(table, slots, floats, firsts, ends, out, out_floats):  # type: ignore[no-untyped-def]
    for w in range(len(firsts)):
        first, last = firsts[w], ends[w] - 1
        total, rest = _plus(table[last, 0], table[last, 1], table[last, 3], table[last, 4])
        greatest = max(table[last, 2], abs(total))
        total, rest = _plus(total, rest, -table[first, 0], -table[first, 1])
        if abs(total) >= _LEAST_PART * greatest and greatest < np.inf:
            out_floats[w, 0] = total
            out_floats[w, 1] = rest
            continue
        out[w] = slots[first]
        for i in range(first + 1, last + 1):
            combine_one(7, 0, out, out_floats, w, slots, floats, i)


@numba.njit(nogil=True, cache=True, inline="always")
def _plus(x, x_rest, y, y_rest):  # type: ignore[no-untyped-def]
    """The sum of two numbers of twice the digits: a total, and what is missing from it."""
    total = x + y
    part = total - x
    rest = (x - (total - part)) + (y - part) + (x_rest + y_rest)
    nearer = total + rest
    return nearer, rest - (nearer - total)
