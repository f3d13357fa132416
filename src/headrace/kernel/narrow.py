"""Columns in fewer bytes: what is kept and what travels is written, and read again, at the speed of memory.

Integers and times that lie near each other are kept as their distances to the least of them, in one, two or four
bytes; where all are equal, as nothing but that one.
"""

from __future__ import annotations

from collections.abc import Mapping

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.words import in_memory, integers_of

_LEAST, _KIND, _ZONE = b"least", b"kind", b"zone"
"""What a field says of a column that is kept narrow: the least value, and its type before."""


def narrowed(name: str, column: pa.Array) -> tuple[pa.Field, pa.Array]:
    """A column as it is kept, and a field that says how."""
    kind, held = column.type, integers_of(column.type)
    if held is None or column.null_count == len(column):
        return pa.field(name, kind), column
    words = in_memory(column, held)
    low, high = _extent(column, words)
    notes = {_LEAST: str(low), **_described(kind)}
    if low == high and column.null_count == 0:
        return pa.field(name, pa.null(), metadata=notes), pa.nulls(len(column))
    for narrow in (np.uint8, np.uint16, np.uint32):
        if high - low <= np.iinfo(narrow).max and np.dtype(narrow).itemsize < words.itemsize:
            distances = np.empty(len(words), dtype=narrow)
            _shorten(words, low, distances)
            stored = pa.array(distances, mask=_nulls(column))
            return pa.field(name, stored.type, metadata=notes), stored
    return pa.field(name, kind), column


def widened(field: pa.Field, column: pa.Array) -> pa.Array:
    """A column as it was."""
    if field.metadata is None:
        return column
    low, kind = int(field.metadata[_LEAST]), _kind(field.metadata)
    words = np.empty(len(column), dtype=integers_of(kind))
    if pa.types.is_null(field.type):
        words.fill(low)
    else:
        _lengthen(in_memory(column, column.type.to_pandas_dtype()), low, words)
    return pa.array(words, mask=_nulls(column)).view(kind)


def _described(kind: pa.DataType) -> dict[bytes, str]:
    if not pa.types.is_timestamp(kind):
        return {_KIND: str(kind)}
    return {_KIND: str(pa.timestamp(kind.unit)), **({_ZONE: kind.tz} if kind.tz else {})}


def _kind(notes: Mapping[bytes, bytes]) -> pa.DataType:
    kind = pa.type_for_alias(notes[_KIND].decode())
    return pa.timestamp(kind.unit, notes[_ZONE].decode()) if _ZONE in notes else kind


def _extent(column: pa.Array, words: npt.NDArray[np.integer]) -> tuple[int, int]:
    if column.null_count == 0:
        return int(words.min()), int(words.max())
    extent = pc.min_max(column.view(pa.from_numpy_dtype(words.dtype)))
    return extent["min"].as_py(), extent["max"].as_py()


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    some = column.null_count and not pa.types.is_null(column.type)
    return np.asarray(column.is_null()) if some else None


@numba.njit(nogil=True, cache=True)
def _shorten(words, low, distances):  # type: ignore[no-untyped-def]
    for i in range(len(words)):
        distances[i] = words[i] - low


@numba.njit(nogil=True, cache=True)
def _lengthen(distances, low, words):  # type: ignore[no-untyped-def]
    for i in range(len(distances)):
        words[i] = distances[i] + low
