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
from headrace.kernel.coding import Coder
from headrace.kernel.layout import Layout
from headrace.kernel.matrix import unpack


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
        (codes,) = self._unpack([key], [])
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
        out = self._unpack(keys, [place for slots in places for place in slots])
        decoded = [self.coders[key].decode(out[index]) for index, key in enumerate(keys)]
        ends = len(keys) + np.cumsum([0, *map(len, places)])
        return decoded, [out[low:high] for low, high in itertools.pairwise(ends)]

    def slice(self, low: int, high: int) -> Rows:
        """The rows from one number to another."""
        return Rows(self.matrix[low:high], self.coders, self.layout, self.ops)

    def take(self, numbers: Words) -> Rows:
        """The rows of some numbers, in their order."""
        return Rows(self.matrix[numbers], self.coders, self.layout, self.ops)

    def where(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """Some of the rows."""
        return Rows(self.matrix[mask], self.coders, self.layout, self.ops)

    def slots(self, states: Sequence[int]) -> Words:
        """Which columns of the matrix hold some states."""
        return np.array([place for state in states for place in self._slots(state)], dtype=np.int64)

    def _slots(self, state: int) -> range:
        first = self.layout.words + sum(map(slot_count, self.ops[:state]))
        return range(first, first + slot_count(self.ops[state]))

    def _unpack(self, keys: Sequence[int], columns: Sequence[int]) -> list[Words]:
        out = np.empty((len(keys) + len(columns), len(self)), dtype=np.int64)
        unpack(self.matrix, self.layout.fields(keys), np.array(columns, dtype=np.int64), out)
        return list(out)
