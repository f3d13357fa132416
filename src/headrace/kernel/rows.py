"""Rows of a node: packed key codes and state slots, with what it takes to read them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.ops import Op, Words, slot_count
from headrace.kernel.coding import Coder, Distance
from headrace.kernel.layout import Layout
from headrace.kernel.matrix import addresses, unpack

_CODES = Distance(0, np.dtype(np.int64))
"""The codes themselves."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Groups, one a row: the words of its keys' codes, then the slots of its states."""

    matrix: Words
    coders: tuple[Coder, ...]
    layout: Layout
    ops: tuple[Op, ...]

    def __len__(self) -> int:
        return len(self.matrix)

    def codes(self, key: int) -> Words:
        """The codes of one key column."""
        (codes,), _, _ = self._unpack([key], [_CODES], [])
        return codes

    def mapped(self, key: int, function: Callable[[pa.Array], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """A function of one key's values: of each row's or, if that is less, of each value that there may be."""
        codes, decode = self.codes(key), self.coders[key].decode
        low, high = (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
        if high - low >= len(codes):
            return function(decode(codes))
        return np.take(function(decode(np.arange(low, high + 1))), codes - low)

    def columns(self, keys: Sequence[int], states: Sequence[int]) -> tuple[list[pa.Array], list[list[Words]]]:
        """Some keys, decoded, and the slots of some states, in one pass over the rows."""
        places = [self._slots(state) for state in states]
        distances = [self.coders[key].distance for key in keys]
        values, slots, nulls = self._unpack(
            keys, [distance or _CODES for distance in distances], [place for own in places for place in own]
        )
        decoded = []
        for key, column, distance, null in zip(keys, values, distances, nulls, strict=True):
            if distance is None:
                decoded.append(self.coders[key].decode(column))
            elif null:
                decoded.append(self.coders[key].decode(self.codes(key)))
            else:
                decoded.append(pa.array(column).view(self.coders[key].kind))
        ends = np.cumsum([0, *map(len, places)])
        return decoded, [slots[low:high] for low, high in itertools.pairwise(ends)]

    def slice(self, low: int, high: int) -> Rows:
        """The rows from one number to another."""
        return Rows(self.matrix[low:high], self.coders, self.layout, self.ops)

    def take(self, numbers: Words) -> Rows:
        """The rows of some numbers, in their order."""
        return Rows(self.matrix.take(numbers, axis=0), self.coders, self.layout, self.ops)

    def where(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        return self.take(np.flatnonzero(mask))

    def slots(self, states: Sequence[int]) -> Words:
        """Which columns of the matrix hold some states."""
        return np.array([place for state in states for place in self._slots(state)], dtype=np.int64)

    def _slots(self, state: int) -> range:
        first = self.layout.words + sum(map(slot_count, self.ops[:state]))
        return range(first, first + slot_count(self.ops[state]))

    def _unpack(
        self, keys: Sequence[int], distances: Sequence[Distance], columns: Sequence[int]
    ) -> tuple[list[npt.NDArray[Any]], list[Words], list[int]]:
        """Codes with what is to be added to them, slots, and how many codes of each key are null's."""
        values = [np.empty(len(self), distance.dtype) for distance in distances]
        slots = [np.empty(len(self), np.int64) for _ in columns]
        nulls = np.zeros(len(keys), dtype=np.int64)
        unpack(
            self.matrix,
            self.layout.fields(keys, [distance.base for distance in distances]),
            np.array(columns, dtype=np.int64),
            addresses([*values, *slots]),
            np.array([distance.dtype.itemsize for distance in distances], dtype=np.int64),
            nulls,
        )
        return values, slots, nulls.tolist()
