"""Where columns rest until they are wanted: in a file that each task has, or as bytes that Spark moves and keeps.

Answers wait there until they are read, partials until they meet. What is in files passes the JVM as a place.
"""

from __future__ import annotations

import uuid
import zlib
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.fs as fs

from headrace.kernel.narrow import Column, restored, stored
from headrace.kernel.spares import Spares, open_shared

_FILE_BYTES = 1 << 26
"""A file that is to be a spare takes no more, so that any will do."""


class Kept(NamedTuple):
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

    def keep(self, columns: Sequence[Column], parts: Sequence[Range]) -> list[Kept]:
        """Keep columns, of which there may be none: so that each part of their rows can be read by itself."""

    def close(self) -> None:
        """Nothing more comes; only now can others read."""


class Files:
    """Files below a folder. Their names are new, so that a task that is tried again leaves no trace."""

    def __init__(self, folder: str, checked: bool = False, spares: str | None = None) -> None:
        """`checked`: what is kept has a checksum. `spares`: files to write over, where there are some."""
        self._checked = checked
        self._system, self._folder = fs.FileSystem.from_uri(folder)
        self._spares = Spares(spares) if spares is not None else None
        self._place = ""
        self._stream: pa.NativeFile | None = None

    def keep(self, columns: Sequence[Column], parts: Sequence[Range]) -> list[Kept]:
        """See `Shelf`."""
        kept = []
        for batch in _batches(columns, parts):
            stream = self._open()
            start, crc = stream.tell(), None
            if self._checked:
                data = _packed(batch)
                crc = zlib.crc32(data)
                stream.write(data)
            else:
                _write(batch, stream)
            kept.append(Kept(place=self._place, start=start, size=stream.tell() - start, crc=crc))
        return kept

    def _open(self) -> pa.NativeFile:
        """The file that is written to: a new one where there is none, or where it takes enough as a spare."""
        if self._stream is not None and self._spares is not None and self._stream.tell() >= _FILE_BYTES:
            self.close()
        if self._stream is None:
            self._place = f"{self._folder}/{uuid.uuid4().hex}.arrow"
            self._system.create_dir(self._folder)
            spare = self._spares.take(self._place) if self._spares is not None else None
            is_new = spare is None
            self._stream = self._system.open_output_stream(self._place) if is_new else pa.PythonFile(spare, "w")
        return self._stream

    def close(self) -> None:
        """See `Shelf`."""
        if self._stream is not None:
            self._stream.close()
        self._stream = None


class Bytes:
    """Bytes, handed on at once."""

    def keep(self, columns: Sequence[Column], parts: Sequence[Range]) -> list[Kept]:
        """See `Shelf`."""
        return [Kept(bytes(_packed(batch))) for batch in _batches(columns, parts)]

    def close(self) -> None:
        """See `Shelf`."""


class Reader:
    """Reads what tasks have kept, mapped into memory where the file system can."""

    def __init__(self, folder: str | None, spares: bool = False) -> None:
        """`spares`: whether files may become such, and so have to be held as long as they are read."""
        self._folder = folder
        self._spares = spares
        self._held: list[BinaryIO] = []
        self._open: dict[str, pa.NativeFile] = {}

    def read(self, kept: Kept) -> tuple[list[Column], int]:
        """The columns, as they were put in, and the number of rows."""
        data = self._bytes(kept)
        if kept.crc is not None and zlib.crc32(data) != kept.crc:
            raise DamagedError(f"'{kept.place}' is damaged: the checksum at {kept.start} does not match")
        with pa.ipc.open_stream(data) as reader:
            (batch,) = reader
        columns = zip(batch.schema, batch.columns, strict=True)
        return [restored(field, column) for field, column in columns][:-1], batch.num_rows

    def _bytes(self, kept: Kept) -> pa.Buffer:
        if kept.place is None or self._folder is None:
            return pa.py_buffer(kept.blob)
        if kept.place not in self._open:
            if self._spares:
                self._held.append(open_shared(kept.place))
            system, _ = fs.FileSystem.from_uri(self._folder)
            local = isinstance(system, fs.LocalFileSystem)
            self._open[kept.place] = pa.memory_map(kept.place) if local else system.open_input_file(kept.place)
        source = self._open[kept.place]
        source.seek(kept.start)
        return source.read_buffer(kept.size)


def _batches(columns: Sequence[Column], parts: Sequence[Range]) -> Iterator[pa.RecordBatch]:
    """The parts of columns, and one column of nothing: a batch without any would forget its number of rows."""
    kept = [stored(f"c{index}", column) for index, column in enumerate(columns)]
    schema = pa.schema([*(field for field, _ in kept), pa.field("rows", pa.null())])
    rows = pa.nulls(max(end for _, end in parts))
    whole = pa.record_batch([*(column for _, column in kept), rows], schema=schema)
    return (whole.slice(first, end - first) for first, end in parts)


def _packed(batch: pa.RecordBatch) -> pa.Buffer:
    sink = pa.BufferOutputStream()
    _write(batch, sink)
    return sink.getvalue()


def _write(batch: pa.RecordBatch, sink: pa.NativeFile) -> None:
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
