"""The questions by plain Spark and by headrace, which share one session: a process can have no second one."""

from __future__ import annotations

import gc
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.bench.check import Check, to_check
from headrace.bench.contest import Task, Timing
from headrace.bench.memory import MemoryWatch, java_pid
from headrace.bench.question import Data, Question
from headrace.bench.text import SPARK, check_columns, spark_text
from headrace.runtime.known import forget
from headrace.runtime.results import Results
from headrace.sources import Stream
from headrace.workload import Workload

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class InSpark:
    """Plain Spark, query by query, each answer written to nowhere."""

    engine = "spark"
    label = "spark (queries)"

    def __init__(self, task: Task, spark: SparkSession) -> None:
        self._task = task
        self._spark = spark

    def warm_up(self) -> Mapping[str, Check]:
        """One untimed round, in which each answer goes into its check."""
        self._register()
        return {q.name: check_frame(q, self._frame(q), self._task) for q in self._task.questions}

    def wake(self) -> None:
        """The first question's answer, written to nowhere."""
        self._register()
        write_nowhere(self._frame(self._task.questions[0]))

    def measure(self) -> Sequence[Timing]:
        """One timed round; where only some questions are timed, the seconds are those that all would take."""
        timed = self._task.timed_by_spark
        with _watched(self._spark) as memory:
            begin = time.perf_counter()
            self._register()
            for question in timed:
                write_nowhere(self._frame(question))
            seconds = (time.perf_counter() - begin) * len(self._task.questions) / len(timed)
        return [Timing("queries", seconds, memory.peak_mb, memory.largest_below_mb)]

    def close(self) -> None:
        """The session is its owner's to stop."""

    def _register(self) -> None:
        stream_of(self._task.data).register(self._spark)

    def _frame(self, question: Question) -> DataFrame:
        return self._spark.sql(spark_text(question, self._task.data))


class InHeadrace:
    """headrace, all queries at once."""

    engine = "headrace"
    label = "headrace"

    def __init__(self, task: Task, spark: SparkSession) -> None:
        self._task = task
        self._spark = spark
        self._stream = stream_of(task.data)
        self._workload = workload_of(task.questions, task.data, self._stream)
        self._first = workload_of(task.questions[:1], task.data, self._stream)

    def warm_up(self) -> Mapping[str, Check]:
        """One untimed round, with the checks of its answers."""
        with self._run() as results:
            return {q.name: check_frame(q, results[q.name], self._task) for q in self._task.questions}

    def wake(self) -> None:
        """The first question's answer."""
        self._first.run(self._stream, spark=self._spark).release()

    def measure(self) -> Sequence[Timing]:
        """One timed round: until all answers are computed, and until Spark has read all of them.

        Before it, one in which the plan is made anew.
        """
        forget()
        anew = replace(self.measure_run(), variant="anew")
        with _watched(self._spark) as memory:
            begin = time.perf_counter()
            results = self._run()
            run_s = time.perf_counter() - begin
            run = Timing("run", run_s, memory.peak_mb, memory.largest_below_mb)
            for frame in results.values():
                write_nowhere(frame)
            read_s = time.perf_counter() - begin
        results.release()
        return [anew, run, Timing("read", read_s, memory.peak_mb, memory.largest_below_mb)]

    def measure_run(self) -> Timing:
        """One timed round without the reading."""
        with _watched(self._spark) as memory:
            begin = time.perf_counter()
            results = self._run()
            seconds = time.perf_counter() - begin
        results.release()
        return Timing("run", seconds, memory.peak_mb, memory.largest_below_mb)

    def close(self) -> None:
        """The session is its owner's to stop."""

    def _run(self) -> Results:
        return self._workload.run(self._stream, spark=self._spark)


def stream_of(data: Data, lateness: str | None = None) -> Stream:
    """Data as headrace's stream."""
    return Stream.parquet(str(data.path), data.stream, data.time, lateness)


def workload_of(questions: Sequence[Question], data: Data, stream: Stream) -> Workload:
    """Questions as headrace's workload over a stream."""
    return Workload({question.name: spark_text(question, data) for question in questions}, stream)


def write_nowhere(frame: DataFrame) -> None:
    """Compute every row and keep none."""
    frame.write.format("noop").mode("overwrite").save()


def check_frame(question: Question, frame: DataFrame, task: Task) -> Check:
    """The check of an answer that Spark holds or can compute."""
    columns = check_columns(question, task.data.kinds, SPARK)
    return to_check(frame.selectExpr(*(f"{column} AS c{i}" for i, column in enumerate(columns))).collect()[0])


def _watched(spark: SparkSession) -> MemoryWatch:
    """A watch over the session's memory, in which one contestant leaves no garbage to the next."""
    gc.collect()
    jvm: Any = spark._jvm
    jvm.System.gc()
    return MemoryWatch(java_pid(spark))
