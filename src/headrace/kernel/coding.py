"""Key columns to small codes.

A coder turns a column into codes: 0 for null, 1 and up for values. Codes are narrow, so that a key of many columns
fits into one or two 64-bit words (`layout.py`). Coders learn as they go. When a column outgrows the bits that it
was given, `encode` raises `Outgrown`, and a coder that is `widened` takes over.
"""

from __future__ import annotations

import zlib
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.ops import INT_MAX, INT_MIN, Words
from headrace.algebra.ranks import has_order
from headrace.algebra.words import Valid, fits_word, from_words, integers_of, to_integers, to_words
from headrace.kernel.narrow import Column, Narrow, array_of
from headrace.kernel.strided import Codes, wrapped
from headrace.kernel.table import Table, mix

_NARROW_BITS = 34
"""Integers whose range takes no more bits are coded by subtraction; wider ones through a dictionary."""
_SLACK_BITS = 1
_WIDENED = 3
"""Room of a coder that is widened, in times of all values: to code everything anew costs more than two bits."""
_PLENTY_BITS = 40
"""No memory holds a dictionary of so many bits."""


class Outgrown(Exception):
    """A column has values that its code has no bits for."""


class UnknownType(TypeError):
    """A column of a type that the kernel cannot group by."""


class Coder(Protocol):
    """Columns of one type to codes and back."""

    kind: pa.DataType

    @property
    def bits(self) -> int:
        """How many bits the codes take."""

    @property
    def distance(self) -> int | None:
        """What makes a value of a code that is not null's if it is added; None where it takes more to `decode`."""

    def encode(self, column: Column) -> Codes:
        """The codes of a column: 0 for null; raises `Outgrown`."""

    def decode(self, codes: Words) -> pa.Array:
        """The values of codes."""

    def hashes(self, codes: Words) -> npt.NDArray[np.uint64]:
        """Numbers that depend on the values only, so that all coders agree; for dealing rows out."""

    def widened(self, column: Column) -> Coder:
        """A coder for all that this one knows and this column."""

    def numbers_as(self, other: Coder) -> bool:
        """Whether codes of the other coder mean the same here."""

    @property
    def bytes(self) -> int:
        """Memory that the coder holds."""


class RangeCoder:
    """Fixed-width values by their distance from the least one."""

    def __init__(self, kind: pa.DataType, least: int, most: int) -> None:
        self.kind = kind
        self.bytes = 0
        self._least, self._most = least, most
        self.bits = _bits_for(most - least + 1)
        self._base = wrapped(least - 1)
        self.distance = self._base if integers_of(kind) is not None else None

    def encode(self, column: Column) -> Codes:
        """See `Coder`."""
        low, high = self._extent_of(column)
        if low < self._least or high - self._least + 1 >= 1 << self.bits:
            raise Outgrown
        if isinstance(column, Narrow):
            return Codes(column.values, wrapped(column.base + self._base))
        words, valid = to_integers(column)
        return Codes(words if valid is None else np.where(valid, words, self._base), self._base)

    def decode(self, codes: Words) -> pa.Array:
        """See `Coder`."""
        valid = codes != 0
        return from_words(self._words(codes), None if valid.all() else valid, self.kind)

    def hashes(self, codes: Words) -> npt.NDArray[np.uint64]:
        """See `Coder`."""
        return np.where(codes == 0, np.uint64(0), mix_words(self._words(codes)))

    def widened(self, column: Column) -> Coder:
        """See `Coder`."""
        least, most = self._extent_of(column)
        low, high = min(least, self._least), max(most, self._most)
        # Values that go on, such as times, go on in the same direction.
        room = _WIDENED * (high - low + 1)
        below, above = room * (least < self._least), room * (most > self._most)
        return _coder_between(self.kind, low, high, 1 << _PLENTY_BITS, below, above)

    def numbers_as(self, other: Coder) -> bool:
        """See `Coder`."""
        return other is self

    def _words(self, codes: Words) -> Words:
        return codes + self._base

    def _extent_of(self, column: Column) -> tuple[int, int]:
        """The least and the greatest value; for an array of nulls, one that is known."""
        if isinstance(column, Narrow):
            return column.least, column.most
        words, valid = to_integers(column)
        return _extent(words if valid is None else words[valid], self._least)


