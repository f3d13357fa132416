"""Down the tree: the rows of a node to its answers, and to the rows of its children."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from headrace.algebra.ops import Words
from headrace.algebra.words import Valid
from headrace.kernel.answer import finish
from headrace.kernel.conditions import Conditions
from headrace.kernel.due import Due, only
from headrace.kernel.fragments import columns_of, sign
from headrace.kernel.parent import Parent
from headrace.kernel.piece import Piece, Ready, send
from headrace.kernel.records import Coding
from headrace.kernel.reduce import Extra, Reducer
from headrace.kernel.rows import Rows
from headrace.kernel.sure import Sure
from headrace.plan.plan import Node, Plan
from headrace.plan.slices import Slices
from headrace.query import Expression

_ROOM = 1.5
"""Room for groups, in times of those that are expected: a small table stays in the nearest caches."""


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


class Gathering(Protocol):
    """Where rows of a node come together that are not all there yet."""

    def pour(self, parent: Parent) -> None:
        """Take in what a parent's rows, all of some slices, have for it."""


@dataclass(frozen=True, slots=True)
class Cascade:
    """The way of rows, when all rows of some groups are here.

    `whole` says of which nodes that is true, if it is of their parents': others leave as partials, to where all
    rows meet. `gatherings` are the nodes whose rows have to wait for more. Carried rows leave the source, all of
    them, so that there are none left for others to carry.
    """

    plan: Plan
    buckets: int
    whole: Callable[[int], bool]
    gatherings: Mapping[int, Gathering]
    measures: Measures
    conditions: Conditions
    at_source: bool = False
    due: Due | None = None
    """What is wanted, where it is not all;"""
    into: Plan | None = None
    """a plan with a root for each answer, whose rows are wanted in place of answers."""

    def run(self, index: int, rows: Rows, above: Sure | None = None) -> Iterator[Piece]:
        """All that comes of a node's rows; `above` is about those that they were made of, where these are here."""
        node = self.plan.nodes[index]
        if not self.whole(index):
            yield from send(self.plan, index, rows, self.buckets)
            return
        if self.due is not None and not self._chosen_above(index, self.due):
            rows = only(rows, self.due.nodes[index])
        children = [child for child in self.plan.children(index) if self.due is None or child in self.due.nodes]
        sure, parent = Sure(node, rows, above), Parent(node, rows, [self.plan.nodes[child] for child in children])
        for number in self.plan.answers_of(index):
            if self.due is None or self.due.answers.get(number) == self.due.nodes[index]:
                yield from self._answer(number, parent, sure)
            elif number in self.due.answers:
                wanted = Parent(node, only(rows, self.due.answers[number]))
                yield from self._answer(number, wanted, sure)
        for child in (children[place] for place in parent.in_turn):
            if self.plan.carried(child):
                yield from self._carried(child, parent)
                continue
            begin, measure = time.perf_counter(), self.measures.node(child)
            if child in self.gatherings:
                self.gatherings[child].pour(parent)
                measure.add(len(rows), 0, 0, time.perf_counter() - begin)
            else:
                made = reduce_to(parent, self.plan.nodes[child], self.conditions, self._share(index, child))
                measure.add(len(rows), len(made), made.nbytes, time.perf_counter() - begin)
                yield from self.run(child, made, sure)

    def _share(self, parent: int, child: int) -> float:
        """Which part of a parent's rows a child is thought to have."""
        return self.plan.rows[child] / max(1.0, self.plan.rows[parent])

    def _chosen_above(self, index: int, due: Due) -> bool:
        """Whether a node's rows come from those that are wanted of its parent, all of which are wanted here."""
        above, nodes = self.plan.parents[index], self.plan.nodes
        return (
            above is not None
            and nodes[above].slices == nodes[index].slices
            and due.nodes[above] == due.nodes[index]
        )

    def _answer(self, number: int, parent: Parent, sure: Sure) -> Iterator[Piece]:
        """A query's answer from the rows of its node."""
        answer = self.plan.answers[number]
        if self.into is not None:
            (place,) = (other.node for other in self.into.answers if other.query.name == answer.query.name)
            yield from send(self.into, place, reduce_to(parent, self.into.nodes[place], {}), self.buckets)
            return
        measure, rows = self.measures.answer(number), parent.rows
        measure.rows_in += len(rows)
        begin = time.perf_counter()
        for columns, count in finish(parent.node, answer, rows, sure.of(answer)):
            size = sum(column.nbytes for column in columns)
            measure.add(0, count, size, time.perf_counter() - begin)
            yield Ready(number, count, tuple(columns))
            begin = time.perf_counter()

    def carry(self, index: int, rows: Rows) -> Iterator[Piece]:
        """Only what is carried of a node's rows, and of those that are made of them, which may be in part here."""
        parent = Parent(self.plan.nodes[index], rows)
        for child in self.plan.children(index):
            if self.plan.carried(child):
                yield from self._carried(child, parent)
            elif self.plan.carries(child):
                yield from self.carry(child, reduce_to(parent, self.plan.nodes[child], self.conditions))

    def _carried(self, child: int, parent: Parent) -> Iterator[Piece]:
        if self.at_source:
            above, node = parent.node, self.plan.nodes[child]
            keys = [*range(above.slices is not None), *map(above.place_of, node.keys)]
            fragment = [above.fragment_place] if node.marks else []
            rows = parent.rows.only([*keys, *fragment], above.states_at(node.states))
            self.measures.node(child).add(len(rows), len(rows), rows.nbytes, 0.0)
            yield from send(self.plan, child, rows, self.buckets)


