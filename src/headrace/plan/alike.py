"""Rows of a sample that have the same hash, found by hashing once more: where each hash has its place."""

from __future__ import annotations

import numba
import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]


@numba.njit(nogil=True, cache=True, inline="always")
def no_rows(number):  # type: ignore[no-untyped-def]
    """Places for so many rows, each of which will hold a row from 1 on."""
    capacity = 64
    while capacity < 2 * number:
        capacity *= 2
    return np.zeros(capacity, dtype=np.int32)


@numba.njit(nogil=True, cache=True, inline="always")
def place_of(row, hashes, rows):  # type: ignore[no-untyped-def]
    """The place among `rows` of the hash that a row has: a row with the same one is there, or none yet."""
    mask = np.uint64(len(rows) - 1)
    place = hashes[row] & mask
    while rows[place] != 0 and hashes[rows[place] - 1] != hashes[row]:
        place = (place + np.uint64(1)) & mask
    return place


@numba.njit(nogil=True, cache=True)
def first_alike(hashes):  # type: ignore[no-untyped-def]
    """For each row the first that has the same hash, perhaps itself."""
    rows = no_rows(len(hashes))
    first = np.empty(len(hashes), dtype=np.int32)
    for row in range(len(hashes)):
        place = place_of(row, hashes, rows)
        if rows[place] == 0:
            rows[place] = row + 1
        first[row] = rows[place] - 1
    return first