class HashCoder:
    """Fixed-width values of any range, numbered in the order in which they come."""

    distance = None

    def __init__(self, kind: pa.DataType, bits: int) -> None:
        self.kind = kind
        self.bits = bits
        self._numbers = Table(1, ())

    def encode(self, column: Column) -> Codes:
        """See `Coder`."""
        words, valid = _words_of(column)
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

    def widened(self, column: Column) -> Coder:
        """See `Coder`."""
        wider = HashCoder(self.kind, _bits_for(len(self._numbers) + len(column)) + _SLACK_BITS)
        wider._numbers = self._numbers
        return wider

    def numbers_as(self, other: Coder) -> bool:
        """See `Coder`."""
        return isinstance(other, HashCoder) and other._numbers is self._numbers

    @property
    def bytes(self) -> int:
        """See `Coder`."""
        return self._numbers.bytes

    def _words(self) -> Words:
        """The words by code; that of null is 0."""
        return np.concatenate([np.zeros(1, dtype=np.int64), self._numbers.rows[:, 0]])


class ValueCoder:
    """Values that are no words (text, bytes, long decimals), numbered in the order in which they come."""

    distance = None

    def __init__(self, kind: pa.DataType, bits: int) -> None:
        self.kind = kind
        self.bits = bits
        self._values = pa.array([], kind)
        self._lineage = object()

    def encode(self, column: Column) -> Codes:
        """See `Coder`. The work per row is a look-up in an array; hashing is done once per distinct value."""
        coded = pc.dictionary_encode(array_of(column))
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

    def widened(self, column: Column) -> Coder:
        """See `Coder`."""
        wider = ValueCoder(self.kind, self.bits + _SLACK_BITS)
        wider._values, wider._lineage = self._values, self._lineage
        return wider.widened(column) if len(self._values) >= 1 << wider.bits else wider

    def numbers_as(self, other: Coder) -> bool:
        """See `Coder`."""
        return isinstance(other, ValueCoder) and other._lineage is self._lineage

    @property
    def bytes(self) -> int:
        """See `Coder`."""
        return int(self._values.nbytes)


def make_coder(sample: Column) -> Coder:
    """A coder for columns like this one, with some room for values that it does not have."""
    if isinstance(sample, Narrow):
        return _coder_of_some(sample.kind, sample.least, sample.most, len(sample))
    kind = sample.type
    if not has_order(kind):
        raise UnknownType(f"cannot group by {kind}")
    if not fits_word(kind):
        return ValueCoder(kind, _bits_for(len(pc.unique(sample))) + _SLACK_BITS)
    words, valid = to_words(sample)
    present = words if valid is None else words[valid]
    if pa.types.is_floating(kind):
        return HashCoder(kind, _bits_for(len(present)) + _SLACK_BITS)
    return _coder_of_some(kind, *_extent(present, 0), len(present))


def _coder_of_some(kind: pa.DataType, least: int, most: int, count: int) -> Coder:
    """A coder for values from the least to the most, and some more: those to come lie on both sides."""
    room = (most - least + 1) // 2
    return _coder_between(kind, least, most, count, room, room)


def _coder_between(kind: pa.DataType, least: int, most: int, count: int, below: int, above: int) -> Coder:
    """A coder for values from the least to the most, or so many; where it is by range, with room on both sides."""
    if _bits_for(most - least + 1) > _NARROW_BITS:
        return HashCoder(kind, _bits_for(count) + _SLACK_BITS)
    return RangeCoder(kind, max(least - below, INT_MIN), min(most + above, INT_MAX))


def recode(codes: Words, old: Coder, new: Coder) -> Words:
    """Codes of one coder as another's; raises `Outgrown`."""
    return codes if new.numbers_as(old) else new.encode(old.decode(codes)).plain()


def mix_words(words: Words) -> npt.NDArray[np.uint64]:
    """Words as numbers whose every bit depends on every bit of the word."""
    mixed: npt.NDArray[np.uint64] = mix.py_func(np.uint64(0), words.view(np.uint64))  # type: ignore[no-untyped-call]
    return mixed


def _words_of(column: Column) -> tuple[Words, Valid | None]:
    return (column.words(), None) if isinstance(column, Narrow) else to_words(column)


def _extent(words: Words, default: int) -> tuple[int, int]:
    """The least and the greatest word; the default for both where there is none."""
    return (int(words.min()), int(words.max())) if len(words) else (default, default)


def _bits_for(values: int) -> int:
    """Bits for codes of so many values and null."""
    return max(1, values.bit_length())
