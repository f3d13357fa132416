"""`headrace bench stream`: files as a stream, to completion, by plain Spark, its usual workaround and headrace.

Plain Spark runs a streaming query for each question, all at a time. The workaround is one streaming query whose
function groups each cached micro-batch for all questions, and leaves it to readers to merge what it writes. All
read the same number of files at a time and write Parquet. Answers are compared before anything is reported.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq

from headrace.bench.check import Check, compare, compare_total, totalled
from headrace.bench.contest import Task, Tell
from headrace.bench.feed import Feed
from headrace.bench.in_spark import check_frame, stream_of, workload_of
from headrace.bench.question import Data, Question, read_data
from headrace.bench.text import spark_text
from headrace.errors import BenchError
from headrace.runtime.live.sinks import WindowAnswer
from headrace.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LATENESS_S = 10
LATENESS = f"{LATENESS_S} seconds"
_LONG_AGO = 1_700_000_000
_SHORT_S = 60.0
_ROUNDS = 3
"""An engine that takes less than a minute runs so many times, and the median counts."""


@dataclass(frozen=True, slots=True)
class StreamRun:
    """One engine: how long it took for all records, and the rows of its answers."""

    engine: str
    seconds: float
    rows_out: int
    scan_s: float = 0.0
    """What of it is reading alone, where that was measured."""
    rounds: tuple[float, ...] = ()
    """All that the seconds are the median of, where there are several."""


@dataclass(frozen=True, slots=True)
class Latency:
    """From the record that ends a window to its answer, at a steady rate: seconds of all windows."""

    records_per_second: int
    windows: int
    median_s: float
    most_s: float


@dataclass(frozen=True)
class StreamReport:
    """What was measured."""

    rows: int
    queries: int
    cores: int
    files_per_batch: int
    runs: tuple[StreamRun, ...]
    latency: Latency | None = None

    @property
    def ratios(self) -> dict[str, float]:
        """How many times as long as headrace others took; Flink's, and then headrace's, without reading."""
        by_engine = {run.engine: run for run in self.runs}
        own = by_engine.get("headrace")
        if own is None:
            return {}
        found = {name: run.seconds / own.seconds for name, run in by_engine.items() if name != "headrace"}
        if (flink := by_engine.get("flink")) is not None:
            found["flink"] = (flink.seconds - flink.scan_s) / max(1e-9, own.seconds - own.scan_s)
        return found

    def to_json(self) -> dict[str, Any]:
        """All of it, as the other benchmarks have it."""
        runs = [{"records_per_second": round(self.rows / run.seconds), **asdict(run)} for run in self.runs]
        plain = {"workload": "stream", "rows": self.rows, "queries": self.queries, "cores": self.cores}
        more = {"files_per_batch": self.files_per_batch, "runs": runs, "ratios": self.ratios}
        return {**plain, **more, "latency": asdict(self.latency) if self.latency is not None else None}


@dataclass
class StreamBench:
    """The engines over one folder of files."""

    task: Task
    spark: SparkSession
    scratch: Path
    files_per_batch: int
    tell: Tell
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def run(self, engines: Sequence[str]) -> list[StreamRun]:
        """Each engine once for warming up, on the first files, and then in earnest; answers are compared.

        Those that take little time go on in turns when all have run: so a machine that gets slower, or faster,
        is so for all of them.
        """
        ways: Mapping[str, Callable[[Data, Path], float]] = {
            "headrace": self._headrace,
            "spark": self._spark_queries,
            "foreach_batch": self._foreach_batch,
        }
        took: dict[str, list[float]] = {}
        rows: dict[str, int] = {}
        checks: dict[str, Mapping[str, Check]] = {}
        few = self._first_files()
        chosen = [engine for engine in engines if engine in ways]
        for turn in range(_ROUNDS):
            for engine in chosen:
                if turn == 0:
                    self.tell(f"warming up: {engine}")
                    ways[engine](few, out := self._place())
                    shutil.rmtree(out)
                elif took[engine][0] > _SHORT_S:
                    continue
                self.tell(f"{engine}: {self.task.data.rows:,} records, {len(self.task.questions)} queries")
                self._settle()
                out = self._place()
                seconds = ways[engine](self.task.data, out)
                took.setdefault(engine, []).append(seconds)
                if engine == "foreach_batch":
                    rows[engine] = self._check_totals(out)
                else:
                    checks[engine] = self._checks(out)
                    rows[engine] = sum(check.rows for check in checks[engine].values())
                shown = f"{self.task.data.rows / seconds:,.0f} records/s, {rows[engine]:,} rows"
                self.tell(f"{engine}: {seconds:.1f} s, {shown}")
                shutil.rmtree(out)
            for (one, first), (other, second) in itertools.pairwise(checks.items()):
                compare(one, first, other, second, self.task.measure_names)
        return [
            StreamRun(
                engine,
                median(seconds),
                rows[engine],
                self._scan_s() if engine == "headrace" else 0.0,
                tuple(seconds) if len(seconds) > 1 else (),
            )
            for engine, seconds in took.items()
        ]

    def _headrace(self, data: Data, out: Path) -> float:
        stream = stream_of(data, LATENESS)
        workload = workload_of(self.task.questions, data, stream)
        begin = time.perf_counter()
        live = workload.start(
            stream,
            sink=str(out / "answers"),
            checkpoint=str(out / "checkpoint"),
            spark=self.spark,
            trigger="available now",
            files_per_batch=self.files_per_batch,
        )
        live.await_termination()
        seconds = time.perf_counter() - begin
        live.stop()
        return seconds

    def _spark_queries(self, data: Data, out: Path) -> float:
        """A streaming query for each question, all started at once, as a user would have them."""
        begin = time.perf_counter()
        self._records(data).withWatermark(data.time, LATENESS).createOrReplaceTempView(data.stream)
        running = []
        for question in self.task.questions:
            writer = self.spark.sql(spark_text(question, data)).writeStream.outputMode("append")
            writer = writer.option("checkpointLocation", str(out / "checkpoints" / question.name))
            place = str(out / "answers" / question.name)
            running.append(writer.trigger(availableNow=True).format("parquet").start(place))
        for query in running:
            query.awaitTermination()
        return time.perf_counter() - begin

    def _foreach_batch(self, data: Data, out: Path) -> float:
        """Each micro-batch cached, and grouped for every question; windows that go on are not merged."""

        def write(frame: DataFrame, batch: int) -> None:
            frame.persist()
            frame.createOrReplaceTempView(data.stream)
            for question in self.task.questions:
                answer = frame.sparkSession.sql(spark_text(question, data))
                answer.write.mode("overwrite").parquet(str(out / "answers" / question.name / f"{batch}.parquet"))
            frame.unpersist()

        begin = time.perf_counter()
        writer = self._records(data).writeStream.foreachBatch(write)
        writer = writer.option("checkpointLocation", str(out / "checkpoint"))
        writer.trigger(availableNow=True).start().awaitTermination()
        return time.perf_counter() - begin

    def _records(self, data: Data) -> DataFrame:
        schema = self.spark.read.parquet(str(data.path)).schema
        reader = self.spark.readStream.schema(schema).option("maxFilesPerTrigger", self.files_per_batch)
        return reader.parquet(str(data.path))

    def _scan_s(self) -> float:
        """What it takes to read the columns of all questions as headrace reads them: by pyarrow, on all cores."""
        columns = self.task.columns
        begin = time.perf_counter()
        for file in self.task.data.files:
            pq.read_table(file, columns=columns)
        return time.perf_counter() - begin

    def _checks(self, out: Path) -> dict[str, Check]:
        found = {}
        for question in self.task.questions:
            place = out / "answers" / question.name
            if not place.exists():
                raise BenchError(f"no window of '{question.name}' was complete: take more records")
            found[question.name] = check_frame(question, self.spark.read.parquet(str(place)), self.task)
        return found

    def _check_totals(self, out: Path) -> int:
        """The workaround's answers are in parts: what can be added up must add up to all records."""
        rows = 0
        everything = self.spark.read.parquet(str(self.task.data.path))
        for question in self.task.questions:
            frame = self.spark.read.option("recursiveFileLookup", "true").parquet(
                str(out / "answers" / question.name)
            )
            rows += frame.count()
            if (measure := totalled(question)) is not None:
                total = "count(*)" if measure.function == "count" else f"sum({measure.value})"
                (expected,), (found,) = (
                    frame.selectExpr(text).collect()[0]
                    for frame, text in ((everything, total), (frame, f"sum({measure.name})"))
                )
                compare_total("foreach_batch", question, measure, found, expected)
        return rows

    def _settle(self) -> None:
        """What others have written is on the disk, and records are in memory: nobody pays for the one before."""
        os.sync()
        for file in self.task.data.files:
            file.read_bytes()

    def _place(self) -> Path:
        place = self.scratch / f"stream-{next(self._numbers)}"
        place.mkdir()
        return place

    def _first_files(self) -> Data:
        """The files of the first micro-batch, and one of the next, which goes on from it: to warm up with."""
        files = self.task.data.files[: self.files_per_batch + 1]
        return in_order(files, self.task.data, self.scratch / "first")


