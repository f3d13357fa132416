"""`reduce`: rows of a parent to rows of a child, for key columns of any type.

A `Reducer` holds one node's table with the coders of its keys. Records and partials go in the same way, as key
columns and state slots; `rows` are the groups so far, from which children are reduced without decoding a key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.ops import Op, Words
from headrace.kernel.coding import Coder, Codes, Layout, Outgrown, make_coder
from headrace.kernel.matrix import put_column
from headrace.kernel.rows import BATCH_ROWS, Rows
from headrace.kernel.table import Table


class Reducer:
    """The groups of one node, as far as they have come."""

    def __init__(self, keys: int, ops: Sequence[Op]) -> None:
        self.ops = tuple(ops)
        self._keys = keys
        self._coders: tuple[Coder, ...] = ()
        self._layout = Layout.of([])
        self._table = Table(1, self.ops)

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

    def add(self, keys: Sequence[pa.Array], slots: Sequence[Words], rows: int) -> None:
        """Combine rows, given as columns: key values, and the slots of all states in the order of `ops`."""
        try:
            codes = self._encode(keys)
        except Outgrown:
            self._widen(keys)
            codes = self._encode(keys)
        self._add_codes(codes, slots, rows)

    def take(self) -> Rows:
        """All groups, which leave; the coders stay."""
        rows = self.rows
        self._table = Table(self._layout.words, self.ops)
        return rows

    def put_back(self, rows: Rows) -> None:
        """Groups that `take` gave come back."""
        self._table.add(rows.matrix)

    def _encode(self, keys: Sequence[pa.Array]) -> list[Codes]:
        if not self._coders and self._keys:
            self._learn(keys)
        return [coder.encode(key) for coder, key in zip(self._coders, keys, strict=True)]

    def _widen(self, keys: Sequence[pa.Array]) -> None:
        """Code anew what is there, with room for these columns too."""
        count = len(self)
        known, states = self.rows.columns(range(self._keys), range(len(self.ops)))
        self._learn([pa.concat_arrays([old, _plain(new)]) for old, new in zip(known, keys, strict=True)])
        self._add_codes(self._encode(known), [slot for slots in states for slot in slots], count)

    def _learn(self, keys: Sequence[pa.Array]) -> None:
        """Coders that fit these columns, and an empty table."""
        self._coders = tuple(make_coder(key) for key in keys)
        self._layout = Layout.of([coder.bits for coder in self._coders])
        self._table = Table(self._layout.words, self.ops)

    def _add_codes(self, codes: Sequence[Codes], slots: Sequence[Words], rows: int) -> None:
        words = self._layout.words
        batch = np.empty((min(BATCH_ROWS, rows), self._table.width), dtype=np.int64)
        for low in range(0, rows, BATCH_ROWS):
            high = min(low + BATCH_ROWS, rows)
            piece = batch[: high - low]
            self._layout.pack([column[low:high] for column in codes], piece)
            for place, slot in enumerate(slots):
                put_column(piece, words + place, slot[low:high])
            self._table.add(piece)


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
