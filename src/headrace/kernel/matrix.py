"""Between columns and rows: the copies that NumPy would make one strided column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numba.extending
import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 8
"""Rows whose cache lines are still there when the next column is copied."""


@numba.njit(nogil=True, cache=True)
def or_column(rows, word, shift, values, base):  # type: ignore[no-untyped-def]
    """Put codes, which are values less a base, into the bits from `shift` on of one word of each row."""
    for i in range(len(values)):
        rows[i, word] |= (np.int64(values[i]) - base) << shift


@numba.njit(nogil=True, cache=True)
def or_taken(rows, word, shift, values, base, chosen):  # type: ignore[no-untyped-def]
    """As `or_column`, for some of the values."""
    for i in range(len(chosen)):
        rows[i, word] |= (np.int64(values[chosen[i]]) - base) << shift


def addresses(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.uint64]:
    """Where columns lie in memory, each contiguous: a compiled function can take any number of them."""
    return np.array([column.__array_interface__["data"][0] for column in columns], dtype=np.uint64)


def _as_pointer(_, address):  # type: ignore[no-untyped-def]
    """An address as a pointer, for compiled functions."""
    kind = numba.types.voidptr

    def generate(context, builder, _, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return kind(address), generate


_pointer: Any = numba.extending.intrinsic(_as_pointer)
_array: Any = numba.carray  # type: ignore[attr-defined]


@numba.njit(nogil=True, cache=True)
def put_columns(rows, first, addresses, size, low, chosen):  # type: ignore[no-untyped-def]
    """Write columns of rows, from `first` on, with values from `low` on of columns of a size.

    Where some are `chosen`, these are the numbers of their values.
    """
    for start in range(0, len(rows), _BLOCK):
        end = min(start + _BLOCK, len(rows))
        for c in range(len(addresses)):
            values = _array(_pointer(addresses[c]), size, dtype=np.int64)
            if len(chosen):
                for i in range(start, end):
                    rows[i, first + c] = values[np.uint64(chosen[low + i])]
            else:
                for i in range(start, end):
                    rows[i, first + c] = values[np.uint64(low + i)]


@numba.njit(nogil=True, cache=True)
def move(rows, chosen, fields, words, columns, batch):  # type: ignore[no-untyped-def]
    """Rows of a parent, those that are chosen, to rows of a child.

    Each of `fields` is (word and shift in the parent, mask, word and shift in the child); `columns` are the
    parent's columns that become the child's slots.
    """
    for i in range(len(batch)):
        row = np.uint64(chosen[i])
        for word in range(words):
            batch[i, word] = 0
        for f in range(len(fields)):
            code = (np.uint64(rows[row, fields[f, 0]]) >> np.uint64(fields[f, 1])) & np.uint64(fields[f, 2])
            batch[i, fields[f, 3]] |= np.int64(code << np.uint64(fields[f, 4]))
        for slot in range(len(columns)):
            batch[i, words + slot] = rows[row, columns[slot]]


@numba.njit(nogil=True, cache=True)
def unpack(rows, fields, columns, places, widths, nulls):  # type: ignore[no-untyped-def]
    """Codes and slots of rows as columns, each contiguous, at places in memory.

    Each of `fields` is (word, shift, mask, what to add to the code), its values take `widths` bytes each, and
    `nulls` counts the codes that are 0; `columns` are the slots that follow.
    """
    size = len(rows)
    for low in range(0, size, _BLOCK):
        high = min(low + _BLOCK, size)
        for f in range(len(fields)):
            word, shift, mask, base = fields[f, 0], np.uint64(fields[f, 1]), np.uint64(fields[f, 2]), fields[f, 3]
            place = _pointer(places[f])
            if widths[f] == 8:
                nulls[f] += _unpack(rows, low, high, word, shift, mask, base, _array(place, size, dtype=np.int64))
            elif widths[f] == 4:
                nulls[f] += _unpack(rows, low, high, word, shift, mask, base, _array(place, size, dtype=np.int32))
            elif widths[f] == 2:
                nulls[f] += _unpack(rows, low, high, word, shift, mask, base, _array(place, size, dtype=np.int16))
            else:
                nulls[f] += _unpack(rows, low, high, word, shift, mask, base, _array(place, size, dtype=np.int8))
        for c in range(len(columns)):
            column = columns[c]
            values = _array(_pointer(places[len(fields) + c]), size, dtype=np.int64)
            for i in range(low, high):
                values[i] = rows[i, column]


@numba.njit(nogil=True, cache=True, inline="always")
def _unpack(rows, low, high, word, shift, mask, base, values):  # type: ignore[no-untyped-def]
    nulls = 0
    for i in range(low, high):
        code = (np.uint64(rows[i, word]) >> shift) & mask
        values[i] = np.int64(code) + base
        nulls += code == 0
    return nulls
