"""Rows of a node: packed key codes and state slots, with what it takes to read them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.ops import Op, Words, slot_count
from headrace.kernel.coding import Coder
from headrace.kernel.layout import Layout
from headrace.kernel.matrix import addresses, find_extents, unpack
from headrace.kernel.narrow import Column, Narrow, integers_for
from headrace.kernel.strided import wrapped

_WORD = pa.int64()


@dataclass(frozen=True, slots=True)
class Rows:
    """Groups, one a row: the words of its keys' codes, then the slots of its states."""

    matrix: Words
    coders: tuple[Coder, ...]
    layout: Layout
    ops: tuple[Op, ...]
    _codes: dict[int, Narrow] = field(default_factory=dict, compare=False, repr=False)
    """Those of key columns that have been asked for: several children ask for the same."""

    def __len__(self) -> int:
        return len(self.matrix)

    def codes(self, key: int) -> Words:
        """The codes of one key column."""
        return self._coded(key).words()

    def mapped(self, key: int, function: Callable[[pa.Array], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """A function of one key's values: of each row's or, if that is less, of each value that there may be."""
        codes, decode = self._coded(key), self.coders[key].decode
        low, high = codes.least, codes.most
        if high - low >= len(codes):
            return function(decode(codes.words()))
        return np.take(function(decode(np.arange(low, high + 1))), codes.words() - low)

    def columns(
        self, keys: Sequence[int], states: Sequence[int], order: Words | None = None
    ) -> tuple[list[Column], list[list[Narrow]]]:
        """Some keys, decoded, and the slots of some states; of the rows as they are, or in an order."""
        places = [self._slots(state) for state in states]
        fields = self.layout.fields(keys, [place for own in places for place in own])
        extents = self._extents(fields)
        kinds, distances = [_WORD] * len(fields), [0] * len(fields)
        coded: dict[int, Coder] = {}
        for number, coder in enumerate(self.coders[key] for key in keys):
            if coder.distance is not None and extents[number][0] > 0:
                kinds[number], distances[number] = coder.kind, coder.distance
            else:
                coded[number] = coder
        columns = self._unpack(fields, extents, kinds, distances, order)
        decoded = [
            coded[number].decode(column.words()) if number in coded else column
            for number, column in enumerate(columns[: len(keys)])
        ]
        ends = np.cumsum([len(keys), *map(len, places)])
        return decoded, [columns[low:high] for low, high in itertools.pairwise(ends)]

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

    def _coded(self, key: int) -> Narrow:
        if key not in self._codes:
            values = np.empty(len(self), integers_for(self.layout.places[key].bits))
            place, width, none = addresses([values]), np.array([values.itemsize]), np.empty(0, np.int64)
            unpack(self.matrix, self.layout.fields([key], []), np.zeros(1, np.int64), place, width, none)
            extent = (int(values.min()), int(values.max())) if len(values) else (0, 0)
            self._codes[key] = Narrow(_WORD, values, 0, *extent)
        return self._codes[key]

    def _slots(self, state: int) -> range:
        first = self.layout.words + sum(map(slot_count, self.ops[:state]))
        return range(first, first + slot_count(self.ops[state]))

    def _extents(self, fields: Words) -> list[list[int]]:
        """The least and the greatest number of each field; 0 where there are no rows."""
        extents = np.zeros((len(fields), 2), dtype=np.int64)
        find_extents(self.matrix, fields, extents)
        return extents.tolist()

    def _unpack(
        self,
        fields: Words,
        extents: Sequence[Sequence[int]],
        kinds: Sequence[pa.DataType],
        distances: Sequence[int],
        order: Words | None,
    ) -> list[Narrow]:
        """Fields as columns of these types, whose values are so far from the numbers in the rows."""
        columns = [
            Narrow.room(kind, len(self), wrapped(least + distance), wrapped(most + distance))
            for kind, distance, (least, most) in zip(kinds, distances, extents, strict=True)
        ]
        more = [wrapped(far + column.base) for far, column in zip(distances, columns, strict=True)]
        widths = [column.values.itemsize if column.nbytes else 0 for column in columns]
        places = addresses([column.values for column in columns])
        chosen = np.empty(0, dtype=np.int64) if order is None else order
        unpack(self.matrix, fields, np.array(more, np.int64), places, np.array(widths, np.int64), chosen)
        return columns
