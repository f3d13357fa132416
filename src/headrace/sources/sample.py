"""A sample of a stream, to plan by: a few blocks of records that lie together, as the records of a window do.

Records picked one by one would tell how common values are, but not how often they return within a minute. And a
block is cheap: mostly it is the beginning of a row group, and nothing behind it is decoded.
"""

from __future__ import annotations

import bisect
import contextlib
import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa

from headrace.sources.parquet import Footer, RowGroup, read_beginning

_BLOCKS = 16
_THREADS = 4


def read_sample(footers: Sequence[Footer], columns: Sequence[str], rows: int = 1 << 16) -> list[pa.RecordBatch]:
    """Blocks of some `rows` in all, from places spread over the stream; raises `StreamError`.

    A stream that has no more rows than that is one block, whole; an empty one has none.
    """
    groups = [group for footer in footers for group in footer.groups if group.rows]
    ends = list(itertools.accumulate(group.rows for group in groups))
    total = ends[-1] if ends else 0
    if not total or not columns:
        return []
    if total <= rows:
        return [_read_block(groups, ends, 0, total, columns)]
    size = max(1, rows // _BLOCKS)
    read = partial(_read_block, groups, ends, size=size, columns=columns)
    with ThreadPoolExecutor(_THREADS) as threads:
        return [*threads.map(read, _starts(groups, ends, size))]


def _starts(groups: Sequence[RowGroup], ends: Sequence[int], size: int) -> Iterator[int]:
    """Where blocks begin: with the row groups at even distances, but never inside the block before."""
    total, free = ends[-1], 0
    for block in range(_BLOCKS):
        place = bisect.bisect_right(ends, (2 * block + 1) * total // (2 * _BLOCKS))
        # What lies behind the last block must have room for it.
        start = max(free, min(ends[place] - groups[place].rows, total - (_BLOCKS - block) * size))
        yield start
        free = start + size


def _read_block(
    groups: Sequence[RowGroup], ends: Sequence[int], start: int, size: int, columns: Sequence[str]
) -> pa.RecordBatch:
    """The rows [start, start + size) of the stream, across row groups and files where need be."""
    place = bisect.bisect_right(ends, start)
    skip, missing = start - (ends[place] - groups[place].rows), size
    parts: list[pa.RecordBatch] = []
    while missing:
        with contextlib.closing(read_beginning(groups[place], columns, size)) as batches:
            for batch in batches:
                own = batch.slice(min(skip, batch.num_rows), missing)
                skip = max(0, skip - batch.num_rows)
                missing -= own.num_rows
                parts.append(own)
                if not missing:
                    break
        place += 1
    return _joined([part for part in parts if part.num_rows])


def _joined(parts: Sequence[pa.RecordBatch]) -> pa.RecordBatch:
    """One batch of several, of the first one's types: files may name the zone of a time differently."""
    first = parts[0]
    if len(parts) == 1:
        return first
    columns = [pa.concat_arrays([p[name].cast(first[name].type) for p in parts]) for name in first.schema.names]
    return pa.RecordBatch.from_arrays(columns, first.schema.names)
