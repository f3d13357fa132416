"""Records of a micro-batch to partials in the log: what runs in the workers, and the job around it.

Windows whose records one task has all of, and that are over with the micro-batch, are answered at once: their
partials need not be kept. Files that tell of their times show beforehand which ones these are.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.words import in_memory
from headrace.errors import RunError
from headrace.kernel.low import LowLevel, Stretch
from headrace.kernel.piece import Partial, Ready
from headrace.kernel.records import Coding, Inputs
from headrace.kernel.records import Records as Batch
from headrace.kernel.shelf import Files
from headrace.query import Window
from headrace.runtime.live.clock import Clock, given_before, latest_given, roots_open_from
from headrace.runtime.live.emitted import Answers, Emitted, Places
from headrace.runtime.live.log import PLACED, Commit, Counts, Entry, PartialLog, Standing, place_of, placed
from headrace.runtime.live.records import Records
from headrace.runtime.live.version import Version
from headrace.runtime.results import collected
from headrace.runtime.source import Reading, Source, computed, plan_reading
from headrace.runtime.worker import Batches, arrow_schema, on_tasks
from headrace.sources import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LINES = f"node int, slice bigint, bucket int, {PLACED}, told string"
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
    emitted: Emitted
    """What was answered at once:"""
    until_us: int | None
    """windows of uniform roots may be that end then, or before, so that the log has not all their partials."""


@dataclass(frozen=True, slots=True)
class Intake:
    """All that a worker has to know to take in records; it travels with each task."""

    version: Version
    buckets: int
    budget: int
    folder: str
    places: Places
    most_us: int
    """Records that are later are set aside."""
    open_from: Mapping[int, int]
    given: tuple[tuple[str, Window, Standing], ...]
    """How far queries have come,"""
    late_before_us: int
    """so that records from this time on are late for none of them."""

    def run(
        self,
        inputs: Inputs,
        records: Iterable[tuple[pa.RecordBatch, int | None]],
        own: Stretch | None = None,
        task: int = 0,
    ) -> Batches:
        """Records, each batch with the time that no later one goes below (where known), to lines about partials.

        These lie in a file. The last line is about what was seen, and what was answered at once: windows of the
        task's own time.
        """
        version, seen = self.version, Seen()
        level = LowLevel(
            version.plan,
            inputs,
            self.budget,
            self.buckets,
            own,
            version.conditions,
            self.open_from,
        )
        answers = Answers(version, self.places, f"at-once-{task}")
        shelf = Files(self.folder, checked=True)
        lines: list[dict[str, object]] = []
        pieces = level.run((self._look(inputs, batch, seen), until_us) for batch, until_us in records)
        for at_once, some in itertools.groupby(pieces, lambda piece: isinstance(piece, Ready)):
            if at_once:
                answers.add(piece for piece in some if isinstance(piece, Ready))
            else:
                lines += [line for piece in some if isinstance(piece, Partial) for line in _kept(piece, shelf)]
        shelf.close()
        told = {"seen": asdict(seen), "measures": asdict(level.measures), "emitted": answers.close().to_json()}
        lines.append({"told": json.dumps(told)})
        yield pa.RecordBatch.from_pylist(lines, schema=_SCHEMA)

    def _look(self, inputs: Inputs, batch: pa.RecordBatch, seen: Seen) -> pa.RecordBatch:
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
            self._count_late(inputs, batch, seen)
        return batch

    def _count_late(self, inputs: Inputs, batch: pa.RecordBatch, seen: Seen) -> None:
        times = batch.column(0).view(pa.int64())
        late = batch.filter(pc.fill_null(pc.less(times, self.late_before_us), False))
        moments = in_memory(late.column(0), np.int64)
        records = Batch(inputs, late, Coding())
        for name, window, standing in self.given:
            where = self.version.queries[name].where
            counted = given_before(window, standing, moments)
            if where is not None:
                counted = counted[records.truth(where)]
            if total := int(counted.sum()):
                seen.late[name] = seen.late.get(name, 0) + total


def _kept(partial: Partial, shelf: Files) -> Iterator[dict[str, object]]:
    """Lines about the parts of a partial, which are put on a shelf."""
    kept = shelf.keep(partial.columns, [(part.first, part.end) for part in partial.parts])
    for part, place in zip(partial.parts, kept, strict=True):
        own = placed(part.end - part.first, place)
        yield {"node": partial.node, "slice": part.slice, "bucket": part.bucket, **own}


class Receiver:
    """Takes in micro-batches, a job each."""

    def __init__(
        self, stream: Stream, log: PartialLog, spark: SparkSession, budget: int, clock: Clock, retain: bool
    ) -> None:
        """`retain`: queries that join may want windows that were given, so that the log has all partials."""
        self._stream = stream
        self._log = log
        self._spark = spark
        self._budget = budget
        self._clock = clock
        self._retain = retain

    def take(self, records: Records, version: Version, commit: Commit, most_us: int, places: Places) -> Taken:
        """Run a micro-batch's job; records later than `most_us` are set aside."""
        given = tuple((name, window, commit.queries[name]) for name, window in version.windows.items())
        intake = Intake(
            version,
            commit.buckets,
            self._budget,
            self._log.partials.make().uri,
            places,
            most_us,
            roots_open_from(version.plan, commit.queries),
            given,
            latest_given((window, standing) for _, window, standing in given),
        )
        reading = self._reading(records, version)
        if reading is None:
            return self._taken(self._through_spark(records, intake), version, None)
        stretches: list[Stretch | None] = [None] * len(reading.tasks)
        until_us = None
        if (latest_us := _surely_latest(reading, most_us)) is not None and not self._retain:
            until_us = self._clock.watermark(commit.watermark_us, latest_us)
            stretches = [_at_once(reading.stretch(task), commit.latest_us, until_us) for task in reading.tasks]

        def low(number: int) -> Batches:
            return intake.run(reading.inputs, reading.read(reading.tasks[number]), stretches[number], number)

        taken = self._taken(on_tasks(self._spark, len(reading.tasks), low, _LINES), version, until_us)
        if until_us is not None and self._clock.watermark(commit.watermark_us, taken.latest_us) < until_us:
            raise RunError("a Parquet file has no record of the time that it says its latest one is of")
        return taken

    def _reading(self, records: Records, version: Version) -> Reading | None:
        """Who reads what, at the source; None where the kernel does not know all that the plan needs."""
        if records.files is None:
            return None
        source = Source.of_files(self._stream, records.files)
        cores = self._spark.sparkContext.defaultParallelism
        known = version.ways, version.facts, version.session
        return plan_reading(source, version.plan, version.inputs, *known, cores, version.costs, skip=False)

    @staticmethod
    def _through_spark(records: Records, intake: Intake) -> DataFrame:
        def through(batches: Batches) -> Batches:
            return intake.run(Inputs(intake.version.inputs), ((batch, None) for batch in batches))

        return computed(records.frame(), intake.version.inputs).mapInArrow(through, _LINES)

    @staticmethod
    def _taken(lines: DataFrame, version: Version, until_us: int | None) -> Taken:
        """What the tasks tell of what they have done."""
        entries, counts, latest, measures, emitted = [], Counts(), None, [], Emitted()
        for row in collected(lines):
            if row.told is None:
                node = version.plan.nodes[row.node].id
                entries.append(Entry(version.number, node, row.slice, row.bucket, *place_of(row)))
                continue
            told = json.loads(row.told)
            seen = Seen(**told["seen"])
            counts = counts.plus(seen.counts)
            measures.append(json.dumps(told["measures"]))
            emitted.add(Emitted.from_json(told["emitted"]))
            if seen.latest_us is not None:
                latest = seen.latest_us if latest is None else max(latest, seen.latest_us)
        return Taken(tuple(entries), latest, counts, tuple(measures), emitted, until_us)


def _surely_latest(reading: Reading, most_us: int) -> int | None:
    """The latest time of which there is a record, as files tell it, but for those that are set aside."""
    known = (group.extents[task.time].most for task in reading.tasks if task.time for group in task.groups)
    return max((us for us in known if us <= most_us), default=None)


def _at_once(own: Stretch | None, latest_us: int | None, until_us: int) -> Stretch | None:
    """The time of which there is no earlier record, and will be no later one that counts, of what a task has."""
    if own is None:
        return None
    starts = [us for us in (own.start_us, latest_us + 1 if latest_us is not None else None) if us is not None]
    end_us = until_us if own.end_us is None else min(own.end_us, until_us)
    return Stretch(own.time, max(starts, default=None), end_us)
