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
            place = places[f]
            if widths[f] == 8:
                nulls[f] += _unpack(rows, low, high, word, shift, mask, base, array_at(place, np.int64))
            elif widths[f] == 4:
                nulls[f] += _unpack(rows, low, high, word, shift, mask, base, array_at(place, np.int32))
            elif widths[f] == 2:
                nulls[f] += _unpack(rows, low, high, word, shift, mask, base, array_at(place, np.int16))
            else:
                nulls[f] += _unpack(rows, low, high, word, shift, mask, base, array_at(place, np.int8))
        for c in range(len(columns)):
            column = columns[c]
            values = array_at(places[len(fields) + c], np.int64)
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
