"""The outbox: answers of windows, in files, from when they are made until all sinks have them.

A commit names the files; they stay until they have been delivered. So whoever starts again delivers what a commit
has made final, and no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.kernel.shelf import Kept, Reader
from headrace.query import Window
from headrace.runtime.batch import spark_schema
from headrace.runtime.live.answers import AnswerFile, by_window, file_name
from headrace.runtime.live.emitted import Emitted
from headrace.runtime.live.files import Folder, take_written
from headrace.runtime.live.finisher import Finisher
from headrace.runtime.live.log import Given
from headrace.runtime.live.version import STARTED, Version
from headrace.runtime.results import collected, reporting
from headrace.runtime.worker import Batches, arrow_schema, on_tasks, shared_out

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_LINES = "query string, file string, rows bigint, start_us bigint, end_us bigint"


@dataclass(frozen=True, slots=True)
class _OnShelf:
    """A query's groups, as they were kept."""

    schema: pa.Schema
    window: Window
    kept: tuple[Kept, ...]

    def by_window(self, shelf: str) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The groups of each window, with its number, in the order of time."""
        reader = Reader(shelf)
        return by_window((reader.read(kept)[0] for kept in self.kept), self.schema, self.window)


@dataclass(frozen=True, slots=True)
class _Writing:
    """A query's groups to a file with its answer."""

    query: str
    groups: _OnShelf
    finisher: Finisher
    values: int
    """About how many there are to write."""

    def run(self, folder: str, shelf: str) -> Given | None:
        """Write it; there is no file where there is no row."""
        file = AnswerFile(self.query, file_name(self.query, 0), folder, self.groups.window, self.finisher)
        for number, groups in self.groups.by_window(shelf):
            file.add(number, groups)
        return file.close()


class Outbox:
    """The answers of micro-batches, a folder for each."""

    def __init__(self, folder: Folder, spark: SparkSession) -> None:
        self._folder = folder
        self._spark = spark

    def of(self, batch: int) -> Folder:
        """The folder of a micro-batch."""
        return self._folder / f"{batch:012}"

    def fill(
        self,
        folder: Folder,
        version: Version,
        emitted: Emitted,
        shelf: str,
    ) -> tuple[Given, ...]:
        """All that was emitted: groups of queries, which lie on a shelf, are finished into files of a folder."""
        writings: list[_Writing] = []
        found = list(emitted.given)
        for name, parts in emitted.groups.items():
            number = version.plan.numbers[name]
            own = _OnShelf(version.schemas[number], version.windows[name], tuple(part.kept for part in parts))
            finisher = version.finishers[number]
            if finisher is None:
                found += self._by_spark(name, own, version, folder, shelf)
            else:
                values = sum(part.rows for part in parts) * len(finisher.schema)
                writings.append(_Writing(name, own, finisher, values))
        if writings:
            found += self._write(writings, folder, shelf)
        return tuple(sorted(found, key=lambda given: (given.query, given.start_us)))

    def _write(self, writings: Sequence[_Writing], folder: Folder, shelf: str) -> list[Given]:
        """All of them, by as many tasks as there are cores."""
        uri, cores = folder.uri, self._spark.sparkContext.defaultParallelism
        lots = shared_out(writings, lambda writing: writing.values, cores)

        def write(task: int) -> Batches:
            given = (writing.run(uri, shelf) for writing in lots[task])
            lines = [each._asdict() for each in given if each is not None]
            yield pa.RecordBatch.from_pylist(lines, schema=arrow_schema(_LINES))

        return [Given(*row) for row in collected(on_tasks(self._spark, len(lots), write, _LINES))]

    def _by_spark(self, name: str, groups: _OnShelf, version: Version, folder: Folder, shelf: str) -> list[Given]:
        """All windows in one job, a file each; what is ordered, or cut off, is so inside its window."""
        number = version.plan.numbers[name]
        statement, query = version.statements[number], version.plan.answers[number].query
        if not (query.order or query.limit or query.offset):
            return self._job(name, groups, statement, None, folder, shelf)
        numbers = sorted({number for number, _ in groups.by_window(shelf)})
        return [given for n in numbers for given in self._job(name, groups, statement, n, folder, shelf)]

    def _job(
        self, name: str, groups: _OnShelf, statement: str, wanted: int | None, folder: Folder, shelf: str
    ) -> list[Given]:
        """One window, or all of them, by a job of Spark's: the answer of each is a file."""

        def read(_: int) -> Batches:
            windows = groups.by_window(shelf)
            yield from (own for number, own in windows if wanted is None or number == wanted)

        frame = on_tasks(self._spark, 1, read, spark_schema(groups.schema))
        parts = folder / f"{name}.parts"
        with reporting(f"query '{name}' failed: "):
            finished = self._spark.sql(statement, groups=frame).coalesce(1)
            finished.write.mode("overwrite").partitionBy(STARTED).parquet(parts.for_spark)
        found = []
        for part in parts.names():
            start_us = int(part.removeprefix(f"{STARTED}="))
            file = file_name(name, start_us)
            rows = take_written(parts / part, folder, file)
            found.append(Given(name, file, rows, start_us, start_us + groups.window.range_us))
        folder.delete(parts.name)
        return found

    def clear(self, batch: int) -> None:
        """All sinks have what a micro-batch gave."""
        self._folder.delete(self.of(batch).name)

    def sweep(self, committed: int) -> None:
        """Remove what was never committed."""
        for name in self._folder.names():
            if int(name) > committed:
                self._folder.delete(name)
