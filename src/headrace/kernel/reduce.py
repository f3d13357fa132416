"""`reduce`: rows of a parent to rows of a child, for key columns of any type.

A `Reducer` holds one node's table with the coders of its keys. Records and partials go in the same way, as key
columns and state slots; partials come out, and children are reduced from it without decoding a key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.ops import Op, Words, slot_count
from headrace.kernel.coding import Coder, Layout, Outgrown, make_coder
from headrace.kernel.matrix import columns_of, move, put_column
from headrace.kernel.table import Table

_BATCH_ROWS = 1 << 16
"""Rows that are laid out as a matrix at a time: so many fit into the cache."""


class Reducer:
    """The rows of one node, grouped by its keys.

    When the table has reached `budget` bytes, what is there leaves as a partial and the pass goes on with an empty
    table: `partials` collects them, and results do not change.
    """

    def __init__(self, keys: int, ops: Sequence[Op], budget: int | None = None) -> None:
        self.ops = tuple(ops)
        self._keys = keys
        self._budget = budget
        self._coders: list[Coder] = []
        self._layout = Layout.of([])
        self._table = Table(1, self.ops)
        self.partials: list[tuple[list[pa.Array], list[Words]]] = []

    def __len__(self) -> int:
        return len(self._table)

    def add(self, keys: Sequence[pa.Array], slots: Sequence[Words], rows: int) -> None:
        """Combine rows, given as columns: key values, and the slots of all states in the order of `ops`."""
        try:
            codes = self._encode(keys)
        except Outgrown:
            self._widen(keys)
            codes = self._encode(keys)
        self._add_codes(codes, slots, rows)
        if self._budget is not None and self._table.bytes > self._budget:
            self.flush()

    def flush(self) -> None:
        """Let all rows leave as a partial."""
        if len(self._table):
            self.partials.append((self.key_columns(), self.slots()))
        self._table = Table(self._layout.words, self.ops)

    def key_columns(self) -> list[pa.Array]:
        """The key columns, decoded."""
        rows = self._table.rows
        return [coder.decode(self._layout.unpack(rows, index)) for index, coder in enumerate(self._coders)]

    def slots(self) -> list[Words]:
        """The state slots, one array each."""
        return columns_of(self._table.rows, self._layout.words)

    def child(self, keys: Sequence[int], states: Sequence[int]) -> Reducer:
        """A node with some of the keys and some of the states, reduced from this one's rows."""
        child = Reducer(len(keys), [self.ops[state] for state in states])
        child._coders = [self._coders[key] for key in keys] if self._coders else []
        child._layout = Layout.of([coder.bits for coder in child._coders])
        child._table = Table(child._layout.words, child.ops, expect=len(self))
        starts = np.cumsum([self._layout.words, *map(slot_count, self.ops)])
        columns = [
            c for state in states for c in range(starts[state], starts[state] + slot_count(self.ops[state]))
        ]
        fields = self._layout.moves(keys, child._layout) if child._coders else np.empty((0, 5), dtype=np.int64)
        batch = np.empty((min(_BATCH_ROWS, len(self)), child._table.width), dtype=np.int64)
        for low in range(0, len(self), _BATCH_ROWS):
            piece = batch[: len(self) - low]
            move(self._table.rows, low, fields, child._layout.words, np.array(columns, dtype=np.int64), piece)
            child._table.add(piece)
        return child

    def _encode(self, keys: Sequence[pa.Array]) -> list[Words]:
        if not self._coders and self._keys:
            self._learn(keys)
        return [coder.encode(key) for coder, key in zip(self._coders, keys, strict=True)]

    def _widen(self, keys: Sequence[pa.Array]) -> None:
        """Code anew what is there, with room for these columns too."""
        known, slots, rows = self.key_columns(), self.slots(), len(self)
        self._learn([pa.concat_arrays([old, _plain(new)]) for old, new in zip(known, keys, strict=True)])
        self._add_codes(self._encode(known), slots, rows)

    def _learn(self, keys: Sequence[pa.Array]) -> None:
        """Coders that fit these columns, and an empty table."""
        self._coders = [make_coder(key) for key in keys]
        self._layout = Layout.of([coder.bits for coder in self._coders])
        self._table = Table(self._layout.words, self.ops)

    def _add_codes(self, codes: Sequence[Words], slots: Sequence[Words], rows: int) -> None:
        words = self._layout.words
        for low in range(0, rows, _BATCH_ROWS):
            high = min(low + _BATCH_ROWS, rows)
            batch = np.empty((high - low, self._table.width), dtype=np.int64)
            self._layout.pack([column[low:high] for column in codes], batch)
            for place, slot in enumerate(slots):
                put_column(batch, words + place, slot[low:high])
            self._table.add(batch)


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
