"""How many aggregate operations the strategies take, counted from the records as the papers count them.

An operation is one accumulation: of a record into a sliced aggregate (partial), or of a partial into the aggregate
of a window (final). Nothing here knows headrace's engine.

* Unshared (Table 2): each query aggregates the records of its predicate by its own slices, then those of a window.
* Shared slices (Table 3): a record goes once into the slices of all windows together, and slices into each query.
* Shared fragments (Table 5): a record that any query wants goes once into its fragment, fragments into queries.
* Shared shards (Section 5): fragments of slices. Those of a slice are merged for each query, which then merges its
  slices to windows. `direct` is the total if it merged all shards of a window at once instead. `once` is the total
  if shards of a slice are merged once for all queries with the same predicate, and a window is the difference of
  two running sums (an operation for each slice and for each window): headrace does it so.

With groups, a partial is a row of a group. Only rows that exist count.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from headrace.bench.sharing.subject import Columns, Records
from headrace.bench.sharing.workloads import Asked, Predicate, Window

Flags = npt.NDArray[np.bool_]
Longs = npt.NDArray[np.int64]
_ROOM = 1 << 22
"""Numbers of fragments are made small again when they could go beyond this."""


@dataclass(frozen=True, slots=True)
class Count:
    """Operations of one strategy."""

    partial: int
    final: int
    direct: int | None = None
    once: int | None = None

    @property
    def total(self) -> int:
        """All of them."""
        return self.partial + self.final


@dataclass(frozen=True, slots=True)
class Span:
    """The units of time that records are in."""

    first: int
    count: int

    @property
    def units(self) -> Longs:
        """All of them."""
        return np.arange(self.first, self.first + self.count)

    def edges(self, window: Window, paned: bool) -> Flags:
        """Where slices of a window begin: panes of equal length, or pairs."""
        if paned:
            return np.asarray(self.units % math.gcd(window.range, window.slide) == 0)
        return np.asarray((self.units % window.slide == 0) | ((self.units - window.range) % window.slide == 0))

    def composed(self, windows: Iterable[Window], paned: bool) -> Flags:
        """Where slices of several windows together begin: wherever one of any does."""
        found = np.zeros(self.count, dtype=np.bool_)
        for window in dict.fromkeys(windows):
            found |= self.edges(window, paned)
        return found

    def covering(self, window: Window) -> Longs:
        """How many windows each unit is in."""
        return np.asarray(self.units // window.slide - (self.units - window.range) // window.slide)

    def windows_of(self, window: Window, groups: Longs, units: Longs) -> int:
        """How many windows have a row, of rows in the order of group and time."""
        before = np.full(len(units), np.iinfo(np.int64).min)
        same = groups[1:] == groups[:-1]
        before[1:][same] = units[:-1][same]
        # Windows that have a row, but not the one before it.
        return int((units // window.slide - np.maximum(before, units - window.range) // window.slide).sum())


@dataclass(frozen=True)
class Fragments:
    """Which records satisfy the same predicates: the fragment of each record, and each one's truths."""

    of_records: npt.NDArray[np.int32]
    truths: Flags
    """A row for each fragment, a column for each predicate."""

    @staticmethod
    def of(predicates: Sequence[Predicate | None], columns: Columns, records: int) -> Fragments:
        """The fragments of predicates; None is true of every record."""
        ids, truths, waiting = np.zeros(records, dtype=np.int32), np.ones((1, 0), dtype=np.bool_), 0
        for predicate in predicates:
            if len(truths) << (waiting + 1) > _ROOM:
                ids, truths, waiting = *_densified(ids, truths, waiting), 0
            ids <<= 1
            ids |= True if predicate is None else predicate.truth(columns)
            waiting += 1
        return Fragments(*_densified(ids, truths, waiting))

    @property
    def wanted(self) -> Flags:
        """Which fragments satisfy any predicate."""
        return np.asarray(np.any(self.truths, axis=1))


def _densified(ids: npt.NDArray[np.int32], truths: Flags, waiting: int) -> tuple[npt.NDArray[np.int32], Flags]:
    """Fragments numbered without gaps; the last bits of old numbers are truths that are not in `truths` yet."""
    seen = np.zeros(len(truths) << waiting, dtype=np.bool_)
    seen[ids] = True
    old = np.flatnonzero(seen)
    new = np.cumsum(seen, dtype=np.int32) - 1
    bits = (old[:, None] >> np.arange(waiting - 1, -1, -1)) & 1
    return new[ids], np.hstack([truths[old >> waiting], bits.astype(np.bool_)])


@dataclass(frozen=True)
class _Slices:
    """Stretches of time, numbered from 0: the first goes up to the first start, and may have no unit."""

    span: Span
    starts: Flags

    @property
    def count(self) -> int:
        """How many there are."""
        return int(self.starts.sum()) + 1

    @property
    def numbers(self) -> Longs:
        """The slice of each unit."""
        return np.cumsum(self.starts)

    def covering(self, window: Window) -> Longs:
        """How many windows each slice is in."""
        return self._at_starts(self.span.covering(window))

    @property
    def units(self) -> Longs:
        """A unit of each slice."""
        return self._at_starts(self.span.units)

    def joined(self, starts: Flags) -> Longs:
        """For each slice, the number of the longer one that it is part of, if only these begin one."""
        return self._at_starts(np.cumsum(starts))

    def _at_starts(self, by_unit: Longs) -> Longs:
        return np.take(by_unit, np.concatenate([[0], np.flatnonzero(self.starts)]))


