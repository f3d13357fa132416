"""Rows of a node lane by lane: in order, so that what differs in windows or filters alone needs no hashing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from types import ModuleType
from typing import NamedTuple

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.ops import Op, Words, count_slots, slot_count
from headrace.algebra.words import Valid
from headrace.kernel.layout import Layout
from headrace.kernel.records import Coding
from headrace.kernel.reduce import reduce
from headrace.kernel.rows import Rows
from headrace.kernel.strided import Field, Strided
from headrace.kernel.windows import difference, directly, nested, tree, two_stacks
from headrace.plan.slices import Slices, Times, Windows, first_open

_FEW = 4
"""Windows of so many slices are combined directly."""
MOST_FOUND = 1 << 22
"""Windows, or rows of filters, that may be found together: all of them are in memory then."""
_ROWS_AND_KINDS, _LEAST_ROWS = 1 << 18, 1 << 13
"""Rows of one stretch of lanes, by the kinds of windows that are made of them while they are in the cache."""
_FEW_LANES = 1 << 14
"""So many are expected: of more, what it takes to look for them grows with their number."""
_ROWS_PER_SEARCH = 12
"""Rows that can be looked at in the time that it takes to search for the edges of a window."""

Kinds = npt.NDArray[np.int32]
"""Small numbers, one for each row."""


class Groups(NamedTuple):
    """What lanes were combined to: for each group its lane, the number of its window or slice, and its states."""

    lanes: Words
    numbers: Words
    slots: Words


class Spans(NamedTuple):
    """Groups to be: the lane, the number of the window or slice, and from which row to before which."""

    lanes: Words
    numbers: Words
    firsts: Words
    ends: Words


class Lanes:
    """Rows in order: those of the same keys are a lane, by the time of their slices."""

    def __init__(
        self,
        keys: Rows,
        ends: Words,
        slices: Slices | None,
        starts: Words,
        ops: Sequence[Op],
        states: Callable[[int], Words],
    ) -> None:
        """The keys of each lane and where it ends; the slices of rows, when each begins, and a way to states."""
        self.keys = keys
        self._ends, self._slices, self._starts, self._ops = ends, slices, starts, ops
        self._state = cache(states)

    @staticmethod
    def of(slices: Slices | None, rows: Rows, keys: Sequence[int]) -> tuple[Lanes, Words]:
        """Rows with lanes by some keys, and the order that they are in; their first key is the slice, if any."""
        found, lane_of = reduce(rows, keys, [], expect=_FEW_LANES)
        starts = np.zeros(len(rows), dtype=np.int64)
        if slices is not None:
            starts = rows.at_starts(slices, lambda times: times)
        order, ends = _in_order(lane_of, starts, len(found))
        return Lanes(found, ends, slices, starts.take(order), rows.ops, partial(_rows_of, rows, order)), order

    def only(self, kinds: Kinds, wanted: Valid) -> Lanes:
        """The rows whose kind is wanted."""
        chosen, ends = np.empty(len(kinds) + 1, dtype=np.int64), np.empty_like(self._ends)
        chosen = chosen[: _choose(kinds, wanted, self._ends, chosen, ends)]

        def state(number: int) -> Words:
            return self._state(number).take(chosen, axis=0)

        return Lanes(self.keys, ends, self._slices, self._starts.take(chosen), self._ops, state)

    def sifted(
        self, kinds: Kinds, ranks: nested.Ranks, most: int, slices: Slices | None, states: Sequence[int]
    ) -> list[Groups]:
        """For each filter of a chain, from the widest on, the rows that it is true for, those of a group as one.

        `ranks` tell for each kind of row how many of the filters are true, `most` of them all. Groups are rows of
        the same lane and slice; slices are those of the rows, or longer ones.
        """
        starts = self._starts
        if slices is None:
            starts = np.zeros_like(starts)
        elif slices != self._slices:
            if slices.gaps:
                outside = np.int32(len(ranks))
                kinds, ranks = np.where(slices.covers(starts), kinds, outside), np.append(ranks, np.int16(0))
            starts = slices.start_at(starts)
        parts = nested.part(starts, self._ends, kinds, ranks, most)
        numbers = parts.starts if slices is None else slices.number_of(parts.starts)
        spans = Spans(parts.lanes, numbers, np.append(0, parts.ends)[:-1], parts.ends)
        made = []
        for state in states:
            own = self._state(state).take(parts.order, axis=0)
            made.append(_folded(self._ops[state], directly, own, self._ends, spans))
            nested.run_up(self._ops[state], parts, made[-1])
        slots = np.concatenate(made, axis=1) if made else np.empty((len(numbers), 0), dtype=np.int64)
        last, ends = nested.reach(parts, most)
        found = [last[first:end] for first, end in itertools.pairwise([0, *ends.tolist()])]
        return [Groups(parts.lanes[own], numbers[own], slots[own]) for own in found]

    def windows(self, kinds: Sequence[Windows], states: Sequence[int]) -> Iterator[Groups]:
        """For each of some kinds its windows that have rows, lane by lane, with some of the states."""
        shapes = np.array([[k.window.range_us, k.window.slide_us, k.offset_us] for k in kinds], dtype=np.int64)
        most = _most_windows(self._starts, self._ends, shapes)
        for first, end in _together(most.tolist()):
            yield from self._windows(shapes[first:end], most[first:end], states)

    def rows_of(self, groups: Groups, times: Times | None, ops: Iterable[Op], coding: Coding) -> Rows:
        """Groups as rows, about windows or slices if there are such; `coding` is for the numbers of these."""
        coders = self.keys.coders
        fields, numbers = range(len(coders)), None
        if times is not None:
            numbers = coding.encode(times, pa.array(groups.numbers))
            coders = (coding.coder(times), *coders)
        layout = Layout.of([coder.bits for coder in coders])
        places = layout.places[len(coders) - len(fields) :]
        moved = self.keys.layout.moved(self.keys.matrix, fields, places)
        if numbers is not None:
            place = layout.places[0]
            moved.append(Field(numbers.values, place.word, place.shift, numbers.base, picked=False))
        slots = [groups.slots[:, column] for column in range(groups.slots.shape[1])]
        source = Strided.of(len(groups.lanes), layout.words, moved, slots, groups.lanes, slots_picked=False)
        return Rows(source.pack(), coders, layout, tuple(ops))

    def _windows(self, shapes: Words, most: Words, states: Sequence[int]) -> list[Groups]:
        """A stretch of lanes at a time, and all kinds of it, while its rows are in the cache."""
        places = np.cumsum([0, *most])
        lanes, numbers = np.empty((2, places[-1], 1), dtype=np.int64)
        slots = np.empty((places[-1], count_slots(self._ops[state] for state in states)), dtype=np.int64)
        counts = np.zeros(len(shapes), dtype=np.int64)
        for first, end in self._stretches(len(shapes)):
            low, high = self._ends[first - 1] if first else 0, self._ends[end - 1]
            starts, ends = self._starts[low:high], self._ends[first:end] - low
            found = np.empty((4, _most_windows(starts, ends, shapes).sum()), dtype=np.int64)
            ahead = len(starts) < _ROWS_PER_SEARCH * found.shape[1]
            here = _find_windows(starts, ends, shapes, ahead, found)
            spans, column, to = Spans(*found[:, : here.sum()]), 0, places[:-1] + counts
            _put_down(here, to, spans.lanes.reshape(-1, 1), first, 0, lanes)
            _put_down(here, to, spans.numbers.reshape(-1, 1), 0, 0, numbers)
            for state in states:
                op, own = self._ops[state], self._state(state)[low:high]
                made = _folded(op, _way(op, high - low, spans), own, ends, spans)
                _put_down(here, to, made, 0, column, slots)
                column += made.shape[1]
            counts += here
        stretches = [slice(place, place + count) for place, count in zip(places, counts, strict=False)]
        return [Groups(lanes[own, 0], numbers[own, 0], slots[own]) for own in stretches]

    def _stretches(self, kinds: int) -> Iterator[tuple[int, int]]:
        """Lanes from one to before another, that have not many rows together."""
        rows, first = max(_LEAST_ROWS, _ROWS_AND_KINDS // kinds), 0
        while first < len(self._ends):
            begin = int(self._ends[first - 1]) if first else 0
            end = max(first + 1, int(np.searchsorted(self._ends, begin + rows, side="right")))
            yield first, end
            first = end


def _rows_of(rows: Rows, order: Words, state: int) -> Words:
    """One state of rows, in an order."""
    places = rows.slots([state])
    return rows.matrix[:, places[0] : places[-1] + 1].take(order, axis=0)


def _folded(op: Op, way: ModuleType, slots: Words, ends: Words, spans: Spans) -> Words:
    """One state of each group, from those of some lanes' rows."""
    out = np.empty((len(spans.lanes), slot_count(op)), dtype=np.int64)
    way.fold(op, way.prepare(op, slots, ends), spans.firsts, spans.ends, out)
    return out


