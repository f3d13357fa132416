"""Parquet at the source: workers read the files themselves, only the columns and row groups that are needed."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.errors import StreamError

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class Extent:
    """What a row group says of one of its columns: the least and the greatest value as integers, and its nulls."""

    least: int
    most: int
    nulls: int


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Where a row group is, and what it says of itself; a column that says nothing has no extent."""

    path: str
    number: int
    rows: int
    extents: Mapping[str, Extent]


@dataclass(frozen=True, slots=True)
class Footer:
    """What a file says of itself."""

    path: str
    schema: pa.Schema
    groups: tuple[RowGroup, ...]


@dataclass(frozen=True, slots=True)
class Task:
    """Row groups for one task, in the order of time where that is known.

    With a `time` column, the task is about the records of [start, end) only: others of these row groups are some
    other task's. With `places` it is about those from one place to before another, counted through its row groups.
    """

    groups: tuple[RowGroup, ...]
    time: str | None = None
    start_us: int | None = None
    end_us: int | None = None
    places: tuple[int, int] | None = None


def read_footers(path: str | list[str], columns: Sequence[str] = ()) -> list[Footer]:
    """The footers of all files of a stream, or of some of them, with the extents of some columns.

    Raises `StreamError`.
    """
    import pyarrow.dataset  # imports pandas, which takes half a second

    try:
        fragments = list(pyarrow.dataset.dataset(path, format="parquet", partitioning="hive").get_fragments())
        return [
            Footer(fragment.path, fragment.physical_schema, tuple(_row_groups(fragment, columns)))
            for fragment in sorted(fragments, key=lambda fragment: fragment.path)
        ]
    except (pa.ArrowException, OSError) as error:
        raise StreamError(f"'{path}' cannot be read as Parquet: {error}") from error


def _row_groups(fragment: pa.dataset.ParquetFileFragment, columns: Sequence[str]) -> Iterator[RowGroup]:
    metadata = fragment.metadata
    places = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    whole = {f.name for f in fragment.physical_schema if pa.types.is_integer(f.type) or _in_microseconds(f.type)}
    known = {name: places[name] for name in columns if name in places and name in whole}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        extents = {}
        for name, index in known.items():
            says = group.column(index).statistics
            if says is not None and says.has_min_max and says.has_null_count:
                extents[name] = Extent(says.min_raw, says.max_raw, says.null_count)
        yield RowGroup(fragment.path, number, group.num_rows, extents)


def _in_microseconds(kind: pa.DataType) -> bool:
    return bool(pa.types.is_timestamp(kind) and kind.unit == "us")


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
    return bool(mine == sparks or (_is_text(mine) and _is_text(sparks)))


def _is_text(kind: pa.DataType) -> bool:
    """Whether values are text, however long it may get in memory: in files that makes no difference."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def extent_of(footers: Sequence[Footer], column: str) -> Extent | None:
    """The extent of a column in all files together; None where one does not say."""
    extents = [group.extents.get(column) for footer in footers for group in footer.groups]
    known = [extent for extent in extents if extent is not None]
    if not known or len(known) < len(extents):
        return None
    return Extent(min(e.least for e in known), max(e.most for e in known), sum(e.nulls for e in known))


def read_task(task: Task, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, int | None]]:
    """The records of a task, batch by batch, each with the time that no later batch goes below, where known."""
    to_come = _least_to_come(task)
    before = 0
    for index, group in enumerate(task.groups):
        batches = _read_own(group, columns, task, before)
        before += group.rows
        held = next(batches, None)
        while held is not None:
            following = next(batches, None)
            yield held, to_come[index] if following is None else None
            held = following


def _least_to_come(task: Task) -> list[int | None]:
    """After each row group, the earliest time in those that follow."""
    if task.time is None:
        return [None] * len(task.groups)
    least: int | None = None
    found: list[int | None] = []
    for group in reversed(task.groups):
        found.append(least)
        own = group.extents[task.time].least
        least = own if least is None else min(least, own)
    return found[::-1]


def _read_own(group: RowGroup, columns: Sequence[str], task: Task, place: int) -> Iterator[pa.RecordBatch]:
    """The records of a row group that are the task's; the first of all is at a place among those of its groups."""
    for batch in read_group(group, [*columns, *([task.time] if task.time else [])]):
        own = _own_records(_cut(batch, place, task.places), group, task)
        if own.num_rows:
            yield own.select(list(columns))
        place += batch.num_rows
        if task.places is not None and place >= task.places[1]:
            break


def read_group(
    group: RowGroup, columns: Sequence[str], batch_rows: int = _BATCH_ROWS, buffer_bytes: int = 0
) -> Generator[pa.RecordBatch]:
    """The records of a row group; text comes dictionary-encoded, as it lies in the file.

    Whoever stops early saves the decoding of what follows and, with a buffer (0: none), the reading too.
    """
    wanted = list(dict.fromkeys(columns))
    try:
        with pq.ParquetFile(group.path) as probe:
            text = [f.name for f in probe.schema_arrow if f.name in wanted and _is_text(f.type)]
        with pq.ParquetFile(group.path, read_dictionary=text, buffer_size=buffer_bytes) as file:
            for batch in file.iter_batches(batch_rows, [group.number], wanted, use_threads=False):
                yield batch.select(wanted)
    except (pa.ArrowException, OSError) as error:
        raise StreamError(f"'{group.path}' cannot be read as Parquet: {error}") from error


def _cut(batch: pa.RecordBatch, place: int, places: tuple[int, int] | None) -> pa.RecordBatch:
    """The records of a batch, whose first is at a place, that are between places."""
    if places is None:
        return batch
    first = max(0, places[0] - place)
    return batch.slice(first, max(0, places[1] - place - first))


def _own_records(batch: pa.RecordBatch, group: RowGroup, task: Task) -> pa.RecordBatch:
    if task.time is None:
        return batch
    extent, times = group.extents[task.time], batch[task.time].view(pa.int64())
    if task.start_us is not None and extent.least < task.start_us:
        keep = pc.greater_equal(times, task.start_us)
        batch, times = batch.filter(keep), times.filter(keep)
    if task.end_us is not None and extent.most >= task.end_us:
        batch = batch.filter(pc.less(times, task.end_us))
    return batch
