"""Windows of sums: what there was up to a window's end, less what was before it.

Needs a state that can be taken away again. Whole sums, counts and XOR can, also where they wrap around. Floating
sums can as long as the window's own part is not lost beside what is taken away: sums up to each row are kept in
twice the digits, and where a window has less than a billionth of the greatest of them (or one is infinite, or
NaN), its slices are combined one by one instead. Takes the same time for any window, and one state a row; a
floating sum takes five words there.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.algebra.combine import WIDE_ADD, XOR, add_wide, plus_floats
from headrace.algebra.ops import Op, Words

FITTING = frozenset({Op.ADD, Op.XOR, Op.WIDE_ADD, Op.FLOAT_ADD})
_LEAST_PART = 2.0**-30
"""Sums of n states in twice the digits are off by n * 2**-104 of the greatest at most: not much beside this."""


def prepare(op: Op, slots: Words, lane_ends: Words) -> Words:
    """All states before each row, combined; floating ones of a lane, the greatest so far, and the row's own."""
    if op != Op.FLOAT_ADD:
        before = np.zeros((len(slots) + 1, slots.shape[1]), dtype=np.int64)
        _add_up(int(op), slots, before)
        return before
    table = np.empty((len(slots), 5))
    _add_up_floats(slots.view("f8"), lane_ends, table)
    return table.view(np.int64)


def fold(op: Op, table: Words, firsts: Words, ends: Words, out: Words) -> None:
    """The state of each window, from those of its slices: rows from one number to before another."""
    if op == Op.FLOAT_ADD:
        _subtract_floats(table.view("f8"), firsts, ends, out.view("f8"))
    else:
        _subtract(int(op), table, firsts, ends, out)


@numba.njit(nogil=True, cache=True)
def _add_up(op, slots, before):  # type: ignore[no-untyped-def]
    for i in range(len(slots)):
        if op == XOR:
            before[i + 1, 0] = before[i, 0] ^ slots[i, 0]
        elif op == WIDE_ADD:
            before[i + 1, 0], before[i + 1, 1] = before[i, 0], before[i, 1]
            add_wide(before, i + 1, slots, i, 0)
        else:
            before[i + 1, 0] = before[i, 0] + slots[i, 0]


@numba.njit(nogil=True, cache=True)
def _subtract(op, before, firsts, ends, out):  # type: ignore[no-untyped-def]
    for w in range(len(firsts)):
        first, end = firsts[w], ends[w]
        if op == XOR:
            out[w, 0] = before[end, 0] ^ before[first, 0]
            continue
        out[w, 0] = before[end, 0] - before[first, 0]
        if op == WIDE_ADD:
            borrow = np.uint64(before[end, 0]) < np.uint64(before[first, 0])
            out[w, 1] = before[end, 1] - before[first, 1] - np.int64(borrow)


@numba.njit(nogil=True, cache=True)
def _add_up_floats(slots, lane_ends, table):  # type: ignore[no-untyped-def]
    begin = 0
    for end in lane_ends:
        total, rest, greatest = 0.0, 0.0, 0.0
        for i in range(begin, end):
            table[i, 0], table[i, 1], table[i, 2] = total, rest, greatest
            table[i, 3], table[i, 4] = slots[i, 0], slots[i, 1]
            # What is lost is only added up: a total that waits for it would take three times as long.
            before, total = total, total + slots[i, 0]
            part = total - before
            rest += (before - (total - part)) + (slots[i, 0] - part) + slots[i, 1]
            greatest = max(greatest, abs(total)) if total == total else np.inf
        begin = end


@numba.njit(nogil=True, cache=True)
def _subtract_floats(table, firsts, ends, out):  # type: ignore[no-untyped-def]
    for w in range(len(firsts)):
        first, last = firsts[w], ends[w] - 1
        total, rest = _plus(table[last, 0], table[last, 1], table[last, 3], table[last, 4])
        greatest = max(table[last, 2], abs(total))
        total, rest = _plus(total, rest, -table[first, 0], -table[first, 1])
        if not abs(total) >= _LEAST_PART * greatest or not greatest < np.inf:
            total, rest = table[first, 3], table[first, 4]
            for i in range(first + 1, last + 1):
                total, rest = plus_floats(total, rest, table[i, 3], table[i, 4])
        out[w, 0] = total
        out[w, 1] = rest


@numba.njit(nogil=True, cache=True, inline="always")
def _plus(x, x_rest, y, y_rest):  # type: ignore[no-untyped-def]
    """The sum of two numbers of twice the digits: a total, and what is missing from it."""
    total = x + y
    part = total - x
    rest = (x - (total - part)) + (y - part) + (x_rest + y_rest)
    nearer = total + rest
    return nearer, rest - (nearer - total)
