"""Packed keys: which bits of which word belong to which column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from headrace.algebra.ops import Words
from headrace.kernel.strided import ALL_BITS, WORD_BITS, Codes, Field, wrapped

Bits = tuple[int, int, int]
"""Some bits of a row: which word they are in, how far they are shifted, and what masks them then."""


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

    def coded(self, codes: Sequence[Codes]) -> list[Field]:
        """Columns of codes as fields of this layout."""
        pairs = zip(self.places, codes, strict=True)
        return [Field(column.values, place.word, place.shift, column.base) for place, column in pairs]

    def moved(self, matrix: Words, columns: Sequence[int], places: Sequence[Place]) -> list[Field]:
        """Some columns of rows of this layout as fields of another one, which has them at these places."""
        pairs = zip((self.places[column] for column in columns), places, strict=True)
        return [
            Field(matrix[:, own.word], to.word, to.shift, shift=own.shift, mask=wrapped((1 << own.bits) - 1))
            for own, to in pairs
        ]

    def bits(self, columns: Sequence[int]) -> Words:
        """Which bits of each word belong to some columns."""
        found = np.zeros(self.words, dtype=np.int64)
        for place in (self.places[column] for column in columns):
            found[place.word] |= wrapped(((1 << place.bits) - 1) << place.shift)
        return found

    def fields(self, columns: Sequence[int], slots: Sequence[int]) -> list[Bits]:
        """Where the codes of some columns are, and slots, which take a whole word."""
        places = [self.places[column] for column in columns]
        fields = [(place.word, place.shift, wrapped((1 << place.bits) - 1)) for place in places]
        return [*fields, *((slot, 0, ALL_BITS) for slot in slots)]
