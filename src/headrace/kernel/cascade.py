"""Down the tree: the rows of a node to its answers, and to the rows of its children."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from headrace.kernel.answer import finish
from headrace.kernel.piece import Piece, Ready, send
from headrace.kernel.rows import Rows
from headrace.plan.plan import Deal, Node, Plan


@dataclass(slots=True)
class Measure:
    """What one node cost: rows that came in and went out, the bytes of those, and seconds."""

    rows_in: int = 0
    rows_out: int = 0
    bytes_out: int = 0
    seconds: float = 0.0

    def add(self, rows_in: int, rows_out: int, bytes_out: int, seconds: float) -> None:
        """Count some more."""
        self.rows_in += rows_in
        self.rows_out += rows_out
        self.bytes_out += bytes_out
        self.seconds += seconds


@dataclass(slots=True)
class Measures:
    """What each node cost in this task, and what its answers did."""

    nodes: dict[int, Measure] = field(default_factory=dict)
    answers: dict[int, Measure] = field(default_factory=dict)

    def node(self, index: int) -> Measure:
        """The measure of a node."""
        return self.nodes.setdefault(index, Measure())

    def answer(self, number: int) -> Measure:
        """The measure of an answer."""
        return self.answers.setdefault(number, Measure())


@dataclass(frozen=True, slots=True)
class Cascade:
    """The way of one root's rows, when all rows of some groups are here.

    `deal` is how rows came here, so that some rows of a node's groups may be elsewhere: these nodes leave as
    partials once more, to where all of them meet.
    """

    plan: Plan
    buckets: int
    deal: Deal
    measures: Measures

    def run(self, index: int, rows: Rows) -> Iterator[Piece]:
        """All that comes of a node's rows."""
        node = self.plan.nodes[index]
        if not self.plan.whole(index, self.deal):
            yield from send(node, index, rows, Deal(), self.buckets)
            return
        for number in self.plan.answers_of(index):
            measure = self.measures.answer(number)
            measure.rows_in += len(rows)
            begin = time.perf_counter()
            for columns, count in finish(self.plan, self.plan.answers[number], rows):
                size = sum(column.nbytes for column in columns)
                measure.add(0, count, size, time.perf_counter() - begin)
                yield Ready(number, count, tuple(columns))
                begin = time.perf_counter()
        for child in self.plan.children(index):
            begin = time.perf_counter()
            below = reduce_to(node, self.plan.nodes[child], rows)
            seconds = time.perf_counter() - begin
            self.measures.node(child).add(len(rows), len(below), below.matrix.nbytes, seconds)
            yield from self.run(child, below)


def reduce_to(parent: Node, child: Node, rows: Rows) -> Rows:
    """The rows of a child from those of its parent."""
    timed = [0] if child.slices is not None else []
    keys = [*timed, *(parent.place_of(key) for key in child.keys)]
    return rows.reduce(keys, [parent.states.index(state) for state in child.states])[0]
