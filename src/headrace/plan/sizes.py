"""How many rows a node will have, from a sample of the records.

A node has as many rows in a slice as there are combinations of its keys among the slice's records. Records that
follow each other are more alike than any others (a flow goes on, a share is traded in bursts), so this is counted
in stretches of neighbouring records. Of every stretch of a block at once: a combination is missing in a stretch
when it fits between two of its occurrences, so the distances between occurrences tell the average over all
stretches of any length, in one pass.

Beyond a block, growth goes on as it did. Each doubling of the records adds r times what the one before it added.
If values are drawn from a pool with equal chances, a doubling squares the chance q of a value to be missed by the
records so far, and r = q + q². If there are ever rarer ones (Zipf), q and r stay. Real keys are between these: q
goes to the power that the last doublings of the block show.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.words import fits_word, to_words
from headrace.plan.plan import Slices
from headrace.query import Expression

Hashes = npt.NDArray[np.uint64]
Block = Mapping[Expression, pa.Array]
Chosen = npt.NDArray[np.int64]

_UNKNOWN_RECORDS = 10_000_000
_UNKNOWN_SLICES = 1000
_UNKNOWN_SHARE = 1 / 3
_UNKNOWN_REPEATS = 100
"""A key that cannot be computed is taken to have a new value every so many records."""
_LEAST_CHOSEN = 8
"""Fewer records than this show no growth."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How many groups stretches of 1, ..., n/4, n/2, n records have on average."""

    records: tuple[int, ...]
    groups: tuple[float, ...]

    def at(self, records: float) -> float:
        """The groups of a stretch of so many records.

        >>> Growth((1, 2, 4, 8), (1.0, 2.0, 4.0, 8.0)).at(100)
        100.0
        >>> Growth((1, 2, 4, 8), (1.0, 1.5, 2.0, 2.0)).at(100)
        2.0
        """
        if records <= 1:
            return records
        size, found = float(self.records[-1]), self.groups[-1]
        if records <= size:
            above = next(index for index, known in enumerate(self.records) if known >= records)
            return _between(
                records, self.records[above - 1], self.groups[above - 1], self.records[above], self.groups[above]
            )
        steps = [later - sooner for sooner, later in itertools.pairwise((0.0, *self.groups))][-3:]
        wear, power = _wear(steps)
        step = steps[-1]
        while True:
            missed = math.exp(-wear)
            step *= missed + missed * missed
            if records <= 2 * size:
                return min(records, _between(records, size, found, 2 * size, found + step))
            size, found, wear = 2 * size, found + step, wear * power


def _wear(steps: Sequence[float]) -> tuple[float, float]:
    """What the next doubling has as -ln q, and the power that q goes to with each further one."""
    rates = [_missed(later / sooner if sooner > 0 else 0.0) for sooner, later in itertools.pairwise(steps)]
    if len(rates) < 2:
        return (rates[-1] if rates else 0.0), 1.0
    before, now = rates
    power = min(2.0, max(1.0, now / before)) if before > 0 else 1.0
    return now * power, power


def _missed(ratio: float) -> float:
    """-ln q, where the ratio of two doublings is q + q²."""
    q = (math.sqrt(1 + 4 * min(2.0, max(0.0, ratio))) - 1) / 2
    return -math.log(max(q, 1e-9))


def _between(x: float, x0: float, y0: float, x1: float, y1: float) -> float:
    """Interpolation along a power of x, which is what growth looks like from near."""
    return y0 * math.pow(y1 / y0, math.log(x / x0) / math.log(x1 / x0))


