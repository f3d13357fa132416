"""Files that appear whole or not at all, on any file system that renames atomically."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow.fs as fs
import pyarrow.parquet as pq

from headrace.sources.stream import local_path

_HIDDEN = "."
"""Names of files on their way begin with it; readers of folders pass over them."""


class Folder:
    """A folder, local or on any file system that pyarrow reaches."""

    def __init__(self, place: str) -> None:
        """`place` is a path, or a URI; the folder need not be there yet."""
        self.local = local_path(place)
        """The folder, where it is one of this machine."""
        self.uri = self.local.as_uri() if self.local is not None else place
        self._system, self._path = fs.FileSystem.from_uri(self.uri)

    @property
    def name(self) -> str:
        """Its own name."""
        return self.uri.rpartition("/")[2]

    def __truediv__(self, name: str) -> Folder:
        return Folder(f"{self.uri}/{name}")

    def path(self, name: str) -> str:
        """Where a file is, for those who open it on the same file system."""
        return f"{self._path}/{name}"

    @property
    def for_spark(self) -> str:
        """The URI as Spark takes and gives it: with nothing in it encoded."""
        return unquote(self.uri)

    def make(self) -> Folder:
        """Have it there."""
        self._system.create_dir(self._path, recursive=True)
        return self

    def names(self) -> list[str]:
        """The files and folders in it, without those that are on their way."""
        return sorted(name for name in self._all() if not name.startswith(_HIDDEN))

    def has(self, name: str) -> bool:
        """Whether there is a file or folder of a name."""
        return bool(self._system.get_file_info(self.path(name)).type != fs.FileType.NotFound)

    def read(self, name: str) -> bytes:
        """A file's bytes."""
        with self._system.open_input_stream(self.path(name)) as stream:
            return bytes(stream.readall())

    def put(self, name: str, data: bytes) -> None:
        """A file with these bytes: others see all of it, or what was there before."""
        self.make()
        with self._system.open_output_stream(self.path(_HIDDEN + name)) as stream:
            stream.write(data)
        self._system.move(self.path(_HIDDEN + name), self.path(name))

    def copy(self, source: Folder, name: str, as_name: str) -> None:
        """A file from another folder, where it stays."""
        self.make()
        hidden = self.path(_HIDDEN + as_name)
        self.delete(_HIDDEN + as_name)
        if self.local is not None and source.local is not None and _same_disk(source.local, self.local):
            os.link(source.path(name), hidden)
        else:
            systems = {"source_filesystem": source._system, "destination_filesystem": self._system}
            fs.copy_files(source.path(name), hidden, **systems)
        self._system.move(hidden, self.path(as_name))
        # Where both are one file already, the rename leaves both.
        self.delete(_HIDDEN + as_name)

    def delete(self, name: str) -> None:
        """Remove a file or folder; one that is gone already is no error."""
        kind = self._system.get_file_info(self.path(name)).type
        if kind == fs.FileType.Directory:
            self._system.delete_dir(self.path(name))
        elif kind != fs.FileType.NotFound:
            self._system.delete_file(self.path(name))

    def sweep(self) -> None:
        """Remove what was on its way when its writer ended."""
        for name in [name for name in self._all() if name.startswith(_HIDDEN)]:
            self.delete(name)

    def _all(self) -> Iterator[str]:
        found = self._system.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        return (info.base_name for info in found)


def take_written(parts: Folder, folder: Folder, file: str) -> int:
    """Put the one Parquet file that Spark has written among `parts` into a folder; gives its rows, 0 for none."""
    written = [name for name in parts.names() if name.endswith(".parquet")]
    if not written:
        return 0
    (own,) = written
    folder.copy(parts, own, file)
    with folder._system.open_input_file(folder.path(file)) as source:
        return int(pq.read_metadata(source).num_rows)


def _same_disk(one: Path, other: Path) -> bool:
    return one.stat().st_dev == other.stat().st_dev
