"""How many rows a node will have, from a sample of the records; growth.py says how that is estimated."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Collection, Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.words import Valid, fits_word, mix, to_words, truth
from headrace.plan.alike import Hashes
from headrace.plan.dependent import Deciding
from headrace.plan.growth import Sampled
from headrace.plan.slices import Times
from headrace.query import Expression

Block = Mapping[Expression, pa.Array]
AnyOf = frozenset[Expression]
"""Conditions any of which is true for the records that count; none says that all do."""
Term = tuple[Expression, bool]
"""What groups are told apart by: an expression's value or, where the second is True, its truth alone."""

_UNKNOWN_RECORDS = 10_000_000
_UNKNOWN_SLICES = 1000
_UNKNOWN_SHARE = 1 / 3
_UNKNOWN_REPEATS = 100
"""A key that cannot be computed is taken to have a new value every so many records."""
_LEAST_CHOSEN = 8
"""Fewer records than this show no growth."""


class Sizes:
    """Estimates for nodes, from blocks of neighbouring records that have a column for each known expression.

    `records` and `span_us` are those of the whole stream, where known (not 0, not None). A span that leaves out
    time without records, such as nights, makes better estimates for slices. All are deterministic, and remembered.
    """

    def __init__(self, blocks: Sequence[Block] = (), records: int = 0, span_us: int | None = None) -> None:
        self._blocks = [block for block in blocks if any(map(len, block.values()))]
        self._known = set.intersection(*map(set, self._blocks)) if self._blocks else set()
        self._records = records or _UNKNOWN_RECORDS
        self.span_us = span_us
        self._ends = np.cumsum([len(next(iter(block.values()))) for block in self._blocks], dtype=np.int64)
        self._hashes: dict[Term, Hashes] = {}
        self._truths: dict[Expression, Valid] = {}
        self._chosen: dict[AnyOf, npt.NDArray[np.int64]] = {}
        self._learned: dict[AnyOf, tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64]]] = {}
        self._sampled: dict[tuple[frozenset[Term], AnyOf], Sampled] = {}
        self._groups: dict[tuple[frozenset[Term], AnyOf, Times | None], float] = {}
        self._singles: dict[tuple[Term, float], float] = {}
        self._commonest: dict[Expression, float] = {}

    def records(self, any_of: Collection[Expression]) -> float:
        """For how many records any of some conditions is true; without conditions, how many there are."""
        known = self._known.intersection(any_of)
        others = (1 - _UNKNOWN_SHARE) ** (len(frozenset(any_of)) - len(known))
        if not known:
            return self._records * (1 - others if any_of else 1.0)
        # What the sample has not seen may still exist.
        share = max(len(self._choose(frozenset(known))), 0.5) / int(self._ends[-1])
        return self._records * (share + (1 - share) * (1 - others))

    def groups(
        self,
        keys: Collection[Expression],
        marks: Collection[Expression],
        any_of: Collection[Expression],
        slices: Times | None,
    ) -> float:
        """How many rows a node has: combinations of keys, and of the truth of marks, in each of its slices.

        Only records count for which any of the conditions is true, if there are any.
        """
        terms = frozenset([*((key, False) for key in keys), *((mark, True) for mark in marks)])
        chosen = frozenset(any_of)
        place = terms, chosen, slices
        if place not in self._groups:
            count, part = self._counted(slices)
            self._groups[place] = count * self._in_slice(terms, chosen, self.records(chosen) * part)
        return self._groups[place]

    @functools.cached_property
    def deciding(self) -> Deciding:
        """Which keys decide which others."""
        return Deciding(self.values)

    def values(self, key: Expression) -> Hashes | None:
        """Hashes of a key's values in the sample's records; None where the key is not known."""
        return self._hash((key, False)) if key in self._known else None

    def commonest(self, key: Expression) -> float:
        """Which part of the records has a key's commonest value: none to speak of, where the key is not known."""
        values = self.values(key)
        if values is None:
            return 0.0
        if key not in self._commonest:
            _, counts = np.unique(values, return_counts=True)
            self._commonest[key] = int(counts.max()) / len(values)
        return self._commonest[key]

    def slices(self, slices: Times | None) -> float:
        """How many slices there are in the stream; without any, all records are in one."""
        count, _ = self._counted(slices)
        return count

    def _counted(self, slices: Times | None) -> tuple[float, float]:
        """How many slices there are, and which part of all records each has."""
        if slices is None:
            return 1.0, 1.0
        # Where it is not known how long the stream is, it is taken to have so many slices.
        span_us = self.span_us if self.span_us is not None else round(_UNKNOWN_SLICES * slices.length_us)
        return slices.counted(span_us)

    def _in_slice(self, terms: frozenset[Term], any_of: AnyOf, records: float) -> float:
        """The groups of so many records for which any of the conditions is true."""
        known = frozenset(term for term in terms if term[0] in self._known)
        # Sets have no order, and products of floating numbers do.
        apart = math.prod(sorted(self._alone(term, records) for term in known))
        several = len(known) > 1 or (known and any_of)
        together = self._sample(known, any_of).at(records) if several else apart
        guessed = math.prod(2.0 if is_mark else records / _UNKNOWN_REPEATS + 1 for _, is_mark in terms - known)
        return min(min(apart, together) * guessed, records)

    def _alone(self, term: Term, records: float) -> float:
        """The values of one term in so many records, whichever these are: a bound is cheaper than an estimate."""
        place = term, records
        if place not in self._singles:
            self._singles[place] = self._sample(frozenset({term}), frozenset()).at(records)
        return self._singles[place]

    def _sample(self, terms: frozenset[Term], any_of: AnyOf) -> Sampled:
        place = terms, any_of
        if place not in self._sampled:
            rows, ends = self._learned_from(any_of)
            hashes = [self._hash(term) if rows is None else self._hash(term)[rows] for term in terms]
            self._sampled[place] = Sampled.of(functools.reduce(np.add, hashes), ends, self.records(any_of))
        return self._sampled[place]

    def _learned_from(self, any_of: AnyOf) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int64]]:
        """The rows of the sample that tell of records for which any of the conditions is true, None where all do,
        and where their blocks end."""
        if not any_of or not any_of <= self._known:
            return None, self._ends
        if any_of not in self._learned:
            rows = self._choose(any_of)
            counts = np.diff(np.searchsorted(rows, self._ends), prepend=0)
            enough = counts >= _LEAST_CHOSEN
            # Too few to learn from: then as if the conditions had nothing to do with the keys.
            self._learned[any_of] = (
                (rows[np.repeat(enough, counts)], np.cumsum(counts[enough]))
                if enough.any()
                else (None, self._ends)
            )
        return self._learned[any_of]

    def _choose(self, any_of: AnyOf) -> npt.NDArray[np.int64]:
        """The rows of the sample for which any of the conditions, which are known, is true."""
        if any_of not in self._chosen:
            self._chosen[any_of] = np.flatnonzero(np.logical_or.reduce([*map(self._truth, any_of)]))
        return self._chosen[any_of]

    def _truth(self, condition: Expression) -> Valid:
        if condition not in self._truths:
            self._truths[condition] = np.concatenate([truth(block[condition]) for block in self._blocks])
        return self._truths[condition]

    def _hash(self, term: Term) -> Hashes:
        if term not in self._hashes:
            expression, is_mark = term
            columns = [pa.array(self._truth(expression))] if is_mark else [b[expression] for b in self._blocks]
            # Files may name the zone of a time differently.
            whole = pa.concat_arrays([column.cast(columns[0].type) for column in columns])
            seed = hashlib.blake2b(f"{is_mark} {expression.canonical}".encode(), digest_size=8).digest()
            self._hashes[term] = hash_column(whole, int.from_bytes(seed))
        return self._hashes[term]


def hash_column(column: pa.Array, seed: int) -> Hashes:
    """A 64-bit hash of each value, equal where Spark's GROUP BY takes values of the column for equal.

    It is good for sums: that of the hashes of several columns is a hash of their values together.
    """
    null = mix(np.zeros(1, dtype=np.uint64), ~seed)
    if pa.types.is_dictionary(column.type):
        # A dictionary may have a value twice, and null as a value.
        values = np.append(hash_column(column.dictionary, seed), null)
        places = column.indices.cast(pa.int64()).fill_null(len(values) - 1)
        return np.take(values, np.asarray(places))
    words, valid = to_words(column if fits_word(column.type) else _codes(column))
    hashes = mix(words.view(np.uint64), seed)
    return hashes if valid is None else np.where(valid, hashes, null)


def _codes(column: pa.Array) -> pa.Array:
    if pa.types.is_nested(column.type):  # Arrow has no codes for these
        column = pa.array([None if value is None else repr(value) for value in column.to_pylist()], pa.string())
    return column.dictionary_encode().indices.cast(pa.int64())
