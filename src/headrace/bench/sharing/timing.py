"""How long headrace's kernel takes for a query set: both levels in one process, on one core, without Spark.

Records are in memory before the clock starts. What is timed is what a worker does with them: the plan's inputs are
computed, predicates among them, records become rows and rows become answers.
"""

from __future__ import annotations

import gc
import time
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.bench.check import WEIGHTS, Sum
from headrace.bench.sharing.workloads import QuerySet
from headrace.errors import BenchError
from headrace.kernel.conditions import Conditions
from headrace.kernel.evaluate import compile_expression
from headrace.kernel.high import meet_all
from headrace.kernel.low import LowLevel, Stretch, plan_inputs, table_bytes
from headrace.kernel.narrow import array_of
from headrace.kernel.piece import Piece, Ready
from headrace.plan.build import Planner
from headrace.plan.costs import Costs, load_costs
from headrace.plan.guard import guarded
from headrace.plan.member import Facts, all_needed
from headrace.plan.plan import Plan
from headrace.plan.search import DEFAULT
from headrace.plan.sizes import hash_column
from headrace.query import Expression
from headrace.runtime.batch import bucket_count
from headrace.runtime.prepare import facts_of
from headrace.runtime.source import (
    Reading,
    Session,
    Source,
    Ways,
    filters_of,
    find_ways,
    plan_reading,
    sizes_by_sample,
)
from headrace.sources.parquet import read_task
from headrace.sources.stream import open_parquet
from headrace.workload import Workload

BUDGET_BYTES = 4 << 30
"""Enough for all groups of a study: the papers' records are in memory too."""
_LEAST_SECONDS = 1.0
"""Shorter runs are repeated: what else the system does would show."""


@dataclass(frozen=True, slots=True)
class Strategy:
    """How a query set is answered: each query from the records on its own, or all together; by pairs or panes."""

    shared: bool
    paned: bool = False

    @property
    def name(self) -> str:
        """What reports call it."""
        return f"{'shared' if self.shared else 'unshared'} {'paned' if self.paned else 'paired'}"


@dataclass(frozen=True)
class Prepared:
    """A query set with its plan, and the records that it needs, in memory."""

    plan: Plan
    reading: Reading
    batches: tuple[tuple[pa.RecordBatch, int | None], ...]
    """Columns that are read, and the time that no later batch goes below, where known."""
    own: Stretch | None
    conditions: Conditions
    buckets: int

    def run(self) -> Iterator[Ready]:
        """All answers, in parts."""
        return meet_all(self.plan, self._low(), self.buckets, self.conditions)

    def _low(self) -> Iterator[Piece]:
        inputs = self.reading.inputs
        level = LowLevel(self.plan, inputs, BUDGET_BYTES, self.buckets, self.own, self.conditions)
        yield from level.run(self.reading.made(self.batches))

    def seconds(self) -> float:
        """What a run takes, on average of as many as take a second; answers are let go as they come."""
        gc.collect()
        begin, passed, runs = time.perf_counter(), 0.0, 0
        while passed < _LEAST_SECONDS:
            for _ in self.run():
                pass
            passed, runs = time.perf_counter() - begin, runs + 1
        return passed / runs

    def checks(self) -> dict[str, Sum]:
        """One untimed run: what each query's answer comes down to."""
        found = {answer.query.name: Sum() for answer in self.plan.answers}
        for piece in self.run():
            name = self.plan.answers[piece.answer].query.name
            found[name] = found[name].plus(_check(piece))
        return found


def compare(one: str, expected: Mapping[str, Sum], other: str, found: Mapping[str, Sum]) -> None:
    """Raise `BenchError` where two strategies answer differently."""
    wrong = [name for name, check in expected.items() if not check.agrees(found.get(name, Sum()))]
    if wrong or len(found) != len(expected):
        first = f", first {wrong[0]}: {expected[wrong[0]]} and {found.get(wrong[0])}" if wrong else ""
        raise BenchError(f"{one} and {other} answer {len(wrong)} of {len(expected)} queries differently{first}")


def prepare(queries: QuerySet, grouped: bool, path: Path, strategy: Strategy) -> Prepared:
    """Plan a query set over a stream of Parquet as the batch runtime would, and read its records."""
    stream = queries.subject.stream(path)
    workload = Workload(queries.texts(grouped), stream)
    session = _session(path)
    inner = [guarded(query, cache(session.never_raises)) for query in workload.values()]
    needed = all_needed(inner)
    source = Source.of(stream, needed)
    assert source is not None, "a stream of Parquet has a source"
    facts = facts_of({e: _type(e, session) for e in needed}, source)
    ways = find_ways(source, facts, facts, session)
    sizes = sizes_by_sample(source, ways, session, stream.time)
    conditions, filters = filters_of(inner, facts, session)
    costs, search = load_costs(), DEFAULT if strategy.shared else "none"
    memory = table_bytes(BUDGET_BYTES)
    plan = Planner(facts, sizes, 1, costs, memory, filters, strategy.paned).plan(inner, search)
    if plan.beside:
        raise BenchError(f"query '{plan.beside[0][0]}' cannot be shared: {plan.beside[0][1]}")
    buckets = bucket_count(plan, sizes.span_us, cores=1, tasks=1)
    return _read(source, plan, ways, facts, session, costs, conditions, buckets)


def _session(path: Path) -> Session:
    """The types of a stream's columns, as Spark has them."""
    return Session({field.name: _plain(field.type) for field in open_parquet(str(path)).schema}, "UTC", usual=True)


def _plain(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    return pa.timestamp("us", "UTC" if kind.tz else None) if pa.types.is_timestamp(kind) else kind


def _type(expression: Expression, session: Session) -> pa.DataType:
    """The type that Spark gives an expression of a study."""
    if expression.column is not None:
        return session.columns[expression.column]
    for kind in (pa.bool_(), pa.float64(), pa.int64()):
        if compile_expression(expression, session.columns, kind, session.time_zone) is not None:
            return kind
    raise BenchError(f"the kernel does not know {expression.sql}")


def _read(
    source: Source,
    plan: Plan,
    ways: Ways,
    facts: Facts,
    session: Session,
    costs: Costs,
    conditions: Conditions,
    buckets: int,
) -> Prepared:
    reading = plan_reading(source, plan, plan_inputs(plan), ways, facts, session, 1, costs)
    if reading is None:
        raise BenchError("the kernel cannot read these records itself")
    (task,) = reading.tasks
    batches = tuple(read_task(task, reading.names))
    return Prepared(plan, reading, batches, reading.stretch(task), conditions, buckets)


def _check(piece: Ready) -> Sum:
    """The last column is the measure; the others, the window first, say what its row is about."""
    *keys, measure = map(array_of, piece.columns)
    weights = np.ones(piece.rows)
    for number, key in enumerate(keys):
        weights += _hashes(key, number) % np.uint64(WEIGHTS)
    values = np.asarray(measure, dtype=np.float64)
    return Sum(piece.rows, float(values @ weights), float(np.abs(values) @ weights))


def _hashes(key: pa.Array, number: int) -> npt.NDArray[np.uint64]:
    """A hash of each value, whatever the others are: those of text are hashed by their bytes."""
    if not pa.types.is_string(key.type):
        return hash_column(key, number)
    coded = key.dictionary_encode()
    of_each = np.array([zlib.crc32(value.encode(), number) for value in coded.dictionary.to_pylist()], np.uint64)
    return np.take(of_each, np.asarray(coded.indices))