@dataclass(frozen=True)
class _Cells:
    """The shards that exist, in the order of group, slice and fragment; those that no query wants are left out."""

    groups: Longs
    slices: Longs
    fragments: Longs

    @staticmethod
    def of(records: Records, slices: _Slices, fragments: Fragments) -> _Cells:
        """Find them."""
        kinds, wanted = len(fragments.truths), fragments.wanted
        keys = records.groups.astype(np.int64) * slices.count
        keys += slices.numbers[records.units - slices.span.first]
        keys = keys * kinds + fragments.of_records
        if not wanted.all():
            keys = keys[wanted[fragments.of_records]]
        keys, of_fragments = np.divmod(_distinct(keys), kinds)
        return _Cells(*np.divmod(keys, slices.count), of_fragments)

    def where(self, chosen: Flags) -> _Cells:
        """Some of them."""
        if chosen.all():
            return self
        return _Cells(self.groups[chosen], self.slices[chosen], self.fragments[chosen])

    def rows(self, longer: Longs) -> Longs:
        """How many rows of groups there are by slice, if slices that have the same number in `longer` are one.

        Each row is counted in the first of the slices that make its own.
        """
        first = _firsts(longer[self.slices], self.groups)
        return np.bincount(self.slices[first], minlength=len(longer))


def _distinct(keys: Longs) -> Longs:
    """Each key once, in order."""
    keys = np.sort(keys)
    return keys[_firsts(keys)]


def _firsts(*columns: Longs) -> Flags:
    """Which rows are not the same as those before them."""
    first = np.zeros(len(columns[0]), dtype=np.bool_)
    first[:1] = True
    for column in columns:
        first[1:] |= column[1:] != column[:-1]
    return first


@dataclass(frozen=True)
class Tally:
    """A query set over records, ready to be counted: what its queries have in common is computed once."""

    records: Records
    queries: tuple[Asked, ...]
    span: Span
    predicates: tuple[Predicate | None, ...]
    fragments: Fragments

    @staticmethod
    def of(records: Records, queries: Sequence[Asked]) -> Tally:
        """Find the fragments of the records."""
        first, last = int(records.units.min()), int(records.units.max())
        predicates = tuple(dict.fromkeys(query.predicate for query in queries))
        fragments = Fragments.of(predicates, records.columns, len(records))
        return Tally(records, tuple(queries), Span(first, last - first + 1), predicates, fragments)

    @property
    def ungrouped(self) -> Tally:
        """The same without groups."""
        return Tally(self.records.ungrouped, self.queries, self.span, self.predicates, self.fragments)

    @property
    def one_window(self) -> bool:
        """Whether all queries have the same windows, which tumble: then each is a slice."""
        windows = {query.window for query in self.queries}
        return len(windows) == 1 and all(window.tumbling for window in windows)

    def unshared(self, paned: bool = False) -> Count:
        """Every query on its own."""
        sizes = np.bincount(self.fragments.of_records, minlength=len(self.fragments.truths))
        taken = sum(int(sizes @ truth) * len(queries) for truth, queries in self._by_predicate())
        if self.one_window:
            return Count(0, taken)
        (slices, cells), final = self._shards(paned), 0
        for truth, queries in self._by_predicate():
            own = cells.where(truth[cells.fragments])
            for query in queries:
                longer = slices.joined(self.span.edges(query.window, paned))
                final += int(own.rows(longer) @ slices.covering(query.window))
        return Count(taken, final)

    def shared(self, paned: bool = False) -> Count:
        """All queries from the same shards; without predicates these are slices, with one window fragments."""
        slices, cells = self._shards(paned)
        to_queries = to_windows = direct = once = 0
        for truth, queries in self._by_predicate():
            own = cells.where(truth[cells.fragments])
            shards = np.bincount(own.slices, minlength=slices.count)
            covering = np.sum([slices.covering(query.window) for query in queries], axis=0)
            to_queries += int(shards.sum()) * len(queries)
            to_windows += int(own.rows(np.arange(slices.count)) @ covering)
            direct += int(shards @ covering)
            first = _firsts(own.slices, own.groups)
            timed = own.groups[first], slices.units[own.slices[first]]
            once += len(first) * (self.predicates != (None,)) + len(timed[0])
            once += sum(self.span.windows_of(query.window, *timed) for query in queries)
        taken = int(self.fragments.wanted[self.fragments.of_records].sum())
        if self.predicates == (None,):
            return Count(taken, to_windows, once=taken + once)
        if self.one_window:
            return Count(taken, to_queries)
        return Count(taken, to_queries + to_windows, taken + direct, taken + once)

    def _shards(self, paned: bool) -> tuple[_Slices, _Cells]:
        """The slices of all windows together, and the shards in them."""
        slices = _Slices(self.span, self.span.composed((query.window for query in self.queries), paned))
        return slices, _Cells.of(self.records, slices, self.fragments)

    def _by_predicate(self) -> Iterator[tuple[Flags, list[Asked]]]:
        """For each predicate, which fragments satisfy it, and the queries that have it."""
        users: dict[Predicate | None, list[Asked]] = {}
        for query in self.queries:
            users.setdefault(query.predicate, []).append(query)
        for number, predicate in enumerate(self.predicates):
            yield self.fragments.truths[:, number], users[predicate]
