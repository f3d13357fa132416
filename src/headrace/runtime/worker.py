"""What runs inside Spark's workers: both levels over Arrow batches, and the rows that go between them.

The functions of `Work` are handed to Spark's `mapInArrow`. A row of theirs is a partial for a bucket, rows of an
answer that are kept somewhere, or what the task measured (see `PIECES`).
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa

from headrace.kernel.answer import window_edges
from headrace.kernel.cascade import Measures
from headrace.kernel.conditions import Conditions
from headrace.kernel.due import Due
from headrace.kernel.high import Lot, homes, is_for, merge_lots
from headrace.kernel.low import LowLevel, Stretch
from headrace.kernel.narrow import Column, array_of, joined
from headrace.kernel.piece import Partial, Piece, Ready
from headrace.kernel.records import Inputs
from headrace.kernel.shelf import Bytes, Kept, Reader, Shelf
from headrace.plan.plan import Plan
from headrace.query import Expression, Window
from headrace.runtime.profile import pack_measures
from headrace.runtime.scratch import Scratch
from headrace.runtime.told import Told

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

PIECES = (
    "task int, bucket int, node int, answer int, rows bigint, "
    "place string, start bigint, size bigint, crc bigint, blob binary, measures string"
)
_ARROW = {
    "int": pa.int32(),
    "bigint": pa.int64(),
    "string": pa.string(),
    "binary": pa.binary(),
}


def arrow_schema(lines: str) -> pa.Schema:
    """The schema that a text like `PIECES` gives to Spark, for Arrow."""
    return pa.schema([(name, _ARROW[kind]) for name, kind in map(str.split, lines.split(","))])


SCHEMA = arrow_schema(PIECES)

_FEW_ROWS = 1 << 13
"""So many rows of an answer are kept together, at least."""
_MOST_LINES = 256
_MOST_BYTES = 1 << 24
"""No more go to Spark at a time."""

Batches = Iterator[pa.RecordBatch]


def on_tasks(spark: SparkSession, count: int, run: Callable[[int], Batches], lines: str | StructType) -> DataFrame:
    """So many tasks, each of which knows its number; `lines` is the schema of what they give."""

    def numbered(batches: Batches) -> Batches:
        for number in [number.as_py() for batch in batches for number in batch.column(0)]:
            yield from run(number)

    return spark.range(0, count, 1, count).mapInArrow(numbered, lines)


_Item = TypeVar("_Item")


def shared_out(items: Iterable[_Item], size: Callable[[_Item], float], most: int) -> list[list[_Item]]:
    """What each of so many tasks has, at most: the largest first, each to the one that has least."""
    own: list[list[_Item]] = [[] for _ in range(most)]
    least = [(0.0, task) for task in range(most)]
    for item in sorted(items, key=size, reverse=True):
        taken, task = least[0]
        heapq.heapreplace(least, (taken + size(item), task))
        own[task].append(item)
    return [lot for lot in own if lot]


@dataclass(frozen=True, slots=True)
class Brief:
    """All that has to be known of a plan to run it.

    `schemas` are those of the answers' columns, and `conditions` those that can be computed of rows.
    """

    plan: Plan
    inputs: tuple[Expression, ...]
    schemas: tuple[pa.Schema, ...]
    conditions: Conditions


@dataclass(frozen=True, slots=True)
class Work:
    """What a worker does, and with what; it travels with each task.

    `scratch` is where partials and answers are kept (None: Spark has them). Partials are dealt to `buckets`, small
    enough for the processor's cache, and these to so many `tasks`.
    """

    brief: Told[Brief]
    budget: int
    buckets: int
    tasks: int
    scratch: Scratch | None
    due: Due | None = None
    """In a stream: what is wanted of the plan for now."""

    @property
    def plan(self) -> Plan:
        """The plan that it is about."""
        return self.brief.value.plan

    def low(
        self,
        inputs: Inputs,
        records: Iterable[tuple[pa.RecordBatch, int | None]],
        own: Stretch | None = None,
    ) -> Batches:
        """Records, each batch with the time that no later one goes below (where known), to pieces."""
        brief = self.brief.value
        level = LowLevel(brief.plan, inputs, self.budget, self.buckets, own, brief.conditions)
        yield from self.rows(level.run(records), level.measures)

    def high(self, lots: Mapping[Lot, Iterable[tuple[int, Kept]]]) -> Batches:
        """Partials, lot by lot, each with its node, to answers and to partials for the last time."""
        brief, measures = self.brief.value, Measures()
        # Files are held as long as it is there: longer than any rows of theirs.
        reader = self.scratch.reader() if self.scratch is not None else Reader(None)
        partials = {lot: ((node, *reader.read(kept)) for node, kept in own) for lot, own in lots.items()}
        pieces = merge_lots(brief.plan, self.buckets, partials, brief.conditions, measures, self.due)
        yield from self.rows(pieces, measures)

    def homes(self, last: bool) -> list[Lot]:
        """The lots that have an answer also where no partial comes to them."""
        return homes(self.plan, self.buckets, last)

    def shuffled(self, pieces: DataFrame, last: bool = False) -> DataFrame:
        """Partials of a bucket together, by Spark; a last time only where a node's rows are still in several.

        What is an answer, or for the last time, passes through.
        """
        if last and not self.plan.split_nodes:
            return pieces

        def high(batches: Batches) -> Batches:
            from pyspark import TaskContext  # in the worker

            context = TaskContext.get()
            assert context is not None
            own = [home for home in self.homes(last) if home.bucket % self.tasks == context.partitionId()]
            lots: dict[Lot, list[tuple[int, Kept]]] = {home: [] for home in own}
            for batch in batches:
                passing = []
                for row, values in enumerate(batch.drop_columns(["blob"]).to_pylist()):
                    node = values["node"]
                    if node is None or not is_for(self.plan, node, last):
                        passing.append(row)
                    else:
                        lot, blob = Lot.of(self.plan, node, values["bucket"]), batch["blob"][row].as_buffer()
                        lots.setdefault(lot, []).append((node, Kept(blob)))
                if passing:
                    yield batch.take(passing)
            yield from self.high(lots)

        return pieces.repartitionById(self.tasks, "task").mapInArrow(high, PIECES)

    def rows(self, pieces: Iterator[Piece], measures: Measures) -> Batches:
        """Pieces, which are kept, and what was measured, as rows of `PIECES`."""
        answers, partials = self._shelves()
        lines = _Lines()
        for piece in _gathered(pieces):
            if isinstance(piece, Partial):
                places = partials.keep(piece.columns, [(part.first, part.end) for part in piece.parts])
                for part, kept in zip(piece.parts, places, strict=True):
                    task, rows = part.bucket % self.tasks, part.end - part.first
                    yield from lines.add(task=task, bucket=part.bucket, node=piece.node, rows=rows, kept=kept)
            else:
                (kept,) = answers.keep(piece.columns, [(0, piece.rows)])
                yield from lines.add(task=0, answer=piece.answer, rows=piece.rows, kept=kept)
        answers.close()
        partials.close()
        yield from lines.add(task=0, measures=pack_measures(measures))
        yield from lines.rest()

    def _shelves(self) -> tuple[Shelf, Shelf]:
        """Where answers go, and partials."""
        return self.scratch.shelves() if self.scratch is not None else (Bytes(), Bytes())


def typed(columns: Iterable[Column], rows: int, schema: pa.Schema, window: Window | None) -> pa.RecordBatch:
    """The columns of an answer as its schema has them: a window's number becomes the struct of its edges."""
    if not len(schema):
        return pa.record_batch([pa.nulls(rows)], ["none"]).select([])
    arrays: list[pa.Array] = []
    for field, column in zip(schema, columns, strict=True):
        if window is not None and not arrays:
            times = map(pa.array, window_edges(window, np.asarray(array_of(column))))
            struct = [time.view(inner.type) for time, inner in zip(times, field.type, strict=True)]
            arrays.append(pa.StructArray.from_arrays(struct, fields=list(field.type)))
        else:
            # Times come in the session's zone, which is not part of a value.
            arrays.append(array_of(column).cast(field.type))
    return pa.record_batch(arrays, schema=schema)