class Sizes:
    """Estimates of nodes, from blocks of records in each of which every known expression has its column.

    `records` and `span_us` are those of the whole stream, where known (not 0, not None). All estimates are
    deterministic, and remembered.
    """

    def __init__(self, blocks: Sequence[Block], records: int, span_us: int | None) -> None:
        self._blocks = [block for block in blocks if any(map(len, block.values()))]
        self._known = set.intersection(*map(set, self._blocks)) if self._blocks else set()
        self._records = records or _UNKNOWN_RECORDS
        self.span_us = span_us
        self._hashes: dict[tuple[int, Expression, bool], Hashes] = {}
        self._chosen: dict[tuple[int, Expression], Chosen] = {}
        self._growths: dict[Any, tuple[Growth, ...]] = {}
        self._groups: dict[Any, float] = {}

    def records(self, condition: Expression | None) -> float:
        """How many records a condition is true for."""
        if condition is None:
            return float(self._records)
        if condition not in self._known:
            return self._records * _UNKNOWN_SHARE
        chosen = sum(len(self._choose(block, condition)) for block in range(len(self._blocks)))
        sampled = sum(len(self._blocks[block][condition]) for block in range(len(self._blocks)))
        # What the sample has not seen may still exist.
        return self._records * max(chosen, 0.5) / sampled

    def groups(
        self,
        keys: Collection[Expression],
        marks: Collection[Expression],
        condition: Expression | None,
        slices: Slices | None,
    ) -> float:
        """How many rows a node has: combinations of keys, and of the truth of marks, in each of its slices.

        Only records that the condition is true for count.
        """
        size_us = slices.size_us if slices else None
        place = frozenset(keys), frozenset(marks), condition, size_us
        if place not in self._groups:
            count = self._slices(size_us)
            self._groups[place] = count * self._in_slice(*place[:3], self.records(condition) / count)
        return self._groups[place]

    def _slices(self, size_us: int | None) -> float:
        if size_us is None:
            return 1.0
        return float(_UNKNOWN_SLICES) if self.span_us is None else max(1.0, self.span_us / size_us)

    def _in_slice(
        self,
        keys: frozenset[Expression],
        marks: frozenset[Expression],
        condition: Expression | None,
        records: float,
    ) -> float:
        """The groups of so many records that the condition is true for."""
        terms = frozenset({*((key, False) for key in keys), *((mark, True) for mark in marks)})
        known = frozenset(term for term in terms if term[0] in self._known)
        apart = math.prod(self._average(frozenset({term}), condition, records) for term in known)
        together = self._average(known, condition, records) if len(known) > 1 else apart
        guessed = math.prod(2.0 if is_mark else records / _UNKNOWN_REPEATS + 1 for _, is_mark in terms - known)
        return min(min(apart, together) * guessed, records)

    def _average(
        self, terms: frozenset[tuple[Expression, bool]], condition: Expression | None, records: float
    ) -> float:
        """What the blocks say, each by the weight of its records."""
        place = terms, condition
        if place not in self._growths:
            blocks = range(len(self._blocks))
            self._growths[place] = tuple(self._growth(block, terms, condition) for block in blocks)
        growths = self._growths[place]
        weight = sum(growth.records[-1] for growth in growths)
        return sum(growth.at(records) * growth.records[-1] for growth in growths) / weight

    def _growth(
        self, block: int, terms: frozenset[tuple[Expression, bool]], condition: Expression | None
    ) -> Growth:
        hashes: Hashes = functools.reduce(np.add, [self._hash(block, *term) for term in terms])
        if condition in self._known:
            chosen = self._choose(block, condition)
            if len(chosen) >= _LEAST_CHOSEN:
                hashes = hashes[chosen]
        count = len(hashes)
        lengths = [count >> shift for shift in reversed(range(count.bit_length()))]
        return Growth(tuple(lengths), tuple(count_groups(hashes, np.array(lengths)).tolist()))

    def _choose(self, block: int, condition: Expression) -> Chosen:
        place = block, condition
        if place not in self._chosen:
            self._chosen[place] = np.flatnonzero(_truth(self._blocks[block][condition]))
        return self._chosen[place]

    def _hash(self, block: int, term: Expression, is_mark: bool) -> Hashes:
        place = block, term, is_mark
        if place not in self._hashes:
            seed = hashlib.blake2b(f"{is_mark} {term.canonical}".encode(), digest_size=8).digest()
            column = self._blocks[block][term]
            self._hashes[place] = hash_column(
                pa.array(_truth(column)) if is_mark else column, int.from_bytes(seed)
            )
        return self._hashes[place]


def _truth(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.fill_null(False), dtype=np.bool_)


def hash_column(column: pa.Array, seed: int) -> Hashes:
    """A 64-bit hash of each value: equal where Spark's GROUP BY takes values for equal."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        # A dictionary may have a value twice, and null as a value.
        values = np.append(hash_column(column.dictionary, seed), _mixed(np.zeros(1, np.uint64), ~seed))
        places = column.indices.cast(pa.int64()).fill_null(len(values) - 1)
        return np.take(values, np.asarray(places))
    if fits_word(kind):
        words, valid = to_words(column)
    else:
        codes = _flat(column).dictionary_encode().indices
        words, valid = to_words(codes.cast(pa.int64()))
    hashes = _mixed(words.view(np.uint64), seed)
    return hashes if valid is None else np.where(valid, hashes, _mixed(np.zeros(1, np.uint64), ~seed))


def _flat(column: pa.Array) -> pa.Array:
    """Nested values as text: Arrow has no codes for these."""
    if not pa.types.is_nested(column.type):
        return column
    return pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())


def _mixed(words: Hashes, seed: int) -> Hashes:
    """The finish of splitmix64; sums of such hashes are as good as hashes."""
    h = words + np.uint64(seed & 0xFFFF_FFFF_FFFF_FFFF)
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    h ^= h >> np.uint64(31)
    return h


@numba.njit(nogil=True, cache=True)
def count_groups(hashes, lengths):  # type: ignore[no-untyped-def]
    """How many different hashes stretches of these lengths (ascending) have, on average over all stretches.

    `gaps[g]` counts gaps of g rows in which some hash does not occur: before its first row, between two, after its
    last. It is missing in g - length + 1 stretches there.
    """
    rows = len(hashes)
    capacity = 1
    while capacity < 2 * rows:
        capacity *= 2
    mask = np.uint64(capacity - 1)
    last = np.zeros(capacity, dtype=np.int32)
    gaps = np.zeros(rows + 1, dtype=np.int64)
    distinct = 0
    for row in range(rows):
        h = hashes[row]
        place = h & mask
        while last[place] != 0 and hashes[last[place] - 1] != h:
            place = (place + np.uint64(1)) & mask
        distinct += last[place] == 0
        gaps[row - last[place]] += 1
        last[place] = row + 1
    for place in range(capacity):
        if last[place] != 0:
            gaps[rows - last[place]] += 1
    found = np.empty(len(lengths), dtype=np.float64)
    wide = 0
    missed = 0
    at = len(lengths) - 1
    for length in range(rows, 0, -1):
        wide += gaps[length]
        missed += wide
        if at >= 0 and lengths[at] == length:
            found[at] = distinct - missed / (rows - length + 1)
            at -= 1
    return found
