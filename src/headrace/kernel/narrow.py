"""Columns in few bytes: what is kept and what travels is written, and read again, at the speed of memory.

Integers and times that lie near each other are kept as their distances from a number between them, in one, two or
four bytes; where all are equal, as nothing but that one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.ops import Words
from headrace.algebra.words import in_memory, integers_of
from headrace.kernel.matrix import narrowest
from headrace.kernel.strided import Codes, Slot, wrapped

_EXTENT, _KIND, _ZONE = b"extent", b"kind", b"zone"
"""What a field says of a column that is kept narrow: base, least and greatest value; and its type before."""


@dataclass(frozen=True, slots=True, eq=False)
class Narrow:
    """A column of integers, dates or times without nulls: values less a base (modulo 2**64).

    None is below the `least` or above the `most`. Where these are equal, the values take no memory; what is only
    `spanning` others has none.
    """

    kind: pa.DataType
    values: npt.NDArray[np.signedinteger[Any]]
    base: int
    least: int
    most: int

    @staticmethod
    def room(kind: pa.DataType, rows: int, least: int, most: int) -> Narrow:
        """A column whose values are yet to be written."""
        held = integers_of(kind)
        assert held is not None, f"{kind} is no integer in memory"
        if least >= most:
            return Narrow(kind, np.broadcast_to(np.zeros(1, np.int8), rows), wrapped(-least), least, least)
        width, base = narrowest(least, most, True, np.dtype(held).itemsize)
        return Narrow(kind, np.empty(rows, f"i{width}"), base, least, most)

    @staticmethod
    def written(kind: pa.DataType, rows: int, room: npt.NDArray[np.int8], told: Sequence[int]) -> Narrow:
        """A column that `matrix.unpack` has written to where there was room for it."""
        least, most, width, base = told
        if least == most:
            return Narrow.room(kind, rows, least, most)
        room.resize(rows * width, refcheck=False)  # the rest is for others
        return Narrow(kind, room.view(f"i{width}"), base, least, most)

    @staticmethod
    def of(array: pa.Array) -> Narrow | None:
        """A column that Arrow has; None where it is no such."""
        held = integers_of(array.type)
        if held is None or array.null_count or len(array) == 0:
            return None
        return _narrowed(array.type, in_memory(array, held))

    @staticmethod
    def spanning(columns: Sequence[Narrow]) -> Narrow:
        """A column of nothing but the extent of several."""
        least, most = min(column.least for column in columns), max(column.most for column in columns)
        rows = sum(map(len, columns))
        return Narrow(columns[0].kind, np.broadcast_to(np.zeros(1, np.int8), rows), 0, least, most)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def nbytes(self) -> int:
        """The memory that the values take."""
        return 0 if self.least == self.most else self.values.nbytes

    @property
    def codes(self) -> Codes:
        """The column for who packs it."""
        return Codes(self.values, self.base)

    def words(self, above: int = 0) -> Words:
        """The integers that the values are, less one that all are `above`."""
        base = wrapped(self.base + above)
        if base == 0 and self.values.dtype == np.int64:
            return self.values
        return Codes(self.values, base).plain()

    def array(self) -> pa.Array:
        """The column as Arrow has it."""
        held = integers_of(self.kind)
        values = self.values.astype(held, copy=False)
        if self.base:
            values = values - np.array(self.base).astype(held)
        return pa.array(values).view(self.kind)

    def slice(self, low: int, size: int) -> Narrow:
        """Some of the rows, as Arrow names them."""
        return replace(self, values=self.values[low : low + size])

    def viewed(self, kind: pa.DataType) -> Narrow:
        """The same integers as another type, which has room for them."""
        held = integers_of(kind)
        assert held is not None, f"{kind} is no integer in memory"
        values = self.values if self.values.dtype.itemsize <= held.itemsize else self.values.astype(held)
        return replace(self, kind=kind, values=values)


Column: TypeAlias = Narrow | pa.Array
"""A column of rows on their way."""


def array_of(column: Column) -> pa.Array:
    """A column as Arrow has it."""
    return column.array() if isinstance(column, Narrow) else column


def slot_of(column: Column) -> Slot:
    """A column as the slot of a state."""
    return column.codes if isinstance(column, Narrow) else np.asarray(column)


def joined(columns: Iterable[Column]) -> pa.Array:
    """Columns one after the other."""
    return pa.concat_arrays(list(map(array_of, columns)))


def stored(name: str, column: Column) -> tuple[pa.Field, pa.Array]:
    """A column as it is kept, and a field that says how."""
    narrow = column if isinstance(column, Narrow) else Narrow.of(column)
    if narrow is not None:
        equal = narrow.least == narrow.most
        return _noted(name, narrow, pa.nulls(len(narrow)) if equal else pa.array(narrow.values))
    array = array_of(column)
    held = integers_of(array.type)
    if held is None or array.null_count == len(array):
        return pa.field(name, array.type), array
    extent, nulls = pc.min_max(array.view(pa.from_numpy_dtype(held))), np.asarray(array.is_null())
    narrow = _narrowed(array.type, np.where(nulls, held.type(extent["min"].as_py()), in_memory(array, held)))
    return _noted(name, narrow, pa.array(narrow.values, mask=nulls))


def restored(field: pa.Field, kept: pa.Array) -> Column:
    """A column as it was."""
    notes = field.metadata
    if notes is None:
        return kept
    kind = _kind(notes[_KIND], notes.get(_ZONE))
    base, least, most = map(int, notes[_EXTENT].split())
    if pa.types.is_null(kept.type):
        return Narrow(kind, np.broadcast_to(np.zeros(1, np.int8), len(kept)), base, least, most)
    narrow = Narrow(kind, in_memory(kept, kept.type.to_pandas_dtype()), base, least, most)
    if kept.null_count == 0:
        return narrow
    held = pa.from_numpy_dtype(integers_of(kind))
    return pa.array(np.asarray(narrow.array().view(held)), mask=np.asarray(kept.is_null())).view(kind)


def _narrowed(kind: pa.DataType, words: npt.NDArray[np.signedinteger[Any]]) -> Narrow:
    narrow = Narrow.room(kind, len(words), int(words.min()), int(words.max()))
    if narrow.least == narrow.most:
        return narrow
    if narrow.values.dtype == words.dtype:
        return replace(narrow, values=words)
    np.add(words, np.array(narrow.base).astype(words.dtype), out=narrow.values, casting="unsafe")
    return narrow


def _noted(name: str, narrow: Narrow, kept: pa.Array) -> tuple[pa.Field, pa.Array]:
    kind = narrow.kind
    notes = {_EXTENT: f"{narrow.base} {narrow.least} {narrow.most}", _KIND: str(kind)}
    if pa.types.is_timestamp(kind):
        notes |= {_KIND: str(pa.timestamp(kind.unit)), **({_ZONE: kind.tz} if kind.tz else {})}
    return pa.field(name, kept.type, metadata=notes), kept


@cache
def _kind(name: bytes, zone: bytes | None) -> pa.DataType:
    kind = pa.type_for_alias(name.decode())
    return kind if zone is None else pa.timestamp(kind.unit, zone.decode())
