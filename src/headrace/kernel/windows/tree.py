"""Windows far longer than slices, as where many kinds of windows share them: a tree of what neighbours combine to.

Needs nothing of a state. The tree is made once, in one step a row, for any number of kinds of windows; a window
takes two steps at most for each doubling of its slices. Takes two states a row.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.algebra.combine import combine_one
from headrace.algebra.ops import Op, Words


def prepare(op: Op, slots: Words, lane_ends: Words) -> Words:
    """The tree: rows are its leaves, the second half; row i is made of rows 2 i and 2 i + 1."""
    tree = np.empty((2 * len(slots), slots.shape[1]), dtype=np.int64)
    tree[len(slots) :] = slots
    _grow(int(op), tree, tree.view("f8"))
    return tree


def fold(op: Op, tree: Words, firsts: Words, ends: Words, out: Words) -> None:
    """The state of each window, from those of its slices: rows from one number to before another."""
    _fold(int(op), tree, tree.view("f8"), firsts, ends, out, out.view("f8"))


@numba.njit(nogil=True, cache=True)
def _grow(op, tree, floats):  # type: ignore[no-untyped-def]
    for i in range(len(tree) // 2 - 1, 0, -1):
        tree[i] = tree[2 * i]
        combine_one(op, 0, tree, floats, i, tree, floats, 2 * i + 1)


@numba.njit(nogil=True, cache=True)
def _fold(op, tree, floats, firsts, ends, out, out_floats):  # type: ignore[no-untyped-def]
    leaves = len(tree) // 2
    for w in range(len(firsts)):
        out[w] = tree[firsts[w] + leaves]
        low, high = firsts[w] + leaves + 1, ends[w] + leaves
        while low < high:
            if low & 1:
                combine_one(op, 0, out, out_floats, w, tree, floats, low)
                low += 1
            if high & 1:
                high -= 1
                combine_one(op, 0, out, out_floats, w, tree, floats, high)
            low >>= 1
            high >>= 1