def make_reducer(node: Node, expect: int = 0) -> Reducer:
    """An empty reducer for the rows of a node."""
    return Reducer([state.op for state in node.states], expect)


def reduce_to(parent: Parent, child: Node, conditions: Conditions, share: float = 1.0) -> Rows:
    """The rows of a child from those of its parent, of which it is thought to have this share."""
    if len(parent.rows) and parent.in_order(child):
        return parent.rows_of(child, Coding())
    reducer = make_reducer(child, expect=int(len(parent.rows) * min(1.0, _ROOM * share)))
    pour(parent, child, reducer, Coding(), conditions)
    return reducer.rows


def pour(above: Parent, child: Node, into: Reducer, coding: Coding, conditions: Conditions) -> None:
    """Put what a parent's rows have for a child into its reducer; `coding` is for longer slices and fragments."""
    parent, rows = above.node, above.rows
    if len(rows) == 0:
        return
    keys: list[int | Extra] = [parent.place_of(key) for key in child.keys]
    if child.marks and child.marks == parent.marks:
        keys.append(parent.fragment_place)
    elif child.marks:
        keys.append(_fragments(child.marks, above, coding, conditions))
    if child.slices is not None and child.slices == parent.slices:
        keys = [0, *keys]
    elif isinstance(child.slices, Slices) and isinstance(parent.slices, Slices):
        keys = [_longer_slices(parent.slices, child.slices, rows, coding), *keys]
    wanted = []
    if child.any_of != parent.any_of:
        truths = [above.truth(condition, conditions) for condition in child.any_of]
        wanted.append(np.logical_or.reduce(truths))
    if isinstance(child.slices, Slices) and child.slices.gaps and child.slices != parent.slices:
        wanted.append(_in_no_gap(parent, child.slices, rows))
    states = parent.states_at(child.states)
    into.pour(rows, keys, states, np.flatnonzero(np.logical_and.reduce(wanted)) if wanted else None)


def _longer_slices(own: Slices, longer: Slices, rows: Rows, coding: Coding) -> Extra:
    """The longer slice that each row's own is in."""

    def lengthen(times: Words) -> Words:
        return coding.encode(longer, pa.array(longer.number_of(times))).plain()

    codes = rows.at_starts(own, lengthen)
    return Extra(coding.coder(longer), codes)


def _in_no_gap(parent: Node, slices: Slices, rows: Rows) -> Valid:
    """Which of a parent's rows are of time that is in slices."""
    own = parent.slices
    assert own is not None, "slices are made of slices"
    return rows.at_starts(own, slices.covers)


def _fragments(marks: tuple[Expression, ...], parent: Parent, coding: Coding, conditions: Conditions) -> Extra:
    """The fragment by these marks that each of a parent's rows is in."""
    if set(marks) <= set(parent.node.marks):
        truths, own = parent.fragments
        places = [parent.node.marks.index(mark) for mark in marks]
        codes = coding.encode(marks, sign(truths[:, places])).plain()[own]
    else:
        codes = coding.encode(marks, sign(columns_of([parent.truth(mark, conditions) for mark in marks]))).plain()
    return Extra(coding.coder(marks), codes)
