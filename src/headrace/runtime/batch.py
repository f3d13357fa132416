"""The batch runtime: one pass over the records for the whole workload, in two levels.

Low level: each task reduces its records to partials, and to answers where it has all records of a slice. High
level: each task merges the partials of a bucket and gives the answers of its groups, or partials that meet a last
time. With a scratch folder, partials and answers lie in its files: the low level is a job, and each meeting one
more where it is worth a job. Without one, all of it is one job: partials cross Spark's shuffle as bytes, and Spark
keeps the answers. Each query's DataFrame reads its own.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.errors import RunError
from headrace.kernel.compiled import load_kernels
from headrace.kernel.records import Inputs
from headrace.kernel.shelf import Kept, Reader
from headrace.plan.levels import travelling
from headrace.plan.plan import Plan
from headrace.query import Query
from headrace.runtime.finish import GroupNames, finishing_sql
from headrace.runtime.known import Known, key_of, recall, remember
from headrace.runtime.meeting import Line, lines_of, meet
from headrace.runtime.prepare import Prepared, prepare
from headrace.runtime.profile import Profile
from headrace.runtime.reference import analyse
from headrace.runtime.results import Results
from headrace.runtime.scratch import make_scratch
from headrace.runtime.session import keep_workers, wake_workers
from headrace.runtime.source import computed, plan_reading
from headrace.runtime.worker import PIECES, Work, on_tasks, typed
from headrace.sources import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_BYTES_PER_RECORD = 64
"""A guess at what a record needs in a table, to choose the number of tasks above."""
_ROWS_PER_BUCKET = 1 << 18
_MOST_BUCKETS = 64
"""Tables of so many rows hardly leave the cache; a task has no more buckets than that many.

