"""Columns of any type that has an order, as integers that order as Spark orders the values.

Fixed-width types are their words. Text and bytes have no fixed width, and decimals of more than 18 digits need two
words: their integers are ranks, which mean something only within the column that they were made from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.ops import INT_MAX, Words
from headrace.algebra.words import Valid, fits_word, is_text, to_words, valid_of, wide_words


def has_order(kind: pa.DataType) -> bool:
    """Whether values of a type can be ranked."""
    return fits_word(kind) or pa.types.is_decimal128(kind) or _is_bytes(kind)


def rank(array: pa.Array) -> Words:
    """Integers in the order of the values; for nulls, one and the same.

    >>> rank(pa.array(["b", "é", "", "b"])).tolist()
    [1, 2, 0, 1]
    """
    if fits_word(array.type):
        return to_words(array)[0]
    codes, values, _ = _encode(array)
    if pa.types.is_decimal128(array.type):
        low, high = wide_words(values)
        order = np.lexsort((low.view(np.uint64), high))
    else:
        # Spark compares text by its bytes, which are in the order of the characters.
        order = np.asarray(pc.array_sort_indices(values))
    ranks = np.zeros(max(len(order), 1), dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return ranks[codes]


def identify(array: pa.Array) -> tuple[Words, Valid | None]:
    """Integers that tell values apart, cheaper than ranks, and which values are not null; None says all."""
    if fits_word(array.type):
        return to_words(array)
    codes, _, valid = _encode(array)
    return codes, valid


def sort_rows(columns: Sequence[Words]) -> Words:
    """The order of rows by the first column, then by the second, and so on; rows that are equal in any order."""
    key = _pack(columns)
    if key is None:
        key = _pack([_close_gaps(column) for column in columns])
    return np.lexsort(columns[::-1]) if key is None else np.argsort(key)


def first_rows(*columns: npt.NDArray[np.integer[Any]]) -> Words:
    """Where a row differs from the one before it: where each group begins in rows that are sorted by group."""
    if len(columns[0]) == 0:
        return np.empty(0, dtype=np.int64)
    differs = np.ones(len(columns[0]), dtype=np.bool_)
    differs[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return np.flatnonzero(differs)


def _pack(columns: Sequence[Words]) -> Words | None:
    """One integer for each row, which orders as all columns do; None where 64 bits do not hold it."""
    if len(columns[0]) == 0:
        return columns[0]
    lows = [int(column.min()) for column in columns]
    spans = [int(column.max()) - low + 1 for column, low in zip(columns, lows, strict=True)]
    size = 1
    for span in spans:
        size *= span
    if size > INT_MAX:
        return None
    key = columns[0] - lows[0]
    for column, low, span in zip(columns[1:], lows[1:], spans[1:], strict=True):
        key = key * span + (column - low)
    return key


def _close_gaps(column: Words) -> Words:
    """Integers in the same order, not far apart."""
    if int(column.max()) - int(column.min()) < len(column):
        return column
    order = np.argsort(column)
    ordered = column[order]
    closed = np.zeros(len(column), dtype=np.int64)
    closed[order[1:]] = np.cumsum(ordered[1:] != ordered[:-1])
    return closed


def _encode(array: pa.Array) -> tuple[Words, pa.Array, Valid | None]:
    """A code for each row, the values of the codes, and which rows have one."""
    valid = valid_of(array)
    kind = array.type
    if is_text(kind):
        array = array.cast(pa.binary() if pa.types.is_string(kind) else pa.large_binary())
    encoded = array.dictionary_encode()
    codes = np.asarray(pc.fill_null(encoded.indices, 0)).astype(np.int64)
    return codes, encoded.dictionary, valid


def _is_bytes(kind: pa.DataType) -> bool:
    return bool(is_text(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind))