def in_order(files: Sequence[Path], data: Data, folder: Path) -> Data:
    """Files in a folder of their own: engines go by the time of a file, and so read them in this order."""
    folder.mkdir()
    for number, file in enumerate(files):
        shutil.copyfile(file, folder / file.name)
        os.utime(folder / file.name, (_LONG_AGO + number, _LONG_AGO + number))
    return read_data(folder, data.stream, data.time)


_WINDOW_S = 5


def measure_latency(
    spark: SparkSession, questions: Sequence[Question], data: Data, scratch: Path, rate: int, seconds: int
) -> Latency:
    """Answers at a steady rate: records of the data, with the time of their arrival, a file every second.

    A window can be answered from the moment on at which a record after its end is there.
    """
    feed = Feed(data, scratch / "feed", rate)
    given: dict[float, float] = {}

    def note(answer: WindowAnswer) -> None:
        end = answer.end.timestamp()
        given[end] = max(given.get(end, 0.0), time.time())

    live = Workload(feed.texts(questions, f"{_WINDOW_S} seconds")).start(
        feed.stream(),
        sink=note,
        checkpoint=str(scratch / "feed-checkpoint"),
        spark=spark,
        trigger="0 seconds",
    )
    with live, feed:
        live.await_termination(seconds)
    waits = []
    for end, when in sorted(given.items()):
        there = next((moment for latest, moment in feed.arrived if latest >= end), None)
        if there is not None:
            waits.append(when - there)
    waits = waits[2:]  # the first ones wait for code to be compiled
    if not waits:
        raise BenchError("no window was answered: take more seconds")
    return Latency(rate, len(waits), median(waits), max(waits))
