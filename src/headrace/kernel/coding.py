"""Key columns to small codes, and codes to packed key words.

A coder turns a column into codes: 0 for null, 1 and up for values. Codes are narrow, so that a key of many columns
fits into one or two 64-bit words; `Layout` says which bits of which word are whose. Coders learn as they go. When
a column outgrows the bits that it was given, `encode` raises `Outgrown`: the caller codes anew, with wider codes.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.ops import Words
from headrace.algebra.ranks import has_order
from headrace.algebra.words import fits_word, from_words, to_integers, to_words
from headrace.kernel.matrix import or_column
from headrace.kernel.table import Table

WORD_BITS = 64
_NARROW_BITS = 34
"""Integers whose range takes no more bits are coded by subtraction; wider ones through a dictionary."""
_SLACK_BITS = 1


class Outgrown(Exception):
    """A column has values that its code has no bits for."""


class UnknownType(TypeError):
    """A column of a type that the kernel cannot group by."""


@dataclass(frozen=True, slots=True)
class Codes:
    """The codes of a column: integers, less a base (modulo 2**64)."""

    values: npt.NDArray[np.signedinteger[Any]]
    base: int = 0

    def __getitem__(self, part: slice) -> Codes:
        return Codes(self.values[part], self.base)

    def plain(self) -> Words:
        """The codes themselves."""
        return self.values.astype(np.int64) - self.base


class Coder(Protocol):
    """Columns of one type to codes and back."""

    kind: pa.DataType

    @property
    def bits(self) -> int:
        """How many bits the codes take."""

    def encode(self, array: pa.Array) -> Codes:
        """The codes of a column: 0 for null; raises `Outgrown`."""

    def decode(self, codes: Words) -> pa.Array:
        """The values of codes."""

    def hashes(self, codes: Words) -> npt.NDArray[np.uint64]:
        """Numbers that depend on the values only, so that all coders agree; for dealing rows out."""


class RangeCoder:
    """Fixed-width values by their distance from the least one."""

    def __init__(self, kind: pa.DataType, least: int, most: int) -> None:
        self.kind = kind
        self._least = least
        self.bits = _bits_for(most - least + 1)

    def encode(self, array: pa.Array) -> Codes:
        """See `Coder`."""
        words, valid = to_integers(array)
        low, high = _extent(words if valid is None else words[valid], self._least)
        if low < self._least or high - self._least + 1 >= 1 << self.bits:
            raise Outgrown
        base = wrapped(self._least - 1)
        return Codes(words, base) if valid is None else Codes(np.where(valid, words, base), base)

    def decode(self, codes: Words) -> pa.Array:
        """See `Coder`."""
        valid = codes != 0
        return from_words(self._words(codes), None if valid.all() else valid, self.kind)

    def hashes(self, codes: Words) -> npt.NDArray[np.uint64]:
        """See `Coder`."""
        return np.where(codes == 0, np.uint64(0), mix_words(self._words(codes)))

    def _words(self, codes: Words) -> Words:
        return codes + wrapped(self._least - 1)


class HashCoder:
    """Fixed-width values of any range, numbered in the order in which they come."""

    def __init__(self, kind: pa.DataType, bits: int) -> None:
        self.kind = kind
        self.bits = bits
        self._numbers = Table(1, ())

    def encode(self, array: pa.Array) -> Codes:
        """See `Coder`."""
        words, valid = to_words(array)
        present = words if valid is None else words[valid]
        numbers = self._numbers.add(np.ascontiguousarray(present).reshape(-1, 1)) + 1
        if len(self._numbers) >= 1 << self.bits:
            raise Outgrown
        if valid is None:
            return Codes(numbers)
        codes = np.zeros(len(words), dtype=np.int64)
        codes[valid] = numbers
        return Codes(codes)

    def decode(self, codes: Words) -> pa.Array:
        """See `Coder`."""
        valid = codes != 0
        return from_words(self._words()[codes], None if valid.all() else valid, self.kind)

    def hashes(self, codes: Words) -> npt.NDArray[np.uint64]:
        """See `Coder`."""
        by_code = mix_words(self._words())
        by_code[0] = 0
        return by_code[codes]

    def _words(self) -> Words:
        """The words by code; that of null is 0."""
        return np.concatenate([np.zeros(1, dtype=np.int64), self._numbers.rows[:, 0]])


class ValueCoder:
    """Values that are no words (text, bytes, long decimals), numbered in the order in which they come."""

    def __init__(self, kind: pa.DataType, bits: int) -> None:
        self.kind = kind
        self.bits = bits
        self._values = pa.array([], kind)

    def encode(self, array: pa.Array) -> Codes:
        """See `Coder`. The work per row is a look-up in an array; hashing is done once per distinct value."""
        coded = array if pa.types.is_dictionary(array.type) else pc.dictionary_encode(array)
        values = coded.dictionary.cast(self.kind)
        known = pc.index_in(values, value_set=self._values)
        fresh = values.filter(pc.is_null(known))
        if len(fresh):
            self._values = pa.concat_arrays([self._values, fresh])
            known = pc.index_in(values, value_set=self._values)
        if len(self._values) >= 1 << self.bits:
            raise Outgrown
        by_index = np.append(np.asarray(known, dtype=np.int64) + 1, 0)  # the last one is for nulls
        indices = np.asarray(pc.fill_null(coded.indices.cast(pa.int64()), len(values)))
        return Codes(by_index[indices])

    def decode(self, codes: Words) -> pa.Array:
        """See `Coder`."""
        nulls = codes == 0
        return self._values.take(pa.array(codes - 1, pa.int64(), mask=nulls if nulls.any() else None))

    def hashes(self, codes: Words) -> npt.NDArray[np.uint64]:
        """See `Coder`."""
        texts = self._values.cast(pa.string()) if pa.types.is_decimal(self.kind) else self._values
        crcs = [zlib.crc32(value) for value in texts.cast(pa.large_binary()).to_pylist()]
        return np.array([0, *crcs], dtype=np.uint64)[codes]


def make_coder(sample: pa.Array) -> Coder:
    """A coder for columns like this one, with some room for values that it does not have."""
    kind = sample.type.value_type if pa.types.is_dictionary(sample.type) else sample.type
    if not has_order(kind):
        raise UnknownType(f"cannot group by {kind}")
    if not fits_word(kind):
        coded = sample if pa.types.is_dictionary(sample.type) else pc.dictionary_encode(sample)
        return ValueCoder(kind, _bits_for(len(coded.dictionary)) + _SLACK_BITS)
    words, valid = to_words(sample)
    present = words if valid is None else words[valid]
    least, most = _extent(present, 0)
    if _bits_for(most - least + 1) <= _NARROW_BITS and not pa.types.is_floating(kind):
        # Values to come lie on both sides of those seen.
        room = (most - least + 1) // 2
        return RangeCoder(kind, max(least - room, -(2**63)), min(most + room, 2**63 - 1))
    return HashCoder(kind, _bits_for(len(present)) + _SLACK_BITS)


def mix_words(words: Words) -> npt.NDArray[np.uint64]:
    """Words as numbers whose every bit depends on every bit of the word."""
    mixed = words.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return mixed ^ (mixed >> np.uint64(32))


def _extent(words: Words, default: int) -> tuple[int, int]:
    """The least and the greatest word; the default for both where there is none."""
    return (int(words.min()), int(words.max())) if len(words) else (default, default)


def _bits_for(values: int) -> int:
    """Bits for codes of so many values and null."""
    return max(1, values.bit_length())


def wrapped(bits: int) -> int:
    """The int64 that has the same low 64 bits as a number."""
    low = bits & ((1 << WORD_BITS) - 1)
    return low - (1 << WORD_BITS) if low >> (WORD_BITS - 1) else low


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

    def pack(self, codes: Sequence[Codes], into: Words) -> None:
        """Write the key words of rows into the first columns of `into`."""
        into[:, : self.words] = 0
        for place, column in zip(self.places, codes, strict=True):
            or_column(into, place.word, place.shift, column.values, column.base)

    def moves(self, columns: Sequence[int], child: Layout) -> Words:
        """For `move`: where the codes of some columns are, and where a child's layout has them."""
        pairs = zip((self.places[column] for column in columns), child.places, strict=True)
        fields = [(a.word, a.shift, wrapped((1 << a.bits) - 1), b.word, b.shift) for a, b in pairs]
        return np.array(fields, dtype=np.int64).reshape(len(columns), 5)

    def fields(self, columns: Sequence[int]) -> Words:
        """For `matrix.unpack`: where the codes of some columns are."""
        places = [self.places[column] for column in columns]
        fields = [(place.word, place.shift, wrapped((1 << place.bits) - 1), 0) for place in places]
        return np.array(fields, dtype=np.int64).reshape(len(columns), 4)
