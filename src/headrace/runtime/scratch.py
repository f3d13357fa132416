"""Where workers put answers: a folder that the driver and all workers share."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import uuid
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pyarrow.fs as fs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SETTING = "spark.headrace.scratch"
"""A folder for answers (`file:///...`, `s3://...`); on a cluster without one, Spark keeps them."""


def make_scratch(spark: SparkSession) -> str | None:
    """A new folder for one run, as a URI, or None where driver and workers share none.

    It is there as long as this process, since any DataFrame may still read from it.
    """
    given = spark.conf.get(SETTING, "")
    if given and not given.startswith("file:"):
        return f"{given}/{uuid.uuid4().hex}"
    if not given and not (spark.sparkContext.master or "").startswith("local"):
        return None
    folder = tempfile.mkdtemp(prefix="headrace-", dir=urlsplit(given).path if given else None)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder).as_uri()


def remove_scratch(folder: str) -> None:
    """Delete what a run left in its folder; one that is gone already is no error."""
    system, path = fs.FileSystem.from_uri(folder)
    if system.get_file_info(path).type != fs.FileType.NotFound:
        system.delete_dir(path)
