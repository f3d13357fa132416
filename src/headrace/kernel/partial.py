"""Partials, the only thing that travels between levels: rows of a node as bytes of Arrow's IPC format."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.ops import Words


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


def pack_partial(keys: Sequence[pa.Array], slots: Sequence[Words]) -> bytes:
    """A partial as bytes: key values, then state slots."""
    return pack_columns([*keys, *(pa.array(slot) for slot in slots)], len(slots[0]) if slots else len(keys[0]))


def unpack_partial(blob: bytes, keys: int) -> tuple[list[pa.Array], list[Words], int]:
    """The key columns, the slots and the number of rows of a partial."""
    columns, rows = unpack_columns(blob)
    return columns[:keys], [np.asarray(column) for column in columns[keys:]], rows