def _gathered(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Pieces of at least some rows each: what is less waits for more of the same answer."""
    waiting: dict[int, list[Ready]] = {}
    rows: Counter[int] = Counter()
    for piece in pieces:
        if isinstance(piece, Partial):
            yield piece
        elif piece.rows:
            waiting.setdefault(piece.answer, []).append(piece)
            rows[piece.answer] += piece.rows
            if rows[piece.answer] >= _FEW_ROWS:
                del rows[piece.answer]
                yield _joined(waiting.pop(piece.answer))
    for parts in waiting.values():
        yield _joined(parts)


def _joined(parts: Sequence[Ready]) -> Ready:
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.columns for part in parts), strict=True)
    rows = sum(part.rows for part in parts)
    return Ready(parts[0].answer, rows, tuple(map(joined, columns)))


class _Lines:
    """Rows of `PIECES` on their way to Spark, several at a time."""

    def __init__(self) -> None:
        self._waiting: list[dict[str, object]] = []
        self._bytes = 0

    def add(self, kept: Kept | None = None, **values: object) -> Batches:
        """One more row; gives those that have waited, where they are enough."""
        if kept is not None:
            values |= kept._asdict()
            self._bytes += len(kept.blob or b"")
        self._waiting.append(values)
        if len(self._waiting) >= _MOST_LINES or self._bytes >= _MOST_BYTES:
            yield from self.rest()

    def rest(self) -> Batches:
        """Those that wait."""
        if self._waiting:
            yield pa.RecordBatch.from_pylist(self._waiting, schema=SCHEMA)
        self._waiting, self._bytes = [], 0
