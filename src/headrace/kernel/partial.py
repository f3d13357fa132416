"""Partials as bytes: rows of a node in Arrow's IPC format, the only thing that travels between levels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.ops import Words

BLOB_ROWS = 1 << 18
"""Rows that travel together: a value of Spark's must stay far below 2 GiB."""


def pack_columns(columns: Sequence[pa.Array], rows: int) -> bytes:
    """Columns as bytes; a batch without columns keeps its number of rows."""
    names = [f"c{index}" for index in range(len(columns))]
    batch = pa.record_batch([*columns, pa.nulls(rows)], [*names, "rows"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


def unpack_columns(blob: bytes) -> tuple[list[pa.Array], int]:
    """The columns of bytes, and the number of rows."""
    with pa.ipc.open_stream(blob) as reader:
        (batch,) = reader
    return batch.columns[:-1], batch.num_rows


def pack_partial(keys: Sequence[pa.Array], slots: Sequence[Words]) -> Iterator[tuple[int, bytes]]:
    """A partial as bytes, in pieces, each with its number of rows: key values, then slots as narrow as may be."""
    columns = [*keys, *(_narrow(slot) for slot in slots)]
    rows = len(columns[0])
    for low in range(0, rows, BLOB_ROWS):
        size = min(BLOB_ROWS, rows - low)
        yield size, pack_columns([column.slice(low, size) for column in columns], size)


def unpack_partial(blob: bytes, keys: int) -> tuple[list[pa.Array], list[Words], int]:
    """The key columns, the slots and the number of rows of a partial."""
    columns, rows = unpack_columns(blob)
    return columns[:keys], [np.asarray(column).astype(np.int64, copy=False) for column in columns[keys:]], rows


def _narrow(slot: Words) -> pa.Array:
    """Most counts and sums are small: the narrowest integers that hold them."""
    low, high = (int(slot.min()), int(slot.max())) if len(slot) else (0, 0)
    for kind in (np.int8, np.int16, np.int32):
        if np.iinfo(kind).min <= low and high <= np.iinfo(kind).max:
            return pa.array(slot.astype(kind))
    return pa.array(slot)
