"""Files that are written over: what the system has in memory of them it need not find and clear once more.

A file that nobody wants any more is kept as a spare. Who takes one gives it a new name. Readers hold a lock as
long as they read, so that no file is written over under their eyes, and one that comes late finds no file at all.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from headrace.kernel.locks import can_lock, lock


class Spares:
    """A folder of spare files, on a disk that all who use it share."""

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder)

    @staticmethod
    def possible() -> bool:
        """Whether files can be locked on this system."""
        return can_lock()

    def take(self, path: str) -> BinaryIO | None:
        """A spare as a file of that name, from its beginning; None where there is none."""
        for spare in _listed(self._folder):
            try:
                spare.rename(path)
            except FileNotFoundError:
                continue  # somebody else has taken it
            file = Path(path).open("r+b")  # noqa: SIM115  # who takes it closes it
            if lock(file, alone=True):
                return file
            file.close()
            Path(path).unlink()  # its readers keep what they have open
        return None

    def put(self, paths: Iterable[str], most_bytes: int) -> None:
        """Keep files that are complete, as long as they all are not too large together; the others are deleted."""
        self._folder.mkdir(parents=True, exist_ok=True)
        size = sum(spare.stat().st_size for spare in _listed(self._folder))
        for path in map(Path, paths):
            if not path.exists():
                continue  # it has been kept before
            size += path.stat().st_size
            if size > most_bytes:
                path.unlink()
            else:
                path.rename(self._folder / uuid.uuid4().hex)


def open_shared(path: str) -> BinaryIO:
    """A file that is not written over as long as this is open."""
    file = Path(path).open("rb")  # noqa: SIM115  # who reads it closes it
    if can_lock() and not lock(file, alone=False):
        file.close()
        raise FileNotFoundError(f"'{path}' has been released")
    return file


def _listed(folder: Path) -> Sequence[Path]:
    return [Path(entry.path) for entry in os.scandir(folder)] if folder.is_dir() else []
