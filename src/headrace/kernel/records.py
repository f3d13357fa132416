"""Columns coded once, for all nodes that need them: each picks the keys, states and records that are its own."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.lift import lift
from headrace.algebra.ops import Words
from headrace.algebra.states import State
from headrace.algebra.words import Valid, to_words, truth
from headrace.kernel.coding import Coder, Outgrown, make_coder
from headrace.kernel.fragments import columns_of, read_signatures, sign, some_of
from headrace.kernel.narrow import Column, Narrow, joined
from headrace.kernel.strided import Codes
from headrace.plan.plan import Node
from headrace.plan.slices import Slices, Windows
from headrace.query import Expression


class Coding:
    """The coders of named columns, which grow with what they meet."""

    def __init__(self) -> None:
        self._coders: dict[Hashable, Coder] = {}
        self._dictionaries: dict[Hashable, _Dictionary] = {}
        """The last one of each column that comes encoded."""

    @property
    def bytes(self) -> int:
        """Memory that the coders hold."""
        return sum(coder.bytes for coder in self._coders.values())

    def coder(self, name: Hashable) -> Coder:
        """The coder of a column that has been encoded."""
        return self._coders[name]

    def encode(self, name: Hashable, column: Column) -> Codes:
        """The codes of a column's next values."""
        if isinstance(column, pa.DictionaryArray):
            return self._encode_encoded(name, column)
        if name not in self._coders:
            self._coders[name] = make_coder(column)
        coder = self._coders[name]
        try:
            return coder.encode(column)
        except Outgrown:
            self._coders[name] = coder.widened(column)
            return self._coders[name].encode(column)

    def encode_all(self, name: Hashable, columns: Sequence[Column]) -> list[Codes]:
        """The codes of several stretches of a column, by one coder."""
        narrow = [column for column in columns if isinstance(column, Narrow)]
        if len(narrow) < len(columns):
            codes = self.encode(name, joined(columns))
            ends = np.cumsum([0, *map(len, columns)]).tolist()
            return [codes.slice(*own) for own in itertools.pairwise(ends)]
        if name not in self._coders:
            self._coders[name] = make_coder(Narrow.spanning(narrow))
        found = [(self.encode(name, column), self.coder(name)) for column in narrow]
        last = self.coder(name)
        return [
            codes if last.numbers_as(coder) else last.encode(column)
            for column, (codes, coder) in zip(narrow, found, strict=True)
        ]

    def clear(self) -> None:
        """Forget all values."""
        self._coders.clear()
        self._dictionaries.clear()

    def _encode_encoded(self, name: Hashable, column: pa.DictionaryArray) -> Codes:
        """The codes of places in a dictionary: most often it is the last one, or goes on from it."""
        values, last = column.dictionary, self._dictionaries.get(name)
        if last is None or not last.begins(values):
            last = _Dictionary(values[:0], np.empty(0, dtype=np.int64), None)
        news = None
        if last.coder is None or len(values) > len(last.values):
            news = self.encode(name, values[len(last.values) :]).plain()
        coder = self.coder(name)
        if last.coder is not None and not coder.numbers_as(last.coder):
            news, last = self.encode(name, values).plain(), replace(last, codes=last.codes[:0])
        codes = last.codes if news is None else np.concatenate([last.codes, news])
        self._dictionaries[name] = _Dictionary(values, codes, coder)
        places = column.indices
        if places.null_count:
            codes, places = np.append(codes, 0), places.fill_null(len(codes))
        return Codes(np.take(codes, np.asarray(places)))


@dataclass(frozen=True, slots=True)
class _Dictionary:
    """The values that places of an encoded column stand for, their codes, and whose codes these are."""

    values: pa.Array
    codes: Words
    coder: Coder | None

    def begins(self, values: pa.Array) -> bool:
        """Whether others are the same, or more of them."""
        return len(self.values) <= len(values) and self.values.equals(values[: len(self.values)])


@dataclass(frozen=True, slots=True)
class Inputs:
    """What the columns of batches are: expressions, in their order.

    Conditions that are computed `together` have the last column: the cell of each record, and in its dictionary
    the signature of all of them in each cell.
    """

    expressions: tuple[Expression, ...]
    together: tuple[Expression, ...] = ()


