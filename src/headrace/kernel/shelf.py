"""Where answers rest until they are read, and partials until they meet: in files, or as bytes that Spark keeps.

What is in files passes the JVM as the name of its place.
"""

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


@dataclass(frozen=True, slots=True)
class Held:
    """A partial: bytes, or the place of a file where they begin, and how many they are."""

    blob: bytes | None = None
    place: str | None = None
    start: int = 0
    size: int = 0


class Shelf(Protocol):
    """Takes in the answers and partials of one task."""

    def put(self, answer: int, batch: pa.RecordBatch) -> Iterator[Kept]:
        """Keep some rows; gives what can be handed on already."""

    def hold(self, blob: bytes) -> Held:
        """Keep a partial."""

    def close(self) -> Iterator[Kept]:
        """Nothing more comes; gives all that has not been handed on."""


class Files:
    """One file per answer below a folder, and one for all partials.

    Their names are new, so that a task that is tried again leaves no trace.
    """

    def __init__(self, folder: str) -> None:
        self._system, self._folder = fs.FileSystem.from_uri(folder)
        self._task = uuid.uuid4().hex[:12]
        self._open: dict[int, tuple[str, pa.NativeFile, pa.ipc.RecordBatchFileWriter]] = {}
        self._rows: dict[int, int] = {}
        self._partials: tuple[str, pa.NativeFile] | None = None

    def put(self, answer: int, batch: pa.RecordBatch) -> Iterator[Kept]:
        """See `Shelf`."""
        if answer not in self._open:
            place = f"{self._folder}/{answer}-{self._task}.arrow"
            stream = self._system.open_output_stream(place)
            self._open[answer] = place, stream, pa.ipc.new_file(stream, batch.schema)
        self._open[answer][2].write_batch(batch)
        self._rows[answer] = self._rows.get(answer, 0) + batch.num_rows
        yield from ()

    def hold(self, blob: bytes) -> Held:
        """See `Shelf`."""
        if self._partials is None:
            self._system.create_dir(partials_folder(self._folder))
            place = f"{partials_folder(self._folder)}/{self._task}.bin"
            self._partials = place, self._system.open_output_stream(place)
        place, stream = self._partials
        start = stream.tell()
        stream.write(blob)
        return Held(place=place, start=start, size=len(blob))

    def close(self) -> Iterator[Kept]:
        """See `Shelf`."""
        if self._partials is not None:
            self._partials[1].close()
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

    def hold(self, blob: bytes) -> Held:
        """See `Shelf`."""
        return Held(blob)

    def close(self) -> Iterator[Kept]:
        """See `Shelf`."""
        yield from ()


def partials_folder(folder: str) -> str:
    """Where partials are kept below the folder of a run."""
    return f"{folder}/partials"


class Partials:
    """Reads partials that others hold."""

    def __init__(self, folder: str | None) -> None:
        self._system = fs.FileSystem.from_uri(folder)[0] if folder is not None else None
        self._open: dict[str, pa.NativeFile] = {}

    def read(self, held: Held) -> pa.Buffer:
        """The bytes of a partial, mapped into memory where the file system can."""
        if held.place is None or self._system is None:
            return pa.py_buffer(held.blob)
        if held.place not in self._open:
            self._open[held.place] = _open(self._system, held.place)
        source = self._open[held.place]
        source.seek(held.start)
        return source.read_buffer(held.size)


def _open(system: fs.FileSystem, place: str) -> pa.NativeFile:
    return pa.memory_map(place) if isinstance(system, fs.LocalFileSystem) else system.open_input_file(place)


def read_files(folder: str, places: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The batches of files, mapped into memory where the file system can."""
    system, _ = fs.FileSystem.from_uri(folder)
    for place in places:
        with _open(system, place) as source:
            reader = pa.ipc.open_file(source)
            for index in range(reader.num_record_batches):
                yield reader.get_batch(index)