def _together(most: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Kinds from one to before another, of which there are not too many windows together."""
    first, found = 0, 0
    for place, count in enumerate(most):
        if found + count > MOST_FOUND and place > first:
            yield first, place
            first, found = place, 0
        found += count
    yield first, len(most)


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
def _choose(kinds, wanted, lane_ends, chosen, ends):  # type: ignore[no-untyped-def]
    """Write the numbers of rows whose kind is wanted, with room for one more, and where their lanes end."""
    count, begin = 0, 0
    for lane in range(len(lane_ends)):
        for i in range(begin, lane_ends[lane]):
            chosen[np.uint64(count)] = i
            count += wanted[np.uint64(kinds[np.uint64(i)])]
        begin = lane_ends[lane]
        ends[lane] = count
    return count


@numba.njit(nogil=True, cache=True)
def _put_down(here, places, values, more, column, out):  # type: ignore[no-untyped-def]
    """Write values, those of one kind after those of another, each kind to its place, from a column on."""
    begin = 0
    for kind in range(len(here)):
        size, first = here[kind], places[kind]
        own, to = values[begin : begin + size], out[first : first + size, column:]
        for slot in range(values.shape[1]):
            for i in range(size):
                to[i, slot] = own[i, slot] + more
        begin += size


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
    """For each kind how many windows there are at most."""
    most = np.zeros(len(shapes), dtype=np.int64)
    begin = 0
    for end in lane_ends:
        for kind in range(len(shapes) if begin < end else 0):
            range_us, slide_us, offset_us = shapes[kind]
            first = first_open(starts[begin], range_us, slide_us, offset_us)
            last = (starts[end - 1] - offset_us) // slide_us
            most[kind] += min(last - first + 1, (end - begin) * (-(-range_us // slide_us)))
        begin = end
    return most


# What is done for every window has plain numbers in it, unsigned where they are places: five times as fast.


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _find_windows(starts, lane_ends, shapes, ahead, found):  # type: ignore[no-untyped-def]
    """Write lane, number, first row and end of each window that has rows; gives how many each kind has.

    Rows are searched for edges or, for many windows, looked at once `ahead`.
    """
    counts = np.zeros(len(shapes), dtype=np.int64)
    none = np.empty(0, dtype=np.int64), np.zeros(len(lane_ends))
    places, steps = _look_ahead(starts, lane_ends) if ahead else none
    count = 0
    for kind in range(len(shapes)):
        range_us, slide_us, offset_us = shapes[kind, 0], shapes[kind, 1], shapes[kind, 2]
        before, begin = count, 0
        for lane in range(len(lane_ends)):
            end, own, step = lane_ends[lane], begin + lane, steps[lane]
            earliest, latest, opens, number = np.int64(0), np.int64(-1), np.int64(0), np.int64(0)
            if begin < end:
                earliest, latest = starts[begin], starts[end - 1]
                number = first_open(earliest, range_us, slide_us, offset_us)
                opens = number * slide_us + offset_us
            while opens <= latest:
                first, last, closes = begin, end, opens + range_us
                if opens > earliest and not ahead:
                    first = _first_from(starts, begin, end, opens)
                elif opens > earliest:
                    first += places[np.uint64(own + np.int64((opens - earliest) * step))]
                    # Two steps without a jump: most often they are enough, and nobody can guess how many it takes.
                    first += starts[np.uint64(first)] < opens
                    first += starts[np.uint64(first)] < opens
                    while starts[np.uint64(first)] < opens:
                        first += 1
                if closes <= latest and not ahead:
                    last = _first_from(starts, first, end, closes)
                elif closes <= latest:
                    last = begin + places[np.uint64(own + np.int64((closes - earliest) * step))]
                    last += starts[np.uint64(last)] < closes
                    last += starts[np.uint64(last)] < closes
                    while starts[np.uint64(last)] < closes:
                        last += 1
                if first == last:
                    # No row is in it: the next one is the first that has the row after it.
                    number = first_open(starts[np.uint64(first)], range_us, slide_us, offset_us)
                    opens = number * slide_us + offset_us
                    continue
                place = np.uint64(count)
                found[0, place], found[1, place], found[2, place], found[3, place] = lane, number, first, last
                count += 1
                number += 1
                opens += slide_us
            begin = end
        counts[kind] = count - before
    return counts


@numba.njit(nogil=True, cache=True, inline="always")
def _first_from(starts, low, high, time_us):  # type: ignore[no-untyped-def]
    """The first of some rows in order that begins at a time or later."""
    while low < high:
        middle = (low + high) >> 1
        below = starts[np.uint64(middle)] < time_us
        low, high = middle + 1 if below else low, high if below else middle
    return low


@numba.njit(nogil=True, cache=True, error_model="numpy")
def _look_ahead(starts, lane_ends):  # type: ignore[no-untyped-def]
    """For each lane, whose time is cut into as many parts as it has rows, the first row of each part or later.

    Gives these, one more for each lane, and parts per time.
    """
    places, steps = np.empty(len(starts) + len(lane_ends), dtype=np.int64), np.empty(len(lane_ends))
    begin = 0
    for lane in range(len(lane_ends)):
        rows, own, part = lane_ends[lane] - begin, begin + lane, 0
        if rows > 0:
            earliest = starts[begin]
            step = rows / (starts[begin + rows - 1] - earliest + 1)
            steps[lane] = step
            for i in range(rows):
                until = np.int64((starts[np.uint64(begin + i)] - earliest) * step)
                while part <= until:
                    places[np.uint64(own + part)] = i
                    part += 1
        while part <= rows:
            places[np.uint64(own + part)] = rows
            part += 1
        begin += rows
    return places, steps
