"""Rows of a node lane by lane, and the windows of each lane."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from types import ModuleType
from typing import NamedTuple

import numba
import numpy as np
import pyarrow as pa

from headrace.algebra.ops import Op, Words, slot_count
from headrace.kernel.layout import Layout
from headrace.kernel.matrix import move, or_column
from headrace.kernel.records import Coding
from headrace.kernel.reduce import reduce
from headrace.kernel.rows import Rows
from headrace.kernel.windows import difference, directly, tree, two_stacks
from headrace.plan.slices import Slices, Windows

_FEW = 4
"""Windows of so many slices are combined directly."""


class Spans(NamedTuple):
    """Windows that have slices in a lane: the lane, the window's number, and from which row to before which."""

    lanes: Words
    numbers: Words
    firsts: Words
    ends: Words


class Lanes:
    """Rows of a node in order: those of the same keys are a lane, by the time of their slices.

    What it takes to combine states is made once for all windows that are asked for.
    """

    def __init__(self, slices: Slices, rows: Rows) -> None:
        self._slices, self._rows = slices, rows
        self._prepared: dict[tuple[int, ModuleType], Words] = {}

    @cached_property
    def _ordered(self) -> tuple[Rows, Words, Words, Words]:
        """The keys of each lane, the numbers of the rows in order, where lanes end, and when slices begin."""
        rows = self._rows
        keys, lane_of = reduce(rows, range(1, len(rows.coders)), [])
        starts = rows.mapped(0, lambda numbers: self._slices.start_of(np.asarray(numbers)))
        order, ends = _in_order(lane_of, starts, len(keys))
        return keys, order, ends, starts[order]

    @property
    def keys(self) -> Rows:
        """The keys of each lane."""
        return self._ordered[0]

    def spans(self, windows: Windows) -> Spans:
        """All windows that have slices in a lane."""
        _, _, ends, starts = self._ordered
        window = windows.window
        shape = window.range_us, window.slide_us, windows.offset_us
        found = np.empty((4, _most_windows(starts, ends, *shape)), dtype=np.int64)
        return Spans(*found[:, : _find_windows(starts, ends, *shape, found)])

    def fold(self, state: int, spans: Spans) -> Words:
        """One state of each window."""
        op = self._rows.ops[state]
        _, order, lane_ends, _ = self._ordered
        way = _way(op, len(order), spans)
        if (state, way) not in self._prepared:
            slots = self._rows.matrix[:, self._rows.slots([state])][order]
            self._prepared[state, way] = way.prepare(op, slots, lane_ends)
        table = self._prepared[state, way]
        out = np.empty((len(spans.lanes), slot_count(op)), dtype=np.int64)
        way.fold(op, table, spans.firsts, spans.ends, out)
        return out


def merge(lanes: Lanes, windows: Windows, states: Sequence[int], ops: Sequence[Op], coding: Coding) -> Rows:
    """The rows of windows, with some of the states; `coding` is for the windows' numbers."""
    spans = lanes.spans(windows)
    codes = coding.encode(windows, pa.array(spans.numbers))
    coders = (coding.coder(windows), *lanes.keys.coders)
    layout = Layout.of([coder.bits for coder in coders])
    parts = [lanes.fold(state, spans) for state in states]
    matrix = np.empty((len(spans.lanes), layout.words + sum(part.shape[1] for part in parts)), dtype=np.int64)
    fields = lanes.keys.layout.moves(range(len(coders) - 1), layout.places[1:])
    move(lanes.keys.matrix, spans.lanes, fields, layout.words, np.empty(0, dtype=np.int64), matrix)
    place, at = layout.places[0], layout.words
    or_column(matrix, place.word, place.shift, codes.values, codes.base)
    for part in parts:
        matrix[:, at : at + part.shape[1]] = part
        at += part.shape[1]
    return Rows(matrix, coders, layout, tuple(ops))


def _way(op: Op, rows: int, spans: Spans) -> ModuleType:
    """The way to combine the slices of windows that takes the fewest steps."""
    count = max(1, len(spans.lanes))
    slices = float((spans.ends - spans.firsts).sum()) / count
    if slices <= _FEW:
        return directly
    if op in difference.FITTING:
        return difference
    in_stacks = 2 * min(rows, count * slices) + count
    return tree if 2 * math.log2(slices) * count < in_stacks else two_stacks


@numba.njit(nogil=True, cache=True)
def _in_order(lane_of, starts, lanes):  # type: ignore[no-untyped-def]
    """The numbers of rows lane by lane, each by the time of its slices, and where lanes end."""
    ends = np.zeros(lanes + 1, dtype=np.int64)
    for i in range(len(lane_of)):
        ends[lane_of[i] + 1] += 1
    for lane in range(lanes):
        ends[lane + 1] += ends[lane]
    order = np.empty(len(lane_of), dtype=np.int64)
    for i in range(len(lane_of)):
        order[ends[lane_of[i]]] = i
        ends[lane_of[i]] += 1
    begin = 0
    for lane in range(lanes):
        end = ends[lane]
        for i in range(begin + 1, end):
            if starts[order[i]] < starts[order[i - 1]]:
                own = order[begin:end].copy()
                order[begin:end] = own[np.argsort(starts[own])]
                break
        begin = end
    return order, ends[:lanes]


@numba.njit(nogil=True, cache=True)
def _most_windows(starts, lane_ends, range_us, slide_us, offset_us):  # type: ignore[no-untyped-def]
    """No fewer windows than there are."""
    most = begin = 0
    for end in lane_ends:
        first = (starts[begin] - range_us - offset_us) // slide_us + 1
        last = (starts[end - 1] - offset_us) // slide_us
        most += min(last - first + 1, (end - begin) * (-(-range_us // slide_us)))
        begin = end
    return most


@numba.njit(nogil=True, cache=True)
def _find_windows(starts, lane_ends, range_us, slide_us, offset_us, found):  # type: ignore[no-untyped-def]
    """Write lane, number, first row and end of each window that has rows; gives how many there are."""
    count = begin = 0
    for lane in range(len(lane_ends)):
        lane_end = lane_ends[lane]
        first = end = begin
        number = (starts[first] - range_us - offset_us) // slide_us + 1
        while True:
            opens = number * slide_us + offset_us
            first = _not_before(starts, first, lane_end, opens)
            if first == lane_end:
                break
            if starts[first] >= opens + range_us:
                number = (starts[first] - range_us - offset_us) // slide_us + 1
                continue
            end = _not_before(starts, max(first, end), lane_end, opens + range_us)
            found[0, count] = lane
            found[1, count] = number
            found[2, count] = first
            found[3, count] = end
            count += 1
            number += 1
        begin = lane_end
    return count


@numba.njit(nogil=True, cache=True)
def _not_before(starts, low, high, time_us):  # type: ignore[no-untyped-def]
    """The first row from one number to before another whose slice does not begin before a time."""
    step = 1
    while low < high and starts[low] < time_us:
        if low + step < high and starts[low + step] < time_us:
            low += step
            step *= 2
        elif step > 1:
            step = 1
        else:
            low += 1
    return low
