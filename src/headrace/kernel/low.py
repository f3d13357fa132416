"""The low level: records to partials of the plan's roots, inside the worker that reads them.

A task that reads a stretch of time of its own has all records of the slices in it. It makes their answers at once:
such rows need not travel.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.ops import Words
from headrace.kernel.cascade import Cascade, Measure, Measures, make_reducer, pour
from headrace.kernel.conditions import Conditions
from headrace.kernel.due import only
from headrace.kernel.parent import Parent
from headrace.kernel.piece import Piece, send, slice_numbers
from headrace.kernel.records import Coding, Inputs, Records
from headrace.kernel.rows import Rows
from headrace.plan.levels import row_bytes, table_row_bytes
from headrace.plan.plan import Node, Plan
from headrace.plan.slices import FOREVER_US, Times, Windows
from headrace.query import Expression

_TABLE_SHARE = 2
"""One part in so many of a worker's memory is for roots and coders; the rest is for what is made of them."""
_ROUND_SHARE = 2
"""One part in so many of the memory for roots is for rows that wait to become windows."""

_MANY_BYTES = 1 << 23
"""Rows of slices that have ended wait for more until they take so much: beyond it, tables leave the cache."""
_WAITING_SHARE = 4
"""No rows wait where all together take one part in so many of the memory for roots."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The time whose records a task has all of, and no other task any of: [start, end), None for open ends."""

    time: Expression
    start_us: int | None
    end_us: int | None


class LowLevel:
    """One pass over the records of a task: each batch goes to every root of the plan."""

    def __init__(
        self,
        plan: Plan,
        inputs: Inputs,
        budget: int,
        buckets: int,
        own: Stretch | None = None,
        conditions: Conditions | None = None,
        open_from: Mapping[int, int] | None = None,
    ) -> None:
        """`open_from` is for a stream: when the first slice of each root begins that is still wanted.

        Rows of earlier ones are dropped, and others leave slice by slice. Rows of roots alone may leave then: a
        root whose rows gather further down, where they might have to, is not answered here.
        """
        # A root that no record gets to is shown as well, with nothing.
        self.measures = Measures(nodes={root: Measure() for root in plan.roots})
        self._plan = plan
        self._buckets = buckets
        self._inputs = inputs
        self._coding = Coding()
        self._conditions = conditions or {}
        self._open_from = open_from
        self._budget = table_bytes(budget)
        below = [index for index in range(len(plan.nodes)) if plan.gathers(index) and not plan.rises(index)]
        sources = {index: next((way for way in plan.above(index) if way in below), None) for index in below}
        made: dict[int | None, list[int]] = {}
        for index, source in sources.items():
            if isinstance(plan.nodes[index].slices, Windows):
                made.setdefault(source, []).append(index)
            elif plan.nodes[index].ordered:
                made.setdefault(index, []).extend(c for c in plan.children(index) if not plan.gathers(c))
        self._stages: dict[int, _Stage] = {}
        live = open_from is not None
        for index, source in sources.items():
            at_once = not live or plan.uniform(plan.root_of(index))
            whole = _whole_slices(plan.nodes[index].slices, own if at_once else None)
            self._stages[index] = _Stage(
                index,
                plan.nodes[index],
                self._coding,
                whole,
                _ALWAYS if live else whole,
                self._conditions,
                self._stages[source] if source is not None else None,
                self._enough(index, made[index], len(made)) if index in made else _MANY_BYTES,
            )
        self._following = {
            index: [self._stages[other] for other in plan.below(index) if other in self._stages]
            for index in self._stages
        }
        """The stages whose rows come from a stage's, itself among them."""
        self._cascade = Cascade(
            plan,
            buckets,
            lambda node: True,
            self._stages,
            self.measures,
            self._conditions,
            at_source=True,
        )

    def _enough(self, index: int, made: Iterable[int], stages: int) -> int:
        """The memory of rows of which nodes are made together: their share, with room for the rows of these."""
        rows, nodes = self._plan.rows, self._plan.nodes
        own = max(1.0, rows[index]) * table_row_bytes(nodes[index])
        more = sum(rows[node] * row_bytes(nodes[node]) for node in made)
        return int(self._budget / (_ROUND_SHARE * stages) * own / (own + more))

    def run(self, records: Iterable[tuple[pa.RecordBatch, int | None]]) -> Iterator[Piece]:
        """All records, each batch with the time that no later one goes below (where known)."""
        for batch, until_us in records:
            yield from self.add(batch)
            if until_us is not None:
                yield from self.close(until_us)
        yield from self.finish()

    def add(self, batch: pa.RecordBatch) -> Iterator[Piece]:
        """Take in a batch, whose columns are the plan's inputs; gives what memory has no room for."""
        records = Records(self._inputs, batch, self._coding)
        held = self._bytes
        for root in self._plan.roots:
            begin, stage = time.perf_counter(), self._stages[root]
            held -= stage.bytes + self._coding.bytes
            stage.add(records)
            held += stage.bytes + self._coding.bytes
            self.measures.node(root).add(records.rows, 0, 0, time.perf_counter() - begin)
            if held > self._budget:
                yield from self._leave(max(self._stages.values(), key=self._room_for_each))
                held = self._bytes
        if self._bytes > self._budget:
            # The coders know too many values.
            for stage in self._stages.values():
                yield from self._leave(stage)
            self._coding.clear()

    def _room_for_each(self, stage: _Stage) -> float:
        """The memory that it gives if rows leave, for each node whose rows have to follow them."""
        return stage.bytes / len(self._following[stage.index])

    @property
    def _bytes(self) -> int:
        return self._coding.bytes + sum(stage.bytes for stage in self._stages.values())

    def _leave(self, stage: _Stage) -> Iterator[Piece]:
        """Let all rows of a node go: what comes of them, also further down, is made where they go."""
        rows = stage.take()
        if len(rows) == 0:
            return
        slices = stage.node.slices
        times = slices.start_of(np.unique(slice_numbers(rows))) if slices is not None else None
        for other in self._following[stage.index]:
            other.has_left(times)
        yield from self._send(stage, rows)

    def close(self, until_us: int) -> Iterator[Piece]:
        """No record to come is earlier: slices that have ended are answered, when that is worth a step."""
        at_once = self._bytes >= self._budget // _WAITING_SHARE
        for stage in self._stages.values():
            for rows, complete in stage.take_ended(until_us, at_once):
                yield from self._answer(stage, rows, complete)

    def finish(self) -> Iterator[Piece]:
        """All records have been seen."""
        for stage in self._stages.values():
            for rows, complete in stage.take_last():
                yield from self._answer(stage, rows, complete)

    def _answer(self, stage: _Stage, rows: Rows, complete: bool) -> Iterator[Piece]:
        """Rows of slices that are whole here down the tree, all others on their way."""
        if len(rows) and not complete:
            whole = stage.whole(rows)
            if not whole.all():
                yield from self._send(stage, rows.where(~whole))
            rows = rows.where(whole)
        if len(rows):
            self.measures.node(stage.index).add(0, len(rows), rows.nbytes, 0.0)
            yield from self._cascade.run(stage.index, rows)

    def _send(self, stage: _Stage, rows: Rows) -> Iterator[Piece]:
        if self._open_from is not None and stage.node.slices is not None:
            rows = only(rows, (stage.node.slices.first_from(self._open_from[stage.index]), FOREVER_US))
        self.measures.node(stage.index).add(0, len(rows), rows.nbytes, 0.0)
        yield from send(self._plan, stage.index, rows, self._buckets, self._open_from is not None)
        if self._plan.carries(stage.index):
            yield from self._cascade.carry(stage.index, rows)


