"""Windows that move on by few slices: a queue of slices as two stacks, each of which knows what it combines to.

Slices come on the back stack and leave from the front one; when that is empty, the back one is turned over. Needs
nothing of a state. Every slice is combined at most twice, whatever the number of windows that it is in, and every
window takes one step more. Takes one state a row.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.algebra.combine import combine_one
from headrace.algebra.ops import Op, Words


def prepare(op: Op, slots: Words, lane_ends: Words) -> Words:
    """What `fold` looks at: the states of the slices, lane by lane."""
    return slots


def fold(op: Op, slots: Words, firsts: Words, ends: Words, out: Words) -> None:
    """The state of each window, from those of its slices: rows from one number to before another.

    From window to window, both numbers only grow, until a first row that is earlier begins anew.
    """
    front, back = np.empty_like(slots), np.empty((1, slots.shape[1]), dtype=np.int64)
    floats = (slots.view("f8"), front.view("f8"), back.view("f8"), out.view("f8"))
    _fold(int(op), slots, front, back, firsts, ends, out, *floats)


@numba.njit(nogil=True, cache=True)
def _fold(op, slots, front, back, firsts, ends, out, floats, front_floats, back_floats, out_floats):  # type: ignore[no-untyped-def]
    turned = pushed = 0
    for w in range(len(firsts)):
        first, end = firsts[w], ends[w]
        if first >= turned or first < firsts[w - 1]:
            front[end - 1] = slots[end - 1]
            for i in range(end - 2, first - 1, -1):
                front[i] = slots[i]
                combine_one(op, 0, front, front_floats, i, front, front_floats, i + 1)
            turned = pushed = end
            out[w] = front[first]
            continue
        for i in range(pushed, end):
            if i == turned:
                back[0] = slots[i]
            else:
                combine_one(op, 0, back, back_floats, 0, slots, floats, i)
        pushed = end
        out[w] = front[first]
        if pushed > turned:
            combine_one(op, 0, out, out_floats, w, back, back_floats, 0)
