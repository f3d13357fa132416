"""One random workload over a disordered stream, by the streaming runtime, against a model and plain Spark.

The model is the rule in its plainest form: a record counts for each of its windows that had not been given before
the record's micro-batch; a window is given when the watermark reaches its end. What Spark makes of the records
that count for a window is the window's answer.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import AnalysisException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from headrace import Query, Stream, Workload
from headrace.query import Expression, Window, parse_query
from headrace.query.query import Output
from headrace.runtime.live import steps
from headrace.runtime.prepare import BUDGET_BYTES
from tests.harness.cases import Case, case_of_seed, check
from tests.harness.fuzz import small_batches
from tests.harness.result import Failure, Result, Row, collect, outcome
from tests.harness.schemas import quoted
from tests.harness.tolerance import EXACT
from tests.harness.windows import SLIDING, TUMBLING

SECOND, MINUTE, DAY = 1_000_000, 60_000_000, 86_400_000_000
BASE_US = 1_709_510_400 * SECOND  # 2024-03-04
SPANS_US = (3 * MINUTE, 40 * MINUTE, 5 * 60 * MINUTE, 3 * DAY, 20 * DAY)
NOWHERE = 2**62
FEWEST_ROWS = 20
COPY = "copy_for_window"
BEGIN = "unix_micros(CAST(window.start AS TIMESTAMP))"

Longs = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Feed:
    """A table in the order of its arrival, and where micro-batches end."""

    table: pa.Table
    ends: tuple[int, ...]
    lateness_us: int
    times: tuple[int | None, ...]

    @property
    def batches(self) -> list[range]:
        return [range(start, end) for start, end in zip((0, *self.ends), self.ends, strict=False)]


def feed_of(case: Case, rng: random.Random) -> Feed:
    """The rows of a case with times of a stream: mostly in order, some late, some too late, a few without."""
    rows = case.table.num_rows
    span = rng.choice(SPANS_US)
    lateness = rng.choice((0, span // 50, span // 10, span))
    when = sorted(BASE_US + rng.randrange(span) for _ in range(rows))
    delays = [rng.choice((0, 0, rng.random() * lateness, rng.random() * span / 5)) for _ in when]
    arrival = sorted(range(rows), key=lambda row: when[row] + delays[row])
    times: list[int | None] = [when[row] for row in arrival]
    if rng.random() < 0.3:
        times = [None if rng.random() < 0.1 else us for us in times]
    place = case.table.column_names.index(case.schema.time)
    column = pa.array(times, pa.int64()).cast(pa.timestamp("us")).cast(case.table.schema.field(place).type)
    count = rng.randint(1, 5)
    ends = sorted({rows, *(rng.randrange(rows + 1) for _ in range(count))} - {0}) or [0]
    return Feed(case.table.set_column(place, case.schema.time, column), tuple(ends), lateness, tuple(times))


def case_of(seed: int, max_queries: int) -> Case:
    """The first of some cases that has rows enough for a stream."""
    tries = (case_of_seed(seed * 100 + number, max_queries) for number in range(100))
    return next(case for case in tries if case.table.num_rows >= FEWEST_ROWS)


def windowed(case: Case, feed: Feed, rng: random.Random) -> Case:
    """The case with a window for most queries that have none; now and then with the same for all of them.

    That is so short then that some are over with the micro-batch they begin in.
    """
    schema = case.schema
    times = [us for us in feed.times if us is not None]
    short = max(1, (max(times) - min(times)) // SECOND // rng.randint(10, 100)) if times else 1
    sizes = (*SLIDING, *((size, size) for size in TUMBLING)) if rng.random() < 0.6 else ((short, short),)
    workload = {}
    for name, generated in case.workload.items():
        query = parse_query(name, generated.text, columns=case.table.column_names, time=schema.time)
        workload[name] = generated
        if query.shareable and query.window is None and not query.limit and rng.random() < 0.9:
            longest, slide = rng.choice(sizes)
            time = Expression.parse(quoted(schema.time))
            offset = rng.choice((0, 0, SECOND)) if len(sizes) > 1 else 0
            window = Window(time, longest * SECOND, slide * SECOND, offset)
            text = replace(query, window=window, order=()).sql
            workload[name] = replace(generated, text=text, witness=None if generated.witness is None else "")
    return replace(case, workload=workload)


@dataclass
class Model:
    """What a query should have given, as far as the stream has come."""

    window: Window
    first_us: int = -NOWHERE
    lost: dict[int, set[int]] = field(default_factory=dict)
    """By the start of a window, the records that came too late for it."""
    seen: set[int] = field(default_factory=set)
    """The records that came while the query was there."""

    def starts(self, time_us: int) -> Iterator[int]:
        """The windows that a time is in."""
        window = self.window
        start = time_us - (time_us - window.offset_us) % window.slide_us
        while start + window.range_us > time_us:
            yield start
            start -= window.slide_us

    def take(self, rows: Sequence[int], times: Sequence[int | None], watermark_us: int) -> None:
        self.seen.update(rows)
        for row in rows:
            if (us := times[row]) is not None:
                for start in self.starts(us):
                    if start + self.window.range_us <= watermark_us:
                        self.lost.setdefault(start, set()).add(row)


def _by_window(result: Result) -> dict[int, list[Row]]:
    found: dict[int, list[Row]] = {}
    for row in result.rows:
        found.setdefault(row[-1], []).append(row)
    return found


@dataclass(frozen=True)
class LiveReport:
    """What a seed showed."""

    seed: int
    rows: int
    queries: int
    windows_with_late: int
    differences: tuple[str, ...]
    seconds: float
    at_once: int = 0
    """Rows that were made without the log."""
    by_spark: int = 0
    """Queries that Spark's own streaming ran as well,"""
    explained: int = 0
    """and rows of theirs that differ, in windows to which the two rules of lateness give other records."""


