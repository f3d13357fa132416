"""A stream: records with a time, from a folder of Parquet or from any Spark DataFrame."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

import pyarrow as pa

from headrace.errors import StreamError, did_you_mean
from headrace.query.interval import parse_interval_us
from headrace.query.query import quote_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a stream; `type` is the name that its source gives to the type."""

    name: str
    type: str
    is_time: bool


@dataclass(frozen=True)
class Stream:
    """Records of one kind with a time column, under the name that queries use after FROM.

    `data` is a Spark DataFrame (so a view with joins to static tables is a stream too) or the path of Parquet
    files, which workers can then read themselves. `lateness` says how late a record may come, in streaming.
    """

    data: DataFrame | str
    name: str
    time: str
    lateness: str | None = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise StreamError("a stream needs a name, the one that queries use after FROM")
        self._check_time()
        _ = self.lateness_us  # raises where it is none

    @classmethod
    def parquet(cls, path: str, name: str, time: str, lateness: str | None = None) -> Stream:
        """A stream of Parquet: a file, or a folder of files (also partitioned as `day=2024-03-04/`)."""
        return cls(absolute(str(path)), name, time, lateness)

    @functools.cached_property
    def columns(self) -> tuple[Column, ...]:
        """Name and type of every column; for Parquet without starting Spark."""
        return read_columns(self.data) if isinstance(self.data, str) else _frame_columns(self.data)

    @property
    def column_names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return tuple(column.name for column in self.columns)

    @functools.cached_property
    def lateness_us(self) -> int:
        """How late a record may come."""
        try:
            return parse_interval_us(self.lateness) if self.lateness is not None else 0
        except ValueError as error:
            raise StreamError(f"lateness of stream '{self.name}': {error}") from error

    def dataframe(self, spark: SparkSession) -> DataFrame:
        """The stream as plain Spark reads it."""
        return spark.read.parquet(self.data) if isinstance(self.data, str) else self.data

    def register(self, spark: SparkSession, frame: DataFrame | None = None) -> None:
        """Make the stream known to `spark.sql` under its name; `frame` is its DataFrame, where there is one."""
        frame = frame if frame is not None else self.dataframe(spark)
        frame.createOrReplaceTempView(quote_name(self.name))

    def _check_time(self) -> None:
        by_name = {column.name.lower(): column for column in self.columns}
        column = by_name.get(self.time.lower())
        times = [column.name for column in self.columns if column.is_time]
        offer = (
            f"columns with a timestamp are: {', '.join(times)}" if times else "it has no timestamp column at all"
        )
        if column is None:
            near = did_you_mean(self.time, self.column_names)
            raise StreamError(f"stream '{self.name}' has no column '{self.time}'; {near or offer}")
        if not column.is_time:
            raise StreamError(
                f"the time column '{self.time}' of stream '{self.name}' is {column.type}, not a timestamp; {offer}"
            )


def absolute(place: str) -> str:
    """A path from the root on: Spark's own idea of the current folder is that of its start. A URI stays one."""
    return place if _is_uri(place) else str(Path(place).absolute())


def local_path(place: str) -> Path | None:
    """The path, from the root on, of a place on this machine; None for one on another file system.

    >>> [str(local_path(place)) for place in ("/my data", "file:/my%20data", "file:///my%20data", "s3://bucket/data")]
    ['/my data', '/my data', '/my data', 'None']
    """
    if not _is_uri(place):
        return Path(place).absolute()
    parts = urlsplit(place)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


def _is_uri(place: str) -> bool:
    return "://" in place or place.startswith("file:")


def open_parquet(path: str | list[str]) -> pa.dataset.Dataset:
    """A Parquet file, a folder of files (also partitioned), or some files."""
    import pyarrow.dataset  # imports pandas, which takes half a second

    return pyarrow.dataset.dataset(path, format="parquet", partitioning="hive")


@contextlib.contextmanager
def reading(path: str | list[str], *errors: type[Exception]) -> Iterator[None]:
    """While Parquet is read: raises `StreamError` for what Arrow and files raise, and for these errors."""
    try:
        yield
    except (pa.ArrowException, OSError, *errors) as error:
        raise StreamError(f"'{path}' cannot be read as Parquet: {error}") from error


def read_columns(path: str) -> tuple[Column, ...]:
    """The columns of a Parquet file or folder, from one file's footer; raises `StreamError`."""
    with reading(path):
        try:
            schema = open_parquet(path).schema
        except FileNotFoundError as error:
            raise StreamError(f"there is no file or folder '{path}'") from error
    if not len(schema):
        raise StreamError(f"there are no Parquet files in '{path}'")
    return tuple(Column(field.name, str(field.type), pa.types.is_timestamp(field.type)) for field in schema)


def _frame_columns(frame: DataFrame) -> tuple[Column, ...]:
    kinds = [(field.name, field.dataType.simpleString()) for field in frame.schema.fields]
    return tuple(Column(name, kind, kind.startswith("timestamp")) for name, kind in kinds)
