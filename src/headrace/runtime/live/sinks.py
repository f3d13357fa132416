"""Where answers go: each query's windows, complete, each once.

A sink may be asked again for what it has had already, if the driver ended in between: what it is given is the
same, and known by the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa

from headrace.runtime.live.answers import mark_of, read_windows
from headrace.runtime.live.clock import moment
from headrace.runtime.live.files import Folder
from headrace.runtime.live.log import Given

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EARLY = "_early"


@dataclass(frozen=True, slots=True)
class WindowAnswer:
    """The answer of a query for one window: `run`, `query` and `start` name it, always the same."""

    run: str
    query: str
    start: datetime
    end: datetime
    table: pa.Table
    early: bool = False
    """Whether the window is still open, so that this is not the last word."""


@dataclass(frozen=True, slots=True)
class Delivery:
    """A file of answers for a sink: windows of one query."""

    run: str
    batch: int
    given: Given
    range_us: int
    folder: Folder
    early: bool = False
    """Whether the windows are still open, so that this is not the last word."""

    @property
    def name(self) -> str:
        """A name for the file that no other delivery has."""
        return f"{self.run}-{self.batch:012}-{mark_of(self.given)}.parquet"

    @property
    def path(self) -> str:
        """Where the file is."""
        return self.folder.path(self.given.file)

    def windows(self) -> Iterator[WindowAnswer]:
        """The windows, one after another."""
        for start_us, table in read_windows(self.path, self.given.start_us):
            start, end = moment(start_us), moment(start_us + self.range_us)
            yield WindowAnswer(self.run, self.given.query, start, end, table, self.early)


class Sink(Protocol):
    """Takes in answers."""

    def deliver(self, delivery: Delivery, spark: SparkSession) -> None:
        """Take in some windows; the same may come again, and must then change nothing."""


@dataclass(frozen=True, slots=True)
class ParquetSink:
    """A folder per query below a folder; each file has whole windows, and appears at once.

    Early answers are in the folder `_early`, which Spark and others pass over: a file per query, the latest.
    """

    folder: str

    def deliver(self, delivery: Delivery, spark: SparkSession) -> None:
        """See `Sink`."""
        folder = Folder(self.folder)
        if delivery.early:
            (folder / EARLY).copy(delivery.folder, delivery.given.file, f"{delivery.given.query}.parquet")
        else:
            (folder / delivery.given.query).copy(delivery.folder, delivery.given.file, delivery.name)


@dataclass(frozen=True, slots=True)
class ForeachWindow:
    """Calls a function with each window of each query, in the driver.

    After a crash it may be called again with the same window; `answer.run`, `query` and `start` tell.
    """

    function: Callable[[WindowAnswer], object]

    def deliver(self, delivery: Delivery, spark: SparkSession) -> None:
        """See `Sink`."""
        for answer in delivery.windows():
            self.function(answer)


@dataclass(frozen=True, slots=True)
class SparkSink:
    """Calls a function with a DataFrame of a query's new windows: for any sink that Spark can write to.

    The function is given the query's name, the DataFrame and a name of this delivery, the same if it comes again.
    """

    function: Callable[[str, DataFrame, str], object]

    def deliver(self, delivery: Delivery, spark: SparkSession) -> None:
        """See `Sink`; what is early is passed over."""
        if delivery.early:
            return
        name = delivery.name.removesuffix(".parquet")
        self.function(delivery.given.query, spark.read.parquet(delivery.path), name)


@dataclass(frozen=True, slots=True)
class ConsoleSink:
    """Prints the first rows of each window."""

    rows: int = 5

    def deliver(self, delivery: Delivery, spark: SparkSession) -> None:
        """See `Sink`."""
        for answer in delivery.windows():
            table, so_far = answer.table, " so far" if answer.early else ""
            times = f"{answer.start:%Y-%m-%d %H:%M:%S} to {answer.end:%H:%M:%S}"
            print(f"{answer.query}  {times}  {len(table):,} rows{so_far}")
            for row in table.slice(0, self.rows).to_pylist():
                print("  " + "  ".join(f"{name}={_shown(value)}" for name, value in row.items()))


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name}: {_shown(inner)}" for name, inner in value.items()) + "}"
    return f"{value:%Y-%m-%d %H:%M:%S}" if isinstance(value, datetime) else str(value)


AnySink = str | Path | Literal["console"] | Callable[[WindowAnswer], object] | Sink


def as_sinks(given: AnySink | Sequence[AnySink]) -> tuple[Sink, ...]:
    """Sinks as users write them: a folder, "console", a function that takes a `WindowAnswer`, or a sink."""
    each: Sequence[Any] = given if isinstance(given, (list, tuple)) else [given]
    return tuple(map(_as_sink, each))


def _as_sink(given: Any) -> Sink:
    if given == "console":
        return ConsoleSink()
    if isinstance(given, (str, Path)):
        return ParquetSink(str(given))
    if hasattr(given, "deliver"):
        sink: Sink = given
        return sink
    if callable(given):
        return ForeachWindow(given)
    raise TypeError(f"{given!r} is no sink: give a folder, 'console', a function of a window, or a sink")