_DEALT: tuple[dict[str, Any], ...] = (
    {"_FEW_ROWS": 1 << 16},
    {"_FEW_ROWS": 0, "_LEAST_ROWS": 0, "_STEP_ROWS": 1, "_MOST_AGAIN": 100.0},
    {"_FEW_ROWS": 0, "_MOST_AGAIN": 0.0},
    {"_FEW_ROWS": 1 << 16, "_LEAST_ROWS": 0},
)
"""How windows that are due come to tasks: as so few rows do, to none; by time in many steps; by keys; to one."""


def fuzz_live(
    spark: SparkSession, seed: int, max_queries: int, folder: Path, by_spark: bool = False
) -> LiveReport:
    """Run the workload of a seed over its feed, in one or two parts; queries may come and go between them.

    `by_spark`: those that were there all the time run as Spark's own streaming queries too.
    """
    began = time.monotonic()
    rng = random.Random(f"live {seed}")
    case = case_of(seed, max_queries)
    feed = feed_of(case, rng)
    case = windowed(case, feed, rng)
    budget = 1 if seed % 4 == 1 else BUDGET_BYTES
    run = _Run(spark, case, feed, rng, folder / str(seed), budget)
    with small_batches(spark), patch.multiple(steps, **_DEALT[seed // 3 % len(_DEALT)]):
        run.all_parts()
        if by_spark:
            run.compare_with_streaming()
    late = sum(len(model.lost) for model in run.models.values())
    seconds = time.monotonic() - began
    return LiveReport(
        seed,
        len(feed.times),
        len(run.models),
        late,
        tuple(run.differences),
        seconds,
        run.at_once,
        run.by_spark,
        run.explained,
    )


class _Run:
    def __init__(
        self, spark: SparkSession, case: Case, feed: Feed, rng: random.Random, folder: Path, budget: int
    ) -> None:
        """With a `budget` of one byte, rows leave a worker's memory after each of its batches."""
        self._spark = spark
        self._budget = budget
        self._case = case
        self._feed = feed
        self._rng = rng
        self._folder = folder
        self._files = folder / "in"
        self._files.mkdir(parents=True)
        self._at_source = rng.random() < 0.5
        self._watermark = 0
        self._latest: int | None = None
        self._offered = 0
        self.models: dict[str, Model] = {}
        self.differences: list[str] = []
        self.by_spark = self.explained = self.at_once = 0
        self._all_the_time: dict[str, Query] = {}

    def all_parts(self) -> None:
        batches = self._feed.batches
        self._write(-1, range(0))  # an empty file, so that the schema is known
        self._advance(range(0))
        queries = self._queries()
        if not queries or not len(self._feed.times):
            return
        cut = self._rng.randrange(len(batches) + 1) if self._rng.random() < 0.5 else 0
        names = sorted(queries)
        first = [name for name in names if self._rng.random() < 0.7] or names
        second = [name for name in names if self._rng.random() < 0.7] or names
        parts = [(first, batches[:cut]), (second, batches[cut:])] if cut else [(names, batches)]
        gone: dict[str, int] = {}
        for number, (wanted, own) in enumerate(parts):
            for name in list(self.models):
                if name not in wanted:
                    gone[name] = self._watermark
            for name in wanted:
                if name not in self.models or name in gone:
                    if name in gone:
                        continue  # one that came again would need two models
                    first_us = -NOWHERE if number == 0 or self._latest is None else self._latest + 1
                    window = queries[name].window
                    assert window is not None
                    self.models[name] = Model(window, first_us)
            wanted = [name for name in wanted if name not in gone]
            if not wanted:
                continue
            for batch in own:
                self._write(batch.start, batch)
                for name in wanted:
                    self.models[name].take(batch, self._feed.times, self._watermark)
                self._advance(batch)
            error = self._run({name: self._case.workload[name].text for name in wanted})
            if error is not None:
                self.differences.append(error)
                return
        if len(parts) == 1:
            self._all_the_time = queries
        for name, model in self.models.items():
            self._compare(name, queries[name], model, gone.get(name, self._watermark))

    def compare_with_streaming(self) -> None:
        """Spark's own streaming queries: equal, but for windows that lost records, where their rule may differ."""
        for name, query in self._all_the_time.items():
            started = replace(query, outputs=(*query.outputs, Output(Expression.parse(BEGIN), COPY)), order=())
            try:
                streamed = self._streamed(name, started)
            except (AnalysisException, StreamingQueryException):
                continue  # Spark does not stream this aggregate
            self.by_spark += 1
            model = self.models[name]
            expected = self._expected(started, model, self._watermark)
            ours, theirs = (_by_window(result) for result in (expected, streamed))
            # A filter that is pushed below the watermark may hold it back.
            last = max(theirs, default=-NOWHERE) if query.where is not None else NOWHERE
            for start in sorted({*ours, *theirs}):
                if start > last and start not in theirs:
                    continue
                mine, other = (Result(expected.columns, tuple(side.get(start, ()))) for side in (ours, theirs))
                generated = self._case.workload[name]
                generated = replace(generated, ordered=False, comparisons=(*generated.comparisons, EXACT))
                try:
                    check(generated, mine, other, self._case.table.num_rows)
                except AssertionError as error:
                    if start in model.lost:
                        self.explained += max(len(mine.rows), len(other.rows))
                    else:
                        self.differences.append(f"{name}, window {start}, Spark's streaming differs: {error}")

    def _streamed(self, name: str, query: Query) -> Result:
        schema = self._case.schema
        reader = self._spark.readStream.schema(schema.spark()).option("maxFilesPerTrigger", 1)
        frame = reader.parquet(str(self._files)).withWatermark(
            schema.time, f"{self._feed.lateness_us} microseconds"
        )
        frame.createOrReplaceTempView(schema.view)
        place = self._folder / "spark" / name
        writer = self._spark.sql(query.sql).writeStream.outputMode("append").format("parquet")
        writer = writer.option("checkpointLocation", str(place / "checkpoint")).trigger(availableNow=True)
        writer.start(str(place / "out")).awaitTermination()
        return collect(self._spark.read.parquet(str(place / "out")))

    def _advance(self, rows: range) -> None:
        times = [us for us in (self._feed.times[row] for row in rows) if us is not None]
        if times:
            self._latest = max(times) if self._latest is None else max(self._latest, *times)
            self._watermark = max(self._watermark, self._latest - self._feed.lateness_us)

    def _write(self, name: int, rows: range) -> None:
        path = self._files / f"part-{name + 1:06}.parquet"
        pq.write_table(self._feed.table.slice(rows.start, len(rows)), path, row_group_size=max(1, len(rows) // 2))
        self._offered += 1
        os.utime(path, (1_700_000_000 + self._offered, 1_700_000_000 + self._offered))

    def _stream(self) -> Stream:
        schema = self._case.schema
        lateness = f"{self._feed.lateness_us} microseconds"
        if self._at_source:
            return Stream.parquet(str(self._files), schema.table, schema.time, lateness)
        reader = self._spark.readStream.schema(schema.spark()).option("maxFilesPerTrigger", 1)
        return Stream(reader.parquet(str(self._files)), schema.table, schema.time, lateness)

    def _queries(self) -> dict[str, Query]:
        """Those that can run in a stream, and whose answer can be compared."""
        stream = Stream.parquet(str(self._files), self._case.schema.table, self._case.schema.time)
        found = {}
        for name, generated in self._case.workload.items():
            if generated.may_fail or generated.witness is not None:
                continue
            query = Workload({name: generated.text}, stream)[name]
            window = query.window
            if not query.shareable or window is None or query.limit is not None or query.offset is not None:
                continue
            if (window.time.column or "").lower() != self._case.schema.time.lower():
                continue
            columns = outcome(lambda q=query: collect(self._over(q, self._feed.table.slice(0, 0), "true")))  # type: ignore[misc]
            if isinstance(columns, Failure) or len({name.lower() for name, _ in columns.columns}) < len(
                columns.columns
            ):
                continue
            if Workload({name: generated.text}).plan(stream, spark=self._spark).beside:
                continue
            found[name] = query
        return found

    def _run(self, texts: Mapping[str, str]) -> str | None:
        out, checkpoint = str(self._folder / "out"), str(self._folder / "checkpoint")
        try:
            live = Workload(texts).start(
                self._stream(),
                sink=out,
                checkpoint=checkpoint,
                spark=self._spark,
                trigger="available now",
                files_per_batch=1 if self._at_source else None,
                budget=self._budget,
            )
            live.await_termination()
            live.stop()
            self.at_once += sum(progress.given_at_once for progress in live.recent_progress)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is reported with its seed
            return f"{type(error).__name__}: {error}"
        return None

    def _compare(self, name: str, query: Query, model: Model, watermark_us: int) -> None:
        actual = outcome(lambda: self._given(name, query))
        expected = outcome(lambda: self._expected(query, model, watermark_us))
        generated = self._case.workload[name]
        if isinstance(expected, Result) and isinstance(actual, Result) and not expected.rows and not actual.rows:
            return
        try:
            check(replace(generated, ordered=False), expected, actual, self._case.table.num_rows)
        except AssertionError as error:
            more = f"\n{actual.error}" if isinstance(actual, Failure) else ""
            way = "at the source" if self._at_source else "through Spark"
            self.differences.append(f"{name}, {way}, lateness {self._feed.lateness_us}:\n{error}{more}")

    def _given(self, name: str, query: Query) -> Result:
        folder = self._folder / "out" / name
        frame = self._over(query, self._feed.table.slice(0, 0), "true")
        columns = tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)
        if not folder.exists():
            return Result(columns, ())
        return collect(self._spark.read.parquet(str(folder)))

    def _expected(self, query: Query, model: Model, watermark_us: int) -> Result:
        """All windows that have been given, from one copy of each record for each window that it counts for."""
        rows, starts = [], []
        for row, us in enumerate(self._feed.times):
            for start in model.starts(us) if us is not None and row in model.seen else ():
                if row not in model.lost.get(start, ()):
                    rows.append(row)
                    starts.append(start)
        begin, end = (f"unix_micros(CAST(window.{edge} AS TIMESTAMP))" for edge in ("start", "end"))
        given = f"{begin} = {COPY} AND {end} <= {watermark_us} AND {begin} >= {model.first_us}"
        table = self._feed.table.take(pa.array(rows, pa.int64())).append_column(COPY, pa.array(starts, pa.int64()))
        own = replace(query, keys=(*query.keys, Expression.parse(COPY)))
        return collect(self._over(own, table, given))

    def _over(self, query: Query, table: pa.Table, having: str) -> DataFrame:
        """A query over a table, with one more condition of its windows."""
        both = f"({query.having.sql}) AND ({having})" if query.having is not None else having
        schema = self._case.schema.spark()
        if COPY in table.column_names:
            schema = schema.add(COPY, "long")
        frame = self._spark.createDataFrame(table, schema=schema).coalesce(1)
        frame.createOrReplaceTempView(self._case.schema.view)
        return self._spark.sql(replace(query, having=Expression.parse(both), order=()).sql)
