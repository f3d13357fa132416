"""The outbox: answers of windows, in files, from when they are made until all sinks have them.

A commit names the files; they stay until they have been delivered. So whoever starts again delivers what a commit
has made final, and no more.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

from headrace.errors import RunError
from headrace.kernel.due import stretch_of
from headrace.kernel.shelf import Kept, Reader
from headrace.query import Window
from headrace.runtime.batch import spark_schema
from headrace.runtime.live.emit import Groups
from headrace.runtime.live.files import Folder
from headrace.runtime.live.finisher import Finisher
from headrace.runtime.live.log import Given
from headrace.runtime.live.version import STARTED, Version
from headrace.runtime.results import collected, describe_failure
from headrace.runtime.worker import Batches, arrow_schema, on_tasks, typed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STARTS = b"headrace.windows"
"""In a file's metadata: when the window of each row group begins, in microseconds."""
_MOST_RUNS = 64
"""Rows of windows that are out of order in more places than this are put in order."""
_MOST_DICTIONARY = 1 << 15
"""Bytes of a column's dictionary: more distinct values take longer to look up than it saves."""
_LINES = "file string, rows bigint, starts array<bigint>"


@dataclass(frozen=True, slots=True)
class _Groups:
    """A query's groups, as they were kept."""

    schema: pa.Schema
    window: Window
    kept: tuple[Kept, ...]

    def by_window(self, reader: Reader) -> Iterator[tuple[int, pa.RecordBatch]]:
        """The groups of each window, with its number, in the order of time."""
        runs: dict[int, list[list[pa.Array]]] = {}
        for kept in self.kept:
            for number, columns in _runs(reader.read(kept)[0]):
                runs.setdefault(number, []).append(columns)
        for number in sorted(runs):
            columns = [pa.concat_arrays(parts) for parts in zip(*runs.pop(number), strict=True)]
            yield number, typed(columns, len(columns[0]), self.schema, self.window)


def _runs(columns: list[pa.Array]) -> Iterator[tuple[int, list[pa.Array]]]:
    """Rows of one window each, with its number, which is the first column: few, for rows come mostly in order."""
    numbers = np.asarray(columns[0])
    edges = np.flatnonzero(np.diff(numbers)) + 1
    if len(edges) > _MOST_RUNS and len(edges) >= len(np.unique(numbers)):
        order = np.argsort(numbers, kind="stable")
        columns, numbers = [column.take(pa.array(order)) for column in columns], numbers[order]
        edges = np.flatnonzero(np.diff(numbers)) + 1
    for first, end in itertools.pairwise([0, *edges.tolist(), len(numbers)]):
        yield int(numbers[first]), [column.slice(first, end - first) for column in columns]


@dataclass(frozen=True, slots=True)
class _Writing:
    """A query's groups to a file with its answer: a row group for each window that has rows."""

    file: str
    groups: _Groups
    finisher: Finisher
    values: int
    """About how many there are to write."""

    def run(self, folder: str, shelf: str) -> dict[str, object]:
        """Write it; gives the number of rows and when windows begin. There is no file where there is no row."""
        finished = (
            (number, self.finisher.finish(groups)) for number, groups in self.groups.by_window(Reader(shelf))
        )
        found = [(number, batch) for number, batch in finished if batch.num_rows]
        window = self.groups.window
        starts = [stretch_of(window, (number, number + 1))[0] for number, _ in found]
        if found:
            schema = self.finisher.schema.with_metadata({STARTS: json.dumps(starts)})
            system, path = fs.FileSystem.from_uri(folder)
            with pq.ParquetWriter(
                f"{path}/{self.file}", schema, filesystem=system, dictionary_pagesize_limit=_MOST_DICTIONARY
            ) as writer:
                for _, batch in found:
                    writer.write_batch(batch, row_group_size=batch.num_rows)
        return {"file": self.file, "rows": sum(batch.num_rows for _, batch in found), "starts": starts}


