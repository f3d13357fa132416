"""Windows of states that can be taken away again: what there was up to a window's end, less what was before it.

Needs an inverse: whole sums and counts, also where they wrap around, and XOR; not floating sums, for what is lost
when large numbers come and go would be missing later. Takes the same time for any window, and one state a row.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.algebra.ops import Op, Words

INVERTIBLE = frozenset({Op.ADD, Op.XOR, Op.WIDE_ADD})


def prepare(op: int, slots: Words) -> Words:
    """All states before each row, combined."""
    before = np.zeros((len(slots) + 1, slots.shape[1]), dtype=np.int64)
    _add_up(op, slots, before)
    return before


def fold(op: int, before: Words, firsts: Words, ends: Words, out: Words) -> None:
    """The state of each window, from those of its slices: rows from one number to before another."""
    _subtract(op, before, firsts, ends, out)


@numba.njit(nogil=True, cache=True)
def _add_up(op, slots, before):  # type: ignore[no-untyped-def]
    for i in range(len(slots)):
        if op == 5:
            before[i + 1, 0] = before[i, 0] ^ slots[i, 0]
            continue
        before[i + 1, 0] = before[i, 0] + slots[i, 0]
        if op == 6:
            carry = np.uint64(before[i + 1, 0]) < np.uint64(slots[i, 0])
            before[i + 1, 1] = before[i, 1] + slots[i, 1] + np.int64(carry)


@numba.njit(nogil=True, cache=True)
def _subtract(op, before, firsts, ends, out):  # type: ignore[no-untyped-def]
    for w in range(len(firsts)):
        low, high = firsts[w], ends[w]
        if op == 5:
            out[w, 0] = before[high, 0] ^ before[low, 0]
            continue
        out[w, 0] = before[high, 0] - before[low, 0]
        if op == 6:
            borrow = np.uint64(before[high, 0]) < np.uint64(before[low, 0])
            out[w, 1] = before[high, 1] - before[low, 1] - np.int64(borrow)
