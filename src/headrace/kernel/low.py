"""The low level: records to partials of the plan's roots, inside the worker that reads them.

A task that reads a stretch of time of its own has all records of the epochs in it. It makes their answers at once:
such rows need not travel.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.algebra.ops import Words
from headrace.kernel.cascade import Cascade, Measures
from headrace.kernel.piece import Piece, epoch_numbers, send
from headrace.kernel.records import Coding, Records
from headrace.kernel.reduce import Reducer
from headrace.kernel.rows import Rows
from headrace.plan.plan import Node, Plan, Slices
from headrace.query import Expression

_TABLE_SHARE = 2
"""One part in so many of a worker's memory is for roots and coders; the rest is for what is made of them."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """The time whose records a task has all of, and no other task any of: [start, end), None for open ends."""

    time: Expression
    start_us: int | None
    end_us: int | None


class LowLevel:
    """One pass over the records of a task: each batch goes to every root of the plan."""

    def __init__(
        self, plan: Plan, inputs: Sequence[Expression], budget: int, buckets: int, own: Stretch | None = None
    ) -> None:
        self.measures = Measures()
        self._inputs = tuple(inputs)
        self._coding = Coding()
        self._budget = budget // _TABLE_SHARE
        self._roots = [_Root(plan, root, own, self.measures, buckets) for root in plan.roots]

    def add(self, batch: pa.RecordBatch) -> Iterator[Piece]:
        """Take in a batch, whose columns are the plan's inputs in order; gives what memory has no room for."""
        columns = dict(zip(self._inputs, batch.columns, strict=True))
        records = Records(columns, batch.num_rows, self._coding)
        for root in self._roots:
            root.add(records)
            if self._bytes > self._budget:
                yield from max(self._roots, key=lambda root: root.bytes).leave()
        if self._bytes > self._budget:
            # The coders know too many values.
            for root in self._roots:
                yield from root.leave()
            self._coding.clear()

    @property
    def _bytes(self) -> int:
        return self._coding.bytes + sum(root.bytes for root in self._roots)

    def close(self, until_us: int) -> Iterator[Piece]:
        """No record to come is earlier: epochs that have ended are answered."""
        for root in self._roots:
            yield from root.close(until_us)

    def finish(self) -> Iterator[Piece]:
        """All records have been seen."""
        for root in self._roots:
            yield from root.finish()


class _Root:
    """A root's table in one task."""

    def __init__(self, plan: Plan, root: int, own: Stretch | None, measures: Measures, buckets: int) -> None:
        self._index = root
        self._node = plan.nodes[root]
        self._deal = plan.deal_of(root)
        self._reducer = make_reducer(self._node)
        self._measure = measures.node(root)
        self._cascade = Cascade(plan, buckets, self._deal.without_key, measures)
        self._first, self._end = _whole_epochs(self._deal.epoch, own)
        self._closed = self._first
        self._left: set[int] = set()
        """Epochs some of whose rows have left already: their answers are made where these went."""

    @property
    def bytes(self) -> int:
        """Memory that the table holds; none where no row would leave it."""
        return self._reducer.bytes if len(self._reducer) else 0

    def add(self, records: Records) -> None:
        begin = time.perf_counter()
        chosen = records.chosen(self._node)
        rows = records.rows if chosen is None else len(chosen)
        if rows:
            coders, codes = records.keys(self._node)
            self._reducer.add(coders, codes, records.slots(self._node), rows, chosen)
        self._measure.add(records.rows, 0, 0, time.perf_counter() - begin)

    def close(self, until_us: int) -> Iterator[Piece]:
        if self._deal.epoch is None or self._first >= self._end:
            return
        closed = min((until_us - self._deal.epoch.offset_us) // self._deal.epoch.size_us, self._end)
        if closed > self._closed and len(self._reducer):
            self._closed = closed
            rows = self._reducer.take()
            yet_to_come = self._numbers(rows) >= closed
            if yet_to_come.any():
                self._reducer.put_back(rows.where(yet_to_come))
                rows = rows.where(~yet_to_come)
            yield from self._answer(rows)

    def finish(self) -> Iterator[Piece]:
        yield from self._answer(self._reducer.take())

    def _answer(self, rows: Rows) -> Iterator[Piece]:
        """Rows of epochs that are whole here down the tree, all others on their way."""
        self._measure.add(0, len(rows), rows.matrix.nbytes, 0.0)
        if self._first >= self._end or len(rows) == 0:
            yield from send(self._node, self._index, rows, self._deal, self._buckets)
            return
        numbers = self._numbers(rows)
        whole = (numbers >= self._first) & (numbers < self._end)
        if self._left:
            whole &= ~np.isin(numbers, list(self._left))
        if not whole.all():
            yield from send(self._node, self._index, rows.where(~whole), self._deal, self._buckets)
            rows = rows.where(whole)
        if len(rows):
            yield from self._cascade.run(self._index, rows)

    def leave(self) -> Iterator[Piece]:
        """Let all rows go."""
        rows = self._reducer.take()
        self._measure.add(0, len(rows), rows.matrix.nbytes, 0.0)
        if len(rows) and self._first < self._end:
            self._left |= set(np.unique(self._numbers(rows)).tolist())
        yield from send(self._node, self._index, rows, self._deal, self._buckets)

    @property
    def _buckets(self) -> int:
        return self._cascade.buckets

    def _numbers(self, rows: Rows) -> Words:
        assert self._deal.epoch is not None, "only rows of epochs are closed"
        return epoch_numbers(self._node, rows, self._deal.epoch)


_FOREVER = 2**62


def _whole_epochs(epoch: Slices | None, own: Stretch | None) -> tuple[int, int]:
    """The first epoch that lies inside a stretch of time, and the first one after that does not."""
    if epoch is None or own is None or epoch.time != own.time:
        return 0, 0
    first = -_FOREVER if own.start_us is None else -((epoch.offset_us - own.start_us) // epoch.size_us)
    end = _FOREVER if own.end_us is None else (own.end_us - epoch.offset_us) // epoch.size_us
    return first, end


def make_reducer(node: Node) -> Reducer:
    """An empty reducer for the rows of a node."""
    return Reducer([state.op for state in node.states])


def node_inputs(node: Node) -> tuple[Expression, ...]:
    """The expressions over the stream that a node needs."""
    needed = [*node.keys]
    if node.filter is not None:
        needed.append(node.filter)
    if node.slices is not None:
        needed.append(node.slices.time)
    for state in node.states:
        needed += [*state.arguments, *([state.condition] if state.condition is not None else [])]
    return tuple(dict.fromkeys(needed))
