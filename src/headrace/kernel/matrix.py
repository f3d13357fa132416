"""From rows to columns: the copies that NumPy would make one strided column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numba.extending
import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 8
"""Rows whose cache lines are still there when the next column is copied."""
_FAR = 1 << 40
"""More values than any column has: compiled functions look at no bounds."""


def addresses(columns: Sequence[npt.NDArray[Any]]) -> npt.NDArray[np.int64]:
    """Where columns lie in memory, each contiguous: a compiled function can take any number of them."""
    return np.array([column.__array_interface__["data"][0] for column in columns], dtype=np.int64)


def _as_pointer(_, address):  # type: ignore[no-untyped-def]
    """An address as a pointer, for compiled functions."""
    kind = numba.types.voidptr

    def generate(context, builder, _, arguments):  # type: ignore[no-untyped-def]
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return kind(address), generate


_pointer: Any = numba.extending.intrinsic(_as_pointer)
_array: Any = numba.carray  # type: ignore[attr-defined]


@numba.njit(nogil=True, cache=True, inline="always")
def array_at(address, dtype):  # type: ignore[no-untyped-def]
    """The values of a column that begins at an address."""
    return _array(_pointer(address), _FAR, dtype)


@numba.njit(nogil=True, cache=True)
def find_extents(rows, fields, extents):  # type: ignore[no-untyped-def]
    """Write the least and the greatest number of each field: codes are (word, shift, mask), slots whole words."""
    for low in range(0, len(rows), _BLOCK):
        high = min(low + _BLOCK, len(rows))
        for f in range(len(fields)):
            word, shift, mask = fields[f, 0], np.uint64(fields[f, 1]), np.uint64(fields[f, 2])
            if low == 0:
                extents[f, :] = np.int64((np.uint64(rows[0, word]) >> shift) & mask)
            least, most = extents[f, 0], extents[f, 1]
            for i in range(low, high):
                number = np.int64((np.uint64(rows[i, word]) >> shift) & mask)
                least, most = min(least, number), max(most, number)
            extents[f, 0], extents[f, 1] = least, most


@numba.njit(nogil=True, cache=True)
def unpack(rows, fields, more, places, widths, order):  # type: ignore[no-untyped-def]
    """Fields of rows as columns, each contiguous at a place in memory, with something added to every number.

    Values take `widths` bytes each; of none, nothing is written. Rows come in an `order`, or as they are where it
    is empty.
    """
    numbers = np.empty(_BLOCK, dtype=np.uint64)
    for low in range(0, len(rows), _BLOCK):
        size = min(_BLOCK, len(rows) - low)
        for i in range(size):
            numbers[i] = order[low + i] if len(order) else low + i
        for f in range(len(fields)):
            word, shift, mask = fields[f, 0], np.uint64(fields[f, 1]), np.uint64(fields[f, 2])
            place = places[f] + low * widths[f]
            if widths[f] == 8:
                _unpack(rows, numbers, size, word, shift, mask, more[f], array_at(place, np.int64))
            elif widths[f] == 4:
                _unpack(rows, numbers, size, word, shift, mask, more[f], array_at(place, np.int32))
            elif widths[f] == 2:
                _unpack(rows, numbers, size, word, shift, mask, more[f], array_at(place, np.int16))
            elif widths[f] == 1:
                _unpack(rows, numbers, size, word, shift, mask, more[f], array_at(place, np.int8))


@numba.njit(nogil=True, cache=True, inline="always")
def _unpack(rows, numbers, size, word, shift, mask, more, values):  # type: ignore[no-untyped-def]
    for i in range(size):
        values[i] = np.int64((np.uint64(rows[numbers[i], word]) >> shift) & mask) + more
