"""`reduce`: rows of a parent to rows of a child, for key columns of any type.

A `Reducer` holds one node's table. Records and partials go in as codes of keys and slots of states; rows of a
parent are poured in without decoding a key.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from headrace.algebra.ops import Op, Words
from headrace.kernel.coding import Coder, Codes, recode
from headrace.kernel.layout import Layout
from headrace.kernel.matrix import addresses, move, or_column, put_columns
from headrace.kernel.rows import Rows
from headrace.kernel.table import Table

_BATCH_BYTES = 1 << 18


@dataclass(frozen=True, slots=True)
class Column:
    """A key column of some rows that is not one of theirs: its coder, and the code of each row."""

    coder: Coder
    codes: npt.NDArray[np.signedinteger[Any]]


def reduce(rows: Rows, keys: Sequence[int], states: Sequence[int]) -> tuple[Rows, Words]:
    """Groups by some of the keys, with some of the states; and, for each row, its group's number."""
    reducer = Reducer([rows.ops[state] for state in states], expect=len(rows))
    into = reducer.pour(rows, keys, states)
    return reducer.rows, into


def as_rows(
    ops: Sequence[Op], coders: tuple[Coder, ...], codes: Sequence[Codes], slots: Sequence[Words], rows: int
) -> Rows:
    """Rows as they come, some perhaps of the same group: columns as `Reducer.add` has them."""
    layout = Layout.of([coder.bits for coder in coders])
    matrix = np.empty((rows, layout.words + len(slots)), dtype=np.int64)
    fill, step = _filler(layout, codes, slots, None), _batch_rows(matrix.shape[1])
    for low in range(0, rows, step):
        fill(matrix[low : low + step], low)
    return Rows(matrix, coders, layout, tuple(ops))


def _filler(
    layout: Layout, codes: Sequence[Codes], slots: Sequence[Words], chosen: Words | None
) -> Callable[[Words, int], None]:
    """Writes rows, from a number on of all or of the `chosen` ones, from columns of key codes and slots."""
    columns = [np.ascontiguousarray(slot, dtype=np.int64) for slot in slots]
    places = addresses(columns)
    numbers = np.empty(0, dtype=np.int64) if chosen is None else chosen

    def fill(piece: Words, low: int) -> None:
        size = len(columns[0]) if columns else 0  # asked here, so that the columns live as long as their addresses
        layout.pack(codes, piece, low, chosen)
        put_columns(piece, layout.words, places, size, low, numbers)

    return fill


def _batch_rows(width: int) -> int:
    """As many rows of so many words as fit into the cache."""
    return max(_BATCH_BYTES // (8 * width), 1)


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
        slots: Sequence[Words],
        rows: int,
        chosen: Words | None = None,
    ) -> None:
        """Combine rows: columns of key codes with their coders, and the slots of all states in the order of `ops`.

        `chosen` are the numbers of the rows that are meant, where it is not all of them.
        """
        if coders != self._coders:
            self._recode(coders)
        fill, batch = _filler(self._layout, codes, slots, chosen), self._batch(rows)
        for low in range(0, rows, max(1, len(batch))):
            piece = batch[: rows - low]
            fill(piece, low)
            self._table.add(piece)

    def pour(
        self,
        rows: Rows,
        keys: Sequence[int | Column],
        states: Sequence[int],
        chosen: Words | None = None,
    ) -> Words:
        """Combine a parent's rows: some of their keys, or columns beside them, and the states that groups have.

        `chosen` are the numbers of the rows that are meant, where it is not all of them. Gives the number of each
        row's group.
        """
        chosen = np.arange(len(rows)) if chosen is None else chosen
        keys = keys if rows.coders else ()
        coders = tuple(key.coder if isinstance(key, Column) else rows.coders[key] for key in keys)
        if coders != self._coders:
            self._recode(coders)
        placed = list(zip(keys, self._layout.places, strict=True))
        own = [(key, place) for key, place in placed if not isinstance(key, Column)]
        beside = [(key, place) for key, place in placed if isinstance(key, Column)]
        fields = rows.layout.moves([key for key, _ in own], [place for _, place in own])
        columns, words = rows.slots(states), self._layout.words
        batch = self._batch(len(chosen))
        into = np.empty(len(chosen), dtype=np.int64)
        for low in range(0, len(chosen), max(1, len(batch))):
            part = chosen[low : low + len(batch)]
            piece = batch[: len(part)]
            move(rows.matrix, part, fields, words, columns, piece)
            for column, place in beside:
                or_column(piece, place.word, place.shift, column.codes[part], 0)
            self._table.add(piece, into[low : low + len(part)])
        return into

    def take(self) -> Rows:
        """All groups, which leave; as many are expected next."""
        rows = self.rows
        self._expect = len(rows)
        self._table = self._empty()
        return rows

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
            slots = [slot for part in states for slot in part]
            self.add(coders, [Codes(column) for column in codes], slots, len(old))

    def _batch(self, rows: int) -> Words:
        """Room for so many rows on their way into the table, or for as many as fit into the cache."""
        width = self._table.width
        return np.empty((min(rows, _batch_rows(width)), width), dtype=np.int64)

    def _empty(self) -> Table:
        return Table(self._layout.words, self.ops, self._expect)
