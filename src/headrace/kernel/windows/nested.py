"""Filters that contain each other: what each has of a group, by one walk over rows in order.

The rows of a narrower filter are among those of a wider one. So the rows of a group are put in order by how many
of the filters are true for them, most first: then each filter has the first rows of a group, up to some number,
and goes on from what the next narrower one has. Needs nothing of a state. Takes the time of one walk for all
filters of a chain, and the space of its rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt

from headrace.algebra.combine import ADD, FLOAT_ADD, combine_one, plus_floats
from headrace.algebra.ops import Op, Words

Bits = npt.NDArray[np.uint64]
Ranks = npt.NDArray[np.int16]
"""How many filters of a chain are true."""
MOST_RANKS = 1 << 14


class Parts(NamedTuple):
    """Rows of one group with the same rank are a part: those of a group follow each other, by falling rank."""

    order: Words
    """The rows, part by part, without those of rank 0."""
    lanes: Words
    starts: Words
    ends: Words
    ranks: Words


def part(starts: Words, lane_ends: Words, kinds: npt.NDArray[np.int32], ranks: Ranks, most: int) -> Parts:
    """The parts of rows of these kinds, each of which has a rank."""
    order, found = np.empty(len(starts), dtype=np.int64), np.empty((4, len(starts)), dtype=np.int64)
    rows, parts = _part(starts, lane_ends, kinds, ranks, most, order, found)
    return Parts(order[:rows], *found[:, :parts])


def run_up(op: Op, parts: Parts, states: Words) -> None:
    """Combine the state of each part with those of all before it in its group."""
    _run_up(int(op), parts.lanes, parts.starts, states, states.view(np.float64))


def reach(parts: Parts, most: int) -> tuple[Words, Words]:
    """For each rank, one after another, the last part of each group with such a row or higher; and their ends."""
    counts = np.zeros(most, dtype=np.int64)
    _reach(parts.lanes, parts.starts, parts.ranks, counts, np.empty(0, dtype=np.int64))
    ends = np.cumsum(counts)
    last = np.empty(ends[-1], dtype=np.int64)
    _reach(parts.lanes, parts.starts, parts.ranks, ends - counts, last)
    return last, ends


def chains(filters: Bits, rows: Words, most: int) -> list[list[int]]:
    """Filters as few chains, each from the widest to the narrowest.

    A filter is the bits of the fragments that it is true for; with their numbers of rows, of which a chain has not
    more than the most together.
    """
    found: list[list[int]] = []
    narrowest = np.empty_like(filters)
    left = np.empty(len(filters), dtype=np.int64)
    for number in np.argsort(-rows, kind="stable"):
        inside = ~np.any(filters[number] & ~narrowest[: len(found)], axis=1) & (left[: len(found)] >= rows[number])
        place = len(found)
        if inside.any():
            fitting = np.flatnonzero(inside)
            place = int(fitting[np.argmin(rows[[found[each][-1] for each in fitting]])])
            found[place].append(int(number))
            left[place] -= rows[number]
        else:
            found.append([int(number)])
            left[place] = most - rows[number]
        narrowest[place] = filters[number]
        if len(found[place]) == MOST_RANKS:
            left[place] = -1
    return found


@numba.njit(nogil=True, cache=True)
def _part(starts, lane_ends, kinds, ranks, most, order, found):  # type: ignore[no-untyped-def]
    places = np.zeros(most + 1, dtype=np.int64)
    rows, parts, begin = 0, 0, 0
    for lane in range(len(lane_ends)):
        end = lane_ends[lane]
        while begin < end:
            start, until, top = starts[np.uint64(begin)], begin, np.int64(0)
            while until < end and starts[np.uint64(until)] == start:
                own = np.uint64(ranks[np.uint64(kinds[np.uint64(until)])])
                places[own] += 1
                top = max(top, np.int64(own))
                until += 1
            for rank in range(top, -1, -1):
                count = places[np.uint64(rank)]
                places[np.uint64(rank)] = rows
                if count and rank:
                    rows += count
                    found[0, parts], found[1, parts], found[2, parts], found[3, parts] = lane, start, rows, rank
                    parts += 1
            # Rows of rank 0 are behind the others, and the next group is written over them.
            for i in range(begin, until if top else begin):
                own = np.uint64(ranks[np.uint64(kinds[np.uint64(i)])])
                order[np.uint64(places[own])] = i
                places[own] += 1
            places[: top + 1] = 0
            begin = until
    return rows, parts


@numba.njit(nogil=True, cache=True)
def _run_up(op, lanes, starts, states, floats):  # type: ignore[no-untyped-def]
    for i in range(1, len(lanes)):
        if lanes[i] != lanes[i - 1] or starts[i] != starts[i - 1]:
            continue
        if op == ADD:
            states[i, 0] += states[i - 1, 0]
        elif op == FLOAT_ADD:
            floats[i, 0], floats[i, 1] = plus_floats(
                floats[i, 0], floats[i, 1], floats[i - 1, 0], floats[i - 1, 1]
            )
        else:
            combine_one(op, 0, states, floats, i, states, floats, i - 1)


@numba.njit(nogil=True, cache=True)
def _reach(lanes, starts, ranks, places, last):  # type: ignore[no-untyped-def]
    """Count the groups that have a row of each rank, or write where their last part is, if there is room."""
    for i in range(len(lanes)):
        lower = 0
        if i + 1 < len(lanes) and lanes[i + 1] == lanes[i] and starts[i + 1] == starts[i]:
            lower = ranks[i + 1]
        for rank in range(lower, ranks[i]):
            if len(last):
                last[places[rank]] = i
            places[rank] += 1
