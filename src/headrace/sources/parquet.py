"""Parquet at the source: workers read the files themselves, only the columns and row groups that are needed."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.fs as fs
import pyarrow.parquet as pq

from headrace.algebra.words import is_text, is_time
from headrace.sources.pages import Chunk, DamagedPages, can_decode
from headrace.sources.stream import local_path, open_parquet, reading

_BATCH_ROWS = 1 << 18
_BATCH_VALUES = 1 << 23
"""What is decoded at a time, at most: a whole row group of usual size is faster than parts of it."""
_BUFFER_BYTES = 1 << 18


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
    with reading(path):
        fragments = list(open_parquet(path).get_fragments())
        return [
            Footer(fragment.physical_schema, tuple(_row_groups(fragment, columns)))
            for fragment in sorted(fragments, key=lambda fragment: fragment.path)
        ]


def _row_groups(fragment: pa.dataset.ParquetFileFragment, columns: Sequence[str]) -> Iterator[RowGroup]:
    metadata = fragment.metadata
    places = {metadata.schema.column(index).path: index for index in range(metadata.num_columns)}
    whole = {f.name for f in fragment.physical_schema if pa.types.is_integer(f.type) or is_time(f.type)}
    known = {name: places[name] for name in columns if name in places and name in whole}
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        extents = {}
        for name, index in known.items():
            says = group.column(index).statistics
            if says is not None and says.has_min_max and says.has_null_count:
                extents[name] = Extent(says.min_raw, says.max_raw, says.null_count)
        yield RowGroup(fragment.path, number, group.num_rows, extents)


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
    return bool(mine == sparks or (is_text(mine) and is_text(sparks)))


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
    for path, own in itertools.groupby(enumerate(task.groups), key=lambda each: each[1].path):
        with _opened(path) as file:
            for index, group in own:
                batches = _read_own(file, group, columns, task, before)
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


def _read_own(
    file: _File, group: RowGroup, columns: Sequence[str], task: Task, place: int
) -> Iterator[pa.RecordBatch]:
    """The records of a row group that are the task's; the first of all is at a place among those of its groups."""
    for batch in file.read(group.number, [*columns, *([task.time] if task.time else [])]):
        own = _own_records(_cut(batch, place, task.places), group, task)
        if own.num_rows:
            yield own.select(list(columns))
        place += batch.num_rows
        if task.places is not None and place >= task.places[1]:
            break


def read_beginning(group: RowGroup, columns: Sequence[str], batch_rows: int) -> Generator[pa.RecordBatch]:
    """The records of a row group; whoever stops early saves the reading of what follows."""
    with _opened(group.path, buffer_bytes=_BUFFER_BYTES) as file:
        yield from file.read_by_arrow(group.number, list(dict.fromkeys(columns)), batch_rows)


@contextlib.contextmanager
def _opened(path: str, buffer_bytes: int = 0) -> Iterator[_File]:
    """A file to read from; raises `StreamError` where it cannot be, also while it is read."""
    with (
        reading(path, DamagedPages),
        pq.ParquetFile(path, buffer_size=buffer_bytes) as file,
        _bytes_of(path) as source,
    ):
        yield _File(file, source, path, buffer_bytes)


def _bytes_of(path: str) -> pa.NativeFile:
    local = local_path(path)
    system, path = fs.FileSystem.from_uri(path) if local is None else (fs.LocalFileSystem(), str(local))
    return system.open_input_file(path)


class _File:
    """An open file, of which row groups are read; text comes dictionary-encoded, as it lies there."""

    def __init__(self, file: pq.ParquetFile, source: pa.NativeFile, path: str, buffer_bytes: int) -> None:
        self._file, self._source = file, source
        self._kinds = {field.name: field.type for field in file.schema_arrow}
        schema = file.metadata.schema
        self._columns = {schema.column(index).path: index for index in range(len(schema))}
        self._text = [name for name, kind in self._kinds.items() if is_text(kind)]
        self._options = {"metadata": file.metadata, "buffer_size": buffer_bytes}
        self._path = path

    def read(self, number: int, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The records of a row group: numbers straight from its pages where these can be, the rest by Arrow."""
        wanted = list(dict.fromkeys(columns))
        rows = max(1, min(_BATCH_ROWS, _BATCH_VALUES // max(1, len(wanted))))
        chunks = {name: chunk for name in wanted if (chunk := self._chunk(number, name)) is not None}
        rest = [name for name in wanted if name not in chunks]
        if not chunks:
            yield from self.read_by_arrow(number, rest, rows)
            return
        total = self._file.metadata.row_group(number).num_rows
        counts = [rows] * (total // rows) + [total % rows] * (total % rows > 0)
        others = self.read_by_arrow(number, rest, rows) if rest else map(_without_columns, counts)
        for other in others:
            found = {name: chunk.take(other.num_rows) for name, chunk in chunks.items()}
            yield pa.record_batch([found[name] if name in found else other[name] for name in wanted], wanted)

    def read_by_arrow(self, number: int, columns: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
        """The records of a row group, so many at a time."""
        text = [name for name in self._text if name in columns]
        with pq.ParquetFile(self._path, read_dictionary=text, **self._options) as file:
            for batch in file.iter_batches(rows, [number], columns, use_threads=False):
                yield batch.select(columns)

    def _chunk(self, number: int, name: str) -> Chunk | None:
        """A column of a row group, if it can be read from its pages."""
        index, kind = self._columns.get(name), self._kinds.get(name)
        if index is None or kind is None:
            return None
        levels = self._file.metadata.schema.column(index).max_definition_level
        chunk = self._file.metadata.row_group(number).column(index)
        return Chunk(self._source, chunk, kind, levels > 0) if levels <= 1 and can_decode(chunk, kind) else None


def _without_columns(rows: int) -> pa.RecordBatch:
    return pa.record_batch([pa.nulls(rows)], ["none"])


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
