"""From rows to columns: the copies that NumPy would make one strided column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numba.extending
import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 8
"""Rows whose words are still in the nearest cache when the next column is written."""
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
def load(place, width, step, picked, chosen, low, size, numbers):  # type: ignore[no-untyped-def]
    """Numbers of a column whose values have so many bytes and lie so many steps apart: those of rows from one on,
    or of those that are `chosen` where it is `picked` from."""
    place += 0 if picked else width * step * low
    if width == 8:
        _read(array_at(place, np.int64), step, picked, chosen, low, size, numbers)
    elif width == 4:
        _read(array_at(place, np.int32), step, picked, chosen, low, size, numbers)
    elif width == 2:
        _read(array_at(place, np.int16), step, picked, chosen, low, size, numbers)
    else:
        _read(array_at(place, np.int8), step, picked, chosen, low, size, numbers)


@numba.njit(nogil=True, cache=True, inline="always")
def _read(values, step, picked, chosen, low, size, numbers):  # type: ignore[no-untyped-def]
    if picked:
        for i in range(size):
            numbers[i] = values[np.uint64(chosen[low + i] * step)]
    elif step == 1:
        for i in range(size):
            numbers[i] = values[i]
    else:
        for i in range(size):
            numbers[i] = values[np.uint64(i * step)]


@numba.njit(nogil=True, cache=True)
def unpack(rows, order, words, fields, places, told):  # type: ignore[no-untyped-def]
    """Fields of rows as columns, each at a place in memory that has room for values as wide as may be.

    A field is a number of `words` (the columns of the rows that are read), a shift, a mask, what is added
    to every number, and how many bytes a value may take. A column takes as few as will do: it is written as it was
    begun, and written anew, wider, when a number comes that does not fit. Of each, `told` are the least number and
    the greatest, the bytes of a value, and the base that values have more than the numbers.

    The rows are those of some numbers, in this `order`, or all as they are where it is empty.
    """
    count = len(order) if len(order) else len(rows)
    block = np.empty((len(words), _BLOCK), dtype=np.int64)
    numbers, moving = np.empty(_BLOCK, dtype=np.int64), np.empty(_BLOCK, dtype=np.int64)
    for low in range(0, count, _BLOCK):
        size = min(_BLOCK, count - low)
        for i in range(size):
            row = np.uint64(order[low + i] if len(order) else low + i)
            for word in range(len(words)):
                block[word, i] = rows[row, words[word]]
        for f in range(len(fields)):
            word, shift, mask, more, widest = fields[f]
            least, most = _part(block[word], size, np.uint64(shift), np.uint64(mask), more, numbers)
            width, base = told[f, 2], told[f, 3]
            if low != 0:
                least, most = min(least, told[f, 0]), max(most, told[f, 1])
            if width == 0 or not (_fits(least, width, base) and _fits(most, width, base)):
                upwards = width == 0 or _fits(least, width, base)
                wider, moved = narrowest(least, most, upwards, widest)
                for behind in range(low - _BLOCK, -1, -_BLOCK):
                    load(places[f], width, 1, False, order, behind, _BLOCK, moving)
                    _store(places[f], wider, behind, _BLOCK, moved - base, moving)
                width, base = wider, moved
            told[f, 0], told[f, 1], told[f, 2], told[f, 3] = least, most, width, base
            _store(places[f], width, low, size, base, numbers)


@numba.njit(nogil=True, cache=True)
def _part(words, size, shift, mask, more, numbers):  # type: ignore[no-untyped-def]
    """Write the numbers that some bits of words are; gives the least and the greatest."""
    least, most = np.int64(0x7FFFFFFFFFFFFFFF), np.int64(-0x8000000000000000)
    for i in range(size):
        number = np.int64((np.uint64(words[i]) >> shift) & mask) + more
        numbers[i] = number
        least, most = min(least, number), max(most, number)
    return least, most


@numba.njit(nogil=True, cache=True, inline="always")
def _fits(number, width, base):  # type: ignore[no-untyped-def]
    bits = np.uint64(8 * width)
    half = np.uint64(1) << (bits - np.uint64(1))
    return width == 8 or np.uint64(number + base) + half < np.uint64(1) << bits


@numba.njit(nogil=True, cache=True)
def narrowest(least, most, upwards, widest):  # type: ignore[no-untyped-def]
    """The fewest bytes for values between these two, of a column that may take so many at most, and their base.

    What is left is for greater ones, or for less. Where no bytes are saved, values are as they are.
    """
    span, width = np.uint64(most - least), np.int64(1)
    while width < widest and span >> np.uint64(8 * width) != 0:
        width *= 2
    if width >= widest:
        return widest, np.int64(0)
    half = np.int64(1) << (8 * width - 1)
    return width, -least - half if upwards else half - 1 - most


@numba.njit(nogil=True, cache=True)
def _store(place, width, low, size, base, numbers):  # type: ignore[no-untyped-def]
    """Numbers, and a base more, into a column whose values have so many bytes, from a row on."""
    if width == 8:
        _write(array_at(place + 8 * low, np.int64), size, base, numbers)
    elif width == 4:
        _write(array_at(place + 4 * low, np.int32), size, base, numbers)
    elif width == 2:
        _write(array_at(place + 2 * low, np.int16), size, base, numbers)
    else:
        _write(array_at(place + low, np.int8), size, base, numbers)


@numba.njit(nogil=True, cache=True, inline="always")
def _write(values, size, base, numbers):  # type: ignore[no-untyped-def]
    for i in range(size):
        values[i] = numbers[i] + base
