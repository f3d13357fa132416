"""Fragments: rows that satisfy the same of some conditions, as one key.

The key's value is the signature, a bit for each condition: a word of up to 63 of them, and bytes beyond. Only
those that occur are ever there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.words import Valid

_WORD_BITS = 63
"""Bits of a word that leave it positive."""

Truths = npt.NDArray[np.bool_]
"""A row for each value, a column for each condition."""


def sign(truths: Truths) -> pa.Array:
    """The signatures of rows for which some conditions are true and others are not."""
    count = truths.shape[1]
    if count <= _WORD_BITS:
        signatures = np.zeros(len(truths), dtype=np.int64)
        _sign(np.ascontiguousarray(truths.T), signatures)
        return pa.array(signatures)
    packed = np.packbits(truths, axis=1)
    fixed = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(packed.shape[1]), len(packed), [None, pa.py_buffer(packed.tobytes())]
    )
    return fixed.cast(pa.binary())


def read_signatures(signatures: pa.Array, count: int) -> Truths:
    """Which of so many conditions are true, by the signatures."""
    if count <= _WORD_BITS:
        bits = np.asarray(signatures)[:, None] >> np.arange(count, dtype=np.int64)
        return (bits & 1).astype(np.bool_)
    size = -(-count // 8)
    return np.unpackbits(_bytes_of(signatures, size), axis=1, count=count).view(np.bool_)


def some_of(signatures: pa.Array, count: int, places: Iterable[int]) -> Valid:
    """In which signatures of so many conditions any of those at some places is true."""
    wanted = np.zeros((1, count), dtype=np.bool_)
    wanted[0, [*places]] = True
    if count <= _WORD_BITS:
        return np.asarray((np.asarray(signatures) & np.asarray(sign(wanted))[0]) != 0)
    (mask,) = np.packbits(wanted, axis=1)
    rows = _bytes_of(signatures, len(mask))
    each = [(rows[:, place] & mask[place]) != 0 for place in np.flatnonzero(mask)]
    return np.asarray(np.logical_or.reduce(each))


def _bytes_of(signatures: pa.Array, size: int) -> npt.NDArray[np.uint8]:
    """Signatures of so many bytes, a row each."""
    if len(signatures) == 0:
        return np.empty((0, size), dtype=np.uint8)
    first = signatures.offset * size
    return np.frombuffer(signatures.buffers()[2], np.uint8, len(signatures) * size, first).reshape(-1, size)


@numba.njit(nogil=True, cache=True)
def _sign(truths, signatures):  # type: ignore[no-untyped-def]
    for condition in range(len(truths)):
        for i in range(len(signatures)):
            signatures[i] |= np.int64(truths[condition, i]) << condition


def columns_of(truths: Sequence[Valid]) -> Truths:
    """Conditions side by side."""
    return np.array(truths, dtype=np.bool_).T
