"""Packed keys: which bits of which word belong to which column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.algebra.ops import Words
from headrace.kernel.coding import WORD_BITS, Codes, wrapped
from headrace.kernel.matrix import or_column, or_taken


@dataclass(frozen=True, slots=True)
class Place:
    """Where a column's code is: bits from `shift` on, of one word."""

    word: int
    shift: int
    bits: int


@dataclass(frozen=True, slots=True)
class Layout:
    """Which bits of a key's words belong to which column."""

    places: tuple[Place, ...]
    words: int

    @staticmethod
    def of(bits: Sequence[int]) -> Layout:
        """The widest columns first, each into the first word that has room for it.

        >>> Layout.of([40, 20, 30]).words
        2
        """
        free: list[int] = []
        places: dict[int, Place] = {}
        for index in sorted(range(len(bits)), key=lambda column: -bits[column]):
            word = next((number for number, room in enumerate(free) if room >= bits[index]), len(free))
            if word == len(free):
                free.append(WORD_BITS)
            places[index] = Place(word, WORD_BITS - free[word], bits[index])
            free[word] -= bits[index]
        return Layout(tuple(places[index] for index in range(len(bits))), max(1, len(free)))

    def pack(self, codes: Sequence[Codes], into: Words, first: int, chosen: Words | None = None) -> None:
        """Write the key words of as many rows as `into` has, from `first` on of all or of the `chosen` ones."""
        into[:, : self.words] = 0
        part = slice(first, first + len(into))
        for place, column in zip(self.places, codes, strict=True):
            if chosen is None:
                or_column(into, place.word, place.shift, column.values[part], column.base)
            else:
                or_taken(into, place.word, place.shift, column.values, column.base, chosen[part])

    def moves(self, columns: Sequence[int], places: Sequence[Place]) -> Words:
        """For `move`: where the codes of some columns are, and where a child's layout has them."""
        pairs = zip((self.places[column] for column in columns), places, strict=True)
        fields = [(a.word, a.shift, wrapped((1 << a.bits) - 1), b.word, b.shift) for a, b in pairs]
        return np.array(fields, dtype=np.int64).reshape(len(columns), 5)

    def bits(self, columns: Sequence[int]) -> Words:
        """Which bits of each word belong to some columns."""
        found = np.zeros(self.words, dtype=np.int64)
        for place in (self.places[column] for column in columns):
            found[place.word] |= wrapped(((1 << place.bits) - 1) << place.shift)
        return found

    def fields(self, columns: Sequence[int], bases: Sequence[int]) -> Words:
        """For `matrix.unpack`: where the codes of some columns are, and what is to be added to them."""
        places = [self.places[column] for column in columns]
        fields = [
            (place.word, place.shift, wrapped((1 << place.bits) - 1), base)
            for place, base in zip(places, bases, strict=True)
        ]
        return np.array(fields, dtype=np.int64).reshape(len(columns), 4)
