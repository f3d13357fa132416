"""Where answers rest until they are read: in files of Arrow's IPC format, or as bytes that Spark keeps."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa
import pyarrow.fs as fs

from headrace.kernel.partial import pack_columns


@dataclass(frozen=True, slots=True)
class Kept:
    """Rows of an answer: the place of a file, or bytes."""

    answer: int
    rows: int
    place: str | None
    blob: bytes | None


class Shelf(Protocol):
    """Takes in the answers of one task."""

    def put(self, answer: int, batch: pa.RecordBatch) -> Iterator[Kept]:
        """Keep some rows; gives what can be handed on already."""

    def close(self) -> Iterator[Kept]:
        """Nothing more comes; gives all that has not been handed on."""


class Files:
    """One file per answer below a folder; its name is new, so that a task that is tried again leaves no trace."""

    def __init__(self, folder: str) -> None:
        self._system, self._folder = fs.FileSystem.from_uri(folder)
        self._task = uuid.uuid4().hex[:12]
        self._open: dict[int, tuple[str, pa.NativeFile, pa.ipc.RecordBatchFileWriter]] = {}
        self._rows: dict[int, int] = {}

    def put(self, answer: int, batch: pa.RecordBatch) -> Iterator[Kept]:
        """See `Shelf`."""
        if answer not in self._open:
            place = f"{self._folder}/{answer}-{self._task}.arrow"
            stream = self._system.open_output_stream(place)
            self._open[answer] = place, stream, pa.ipc.new_file(stream, batch.schema)
        self._open[answer][2].write_batch(batch)
        self._rows[answer] = self._rows.get(answer, 0) + batch.num_rows
        yield from ()

    def close(self) -> Iterator[Kept]:
        """See `Shelf`."""
        for answer, (place, stream, writer) in self._open.items():
            writer.close()
            stream.close()
            yield Kept(answer, self._rows[answer], place, None)
        self._open.clear()


class Blobs:
    """Bytes, handed on at once."""

    def put(self, answer: int, batch: pa.RecordBatch) -> Iterator[Kept]:
        """See `Shelf`."""
        yield Kept(answer, batch.num_rows, None, pack_columns(batch.columns, batch.num_rows))

    def close(self) -> Iterator[Kept]:
        """See `Shelf`."""
        yield from ()


def read_files(folder: str, places: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches of files, mapped into memory where the file system can."""
    system, _ = fs.FileSystem.from_uri(folder)
    for place in places:
        local = isinstance(system, fs.LocalFileSystem)
        with pa.memory_map(place) if local else system.open_input_file(place) as source:
            reader = pa.ipc.open_file(source)
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)
