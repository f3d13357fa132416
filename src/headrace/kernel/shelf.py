"""Where columns rest until they are wanted: in a file that each task has, or as bytes that Spark moves and keeps.

Answers wait there until they are read, partials until they meet. What is in files passes the JVM as a place.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.fs as fs

from headrace.kernel.narrow import narrowed, widened


@dataclass(frozen=True, slots=True)
class Kept:
    """Columns in Arrow's IPC format: as bytes, or in a file, with where they begin and how many bytes they are."""

    blob: bytes | pa.Buffer | None = None
    place: str | None = None
    start: int = 0
    size: int = 0
    crc: int | None = None
    """A checksum of the bytes, where they are to be kept for long."""


class DamagedError(ValueError):
    """What was kept is not what is there."""


Range = tuple[int, int]
"""Rows from one to before another."""


class Shelf(Protocol):
    """Takes in the columns of one task."""

    def keep(self, columns: Sequence[pa.Array], parts: Sequence[Range]) -> list[Kept]:
        """Keep columns, of which there may be none: so that each part of their rows can be read by itself."""

    def close(self) -> None:
        """Nothing more comes; only now can others read."""


class File:
    """A file below a folder. Its name is new, so that a task that is tried again leaves no trace."""

    def __init__(self, folder: str, checked: bool = False) -> None:
        """`checked`: what is kept has a checksum."""
        self._checked = checked
        self._system, path = fs.FileSystem.from_uri(folder)
        self._folder, self._place = path, f"{path}/{uuid.uuid4().hex}.arrow"
        self._stream: pa.NativeFile | None = None

    def keep(self, columns: Sequence[pa.Array], parts: Sequence[Range]) -> list[Kept]:
        """See `Shelf`."""
        if self._stream is None:
            self._system.create_dir(self._folder)
            self._stream = self._system.open_output_stream(self._place)
        kept = []
        for batch in _batches(columns, parts):
            start, crc = self._stream.tell(), None
            if self._checked:
                sink = pa.BufferOutputStream()
                _write(batch, sink)
                data = sink.getvalue()
                crc = zlib.crc32(data)
                self._stream.write(data)
            else:
                _write(batch, self._stream)
            kept.append(Kept(place=self._place, start=start, size=self._stream.tell() - start, crc=crc))
        return kept

    def close(self) -> None:
        """See `Shelf`."""
        if self._stream is not None:
            self._stream.close()


class Bytes:
    """Bytes, handed on at once."""

    def keep(self, columns: Sequence[pa.Array], parts: Sequence[Range]) -> list[Kept]:
        """See `Shelf`."""
        kept = []
        for batch in _batches(columns, parts):
            sink = pa.BufferOutputStream()
            _write(batch, sink)
            kept.append(Kept(bytes(sink.getvalue())))
        return kept

    def close(self) -> None:
        """See `Shelf`."""


class Reader:
    """Reads what tasks have kept, mapped into memory where the file system can."""

    def __init__(self, folder: str | None) -> None:
        self._folder = folder
        self._open: dict[str, pa.NativeFile] = {}

    def read(self, kept: Kept) -> tuple[list[pa.Array], int]:
        """The columns, as they were put in, and the number of rows."""
        data = self._bytes(kept)
        if kept.crc is not None and zlib.crc32(data) != kept.crc:
            raise DamagedError(f"'{kept.place}' is damaged: the checksum at {kept.start} does not match")
        with pa.ipc.open_stream(data) as reader:
            (batch,) = reader
        columns = zip(batch.schema, batch.columns, strict=True)
        return [widened(field, column) for field, column in columns][:-1], batch.num_rows

    def _bytes(self, kept: Kept) -> pa.Buffer:
        if kept.place is None or self._folder is None:
            return pa.py_buffer(kept.blob)
        if kept.place not in self._open:
            system, _ = fs.FileSystem.from_uri(self._folder)
            local = isinstance(system, fs.LocalFileSystem)
            self._open[kept.place] = pa.memory_map(kept.place) if local else system.open_input_file(kept.place)
        source = self._open[kept.place]
        source.seek(kept.start)
        return source.read_buffer(kept.size)


def _batches(columns: Sequence[pa.Array], parts: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    """The parts of columns, and one column of nothing: a batch without any would forget its number of rows."""
    kept = [narrowed(f"c{index}", column) for index, column in enumerate(columns)]
    schema = pa.schema([*(field for field, _ in kept), pa.field("rows", pa.null())])
    rows = pa.nulls(max(end for _, end in parts))
    whole = pa.record_batch([*(column for _, column in kept), rows], schema=schema)
    return (whole.slice(first, end - first) for first, end in parts)


def _write(batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
