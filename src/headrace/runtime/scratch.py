"""Where workers put answers and partials: a folder that the driver and all workers share."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.fs as fs

from headrace.kernel.shelf import Files, Reader
from headrace.kernel.spares import Spares
from headrace.machine import machine_memory_mb
from headrace.sources.stream import local_path

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.headrace.scratch"
"""A folder for answers and partials (`file:///...`, `s3://...`); on a cluster without one, Spark has them."""


_SPARE_SHARE = 4
"""Spare files take one part in so many of the machine's memory: what they are for is what it still has of them."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """The folder of one run, as a URI, and where it finds files to write over, if it may."""

    folder: str
    spares: str | None = None

    def shelves(self) -> tuple[Files, Files]:
        """Where a task puts answers, and partials."""
        return Files(self.folder, spares=self.spares), Files(f"{self.folder}/partials", spares=self.spares)

    def reader(self) -> Reader:
        """Reads what tasks have put there."""
        return Reader(self.folder, spares=self.spares is not None)

    def let_go(self, places: Iterable[str]) -> None:
        """Have files of tasks that have ended well be spares, where there are such."""
        if self.spares is not None:
            Spares(self.spares).put(places, (machine_memory_mb() << 20) // _SPARE_SHARE)

    def remove(self) -> None:
        """Delete what is left in the folder; one that is gone already is no error."""
        system, path = fs.FileSystem.from_uri(self.folder)
        if system.get_file_info(path).type != fs.FileType.NotFound:
            system.delete_dir(path)


def make_scratch(spark: SparkSession) -> Scratch | None:
    """A new folder for one run, or None where driver and workers share none.

    It is there as long as this process, since any DataFrame may still read from it.
    """
    given = spark.conf.get(SETTING, "")
    below = local_path(given) if given else None
    if given and below is None:
        return Scratch(f"{given}/{uuid.uuid4().hex}")
    if not given and not (spark.sparkContext.master or "").startswith("local"):
        return None
    own = _own_folder(below)
    folder = own / uuid.uuid4().hex
    folder.mkdir()
    # What is given may be a network's, where locks are another matter.
    return Scratch(folder.as_uri(), str(own / "spares") if Spares.possible() and not given else None)


@cache
def _own_folder(below: Path | None) -> Path:
    """This process's folder, which goes with it."""
    if below is not None:
        below.mkdir(parents=True, exist_ok=True)
    folder = tempfile.mkdtemp(prefix="headrace-", dir=below)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)
