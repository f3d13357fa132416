"""Columns wherever they lie in memory, each by itself or side by side in rows, on their way into packed rows.

Records come as columns, a parent's groups as rows. To a compiled function both are the same: values at an address,
so many steps apart. It takes any number of them, a block of rows at a time that stays in the nearest cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from headrace.algebra.ops import Words
from headrace.kernel.matrix import load

BLOCK = 1 << 8
"""Rows that are packed, found and combined at a time."""

WORD_BITS = 64
ALL_BITS = -1


@dataclass(frozen=True, slots=True)
class Codes:
    """Integers, as they lie in memory less a base (modulo 2**64): the codes of a key, or the slots of a state."""

    values: npt.NDArray[np.signedinteger[Any]]
    base: int = 0

    def plain(self) -> Words:
        """The integers themselves."""
        plain: Words = np.subtract(self.values, self.base, dtype=np.int64)
        return plain

    def slice(self, low: int, high: int) -> Codes:
        """Those from one number to before another."""
        return Codes(self.values[low:high], self.base)


Slot = Words | Codes


def wrapped(bits: int) -> int:
    """The int64 that has the same low 64 bits as a number."""
    low = bits & ((1 << WORD_BITS) - 1)
    return low - (1 << WORD_BITS) if low >> (WORD_BITS - 1) else low


@dataclass(frozen=True, slots=True)
class Field:
    """A column of codes: values less a base, of which some bits count, and their place in the words of a key."""

    values: npt.NDArray[Any]
    word: int
    place: int
    base: int = 0
    shift: int = 0
    mask: int = ALL_BITS
    picked: bool = True
    """Whether rows that are chosen have values of their own; else there is a value for each that is."""


@dataclass(frozen=True, slots=True)
class Strided:
    """Rows to be: the codes of their keys, and the slots of their states.

    `chosen` are the numbers of the rows that are meant, where it is not all of them.
    """

    rows: int
    words: int
    fields: Words
    slots: Words
    chosen: Words
    held: tuple[npt.NDArray[Any], ...]
    """The columns, which have to live as long as their addresses."""

    @staticmethod
    def of(
        rows: int,
        words: int,
        fields: Sequence[Field],
        slots: Sequence[Slot],
        chosen: Words | None = None,
        slots_picked: bool = True,
    ) -> Strided:
        """From columns that may be strided, such as those of a matrix."""
        some = chosen is not None
        held = [slot if isinstance(slot, Codes) else Codes(np.asarray(slot, dtype=np.int64)) for slot in slots]
        told = [(*_where(f.values), f.base, f.shift, f.mask, f.word, f.place, some and f.picked) for f in fields]
        places = [(*_where(slot.values), slot.base, some and slots_picked) for slot in held]
        return Strided(
            rows if chosen is None else len(chosen),
            words,
            np.array(told, dtype=np.int64).reshape(len(fields), 9),
            np.array(places, dtype=np.int64).reshape(len(slots), 5),
            np.empty(0, dtype=np.int64) if chosen is None else chosen,
            (*(field.values for field in fields), *(slot.values for slot in held)),
        )

    @staticmethod
    def of_rows(matrix: Words, words: int) -> Strided:
        """Rows that are packed already."""
        columns = [matrix[:, column] for column in range(matrix.shape[1])]
        fields = [Field(column, word, 0) for word, column in enumerate(columns[:words])]
        return Strided.of(len(matrix), words, fields, columns[words:])

    def pack(self) -> Words:
        """The rows, as they come."""
        rows = np.empty((self.rows, self.words + len(self.slots)), dtype=np.int64)
        self.pack_into(rows)
        return rows

    def pack_into(self, rows: Words) -> None:
        """Write the rows, as they come, to where there is room for them."""
        _pack(self.fields, self.slots, self.chosen, self.words, rows)


def _where(values: npt.NDArray[Any]) -> tuple[int, int, int]:
    """Where a column begins, the bytes of a value, and how many values further the next one is."""
    return values.__array_interface__["data"][0], values.itemsize, values.strides[0] // values.itemsize


@numba.njit(nogil=True, cache=True)
def fill(fields, slots, chosen, low, size, words, numbers, block):  # type: ignore[no-untyped-def]
    """Write so many rows, from a number on, as columns of a block: the words of their keys, and their slots.

    In between, a column's `numbers` need room of their own.
    """
    block[:words, :size] = 0
    for f in range(len(fields)):
        address, width, step, base, shift, mask, word, place, picked = fields[f]
        load(address, width, step, picked, chosen, low, size, numbers)
        own, to, out = np.uint64(shift), np.uint64(place), block[word]
        for j in range(size):
            out[j] |= np.int64((np.uint64(numbers[j] - base) >> own & np.uint64(mask)) << to)
    for s in range(len(slots)):
        address, width, step, base, picked = slots[s]
        out = block[words + s]
        load(address, width, step, picked, chosen, low, size, out)
        if base != 0:
            for j in range(size):
                out[j] -= base


@numba.njit(nogil=True, cache=True)
def _pack(fields, slots, chosen, words, rows):  # type: ignore[no-untyped-def]
    block, numbers = np.empty((rows.shape[1], BLOCK), dtype=np.int64), np.empty(BLOCK, dtype=np.int64)
    for low in range(0, len(rows), BLOCK):
        size = min(BLOCK, len(rows) - low)
        fill(fields, slots, chosen, low, size, words, numbers, block)
        for column in range(rows.shape[1]):
            for j in range(size):
                rows[low + j, column] = block[column, j]
