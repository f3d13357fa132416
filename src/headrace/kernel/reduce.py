"""`reduce`: rows of a parent to rows of a child, for key columns of any type.

A `Reducer` holds one node's table. Records and partials go in the same way, as codes of keys and slots of states;
`rows` are the groups so far, from which children are reduced without decoding a key.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.algebra.ops import Op, Words
from headrace.kernel.coding import Coder, Codes, recode
from headrace.kernel.layout import Layout
from headrace.kernel.matrix import put_column, put_taken
from headrace.kernel.rows import BATCH_ROWS, Rows
from headrace.kernel.table import Table


class Reducer:
    """The groups of one node, as far as they have come."""

    def __init__(self, ops: Sequence[Op]) -> None:
        self.ops = tuple(ops)
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
        words = self._layout.words
        batch = np.empty((min(BATCH_ROWS, rows), self._table.width), dtype=np.int64)
        for low in range(0, rows, BATCH_ROWS):
            piece = batch[: min(BATCH_ROWS, rows - low)]
            self._layout.pack(codes, piece, low, chosen)
            part = slice(low, low + len(piece))
            for place, slot in enumerate(slots):
                if chosen is None:
                    put_column(piece, words + place, slot[part])
                else:
                    put_taken(piece, words + place, slot, chosen[part])
            self._table.add(piece)

    def take(self) -> Rows:
        """All groups, which leave."""
        rows = self.rows
        self._table = Table(self._layout.words, self.ops)
        return rows

    def put_back(self, rows: Rows) -> None:
        """Groups that `take` gave come back."""
        self._table.add(rows.matrix)

    def _recode(self, coders: tuple[Coder, ...]) -> None:
        """Code what is there anew, as these coders do."""
        old = self.take()
        codes = (
            [recode(old.codes(key), old.coders[key], coder) for key, coder in enumerate(coders)]
            if len(old)
            else []
        )
        self._coders, self._layout = coders, Layout.of([coder.bits for coder in coders])
        self._table = Table(self._layout.words, self.ops)
        if len(old):
            _, states = old.columns([], range(len(self.ops)))
            slots = [slot for part in states for slot in part]
            self.add(coders, [Codes(column) for column in codes], slots, len(old))
