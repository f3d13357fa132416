"""Parquet at the source: workers read the files themselves, only the columns and row groups that are needed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import StreamError

_BATCH_ROWS = 1 << 18


@dataclass(frozen=True, slots=True)
class Split:
    """Row groups of a file, for one task."""

    path: str
    row_groups: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of itself."""

    path: str
    schema: pa.Schema
    rows: tuple[int, ...]


def read_footers(path: str) -> list[Footer]:
    """The footers of all files of a stream, in the order of their names; raises `StreamError`."""
    import pyarrow.dataset  # imports pandas, which takes half a second

    try:
        fragments = list(pyarrow.dataset.dataset(path, format="parquet", partitioning="hive").get_fragments())
        return [
            Footer(fragment.path, fragment.physical_schema, tuple(group.num_rows for group in fragment.row_groups))
            for fragment in sorted(fragments, key=lambda fragment: fragment.path)
        ]
    except (pa.ArrowException, OSError) as error:
        raise StreamError(f"'{path}' cannot be read as Parquet: {error}") from error


def can_read(footers: Sequence[Footer], columns: Mapping[str, pa.DataType]) -> bool:
    """Whether every file has these columns, of just these types (as Spark sees them)."""
    return all(
        name in footer.schema.names and _same(footer.schema.field(name).type, kind)
        for footer in footers
        for name, kind in columns.items()
    )


def _same(mine: pa.DataType, sparks: pa.DataType) -> bool:
    if pa.types.is_timestamp(mine) and pa.types.is_timestamp(sparks):
        # The name of a zone is not part of a value; whether there is one, is.
        return bool(mine.unit == sparks.unit and (mine.tz is None) == (sparks.tz is None))
    return bool(mine == sparks)


def make_splits(footers: Sequence[Footer], tasks: int) -> list[list[Split]]:
    """Row groups for so many tasks, in order, about the same number of rows each."""
    groups = [(footer.path, number, rows) for footer in footers for number, rows in enumerate(footer.rows)]
    total = sum(rows for _, _, rows in groups)
    tasks = max(1, min(tasks, len(groups)))
    dealt: list[dict[str, list[int]]] = [{} for _ in range(tasks)]
    seen = 0
    for path, number, rows in groups:
        # The task in whose share of all rows the middle of this row group lies.
        task = min(tasks - 1, (2 * seen + rows) * tasks // max(1, 2 * total))
        dealt[task].setdefault(path, []).append(number)
        seen += rows
    return [[Split(path, tuple(numbers)) for path, numbers in task.items()] for task in dealt]


def read_split(split: Split, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The records of a split; text comes dictionary-encoded, as it lies in the file."""
    with pq.ParquetFile(split.path) as probe:
        text = [f.name for f in probe.schema_arrow if f.name in columns and pa.types.is_string(f.type)]
    with pq.ParquetFile(split.path, read_dictionary=text) as file:
        for batch in file.iter_batches(_BATCH_ROWS, list(split.row_groups), list(columns), use_threads=False):
            yield batch.select(list(columns))
