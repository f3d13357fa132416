"""One random workload through the shared engine, in several ways, against plain Spark.

Of the twelve ways (at the source or through Spark, 1 or 4 partitions, three budgets) each workload goes three: one
for each budget, such that both ways in and both numbers of partitions are among them. Over 36 seeds in a row every
one of the twelve is gone equally often, in every company. All twelve would take four times as long and find the
same: what fails in one way for a reason of its own fails for other workloads too.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from headrace import Query, Stream, Workload
from headrace.plan import plan as plan_module
from headrace.plan.plan import Plan
from headrace.runtime.results import Results
from tests.harness.brackets import plain_text, with_brackets
from tests.harness.cases import Case, case_of_seed, check
from tests.harness.choices import Seeded
from tests.harness.result import Failure, Outcome, collect, outcome

BUDGETS = {512 << 20: "512 MiB", 1 << 20: "1 MiB", 4 << 10: "4 KiB"}
"""Memory for the tables of one worker: the default, one that is exceeded now and then, one that always is."""

PARTITIONS = 4
ROW_GROUPS = 3  # per file, so that a task has more than one batch and a small budget is exceeded in the middle
BATCH_ROWS = 8  # of what Spark hands to a worker, for the same reason

# Not all the same: three runs of a workload, of which each has one of two properties.
_MIXED = (
    *((True, False, True), (False, True, False), (True, True, False)),
    *((False, False, True), (True, False, False), (False, True, True)),
)

SETTINGS = {
    "spark.default.parallelism": "2",  # so many tasks merge, and read at the source: more cost time only
    "spark.sql.shuffle.partitions": "1",  # the data is tiny; more would only start more tasks
    "spark.sql.adaptive.enabled": "false",  # replanning costs a third of a small query's time
    # Statistics of Parquet leave NaN out: Spark skips row groups whose NaN it would take for greater than all.
    "spark.sql.parquet.filterPushdown": "false",
    "spark.sql.codegen.wholeStage": "false",  # compiling a query costs more than running it on tiny data
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # the same, for projections
    "spark.driver.memory": "2g",
}
"""The session that is fastest for tiny data."""


_THREADS = ThreadPoolExecutor(4)


@dataclass(frozen=True)
class Way:
    """How a workload is run."""

    at_source: bool
    partitions: int
    budget: int

    def __str__(self) -> str:
        place = "at the source" if self.at_source else "through Spark"
        return f"{place}, {self.partitions} partitions, {BUDGETS[self.budget]}"


def ways_of_seed(seed: int) -> tuple[Way, ...]:
    """The three ways that a seed's workload goes."""
    places, split = _MIXED[seed % 6], _MIXED[seed // 6 % 6]
    return tuple(
        Way(at_source, PARTITIONS if several else 1, budget)
        for at_source, several, budget in zip(places, split, BUDGETS, strict=True)
    )


@dataclass(frozen=True)
class Difference:
    """An answer that is not plain Spark's."""

    seed: int
    way: Way
    query: str
    text: str
    message: str

    def __str__(self) -> str:
        return f"seed {self.seed}, {self.query}, {self.way}:\n{self.message}"


@dataclass(frozen=True)
class Report:
    """What one workload showed. `refused` are the queries that plain Spark cannot run."""

    seed: int
    texts: Mapping[str, str]
    rows: int
    shared: int
    beside: Counter[str]
    refused: int
    differences: tuple[Difference, ...]
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """One line of a record."""
        counts = {"seed": self.seed, "rows": self.rows, "queries": len(self.texts), "shared": self.shared}
        failed = [str(difference) for difference in self.differences]
        more = {"beside": dict(self.beside), "refused": self.refused, "seconds": round(self.seconds, 2)}
        return counts | more | {"differences": failed}


def fuzz(spark: SparkSession, seed: int, max_queries: int, folder: Path) -> Report:
    """Run the workload of a seed in its three ways; `folder` is for its Parquet files."""
    started = time.monotonic()
    case = with_brackets(case_of_seed(seed, max_queries), Seeded(seed))
    run = _Run(spark, seed, case, folder)
    with small_batches(spark), pytest.MonkeyPatch.context() as patch:
        if seed % 2:
            patch.setattr(plan_module, "_MANY_MARKS", 2)  # rows are put in order for few filters already
        run.all_ways()
    seconds = time.monotonic() - started
    refused = sum(isinstance(expected, Failure) for expected in run.expected.values())
    return Report(
        seed, case.texts, case.table.num_rows, run.shared, run.beside, refused, tuple(run.differences), seconds
    )


@contextmanager
def small_batches(spark: SparkSession) -> Iterator[None]:
    """Spark hands few rows at a time to a worker."""
    key = "spark.sql.execution.arrow.maxRecordsPerBatch"
    before = str(spark.conf.get(key))
    spark.conf.set(key, str(BATCH_ROWS))
    try:
        yield
    finally:
        spark.conf.set(key, before)


class _Run:
    """The runs of one workload."""

    def __init__(self, spark: SparkSession, seed: int, case: Case, folder: Path) -> None:
        self._spark = spark
        self._seed = seed
        self._case = case
        self._folder = folder
        case.register(spark)
        # Once: every way is compared with the same answers.
        self.expected = self._answers({name: plain_text(case, name) for name in case.workload})
        self._witnesses = self._answers({n: query.witness for n, query in case.workload.items() if query.witness})
        self.shared = 0
        self.beside: Counter[str] = Counter()
        self.differences: list[Difference] = []

    def all_ways(self) -> None:
        """All queries that Spark can run together, in each way; the others alone, in one way."""
        texts = {n: text for n, text in self._case.texts.items() if not isinstance(self.expected[n], Failure)}
        refused = [name for name in self._case.texts if name not in texts]
        ways = ways_of_seed(self._seed)
        if texts:
            plan: Plan | None = None
            for way in ways:
                if plan is None or plan.answers:
                    plan = self._together(texts, way, plan)
        for name in refused:
            self._alone(name, ways[0])

    def _together(self, texts: Mapping[str, str], way: Way, plan: Plan | None) -> Plan | None:
        """Run in one way. Queries beside the plan are plain Spark's in every way: the first compares them."""
        names = list(texts) if plan is None else [answer.query.name for answer in plan.answers]
        with self._stream(way) as stream:
            try:
                workload = Workload(texts, stream)
                if plan is None:
                    plan = workload.plan(stream, spark=self._spark)
                    self.shared = len(plan.answers)
                    self.beside.update(reason_kind(reason, workload[name]) for name, reason in plan.beside)
                results = workload.run(stream, spark=self._spark, budget=way.budget)
            except Exception as error:  # noqa: BLE001 - whatever it is, it is reported with its seed
                self._differs("all", "\n".join(texts.values()), way, f"{type(error).__name__}: {error}")
                return plan
            self._compare(names, results, way)
        return plan

    def _compare(self, names: Iterable[str], results: Results, way: Way) -> None:
        seen: set[str] = set()
        for name, actual in _outcomes({name: results[name] for name in names}).items():
            if isinstance(actual, Failure) and str(actual) in seen:
                continue  # one failing job fails the answers of all queries
            self._check(name, actual, way)
            if isinstance(actual, Failure):
                seen.add(str(actual))

    def _alone(self, name: str, way: Way) -> None:
        """A query that fails in plain Spark fails here too."""
        text = self._case.texts[name]
        with self._stream(way) as stream:
            run = partial(Workload.run, stream=stream, spark=self._spark, budget=way.budget)
            actual = outcome(lambda: collect(run(Workload({name: text}))[name]))
        self._check(name, actual, way)

    def _check(self, name: str, actual: Outcome, way: Way) -> None:
        query = self._case.workload[name]
        try:
            witness = self._witnesses.get(name)
            check(query, self.expected[name], actual, self._case.table.num_rows, witness)
        except AssertionError as error:
            more = f"\n{actual.error}" if isinstance(actual, Failure) else ""
            self._differs(name, query.text, way, f"{error}{more}")

    def _differs(self, name: str, text: str, way: Way, message: str) -> None:
        self.differences.append(Difference(self._seed, way, name, text, message))

    def _answers(self, texts: Mapping[str, str]) -> dict[str, Outcome]:
        """What plain Spark makes of texts."""
        frames: dict[str, DataFrame] = {}
        refused: dict[str, Outcome] = {}
        for name, text in texts.items():
            try:
                frames[name] = self._spark.sql(text)
            except AnalysisException as error:
                refused[name] = Failure(error)
        return refused | _outcomes(frames)

    @contextmanager
    def _stream(self, way: Way) -> Iterator[Stream]:
        schema = self._case.schema
        if way.at_source:
            path = self._folder / f"{self._seed}-{way.partitions}"
            if not path.exists():
                write_parts(self._case, path, way.partitions)
            yield Stream.parquet(str(path), schema.table, schema.time)
        else:
            yield Stream(self._case.frame(self._spark, way.partitions), schema.table, schema.time)
        self._spark.catalog.clearCache()


def _outcomes(frames: Mapping[str, DataFrame]) -> dict[str, Outcome]:
    """The outcome of every frame. A small job mostly waits, so that some at a time are faster."""

    def run(frame: DataFrame) -> Outcome:
        return outcome(lambda: collect(frame))

    return dict(zip(frames, _THREADS.map(run, frames.values()), strict=True))


def write_parts(case: Case, path: Path, parts: int) -> None:
    """The table of a case as Parquet: one file with one row group, or several files of several."""
    path.mkdir(parents=True)
    rows = case.table.num_rows
    step = max(1, -(-rows // parts))
    for part in range(parts):
        piece = case.table.slice(part * step, step)
        size = step if parts == 1 else max(1, step // ROW_GROUPS)
        pq.write_table(piece, path / f"part-{part}.parquet", row_group_size=size)


def reason_kind(reason: str, query: Query) -> str:
    """Why a query runs beside, without what is only its own: names and expressions."""
    for aggregate in query.aggregates:
        reason = reason.replace(f"{aggregate.sql}: ", f"{aggregate.function.name}: ")
    for key in query.keys:
        reason = reason.replace(f"the key {key.sql} is", "a key is")
    reason = re.sub(r"(decimal128|timestamp)[(\[][^)\]]*[)\]]", r"\1", reason)
    return re.sub(r"'[^']*'", "'...'", reason)
