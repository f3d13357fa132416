"""Rows of a node lane by lane, and the windows of each lane."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from types import ModuleType
from typing import NamedTuple

import numba
import numpy as np
import pyarrow as pa

from headrace.algebra.ops import Op, Words, slot_count
from headrace.kernel.layout import Layout
from headrace.kernel.records import Coding
from headrace.kernel.reduce import reduce
from headrace.kernel.rows import Rows
from headrace.kernel.strided import Field, Strided
from headrace.kernel.windows import difference, directly, tree, two_stacks
from headrace.plan.slices import Slices, Windows

_FEW = 4
"""Windows of so many slices are combined directly."""
_KINDS_AT_A_TIME = 16
"""Kinds of windows that are looked for together: all of their windows are in memory then."""


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

    def __init__(self, slices: Slices, rows: Rows, kinds: Iterable[Windows] = ()) -> None:
        """`kinds` are the windows that will be asked for, in this order."""
        self._slices, self._rows = slices, rows
        self._kinds = list(kinds)
        self._spans: dict[Windows, Spans] = {}
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
        """All windows that have slices in a lane; kinds to come are found while a lane is in the cache."""
        if windows not in self._spans:
            place = self._kinds.index(windows) if windows in self._kinds else len(self._kinds)
            kinds = self._kinds[place : place + _KINDS_AT_A_TIME] or [windows]
            _, _, ends, starts = self._ordered
            shapes = np.array([[k.window.range_us, k.window.slide_us, k.offset_us] for k in kinds], dtype=np.int64)
            bounds = _most_windows(starts, ends, shapes)
            found = np.empty((4, bounds[-1]), dtype=np.int64)
            counts = _find_windows(starts, ends, shapes, bounds, found)
            for kind, begin, count in zip(kinds, bounds, counts, strict=False):
                self._spans[kind] = Spans(*found[:, begin : begin + count])
        return self._spans.pop(windows)

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
    fields = lanes.keys.layout.moved(lanes.keys.matrix, range(len(coders) - 1), layout.places[1:])
    place = layout.places[0]
    fields.append(Field(codes.values, place.word, place.shift, codes.base, picked=False))
    slots = [part[:, column] for part in parts for column in range(part.shape[1])]
    source = Strided.of(len(spans.lanes), layout.words, fields, slots, spans.lanes, slots_picked=False)
    return Rows(source.pack(), coders, layout, tuple(ops))


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
def _most_windows(starts, lane_ends, shapes):  # type: ignore[no-untyped-def]
    """For each kind where its windows begin in a list of all, and where they end at most."""
    bounds = np.zeros(len(shapes) + 1, dtype=np.int64)
    begin = 0
    for end in lane_ends:
        for kind in range(len(shapes)):
            range_us, slide_us, offset_us = shapes[kind]
            first = (starts[begin] - range_us - offset_us) // slide_us + 1
            last = (starts[end - 1] - offset_us) // slide_us
            bounds[kind + 1] += min(last - first + 1, (end - begin) * (-(-range_us // slide_us)))
        begin = end
    return np.cumsum(bounds)


@numba.njit(nogil=True, cache=True)
def _find_windows(starts, lane_ends, shapes, bounds, found):  # type: ignore[no-untyped-def]
    """Write lane, number, first row and end of each window that has rows; gives how many each kind has."""
    counts = np.zeros(len(shapes), dtype=np.int64)
    begin = 0
    for lane in range(len(lane_ends)):
        end = lane_ends[lane]
        for kind in range(len(shapes)):
            place = bounds[kind] + counts[kind]
            counts[kind] += _find_in_lane(starts, lane, begin, end, shapes[kind], place, found)
        begin = end
    return counts


@numba.njit(nogil=True, cache=True)
def _find_in_lane(starts, lane, begin, lane_end, shape, place, found):  # type: ignore[no-untyped-def]
    range_us, slide_us, offset_us = shape
    # About as many rows as a slide has.
    span_us = starts[lane_end - 1] - starts[begin] + 1
    step = max(1, min(lane_end - begin, int((lane_end - begin) * slide_us / span_us)))
    first = end = begin
    number = (starts[first] - range_us - offset_us) // slide_us + 1
    count = 0
    while True:
        opens = number * slide_us + offset_us
        first = _not_before(starts, first, lane_end, opens, step)
        if first == lane_end:
            return count
        if starts[first] >= opens + range_us:
            number = (starts[first] - range_us - offset_us) // slide_us + 1
            continue
        end = _not_before(starts, max(first, end), lane_end, opens + range_us, step)
        found[0, place + count] = lane
        found[1, place + count] = number
        found[2, place + count] = first
        found[3, place + count] = end
        count += 1
        number += 1


@numba.njit(nogil=True, cache=True)
def _not_before(starts, low, high, time_us, step):  # type: ignore[no-untyped-def]
    """The first row from one number to before another whose slice does not begin before a time.

    It is looked for a step further first, since windows go on by about as many rows.
    """
    if low >= high or starts[low] >= time_us:
        return low
    near = low + step
    while near < high and starts[near] < time_us:
        low = near
        near += step
    high = min(near, high)
    while low + 1 < high:
        middle = (low + high) >> 1
        if starts[middle] < time_us:
            low = middle
        else:
            high = middle
    return high