class _Stage:
    """A node whose rows gather in one task until their slices have ended.

    Roots are such, and nodes with longer slices than their parent. They wait until they take `enough` memory:
    a step down the tree has its price, and the more slices come at a time, the less it takes to make windows.
    """

    def __init__(
        self,
        index: int,
        node: Node,
        coding: Coding,
        whole: tuple[int, int],
        leaving: tuple[int, int],
        conditions: Conditions,
        above: _Stage | None,
        enough: int,
    ) -> None:
        """Slices that are `whole` here, and those that leave when they have ended, from one to before another.

        `above` is the stage that rows come from, on the way to others; None says records.
        """
        self._above = above
        self._enough = enough
        self._passed = -FOREVER_US, -FOREVER_US
        """Of the rows that have gone on last: since when their slices had ended, and until when."""
        self._complete: list[Rows] = []
        """Windows all of whose slices came at a time: they need not gather."""
        self.index = index
        self.node = node
        self._coding = coding
        self._conditions = conditions
        self._reducer = make_reducer(node)
        self._first, self._end = whole
        self._closed, self._leaving_end = leaving
        self._settled = self._closed
        self._left: set[int] = set()
        """Slices some of whose rows have left already: their answers are made where these went."""

    @property
    def bytes(self) -> int:
        """Memory that rows hold which gather; none where no row would leave it."""
        return self._reducer.bytes if len(self._reducer) else 0

    def add(self, records: Records) -> None:
        """Take in those of a batch of records that the node is about."""
        chosen = records.chosen(self.node)
        rows = records.rows if chosen is None else len(chosen)
        if rows:
            coders, codes = records.keys(self.node)
            self._reducer.add(coders, codes, records.slots(self.node), rows, chosen)

    def pour(self, parent: Parent) -> None:
        """See `Gathering`."""
        if len(parent.rows) == 0:
            return
        if not isinstance(self.node.slices, Windows):
            pour(parent, self.node, self._reducer, self._coding, self._conditions)
            return
        assert self._above is not None, "windows are made of slices, whose rows gather too"
        rows = parent.rows_of(self.node, self._coding)
        if len(rows) == 0:
            return
        since_us, until_us = self._above._passed
        numbers = slice_numbers(rows)
        first, end = self.node.slices.first_from(since_us), self.node.slices.open_at(until_us)
        complete = self._inside(numbers, max(first, self._first), min(end, self._end))
        if complete.any():
            self._complete.append(rows.where(complete))
        if not complete.all():
            rest = rows.where(~complete)
            self._reducer.pour(rest, range(len(rest.coders)), range(len(rest.ops)))

    def take(self) -> Rows:
        """All rows, which leave."""
        return self._reducer.take()

    def take_last(self) -> Iterator[tuple[Rows, bool]]:
        """All rows, which leave, and whether they are known to be complete: there are no more to come."""
        self._passed = self._passed[1], FOREVER_US
        yield from self._take_complete()
        yield self.take(), False

    def take_ended(self, until_us: int, at_once: bool) -> Iterator[tuple[Rows, bool]]:
        """The rows of slices that have ended since this was last asked, if they are enough or wanted at once.

        No record to come is earlier; but rows that wait further up are. Says if they are known to be complete.
        """
        until_us = until_us if self._above is None else self._above._passed[1]
        if self.bytes < self._enough and not at_once:
            self._settle(until_us)
            return
        self._passed = self._passed[1], until_us
        yield from self._take_complete()
        closed = self._closed_at(until_us)
        if len(self._reducer) == 0 or closed <= self._closed:
            return
        self._closed = closed
        rows = self._reducer.take()
        yet_to_come = slice_numbers(rows) >= closed
        self._reducer.put_back(rows.where(yet_to_come))
        yield rows.where(~yet_to_come), False

    def _settle(self, until_us: int) -> None:
        """Slices that have ended get no more rows."""
        if self._reducer.crowded and (closed := self._closed_at(until_us)) > self._settled:
            self._settled = closed
            self._reducer.settle(lambda rows: slice_numbers(rows) >= closed)

    def _closed_at(self, until_us: int) -> int:
        """The first slice that has not ended, of those that are about the task's time."""
        slices = self.node.slices
        return self._closed if slices is None else min(slices.open_at(until_us), self._leaving_end)

    def _take_complete(self) -> Iterator[tuple[Rows, bool]]:
        complete, self._complete = self._complete, []
        yield from ((rows, True) for rows in complete)

    def whole(self, rows: Rows) -> npt.NDArray[np.bool_]:
        """Which rows are of slices whose records this task has all of."""
        if self._first >= self._end:
            return np.zeros(len(rows), dtype=np.bool_)
        return self._inside(slice_numbers(rows), self._first, self._end)

    def _inside(self, numbers: Words, first: int, end: int) -> npt.NDArray[np.bool_]:
        """Which slices are from one to before another, and have no rows that have left."""
        inside = (numbers >= first) & (numbers < end)
        return inside & ~np.isin(numbers, list(self._left)) if self._left else inside

    def has_left(self, times: Words | None) -> None:
        """Rows of slices that begin at these times have left; None says of all time."""
        if self.node.slices is not None and times is not None and self._first < self._end:
            self._left |= set(self.node.slices.numbers_at(times).tolist())


_ALWAYS = -FOREVER_US, FOREVER_US


def _whole_slices(slices: Times | None, own: Stretch | None) -> tuple[int, int]:
    """The first slice that lies inside a stretch of time, and the first one after that does not."""
    if slices is None or own is None or slices.time != own.time:
        return 0, 0
    first = -FOREVER_US if own.start_us is None else slices.first_from(own.start_us)
    end = FOREVER_US if own.end_us is None else slices.open_at(own.end_us)
    return first, end


def table_bytes(budget: int) -> int:
    """How much of a worker's memory is for the rows of roots, and for those that gather."""
    return budget // _TABLE_SHARE


def node_inputs(node: Node) -> tuple[Expression, ...]:
    """The expressions over the stream that a node needs."""
    needed = [*node.keys, *node.any_of, *node.marks]
    if node.slices is not None:
        needed.append(node.slices.time)
    for state in node.states:
        needed += state.inputs
    return tuple(dict.fromkeys(needed))


def plan_inputs(plan: Plan) -> tuple[Expression, ...]:
    """The expressions over the stream that a plan's roots need."""
    return tuple(dict.fromkeys(e for root in plan.roots for e in node_inputs(plan.nodes[root])))
