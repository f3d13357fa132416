"""Records of a micro-batch to partials in the log: what runs in the workers, and the job around it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.words import in_memory, truth
from headrace.kernel.low import LowLevel
from headrace.kernel.piece import Partial, Piece
from headrace.kernel.shelf import File
from headrace.query import Window
from headrace.runtime.live.clock import given_before, latest_given, roots_open_from
from headrace.runtime.live.log import Commit, Counts, Entry, PartialLog, Standing
from headrace.runtime.live.records import Records
from headrace.runtime.live.version import Version
from headrace.runtime.results import collected
from headrace.runtime.source import Source, plan_reading
from headrace.runtime.worker import Batches, arrow_schema, on_tasks
from headrace.sources import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LINES = (
    "node int, slice bigint, bucket int, rows bigint, "
    "file string, start bigint, size bigint, crc bigint, seen string"
)
_SCHEMA = arrow_schema(_LINES)


@dataclass(slots=True)
class Seen:
    """What a task saw of its records."""

    records: int = 0
    no_time: int = 0
    ahead: int = 0
    latest_us: int | None = None
    late: dict[str, int] = field(default_factory=dict)

    @property
    def counts(self) -> Counts:
        """The numbers of records."""
        return Counts(self.records, self.no_time, self.ahead, self.late)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a micro-batch adds: partials, the latest time, the numbers of records, and what nodes took."""

    entries: tuple[Entry, ...]
    latest_us: int | None
    counts: Counts
    measures: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Intake:
    """All that a worker has to know to take in records; it travels with each task."""

    version: Version
    buckets: int
    budget: int
    folder: str
    most_us: int
    """Records that are later are set aside."""
    open_from: Mapping[int, int]
    given: tuple[tuple[str, Window, Standing], ...]
    """How far queries have come,"""
    late_before_us: int
    """so that records from this time on are late for none of them."""

    def run(self, records: Iterable[tuple[pa.RecordBatch, int | None]]) -> Iterator[pa.RecordBatch]:
        """Records, each batch with the time that no later one goes below (where known), to lines about partials.

        These lie in a file. The last line is about what was seen.
        """
        version, seen = self.version, Seen()
        level = LowLevel(
            version.plan,
            version.inputs,
            self.budget,
            self.buckets,
            conditions=version.conditions,
            open_from=self.open_from,
        )
        shelf, lines = File(self.folder, checked=True), []

        def pieces() -> Iterator[Piece]:
            for batch, until_us in records:
                yield from level.add(self._look(batch, seen))
                if until_us is not None:
                    yield from level.close(until_us)
            yield from level.finish()

        for piece in pieces():
            assert isinstance(piece, Partial), "nothing is answered where records are read"
            kept = shelf.keep(piece.columns, [(part.first, part.end) for part in piece.parts])
            for part, place in zip(piece.parts, kept, strict=True):
                lines.append(
                    {
                        "node": piece.node,
                        "slice": part.slice,
                        "bucket": part.bucket,
                        "rows": part.end - part.first,
                        "file": (place.place or "").rpartition("/")[2],
                        "start": place.start,
                        "size": place.size,
                        "crc": place.crc,
                    }
                )
        shelf.close()
        lines.append({"seen": json.dumps({"seen": asdict(seen), "measures": asdict(level.measures)})})
        yield pa.RecordBatch.from_pylist(lines, schema=_SCHEMA)

    def _look(self, batch: pa.RecordBatch, seen: Seen) -> pa.RecordBatch:
        """The records whose time is sound; the others, and those that are late, are counted."""
        column = batch.column(0)
        seen.records += batch.num_rows
        seen.no_time += column.null_count
        times = in_memory(column, np.int64)
        if column.null_count:
            # A record without a time is in no window: the low level passes over it.
            times = times[np.asarray(column.is_valid())]
        if len(times) == 0:
            return batch
        if int(times.max()) > self.most_us:
            sound = pc.fill_null(pc.less_equal(column.view(pa.int64()), self.most_us), True)
            seen.ahead += batch.num_rows - int(pc.sum(sound).as_py() or 0)
            batch = batch.filter(sound)
            times = times[times <= self.most_us]
            if len(times) == 0:
                return batch
        latest = int(times.max())
        seen.latest_us = latest if seen.latest_us is None else max(seen.latest_us, latest)
        if int(times.min()) < self.late_before_us:
            self._count_late(batch, seen)
        return batch

    def _count_late(self, batch: pa.RecordBatch, seen: Seen) -> None:
        times = batch.column(0).view(pa.int64())
        late = batch.filter(pc.fill_null(pc.less(times, self.late_before_us), False))
        moments = in_memory(late.column(0), np.int64)
        for name, window, standing in self.given:
            where = self.version.queries[name].where
            counted = given_before(window, standing, moments)
            if where is not None:
                counted = counted[truth(late.column(self.version.inputs.index(where)))]
            if total := int(counted.sum()):
                seen.late[name] = seen.late.get(name, 0) + total


def take_in(
    records: Records,
    version: Version,
    commit: Commit,
    most_us: int,
    stream: Stream,
    log: PartialLog,
    budget: int,
    spark: SparkSession,
) -> Taken:
    """Run a micro-batch's job; records later than `most_us` are set aside."""
    plan = version.plan
    given = tuple((name, window, commit.queries[name]) for name, window in version.windows.items())
    intake = Intake(
        version,
        commit.buckets,
        budget,
        log.partials.make().uri,
        most_us,
        roots_open_from(plan, commit.queries),
        given,
        latest_given((window, standing) for _, window, standing in given),
    )
    rows = collected(_job(records, intake, stream, spark))
    entries, counts, latest, measures = [], Counts(), None, []
    for row in rows:
        if row.seen is None:
            node = plan.nodes[row.node].id
            where = row.file, row.start, row.size, row.crc
            entries.append(Entry(version.number, node, row.slice, row.bucket, row.rows, *where))
        else:
            told = json.loads(row.seen)
            seen = Seen(**told["seen"])
            counts = counts.plus(seen.counts)
            measures.append(json.dumps(told["measures"]))
            if seen.latest_us is not None:
                latest = seen.latest_us if latest is None else max(latest, seen.latest_us)
    return Taken(tuple(entries), latest, counts, tuple(measures))


def _job(records: Records, intake: Intake, stream: Stream, spark: SparkSession) -> DataFrame:
    """At the source where the kernel knows all that the plan needs, else through Spark."""
    version = intake.version
    reading = None
    if records.files is not None:
        source = Source.of_files(stream, records.files)
        cores = spark.sparkContext.defaultParallelism
        known = version.ways, version.facts, version.session
        reading = plan_reading(source, version.plan, version.inputs, *known, cores, version.costs, skip=False)
    if reading is not None:
        here = reading

        def low(number: int) -> Iterator[pa.RecordBatch]:
            return intake.run(here.read(here.tasks[number]))

        return on_tasks(spark, len(here.tasks), low, _LINES)
    columns = [f"{expression.sql} AS `c{index}`" for index, expression in enumerate(version.inputs)]

    def through(batches: Batches) -> Batches:
        return intake.run((batch, None) for batch in batches)

    return records.frame().selectExpr(*columns).mapInArrow(through, _LINES)
