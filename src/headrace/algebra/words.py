"""Columns as 64-bit words: every fixed-width type as an int64 that orders as Spark orders the values.

So one comparison of integers serves keys, minima and maxima of all these types. Floating numbers become their
bits with the negative ones reversed; -0.0 becomes 0.0 and all NaN become one that is greater than infinity, as in
Spark's GROUP BY and ORDER BY.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.ops import Words

Valid = npt.NDArray[np.bool_]

_SIGN_KEPT = np.int64(0x7FFF_FFFF_FFFF_FFFF)
MOST_DIGITS = 18
"""Decimals of so many digits fit into 64 bits."""
MOST_DECIMAL_DIGITS = 38
"""Spark has no decimals of more digits; these fit into 128 bits."""


def fits_word(kind: pa.DataType) -> bool:
    """Whether values of a type can be one 64-bit word."""
    if pa.types.is_decimal128(kind):
        return bool(kind.precision <= MOST_DIGITS)
    return bool(
        pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_float32(kind)
        or pa.types.is_float64(kind)
        or pa.types.is_date32(kind)
        or is_time(kind)
    )


def is_time(kind: pa.DataType) -> bool:
    """Whether values are times as Spark has them, in microseconds."""
    return bool(pa.types.is_timestamp(kind) and kind.unit == "us")


def is_text(kind: pa.DataType) -> bool:
    """Whether values are text, however long it may get in memory."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def to_integers(array: pa.Array) -> tuple[npt.NDArray[np.signedinteger[Any]], Valid | None]:
    """As `to_words`, but integers that lie narrower in memory stay so."""
    held = integers_of(array.type)
    if array.null_count or held is None:
        return to_words(array)
    return in_memory(array, held), None


def integers_of(kind: pa.DataType) -> np.dtype[Any] | None:
    """The signed integers that values of a type are in memory; None where they are something else."""
    if pa.types.is_signed_integer(kind) or pa.types.is_date32(kind) or pa.types.is_timestamp(kind):
        return np.dtype(f"i{kind.bit_width // 8}")
    return None


def truth(condition: pa.Array) -> Valid:
    """Where a condition is true: neither false nor null."""
    if not pa.types.is_boolean(condition.type):  # all of it is null
        return np.zeros(len(condition), dtype=np.bool_)
    true = _bits(condition, 1)
    return true & _bits(condition, 0) if condition.null_count else true


def _bits(array: pa.Array, buffer: int) -> Valid:
    """One of the bitmaps of an array, a value each: faster than by way of Arrow."""
    if len(array) == 0:
        return np.empty(0, dtype=np.bool_)
    bits = np.frombuffer(array.buffers()[buffer], np.uint8)
    return np.unpackbits(bits, count=array.offset + len(array), bitorder="little")[array.offset :].view(np.bool_)


def valid_of(array: pa.Array) -> Valid | None:
    """Which values are not null; None says all."""
    return np.asarray(pc.is_valid(array), dtype=np.bool_) if array.null_count else None


def to_words(array: pa.Array) -> tuple[Words, Valid | None]:
    """The words of a column (0 where it is null) and which of its values are not null; None says all."""
    valid = valid_of(array)
    kind = array.type
    if pa.types.is_decimal128(kind):
        words, _ = wide_words(array)  # the low half is all of it for up to 18 digits
    elif pa.types.is_floating(kind):
        words = order_floats(_numpy(array, pa.float64()))
    elif pa.types.is_boolean(kind):
        words = _numpy(array.cast(pa.int8()), pa.int64())
    elif pa.types.is_date32(kind):
        words = _numpy(array.cast(pa.int32()), pa.int64())
    elif pa.types.is_timestamp(kind):
        words = _numpy(array.view(pa.int64()), pa.int64())
    else:
        words = _numpy(array, pa.int64())
    if valid is not None:
        words = np.where(valid, words, 0)
    return words, valid


def from_words(words: Words, valid: Valid | None, kind: pa.DataType) -> pa.Array:
    """The column of a type that `to_words` gave the words of."""
    mask = None if valid is None else ~valid
    if pa.types.is_decimal128(kind):
        return decimals(words, words >> 63, valid, kind)
    if pa.types.is_floating(kind):
        return pa.array(restore_floats(words), pa.float64(), mask=mask).cast(kind)
    if pa.types.is_boolean(kind):
        return pa.array(words != 0, pa.bool_(), mask=mask)
    if pa.types.is_date32(kind):
        return pa.array(words.astype(np.int32), pa.int32(), mask=mask).view(kind)
    if pa.types.is_timestamp(kind):
        return pa.array(words, pa.int64(), mask=mask).view(kind)
    return pa.array(words.astype(kind.to_pandas_dtype(), copy=False), kind, mask=mask)


def order_floats(values: npt.NDArray[np.float64]) -> Words:
    """Integers in the order of floating numbers.

    >>> order_floats(np.array([-1.5, -0.0, 0.0, np.inf, np.nan])).argsort(kind="stable").tolist()
    [0, 1, 2, 3, 4]
    """
    clean = np.where(np.isnan(values), np.nan, values) + 0.0
    bits = clean.view(np.int64)
    return np.where(bits < 0, bits ^ _SIGN_KEPT, bits)


def restore_floats(words: Words) -> npt.NDArray[np.float64]:
    """The floating numbers that `order_floats` gave the integers of."""
    return np.where(words < 0, words ^ _SIGN_KEPT, words).view(np.float64)


def _numpy(array: pa.Array, kind: pa.DataType) -> npt.NDArray[Any]:
    """The values as NumPy sees them; those of nulls are arbitrary."""
    return in_memory(array.cast(kind), np.dtype(np.int64 if pa.types.is_integer(kind) else np.float64))


def in_memory(array: pa.Array, held: npt.DTypeLike) -> npt.NDArray[Any]:
    """The numbers that values are in memory; where one is null, anything."""
    dtype = np.dtype(held)
    if len(array) == 0:
        return np.empty(0, dtype=dtype)
    return np.frombuffer(array.buffers()[1], dtype, count=len(array), offset=array.offset * dtype.itemsize)


def wide_words(array: pa.Array) -> tuple[Words, Words]:
    """Low (unsigned) and high words of decimals' unscaled values; those of nulls are arbitrary."""
    if len(array) == 0:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    halves = np.frombuffer(array.buffers()[1], dtype=np.int64, count=2 * len(array), offset=array.offset * 16)
    return halves[::2], halves[1::2]


def decimals(low: Words, high: Words, valid: Valid | None, kind: pa.DataType) -> pa.Array:
    """Decimals of 128-bit unscaled values."""
    halves = np.empty(2 * len(low), dtype=np.int64)
    halves[::2] = low
    halves[1::2] = high
    nulls = None if valid is None else pa.array(valid).buffers()[1]
    return pa.Array.from_buffers(kind, len(low), [nulls, pa.py_buffer(halves)])


def mix(words: npt.NDArray[np.uint64], seed: int) -> npt.NDArray[np.uint64]:
    """A hash of each word, good for sums: a step of splitmix64, which gives different words different hashes."""
    mixed = words + np.uint64(seed & 0xFFFF_FFFF_FFFF_FFFF)
    mixed ^= mixed >> np.uint64(30)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)
    mixed ^= mixed >> np.uint64(27)
    mixed *= np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    return mixed
