"""Windows of few slices: each is combined slice by slice.

Needs nothing of a state. Takes time by the slices of all windows, and no space.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.algebra.combine import ADD, FLOAT_ADD, combine_one, plus_floats
from headrace.algebra.ops import Op, Words


def prepare(op: Op, slots: Words, lane_ends: Words) -> Words:
    """What `fold` looks at: the states of the slices, lane by lane."""
    return slots


def fold(op: Op, slots: Words, firsts: Words, ends: Words, out: Words) -> None:
    """The state of each window, from those of its slices: rows from one number to before another."""
    _fold(int(op), slots, slots.view("f8"), firsts, ends, out, out.view("f8"))


@numba.njit(nogil=True, cache=True)
def _fold(op, slots, floats, firsts, ends, out, out_floats):  # type: ignore[no-untyped-def]
    if op == ADD:
        for w in range(len(firsts)):
            total = np.int64(0)
            for i in range(firsts[w], ends[w]):
                total += slots[i, 0]
            out[w, 0] = total
        return
    if op == FLOAT_ADD:
        for w in range(len(firsts)):
            first, rest = floats[firsts[w], 0], floats[firsts[w], 1]
            for i in range(firsts[w] + 1, ends[w]):
                first, rest = plus_floats(first, rest, floats[i, 0], floats[i, 1])
            out_floats[w, 0], out_floats[w, 1] = first, rest
        return
    for w in range(len(firsts)):
        out[w] = slots[firsts[w]]
        for i in range(firsts[w] + 1, ends[w]):
            combine_one(op, 0, out, out_floats, w, slots, floats, i)