def _dealt(writings: Iterable[_Writing], tasks: int) -> list[list[_Writing]]:
    """What each task writes: the large ones first, each by the task that has least so far."""
    lots: list[list[_Writing]] = [[] for _ in range(tasks)]
    for writing in sorted(writings, key=lambda writing: -writing.values):
        min(lots, key=lambda lot: sum(other.values for other in lot)).append(writing)
    return [lot for lot in lots if lot]


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
        groups: Mapping[str, Sequence[Groups]],
        shelf: str,
    ) -> tuple[Given, ...]:
        """Finish the groups of queries, which lie on a shelf, into files of a folder."""
        writings: list[_Writing] = []
        found: list[Given] = []
        for name, parts in groups.items():
            number = version.number_of(name)
            own = _Groups(version.schemas[number], version.windows[name], tuple(part.kept for part in parts))
            finisher = version.finishers[number]
            if finisher is None:
                found += self._by_spark(name, own, version, folder, shelf)
            else:
                values = sum(part.rows for part in parts) * len(finisher.schema)
                writings.append(_Writing(f"{name}.parquet", own, finisher, values))
        if writings:
            windows = {f"{name}.parquet": (name, version.windows[name]) for name in groups}
            for row in self._write(writings, folder, shelf):
                if row["rows"]:
                    name, window = windows[row["file"]]
                    start, end = row["starts"][0], row["starts"][-1] + window.range_us
                    found.append(Given(name, row["file"], row["rows"], start, end))
        return tuple(sorted(found))

    def _write(self, writings: Sequence[_Writing], folder: Folder, shelf: str) -> list[dict[str, Any]]:
        """All of them, by as many tasks as there are cores."""
        uri, lots = folder.uri, _dealt(writings, self._spark.sparkContext.defaultParallelism)

        def write(task: int) -> Batches:
            lines = [writing.run(uri, shelf) for writing in lots[task]]
            yield pa.RecordBatch.from_pylist(lines, schema=arrow_schema(_LINES))

        return [row.asDict() for row in collected(on_tasks(self._spark, len(lots), write, _LINES))]

    def _by_spark(self, name: str, groups: _Groups, version: Version, folder: Folder, shelf: str) -> list[Given]:
        """All windows in one job, a file each; what is ordered, or cut off, is so inside its window."""
        number = version.number_of(name)
        statement, query = version.statements[number], version.plan.answers[number].query
        if not (query.order or query.limit or query.offset):
            return self._job(name, groups, statement, None, folder, shelf)
        numbers = sorted({number for number, _ in groups.by_window(Reader(shelf))})
        return [given for n in numbers for given in self._job(name, groups, statement, n, folder, shelf)]

    def _job(
        self, name: str, groups: _Groups, statement: str, wanted: int | None, folder: Folder, shelf: str
    ) -> list[Given]:
        """One window, or all of them, by a job of Spark's: the answer of each is a file."""
        from py4j.protocol import Py4JJavaError  # see session.py
        from pyspark.errors import PySparkException

        def read(batches: Batches) -> Batches:
            for _ in batches:
                windows = groups.by_window(Reader(shelf))
                yield from (own for number, own in windows if wanted is None or number == wanted)

        frame = self._spark.range(0, 1, 1, 1).mapInArrow(read, spark_schema(groups.schema))
        parts = folder / f"{name}.parts"
        try:
            finished = self._spark.sql(statement, groups=frame).coalesce(1)
            finished.write.mode("overwrite").partitionBy(STARTED).parquet(parts.uri)
        except (PySparkException, Py4JJavaError) as error:
            raise RunError(f"query '{name}' failed: {describe_failure(error)}") from error
        found = []
        for part in parts.names():
            start_us = int(part.removeprefix(f"{STARTED}="))
            (own,) = (file for file in (parts / part).names() if file.endswith(".parquet"))
            file = f"{name}-{start_us}.parquet"
            folder.copy(parts / part, own, file)
            rows = pq.read_metadata(folder.path(file)).num_rows
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
