"""Columns coded once, for all nodes that need them: each picks the keys, states and records that are its own."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.lift import lift
from headrace.algebra.ops import Words
from headrace.algebra.states import State
from headrace.algebra.words import Valid, to_words, truth
from headrace.kernel.coding import Coder, Outgrown, make_coder
from headrace.kernel.fragments import Truths, columns_of, sign
from headrace.kernel.narrow import Column, Narrow, joined
from headrace.kernel.strided import Codes
from headrace.plan.plan import Node
from headrace.plan.slices import Slices, Windows
from headrace.query import Expression


class Coding:
    """The coders of named columns, which grow with what they meet."""

    def __init__(self) -> None:
        self._coders: dict[Hashable, Coder] = {}

    @property
    def bytes(self) -> int:
        """Memory that the coders hold."""
        return sum(coder.bytes for coder in self._coders.values())

    def coder(self, name: Hashable) -> Coder:
        """The coder of a column that has been encoded."""
        return self._coders[name]

    def encode(self, name: Hashable, column: Column) -> Codes:
        """The codes of a column's next values."""
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


class Records:
    """A batch of records: what several roots need of it is computed once."""

    def __init__(self, columns: Mapping[Expression, pa.Array], rows: int, coding: Coding) -> None:
        self.rows = rows
        self._columns = columns
        self._coding = coding
        self._codes: dict[Hashable, Codes] = {}
        self._slots: dict[State, list[Words]] = {}
        self._chosen: dict[Hashable, Words | None] = {}
        self._truths: dict[Expression, Valid] = {}
        self._cell_truths: dict[Expression, Valid] = {}
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
            truths, cells = self._truths_of(marks)
            codes = self._coding.encode(marks, sign(truths))
            self._codes[marks] = codes if cells is None else Codes(np.take(codes.plain(), cells))
        return self._codes[marks]

    def slots(self, node: Node) -> list[Words]:
        """The slots of a node's states."""
        for state in node.states:
            if state not in self._slots:
                condition = self._truth(state.condition) if state.condition is not None else None
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
            truths, cells = self._truths_of(any_of)
            wanted = truths.any(axis=1)
            keep.append(wanted if cells is None else np.take(wanted, cells))
        if time is not None and self._columns[time].null_count:
            keep.append(np.asarray(pc.is_valid(self._columns[time]), dtype=np.bool_))
        if gaps is not None:
            times, _ = self._words_of(gaps.time)
            keep.append(gaps.covers(times))
        kept = np.logical_and.reduce(keep) if keep else None
        return None if kept is None or kept.all() else np.flatnonzero(kept)

    def _truth(self, condition: Expression) -> Valid:
        """Where a condition is true: neither false nor null."""
        if condition not in self._truths:
            self._truths[condition] = truth(self._columns[condition])
        return self._truths[condition]

    def _cell_truth(self, condition: Expression) -> Valid:
        """In which cells a condition is true."""
        if condition not in self._cell_truths:
            self._cell_truths[condition] = truth(self._columns[condition].dictionary)
        return self._cell_truths[condition]

    def _truths_of(self, conditions: tuple[Expression, ...]) -> tuple[Truths, Words | None]:
        """Which conditions are true: of cells, with the cell of each record, or (None) of each record."""
        columns = [self._columns[condition] for condition in conditions]
        if all(pa.types.is_dictionary(column.type) for column in columns):
            cells = columns[0].indices
            if all(column.indices.buffers()[1].address == cells.buffers()[1].address for column in columns):
                return columns_of([*map(self._cell_truth, conditions)]), np.asarray(cells)
        return columns_of([self._truth(condition) for condition in conditions]), None

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
