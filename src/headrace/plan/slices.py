"""Slices: stretches of time that no edge of some windows cuts.

A window of range r and slide s begins and ends once in each slide, so that its edges cut time into pairs of
slices: r mod s, and the rest of the slide. That is the least that will do (seed 002, theorem 1), for one window
and for the edges of several together. These are never written out to the least common multiple of their slides:
the edges inside a stretch of time are made when it is met.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeVar

import numba
import numpy as np
import numpy.typing as npt

from headrace.algebra.ops import Words
from headrace.query import Expression, Window
from headrace.query.interval import UNIT_US, format_interval

Time = TypeVar("Time", int, Words)
"""One time, or many; or numbers of slices."""
FOREVER_US = 2**62
"""Beyond any time, and the number of any slice."""

_COUNTED = 1 << 12
"""Edges that are looked at to tell how long slices are."""
_EDGES_PER_TIME = 4
"""With more edges than this for each time, it costs less to ask each recurrence for its latest one."""


class Pair(NamedTuple):
    """The two slices that a window has in each of its slides: one of a length, and what is left, if anything.

    Where the rest is a `gap`, it is in no window.
    """

    period_us: int
    start_us: int
    length_us: int
    gap: bool = False

    @staticmethod
    def of(window: Window) -> Pair:
        """The pair of a window."""
        slide_us, start_us = window.slide_us, window.offset_us % window.slide_us
        if window.hopping:
            return Pair(slide_us, start_us, window.range_us, gap=True)
        length_us = window.range_us % slide_us or slide_us
        if 2 * length_us == slide_us:
            return Pair(length_us, start_us % length_us, length_us)
        return Pair(slide_us, start_us, length_us)

    @property
    def recurring(self) -> tuple[Recurring, ...]:
        """The edges."""
        period_us, start_us = self.period_us, self.start_us
        if self.length_us == period_us:
            return (Recurring(period_us, start_us),)
        return Recurring(period_us, start_us), Recurring(period_us, (start_us + self.length_us) % period_us)


class Recurring(NamedTuple):
    """Edges that come back: phase + i * period."""

    period_us: int
    phase_us: int

    def among(self, phases: Phases) -> bool:
        """Whether some that recur as often or more often have all of these edges."""
        period_us, phase_us = self
        return any(period_us % other == 0 and phase_us % other in own for other, own in phases.items())

    def last(self, time: Time) -> Time:
        """The latest edge that is not after a time, or after each of some."""
        return time - (time - self.phase_us) % self.period_us

    def next(self, time: Time) -> Time:
        """The earliest edge that is not before a time, or before each of some."""
        return time + (self.phase_us - time) % self.period_us


Phases = Mapping[int, Collection[int]]
"""Recurring edges: for each period, the phases."""


@dataclass(frozen=True)
class Slices:
    """The slices of some windows, each known by a number: that of the *unit* of time in which it begins.

    Units are as long as they can be with an edge between two of them wherever a slice begins. A slice of one that
    is as long as all its units, as those of a tumbling window are, has no other numbers in between.
    """

    time: Expression
    pairs: tuple[Pair, ...]

    def __hash__(self) -> int:
        # That of all pairs of hundreds of windows would take longer than what it is asked for.
        return hash((self.time, len(self.pairs), self.pairs[0]))

    @staticmethod
    def every(time: Expression, size_us: int, offset_us: int = 0) -> Slices:
        """Slices of equal length."""
        return Slices(time, (Pair(size_us, offset_us % size_us, size_us),))

    @staticmethod
    def of(window: Window, paned: bool = False) -> Slices:
        """The fewest slices of a window; `paned` ones are of equal length."""
        if paned:
            size_us = math.gcd(window.range_us, window.slide_us)
            return Slices.every(window.time, size_us, window.offset_us)
        return Slices(window.time, (Pair.of(window),))

    def together(self, other: Slices, paned: bool = False) -> Slices | None:
        """The fewest slices that both can be made from; None where they are about different times."""
        if self.time != other.time:
            return None
        if paned:
            unit_us = math.gcd(self.unit_us, other.unit_us, self.offset_us - other.offset_us)
            return Slices.every(self.time, unit_us, self.offset_us)
        if self.makes(other) or other.makes(self):
            return self if self.makes(other) else other
        added = [pair for pair in other.pairs if not self.makes(Slices(self.time, (pair,)))]
        more = Slices(self.time, tuple(added))
        kept = [pair for pair in self.pairs if not added or not more.makes(Slices(self.time, (pair,)))]
        return Slices(self.time, tuple(sorted({*kept, *added})))

    @cached_property
    def _phases(self) -> Phases:
        """All edges, without those that others among them have."""
        phases: dict[int, set[int]] = {}
        # What recurs more often has a shorter period.
        for edges in sorted({edges for pair in self.pairs for edges in pair.recurring}):
            if not edges.among(phases):
                phases.setdefault(edges.period_us, set()).add(edges.phase_us)
        return phases

    @cached_property
    def recurring(self) -> tuple[Recurring, ...]:
        """All edges, each once."""
        return tuple(Recurring(period, phase) for period, own in self._phases.items() for phase in sorted(own))

    @cached_property
    def _recurring(self) -> tuple[Words, Words]:
        """The periods and phases of all edges."""
        periods_us, phases_us = np.array(self.recurring, dtype=np.int64).T
        return periods_us, phases_us

    @cached_property
    def unit_us(self) -> int:
        """The greatest length that all slices are a multiple of."""
        first = self.recurring[0]
        steps = [step for edges in self.recurring for step in (edges.period_us, edges.phase_us - first.phase_us)]
        return math.gcd(*steps)

    @property
    def offset_us(self) -> int:
        """Where a unit begins."""
        return self.recurring[0].phase_us % self.unit_us

    @property
    def equal(self) -> bool:
        """Whether all slices have the same length, and there is no time between them."""
        return len(self.recurring) == 1

    @cached_property
    def gaps(self) -> bool:
        """Whether there is time that is in no slice."""
        return all(pair.gap for pair in self.pairs)

    @cached_property
    def length_us(self) -> float:
        """How long it is from slice to slice, on average."""
        if self.equal:
            return float(self.unit_us)
        whole_us = math.lcm(*(edges.period_us for edges in self.recurring))
        stretch_us = min(whole_us, int(_COUNTED / sum(1 / edges.period_us for edges in self.recurring)))
        edges = self.edges(0, max(stretch_us, 1))
        return stretch_us / max(1, len(edges) if not self.gaps else int(np.count_nonzero(self.covers(edges))))

    @cached_property
    def share(self) -> float:
        """Which part of time is in slices, about."""
        outside = math.prod(1 - pair.length_us / pair.period_us for pair in self.pairs) if self.gaps else 0.0
        return 1.0 - outside

    def has_edges_of(self, other: Slices) -> bool:
        """Whether other slices begin and end where these do."""
        return self.time == other.time and all(edges.among(self._phases) for edges in other.recurring)

    def makes(self, other: Slices) -> bool:
        """Whether other slices are made of these."""
        return self.has_edges_of(other) and (not self.gaps or set(other.pairs) <= set(self.pairs))

    def number_of(self, times: Words) -> Words:
        """The numbers of the slices that times are in."""
        return self._unit_of(times) if self.equal else self._of_starts(times, self._unit_of)

    def start_of(self, numbers: Time) -> Time:
        """When a slice begins, or each of some."""
        return numbers * self.unit_us + self.offset_us

    def start_at(self, times: Words) -> Words:
        """When the slices begin that times are in."""
        return self.recurring[0].last(times) if self.equal else self._of_starts(times, lambda starts: starts)

    def _of_starts(self, times: Words, function: Callable[[Words], Words]) -> Words:
        """A function of when the slices begin that times are in."""
        found = np.empty_like(times)
        if len(times) == 0 or self._look_up(times, int(times[0]), int(times[-1]), function, found):
            return found
        # They are not in order.
        if self._look_up(times, int(times.min()), int(times.max()), function, found):
            return found
        return function(np.maximum.reduce([edges.last(times) for edges in self.recurring]))

    def _look_up(
        self, times: Words, low: int, high: int, function: Callable[[Words], Words], found: Words
    ) -> bool:
        """Find what `_of_starts` gives by the edges from one time to another.

        Says if that was done: all times are between these two, and edges are not too many.
        """
        if not 0 <= high - low <= _EDGES_PER_TIME * len(times) * self.length_us:
            return False
        edges = self.edges(self.before(low), high + 1)
        return bool(look_up(times, np.append(edges, high + 1), function(edges), found))

    def _unit_of(self, time: Time) -> Time:
        """The number of the unit of time that a time is in, or those of some."""
        return (time - self.offset_us) // self.unit_us

    def edges(self, low_us: int, high_us: int) -> Words:
        """All edges from one time to before another, in order."""
        periods_us, phases_us = self._recurring
        firsts = low_us + (phases_us - low_us) % periods_us
        counts = np.maximum(0, -((firsts - high_us) // periods_us))
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        found = np.sort(np.repeat(firsts, counts) + np.repeat(periods_us, counts) * places)
        return found[np.diff(found, prepend=low_us - 1) > 0]

    def before(self, time_us: int) -> int:
        """The latest edge that is not after a time."""
        periods_us, phases_us = self._recurring
        return time_us - int(((time_us - phases_us) % periods_us).min())

    def after(self, time_us: int) -> int:
        """The earliest edge that is not before a time."""
        periods_us, phases_us = self._recurring
        return time_us + int(((phases_us - time_us) % periods_us).min())

    def first_from(self, time_us: int) -> int:
        """The number of the first slice that begins at a time or later."""
        return self._unit_of(self.after(time_us))

    def open_at(self, time_us: int) -> int:
        """The number of the first slice that has not ended at a time."""
        return self._unit_of(self.before(time_us))

    def numbers_at(self, times: Words) -> Words:
        """The numbers of all slices that any of the times is in."""
        return self.number_of(times)

    def counted(self, span_us: int) -> tuple[float, float]:
        """How many slices there are in so much time, and which part of all records each has."""
        count = max(1.0, span_us / self.length_us)
        return count, self.share / count

    def covers(self, times: Words) -> npt.NDArray[np.bool_]:
        """Which times are in no gap."""
        if not self.gaps:
            return np.ones(len(times), dtype=np.bool_)
        inside = [(times - pair.start_us) % pair.period_us < pair.length_us for pair in self.pairs]
        covered: npt.NDArray[np.bool_] = np.logical_or.reduce(inside)
        return covered

    def __str__(self) -> str:
        if len(self.pairs) > 1:
            unit = next(
                name for name in ("hour", "minute", "second", "microsecond") if UNIT_US[name] <= self.length_us
            )
            return f"slice of {len(self.pairs)} windows ({self.length_us / UNIT_US[unit]:.3g} {unit}s on average)"
        (pair,) = self.pairs
        rest_us = pair.period_us - pair.length_us
        if not rest_us:
            return format_interval(pair.length_us)
        parts = " and ".join(map(format_interval, (pair.length_us, rest_us)))
        return f"{parts} left out" if pair.gap else parts


@dataclass(frozen=True, slots=True)
class Windows:
    """Windows that overlap, or have gaps between them, as what the rows of a node are about.

    They have numbers as slices have, and are made of slices: one goes into every window that has it.
    """

    window: Window

    @property
    def time(self) -> Expression:
        """The time that they are about."""
        return self.window.time

    @property
    def offset_us(self) -> int:
        """When the window of number 0 begins."""
        return self.window.offset_us % self.window.slide_us

    @property
    def length_us(self) -> float:
        """How long the records of one window come."""
        return self.window.range_us

    def has_edges_of(self, other: Slices) -> bool:
        """Whether no window crosses an edge of other slices: only those with gaps can be so."""
        window = self.window
        apart = self.time == other.time and not window.overlapping
        return apart and all(
            period_us % window.slide_us == 0
            and ((inside := (phase_us - self.offset_us) % window.slide_us) == 0 or inside >= window.range_us)
            for period_us, phase_us in other.recurring
        )

    def start_of(self, numbers: Time) -> Time:
        """When a window begins, or each of some."""
        return numbers * self.window.slide_us + self.offset_us

    def end_of(self, numbers: Time) -> Time:
        """When a window ends, or each of some."""
        return self.start_of(numbers) + self.window.range_us

    def first_from(self, time_us: Time) -> Time:
        """The number of the first window that begins at a time or later, or for each of some."""
        return -((self.offset_us - time_us) // self.window.slide_us)

    def open_at(self, time_us: Time) -> Time:
        """The number of the first window that has not ended at a time, or for each of some."""
        window = self.window
        first: Time = first_open.py_func(  # type: ignore[no-untyped-call]
            time_us, window.range_us, window.slide_us, self.offset_us
        )
        return first

    def numbers_at(self, times: Words) -> Words:
        """The numbers of all windows that any of the times is in."""
        latest = (times - self.offset_us) // self.window.slide_us
        back = latest[:, None] - np.arange(-(-self.window.range_us // self.window.slide_us))
        return np.unique(back[self.end_of(back) > times[:, None]])

    def counted(self, span_us: int) -> tuple[float, float]:
        """How many windows there are in so much time, and which part of all records each has."""
        return max(1.0, span_us / self.window.slide_us), min(1.0, self.window.range_us / max(1, span_us))

    def __str__(self) -> str:
        window = self.window
        return f"{format_interval(window.range_us)} every {format_interval(window.slide_us)}"


Times = Slices | Windows
"""What the rows of a node are about."""


@numba.njit(nogil=True, cache=True, inline="always")
def first_open(time_us, range_us, slide_us, offset_us):  # type: ignore[no-untyped-def]
    """The number of the first window that has not ended at a time."""
    return (time_us - range_us - offset_us) // slide_us + 1


@numba.njit(nogil=True, cache=True)
def look_up(times, edges, values, found):  # type: ignore[no-untyped-def]
    """Write for each time the value of the stretch between edges that it is in, mostly that of the one before.

    Says if there is one for all times.
    """
    place, low, length, value = 0, edges[0], np.uint64(edges[1] - edges[0]), values[0]
    for i in range(len(times)):
        if np.uint64(times[i] - low) >= length:
            if not edges[0] <= times[i] < edges[-1]:
                return False
            place += 1 if times[i] > low else -1
            if times[i] < edges[place] or times[i] >= edges[place + 1]:
                place = np.searchsorted(edges, times[i], side="right") - 1
            low, length, value = edges[place], np.uint64(edges[place + 1] - edges[place]), values[place]
        found[i] = value
    return True
