"""The high level: partials of many low levels meet, cascade down the tree and become answers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from headrace.algebra.lower import Overflow, lower
from headrace.algebra.ops import Words, identity_row, slot_count
from headrace.kernel.low import dealt_by_slice, home_bucket, key_count, make_reducer
from headrace.kernel.partial import pack_pieces, unpack_partial
from headrace.kernel.reduce import Reducer
from headrace.plan.plan import Answer, Plan, Slices
from headrace.query import Window


class AnswerOverflow(ArithmeticError):
    """A sum of a query's that its type cannot hold."""


class HighLevel:
    """One bucket: merges its partials, and gives the answers of its groups."""

    def __init__(self, plan: Plan, bucket: int, buckets: int) -> None:
        self._plan = plan
        self._reducers = {
            root: make_reducer(plan.nodes[root])
            for root in plan.roots
            if dealt_by_slice(plan, root) or home_bucket(root, buckets) == bucket
        }

    def add(self, root: int, blob: bytes) -> None:
        """Take in a partial."""
        keys, slots, rows = unpack_partial(blob, key_count(self._plan.nodes[root]))
        self._reducers[root].add(keys, slots, rows)

    def answers(self) -> Iterator[tuple[int, int, bytes]]:
        """The answers, as (number of the answer, rows, bytes of its columns)."""
        reducers = dict(self._reducers)
        for index, node in enumerate(self._plan.nodes):
            parent = self._plan.parents[index]
            if parent is not None:
                if parent not in reducers:
                    continue
                above = self._plan.nodes[parent]
                timed = [0] if node.slices is not None else []
                keys = [*timed, *(len(timed) + above.keys.index(key) for key in node.keys)]
                reducers[index] = reducers[parent].child(keys, [above.states.index(s) for s in node.states])
            if index in reducers:
                yield from self._answer(index, reducers[index])

    def _answer(self, index: int, reducer: Reducer) -> Iterator[tuple[int, int, bytes]]:
        for number, answer in enumerate(self._plan.answers):
            if answer.node == index:
                columns, rows = finish(self._plan, answer, reducer)
                for size, blob in pack_pieces(columns, rows):
                    yield number, size, blob


def finish(plan: Plan, answer: Answer, reducer: Reducer) -> tuple[list[pa.Array], int]:
    """The columns of an answer: the window's start and end, the query's keys, its aggregates."""
    node, query = plan.nodes[answer.node], answer.query
    window, slices = query.window, node.slices
    if window is not None and slices is not None and window.range_us != slices.size_us:
        reducer = _merge_slices(window, slices, reducer)
        slices = Slices(window.time, window.slide_us, window.offset_us)
    keys, slots, rows = reducer.key_columns(), reducer.slots(), len(reducer)
    if key_count(node) == 0 and rows == 0:
        # Without keys there is one group even where there is no record.
        slots, rows = [np.array([value]) for value in identity_row(reducer.ops)], 1
    if rows == 0:
        return [], 0
    columns = []
    if window is not None and slices is not None:
        starts = _starts(slices, np.asarray(keys[0]))
        columns = [pa.array(starts), pa.array(starts + window.range_us)]
    places = {key: index + (window is not None) for index, key in enumerate(node.keys)}
    columns += [keys[places[key]] for key in query.keys]
    first = np.cumsum([0, *(slot_count(state.op) for state in node.states)])
    for aggregate, recipe in zip(query.aggregates, answer.recipes, strict=True):
        own = [node.states.index(state) for state in recipe.states]
        parts = [slots[slot] for state in own for slot in range(first[state], first[state + 1])]
        try:
            columns.append(lower(recipe, parts))
        except Overflow as error:
            raise AnswerOverflow(f"query '{query.name}', {aggregate.sql}: {error}") from error
    return columns, rows


def _starts(slices: Slices, numbers: Words) -> Words:
    return np.asarray(numbers * slices.size_us + slices.offset_us)


def _merge_slices(window: Window, slices: Slices, reducer: Reducer) -> Reducer:
    """Rows of slices to rows of windows: each slice goes into every window that has it.

    Windows are numbered by their slides, as slices of that length would be.
    """
    if len(reducer) == 0:
        return reducer
    keys, slots = reducer.key_columns(), reducer.slots()
    merged = Reducer(len(keys), reducer.ops)
    starts = _starts(slices, np.asarray(keys[0]))
    latest = (starts - window.offset_us) // window.slide_us
    for back in range(-(-window.range_us // window.slide_us)):
        numbers = latest - back
        inside = numbers * window.slide_us + window.offset_us + window.range_us > starts
        mask = pa.array(inside)
        picked = [pa.array(numbers[inside]), *(key.filter(mask) for key in keys[1:])]
        merged.add(picked, [slot[inside] for slot in slots], int(inside.sum()))
    return merged


def reduce_bucket(
    plan: Plan, bucket: int, buckets: int, partials: Iterable[tuple[int, bytes]]
) -> Iterator[tuple[int, int, bytes]]:
    """All partials of a bucket to its answers."""
    level = HighLevel(plan, bucket, buckets)
    for root, blob in partials:
        level.add(root, blob)
    yield from level.answers()
