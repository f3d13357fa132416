"""The chunks that a stream is made in, and what goes wrong on the way: disorder, lateness, nulls, repeats.

Each chunk is disturbed on its own, with random numbers of its own, so that a disturbed stream holds the same
records as the calm one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from headrace.generate.options import StreamOptions

Ints = npt.NDArray[np.int32]
Longs = npt.NDArray[np.int64]
Unsigned = npt.NDArray[np.uint64]
Floats = npt.NDArray[np.float64]

CHUNK_ROWS = 250_000  # a chunk is one row group
TIME = pa.timestamp("us", tz="UTC")


def chunk_random(options: StreamOptions, chunk: int, purpose: int) -> np.random.Generator:
    """The random numbers of one chunk for one purpose: the same whoever asks, whenever."""
    key = np.random.SeedSequence(options.seed, spawn_key=(1 + chunk, purpose))
    return np.random.Generator(np.random.SFC64(key))


def chunk_count(options: StreamOptions) -> int:
    """How many chunks the rows make."""
    return -(-options.rows // CHUNK_ROWS)


def chunk_start(chunk: int) -> int:
    """The number of the chunk's first row."""
    return chunk * CHUNK_ROWS


def chunk_rows(options: StreamOptions, chunk: int) -> int:
    """The rows of one chunk: the last one may be short."""
    return min(CHUNK_ROWS, options.rows - chunk_start(chunk))


def arrivals(options: StreamOptions, chunk: int, random: np.random.Generator) -> Longs:
    """When the chunk's records arrive, in microseconds of stream time since the start: a Poisson process.

    The gaps are scaled so that the chunk fills exactly its share of the time, and the next one can begin
    where it ends without knowing it.
    """
    rows = chunk_rows(options, chunk)
    passed = np.cumsum(random.standard_exponential(rows + 1))
    passed *= rows / passed[-1]
    passed += chunk_start(chunk)
    passed *= 1_000_000 / options.records_per_s
    return passed[:-1].astype(np.int64)


def delay(times_us: Longs, options: StreamOptions, random: np.random.Generator) -> Longs:
    """The records' own times, where they arrive at `times_us`: out of order and late as the options say."""
    if not (options.disorder_s or options.late):
        return times_us
    rows = len(times_us)
    behind_s = options.disorder_s * random.random(rows)
    late = random.random(rows) < options.late
    behind_s = np.where(late, options.late_by_s * random.random(rows), behind_s)
    return times_us - (behind_s * 1_000_000).astype(np.int64)


def to_arrow(values: npt.NDArray[Any], kind: pa.DataType | None = None) -> pa.Array:
    """A numpy array as an Arrow array over the same memory.

    `pa.array` does that too, but looks for pandas values first: importing pandas takes longer than a chunk.
    """
    values = np.ascontiguousarray(values)
    kind = kind or pa.from_numpy_dtype(values.dtype)
    assert kind.bit_width == 8 * values.itemsize, f"{values.dtype} cannot stand for {kind}"
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])


def spoil(table: pa.Table, options: StreamOptions, random: np.random.Generator) -> pa.Table:
    """The same records with nulls, in every column but the first (the time), and with repeated records."""
    rows = table.num_rows
    if options.nulls:
        columns = [table.column(0)]
        for column in table.columns[1:]:
            columns.append(_null_where(column, random.random(rows) < options.nulls))
        table = pa.table(columns, schema=table.schema)
    if options.duplicates:
        position = np.arange(rows)
        position[1:][random.random(rows - 1) < options.duplicates] = 0
        # A repeated record takes the last one that is not repeated; the first of a chunk never repeats.
        table = table.take(to_arrow(np.maximum.accumulate(position)))
    return table


def _null_where(column: pa.ChunkedArray, null: npt.NDArray[np.bool_]) -> pa.Array:
    bits = pa.py_buffer(np.packbits(null, bitorder="little"))
    mask = pa.Array.from_buffers(pa.bool_(), len(null), [None, bits])
    return pc.if_else(mask, pa.scalar(None, column.type), column.combine_chunks())
