"""Rows of a node: packed key codes and state slots, with what it takes to read them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.ops import Op, Words, count_slots, slot_count
from headrace.kernel.coding import Coder
from headrace.kernel.layout import Bits, Layout
from headrace.kernel.matrix import addresses, unpack
from headrace.kernel.narrow import Column, Narrow
from headrace.plan.slices import Times

_WORD = pa.int64()
_ALL = np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Rows:
    """Groups, one a row: the words of its keys' codes, then the slots of its states."""

    matrix: Words
    coders: tuple[Coder, ...]
    layout: Layout
    ops: tuple[Op, ...]
    starts: tuple[int, ...] | None = None
    """In which column of the matrix each state begins, where they do not simply follow the words."""
    _codes: dict[int, Narrow] = field(default_factory=dict, compare=False, repr=False)
    """Those of key columns that have been asked for: several children ask for the same."""

    def __len__(self) -> int:
        return len(self.matrix)

    @property
    def nbytes(self) -> int:
        """The memory that the keys and states take."""
        words = {place.word for place in self.layout.places}
        return 8 * len(self) * (len(words) + count_slots(self.ops))

    def codes(self, key: int) -> Words:
        """The codes of one key column."""
        return self._coded(key).words()

    def mapped(self, key: int, function: Callable[[pa.Array], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """A function of one key's values: of each row's or, if that is less, of each value that there may be."""
        codes, decode = self._coded(key), self.coders[key].decode
        low, high = codes.least, codes.most
        if high - low >= len(codes):
            return function(decode(codes.words()))
        return np.take(function(decode(np.arange(low, high + 1))), codes.words(above=low))

    def at_starts(self, slices: Times, function: Callable[[Words], npt.NDArray[Any]]) -> npt.NDArray[Any]:
        """A function of when each row's slice, which is its first key, begins."""
        return self.mapped(0, lambda numbers: function(slices.start_of(np.asarray(numbers))))

    def columns(
        self, keys: Sequence[int], states: Sequence[int], order: Words | None = None
    ) -> tuple[list[Column], list[list[Narrow]]]:
        """Some keys, decoded, and the slots of some states; of all rows, or of those of some numbers."""
        slots = [self._slots(state) for state in states]
        fields = self.layout.fields(keys, [place for own in slots for place in own])
        coders = [self.coders[key] for key in keys]
        columns = self._unpack(fields, coders, order)
        ends = np.cumsum([len(keys), *map(len, slots)])
        decoded: list[Column] = [*columns[: len(keys)]]
        for number, coder in enumerate(coders):
            if coder.distance is None:
                decoded[number] = coder.decode(columns[number].words())
            elif coder.distance in (columns[number].least, columns[number].most):  # code 0: there are nulls
                (codes,) = self._unpack(fields[number : number + 1], [], order)
                decoded[number] = coder.decode(codes.words())
        return decoded, [columns[low:high] for low, high in itertools.pairwise(ends)]

    def only(self, keys: Sequence[int], states: Sequence[int]) -> Rows:
        """The same rows, with some of their keys and states."""
        layout = Layout(tuple(self.layout.places[key] for key in keys), self.layout.words)
        coders, ops = tuple(self.coders[key] for key in keys), tuple(self.ops[state] for state in states)
        return Rows(self.matrix, coders, layout, ops, tuple(self._slots(state).start for state in states))

    def slice(self, low: int, high: int) -> Rows:
        """The rows from one number to another."""
        return Rows(self.matrix[low:high], self.coders, self.layout, self.ops, self.starts)

    def take(self, numbers: Words) -> Rows:
        """The rows of some numbers, in their order."""
        return Rows(self.matrix.take(numbers, axis=0), self.coders, self.layout, self.ops, self.starts)

    def where(self, mask: npt.NDArray[np.bool_]) -> Rows:
        """Some of the rows, or all as they are."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def slots(self, states: Sequence[int]) -> Words:
        """Which columns of the matrix hold some states."""
        return np.array([place for state in states for place in self._slots(state)], dtype=np.int64)

    def _coded(self, key: int) -> Narrow:
        if key not in self._codes:
            (self._codes[key],) = self._unpack(self.layout.fields([key], []), [], None)
        return self._codes[key]

    def _slots(self, state: int) -> range:
        if self.starts is not None:
            first = self.starts[state]
        else:
            first = self.layout.words + count_slots(self.ops[:state])
        return range(first, first + slot_count(self.ops[state]))

    def _unpack(self, fields: Sequence[Bits], coders: Sequence[Coder], order: Words | None) -> list[Narrow]:
        """Fields as columns: the first ones as values where these coders only add to codes, others as numbers."""
        kinds, distances = [_WORD] * len(fields), [0] * len(fields)
        for number, coder in enumerate(coders):
            if coder.distance is not None:
                kinds[number], distances[number] = coder.kind, coder.distance
        words = sorted({word for word, _, _ in fields})
        widths = [kind.bit_width // 8 for kind in kinds]
        asked = [
            (words.index(word), shift, mask, distance, width)
            for (word, shift, mask), distance, width in zip(fields, distances, widths, strict=True)
        ]
        rows = len(self) if order is None else len(order)
        rooms = [np.empty(width * rows, dtype=np.int8) for width in widths]
        told = np.zeros((len(fields), 4), dtype=np.int64)
        if rows and asked:
            chosen = _ALL if order is None else order
            parts = np.array(words, dtype=np.int64), np.array(asked, dtype=np.int64), addresses(rooms), told
            unpack(self.matrix, chosen, *parts)
        columns = zip(kinds, rooms, told.tolist(), strict=True)
        return [Narrow.written(kind, rows, room, own) for kind, room, own in columns]
