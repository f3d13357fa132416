"""`reduce`: rows of a parent to rows of a child, for key columns of any type.

A `Reducer` holds one node's table. Records and partials go in as codes of keys and slots of states; rows of a
parent are poured in without decoding a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.algebra.ops import Op, Words, count_slots
from headrace.algebra.words import Valid
from headrace.kernel.coding import Coder, recode
from headrace.kernel.layout import Layout
from headrace.kernel.rows import Rows
from headrace.kernel.strided import Codes, Field, Slot, Strided
from headrace.kernel.table import Table

_MANY = 1 << 15
"""Fewer groups are all in the cache, settled or not."""


@dataclass(frozen=True, slots=True)
class Extra:
    """A key column of some rows that is not one of theirs: its coder, and the code of each row."""

    coder: Coder
    codes: npt.NDArray[np.signedinteger[Any]]


def reduce(
    rows: Rows, keys: Sequence[int], states: Sequence[int], expect: int | None = None
) -> tuple[Rows, Words]:
    """Groups by some of the keys, with some of the states; and, for each row, its group's number.

    As many groups as rows are expected, if not said otherwise.
    """
    expect = len(rows) if expect is None else min(expect, len(rows))
    reducer, into = Reducer([rows.ops[state] for state in states], expect), np.empty(len(rows), np.int64)
    reducer.pour(rows, keys, states, into=into)
    return reducer.rows, into


class Coded(NamedTuple):
    """Some rows to be: columns of key codes, the slots of all states, and how many rows they are."""

    codes: Sequence[Codes]
    slots: Sequence[Slot]
    rows: int


def as_rows(ops: Sequence[Op], coders: tuple[Coder, ...], parts: Sequence[Coded]) -> Rows:
    """Rows as they come, some perhaps of the same group."""
    layout = Layout.of([coder.bits for coder in coders])
    width, low = layout.words + count_slots(ops), 0
    matrix = np.empty((sum(part.rows for part in parts), width), dtype=np.int64)
    for part in parts:
        high = low + part.rows
        Strided.of(part.rows, layout.words, layout.coded(part.codes), part.slots).pack_into(matrix[low:high])
        low = high
    return Rows(matrix, coders, layout, tuple(ops))


class Reducer:
    """The groups of one node, as far as they have come."""

    def __init__(self, ops: Sequence[Op], expect: int = 0) -> None:
        """Empty; memory is set aside for the groups that are expected, which may be fewer."""
        self.ops = tuple(ops)
        self._coders: tuple[Coder, ...] = ()
        self._layout = Layout.of([])
        self._expect = expect
        self._table = self._empty()

    def __len__(self) -> int:
        return len(self._table)

    @property
    def bytes(self) -> int:
        """Memory that the table holds."""
        return self._table.bytes

    @property
    def rows(self) -> Rows:
        """All groups. A view: valid until the next change."""
        return Rows(self._table.rows, self._coders, self._layout, self.ops)

    def add(
        self,
        coders: tuple[Coder, ...],
        codes: Sequence[Codes],
        slots: Sequence[Slot],
        rows: int,
        chosen: Words | None = None,
    ) -> None:
        """Combine rows: columns of key codes with their coders, and the slots of all states in the order of `ops`.

        `chosen` are the numbers of the rows that are meant, where it is not all of them.
        """
        if coders != self._coders:
            self._recode(coders)
        self._table.take_in(Strided.of(rows, self._layout.words, self._layout.coded(codes), slots, chosen))

    def pour(
        self,
        rows: Rows,
        keys: Sequence[int | Extra],
        states: Sequence[int],
        chosen: Words | None = None,
        into: Words | None = None,
    ) -> None:
        """Combine a parent's rows: some of their keys, or columns beside them, and the states that groups have.

        `chosen` are the numbers of the rows that are meant, where it is not all of them. Writes `into`, for each,
        the number of its group.
        """
        keys = keys if rows.coders else ()
        coders = tuple(key.coder if isinstance(key, Extra) else rows.coders[key] for key in keys)
        if coders != self._coders:
            self._recode(coders)
        placed = list(zip(keys, self._layout.places, strict=True))
        own = [(key, place) for key, place in placed if not isinstance(key, Extra)]
        fields = rows.layout.moved(rows.matrix, [key for key, _ in own], [place for _, place in own])
        fields += [Field(key.codes, place.word, place.shift) for key, place in placed if isinstance(key, Extra)]
        slots = [rows.matrix[:, column] for column in rows.slots(states)]
        self._table.take_in(Strided.of(len(rows), self._layout.words, fields, slots, chosen), into)

    def take(self) -> Rows:
        """All groups, which leave; as many are expected next."""
        rows = self.rows
        self._expect = len(rows)
        self._table = self._empty()
        return rows

    @property
    def crowded(self) -> bool:
        """Whether so many groups are looked for that it is worth while to `settle` some."""
        return self._table.indexed >= _MANY

    def settle(self, is_open: Callable[[Rows], Valid]) -> None:
        """No row of a group will come any more that is not open; asked of those that are not settled yet."""
        numbers = self._table.unsettled
        self._table.settle(numbers[is_open(self.rows.take(numbers))])

    def put_back(self, rows: Rows) -> None:
        """Groups that `take` gave come back."""
        self._table.add(rows.matrix)

    def _recode(self, coders: tuple[Coder, ...]) -> None:
        """Code what is there anew, as these coders do."""
        old, expect = self.rows, self._expect
        codes = (
            [recode(old.codes(key), old.coders[key], coder) for key, coder in enumerate(coders)]
            if len(old)
            else []
        )
        self._coders, self._layout = coders, Layout.of([coder.bits for coder in coders])
        self._expect = max(expect, len(old))
        self._table = self._empty()
        if len(old):
            _, states = old.columns([], range(len(self.ops)))
            slots = [slot.codes for part in states for slot in part]
            self.add(coders, [Codes(column) for column in codes], slots, len(old))

    def _empty(self) -> Table:
        return Table(self._layout.words, self.ops, self._expect)