More of them, on 10 M records of 200 queries: 14 and 28 take the same time, 56 a tenth more, 112 half as much more.
"""


def bucket_count(plan: Plan, span_us: int | None, cores: int, tasks: int) -> int:
    """How many buckets partials are dealt to, by the rows that travel; each task has as many as any other."""
    rows = travelling(plan, span_us, cores)
    return tasks * max(1, min(_MOST_BUCKETS, round(rows / _ROWS_PER_BUCKET / tasks)))


def run_batch(
    queries: Mapping[str, Query],
    stream: Stream,
    spark: SparkSession,
    budget: int,
    search: str,
    functions: Collection[str],
) -> Results:
    """The answers of all queries: those with states by one shared pass, the others by plain Spark beside it.

    The shared pass is done when this returns. Meanwhile Spark looks at each query as a whole. `functions` are the
    names of the user's own.
    """
    begin = time.perf_counter()
    key = key_of(queries, stream, spark, budget, search, functions)
    with ThreadPoolExecutor(3) as threads:
        waking = threads.submit(wake_workers, spark)
        loading = threads.submit(load_kernels)  # the driver, too, lets partials meet
        known = recall(key)
        prepared = known.prepared.renewed(stream, spark) if known is not None else None
        if known is not None and prepared is not None:
            analysis = threads.submit(_analyse_rest, known.analysed, queries, stream, spark, prepared.frame)
        else:
            frame = stream.dataframe(spark)
            analysis = threads.submit(analyse, queries, stream, spark, frame)
            prepared = prepare(queries, stream, spark, functions, frame, search, budget)
        plan = prepared.plan
        shared = _SharedPass(prepared, stream, spark, budget, analysis)
        measures = shared.run() if plan.answers else []
        analysed = analysis.result()
        waking.result()
        loading.result()
    keep_workers(spark)
    remember(key, Known(prepared, {name: analysed[name] for name in plan.numbers}))
    make = {name: partial(analysed.__getitem__, name) for name, _ in plan.beside}
    make |= {name: partial(shared.frame, number) for name, number in plan.numbers.items()}
    profile = Profile.of(plan, measures, time.perf_counter() - begin)
    return Results({name: make[name] for name in queries}, spark, profile, shared.release)


def _analyse_rest(
    known: Mapping[str, DataFrame],
    queries: Mapping[str, Query],
    stream: Stream,
    spark: SparkSession,
    frame: Callable[[], DataFrame],
) -> dict[str, DataFrame]:
    """Queries that are known, and the others as Spark understands them: they are about the files of today."""
    rest = {name: query for name, query in queries.items() if name not in known}
    return {**known, **(analyse(rest, stream, spark, frame()) if rest else {})}


class _SharedPass:
    """The jobs of a plan's pass over the records, and the answers that they leave."""

    def __init__(
        self,
        prepared: Prepared,
        stream: Stream,
        spark: SparkSession,
        budget: int,
        analysis: Future[dict[str, DataFrame]],
    ) -> None:
        self._prepared = prepared
        self._stream = stream
        self._analysis = analysis
        self._spark = spark
        self._scratch = make_scratch(spark)
        plan, cores = prepared.plan, spark.sparkContext.defaultParallelism
        source = prepared.source
        records = source.records if source is not None else 0
        span_us = source.span_us(stream.time) if source is not None else None
        tasks = max(cores, min(8 * cores, records * _BYTES_PER_RECORD // budget))
        buckets = bucket_count(plan, span_us, cores, tasks)
        self._work = Work(prepared.brief, budget, buckets, tasks, self._scratch)
        self._kept: DataFrame | None = None
        self._places: dict[int, list[Kept]] = {}

    def run(self) -> list[str]:
        """Do it all; gives what tasks have measured."""
        context, group = self._spark.sparkContext, uuid.uuid4().hex
        context.setJobGroup(group, "headrace: one pass", interruptOnCancel=True)
        # A query that Spark refuses should not have to wait for the others' answers.
        self._analysis.add_done_callback(lambda done: context.cancelJobGroup(group) if done.exception() else None)
        try:
            lines = self._lines()
        except RunError:
            self._analysis.result()
            raise
        for line in lines:
            if line.answer is not None and line.place is not None:
                self._places.setdefault(line.answer, []).append(line.kept)
        return [line.measures for line in lines if line.measures is not None]

    def _lines(self) -> list[Line]:
        """What tasks tell of answers, when all are there."""
        work, pieces = self._work, self._low()
        if self._scratch is None:
            self._kept = work.shuffled(work.shuffled(pieces), last=True).persist()
            return lines_of(self._kept)
        lines, partials = meet(work, self._spark, lines_of(pieces))
        self._scratch.let_go({line.place for line in partials if line.place})
        return lines

    def release(self) -> None:
        """Let the answers go."""
        if self._kept is not None:
            self._kept.unpersist()
        if self._scratch is not None:
            self._scratch.let_go({kept.place for own in self._places.values() for kept in own if kept.place})
            self._scratch.remove()

    def _low(self) -> DataFrame:
        """At the source where the kernel knows all that the plan needs of Parquet, else through Spark."""
        work, source = self._work, self._prepared.source
        plan, inputs = work.plan, work.brief.value.inputs
        reading = None
        if source is not None:
            cores = self._spark.sparkContext.defaultParallelism
            ways, facts, session = self._prepared.ways, self._prepared.facts, self._prepared.session
            costs = self._prepared.costs
            reading = plan_reading(source, plan, inputs, ways, facts, session, cores, costs)
        if reading is not None:
            here = reading

            def low(number: int) -> Iterator[pa.RecordBatch]:
                task = here.tasks[number]
                return work.low(here.inputs, here.read(task), here.stretch(task))

            return on_tasks(self._spark, len(here.tasks), low, PIECES)

        def reduce(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            yield from work.low(Inputs(inputs), ((batch, None) for batch in batches))

        return computed(self._prepared.frame(), inputs).mapInArrow(reduce, PIECES)

    def frame(self, number: int) -> DataFrame:
        """A query's DataFrame: its groups, and its own last step."""
        answer = self._prepared.plan.answers[number]
        query = answer.query
        expected = self._analysis.result()[query.name].schema
        groups = GroupNames.of(query, self._stream.column_names)
        sql = finishing_sql(query, groups, expected.names)
        finished = self._spark.sql(sql, groups=self._group_frame(number))
        kinds = [(field.name, field.dataType.simpleString()) for field in finished.schema.fields]
        wanted = [(field.name, field.dataType.simpleString()) for field in expected.fields]
        if kinds != wanted:
            raise RunError(
                f"query '{query.name}' would give {kinds} instead of Spark's {wanted}: please report it"
            )
        return finished

    def _group_frame(self, number: int) -> DataFrame:
        schema, window = self._work.brief.value.schemas[number], self._work.plan.answers[number].query.window
        kinds = spark_schema(schema)
        if self._kept is not None:

            def unpack(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
                reader = Reader(None)
                for batch in batches:
                    for blob in batch["blob"]:
                        yield typed(*reader.read(Kept(blob.as_buffer())), schema, window)

            return self._kept.where(f"answer = {number}").select("blob").mapInArrow(unpack, kinds)
        scratch, places = self._scratch, self._places.get(number, [])
        assert scratch is not None
        tasks = max(1, min(len(places), self._spark.sparkContext.defaultParallelism))

        def read(task: int) -> Iterator[pa.RecordBatch]:
            reader = scratch.reader()
            for kept in places[task::tasks]:
                yield typed(*reader.read(kept), schema, window)

        return on_tasks(self._spark, tasks, read, kinds)


def spark_schema(schema: pa.Schema) -> StructType:
    """The Spark schema of columns that workers give."""
    from pyspark.sql.pandas.types import from_arrow_schema  # see session.py

    return from_arrow_schema(schema, prefer_timestamp_ntz=True)