class Records:
    """A batch of records: what several roots need of it is computed once."""

    def __init__(self, inputs: Inputs, batch: pa.RecordBatch, coding: Coding) -> None:
        self.rows = batch.num_rows
        self._columns = dict(zip(inputs.expressions, batch.columns, strict=not inputs.together))
        self._together = {condition: place for place, condition in enumerate(inputs.together)}
        self._cells = batch.columns[-1] if inputs.together else None
        self._coding = coding
        self._codes: dict[Hashable, Codes] = {}
        self._slots: dict[State, list[Words]] = {}
        self._chosen: dict[Hashable, Words | None] = {}
        self._truths: dict[Expression, Valid] = {}
        self._times: dict[Expression, tuple[Words, Valid | None]] = {}

    def keys(self, node: Node) -> tuple[tuple[Coder, ...], list[Codes]]:
        """The coders and codes of a node's slice, keys and marks."""
        assert not isinstance(node.slices, Windows), "windows are made of slices, not of records"
        columns: list[Slices | Expression] = [*([node.slices] if node.slices is not None else []), *node.keys]
        for name in columns:
            if name not in self._codes:
                array = self._slice_numbers(name) if isinstance(name, Slices) else self._columns[name]
                self._codes[name] = self._coding.encode(name, array)
        names: list[Hashable] = [*columns]
        codes = [self._codes[name] for name in names]
        if node.marks:
            codes.append(self._fragments(node.marks))
            names.append(node.marks)
        return tuple(map(self._coding.coder, names)), codes

    def _fragments(self, marks: tuple[Expression, ...]) -> Codes:
        """The fragment that each record is in."""
        if marks not in self._codes:
            if self._cells is not None and self._together.keys() >= set(marks):
                fragments = self._cells.dictionary
                if marks != (*self._together,):
                    truths = read_signatures(fragments, len(self._together))
                    fragments = sign(truths[:, [self._together[mark] for mark in marks]])
                coded = pa.DictionaryArray.from_arrays(self._cells.indices, fragments, safe=False)
            else:
                coded = sign(columns_of([*map(self.truth, marks)]))
            self._codes[marks] = self._coding.encode(marks, coded)
        return self._codes[marks]

    def slots(self, node: Node) -> list[Words]:
        """The slots of a node's states."""
        for state in node.states:
            if state not in self._slots:
                condition = self.truth(state.condition) if state.condition is not None else None
                arguments = [self._columns[argument] for argument in state.arguments]
                self._slots[state] = lift(state, self.rows, arguments, condition)
        return [slot for state in node.states for slot in self._slots[state]]

    def chosen(self, node: Node) -> Words | None:
        """The records that a node is about (its filter is true, and they have a time); None says all."""
        time = node.slices.time if node.slices is not None else None
        gaps = node.slices if isinstance(node.slices, Slices) and node.slices.gaps else None
        place = node.any_of, time, gaps
        if place not in self._chosen:
            self._chosen[place] = self._choose(*place)
        return self._chosen[place]

    def _choose(
        self, any_of: tuple[Expression, ...], time: Expression | None, gaps: Slices | None
    ) -> Words | None:
        keep = []
        if any_of:
            keep.append(self._any_of(any_of))
        if time is not None and self._columns[time].null_count:
            keep.append(np.asarray(pc.is_valid(self._columns[time]), dtype=np.bool_))
        if gaps is not None:
            times, _ = self._words_of(gaps.time)
            keep.append(gaps.covers(times))
        kept = np.logical_and.reduce(keep) if keep else None
        return None if kept is None or kept.all() else np.flatnonzero(kept)

    def truth(self, condition: Expression) -> Valid:
        """Where a condition is true: neither false nor null."""
        if condition not in self._truths:
            apart = condition not in self._together
            self._truths[condition] = truth(self._columns[condition]) if apart else self._any_of((condition,))
        return self._truths[condition]

    def _any_of(self, conditions: tuple[Expression, ...]) -> Valid:
        """Where any of some conditions is true."""
        together = [self._together[condition] for condition in conditions if condition in self._together]
        found = [self.truth(condition) for condition in conditions if condition not in self._together]
        if together:
            assert self._cells is not None, "conditions are computed together"
            wanted = some_of(self._cells.dictionary, len(self._together), together)
            found.append(np.take(wanted, self._places))
        true: Valid = np.logical_or.reduce(found)
        return true

    @cached_property
    def _places(self) -> npt.NDArray[np.intp]:
        """The cell of each record."""
        assert self._cells is not None, "conditions are computed together"
        return np.asarray(self._cells.indices).astype(np.intp)

    def _slice_numbers(self, slices: Slices) -> pa.Array:
        """The number of the slice that each time is in."""
        times, valid = self._words_of(slices.time)
        return pa.array(slices.number_of(times), mask=None if valid is None else ~valid)

    def _words_of(self, time: Expression) -> tuple[Words, Valid | None]:
        """Times as numbers; those that are null are as one that is not."""
        if time not in self._times:
            words, valid = to_words(self._columns[time])
            if valid is not None and valid.any():
                words = np.where(valid, words, words[np.argmax(valid)])
            self._times[time] = words, valid
        return self._times[time]
