"""The low level: records to partials of the plan's roots, inside the worker that reads them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.lift import lift
from headrace.algebra.ops import Words
from headrace.algebra.words import Valid, to_words
from headrace.kernel.partial import pack_partial
from headrace.kernel.reduce import Reducer
from headrace.plan.plan import Node, Plan, Slices
from headrace.query import Expression

Columns = Mapping[Expression, pa.Array]


class LowLevel:
    """One pass over the records of a task: each batch goes to every root of the plan."""

    def __init__(self, plan: Plan, inputs: Sequence[Expression], budget: int) -> None:
        self._plan = plan
        self._inputs = tuple(inputs)
        share = budget // max(1, len(plan.roots))
        self._reducers = {root: make_reducer(plan.nodes[root], share) for root in plan.roots}

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in a batch whose columns are the plan's inputs, in their order."""
        columns = dict(zip(self._inputs, batch.columns, strict=True))
        for root, reducer in self._reducers.items():
            node = self._plan.nodes[root]
            chosen, rows = _select(node, columns, batch.num_rows)
            if rows:
                reducer.add(_keys(node, chosen), _slots(node, chosen, rows), rows)

    def partials(self, buckets: int) -> Iterator[tuple[int, int, bytes]]:
        """What has been reduced, as (bucket, root, bytes): equal groups of all tasks are in one bucket."""
        for root, reducer in self._reducers.items():
            reducer.flush()
            for keys, slots in reducer.partials:
                for bucket, part_keys, part_slots in _deal(self._plan, root, keys, slots, buckets):
                    for blob in pack_partial(part_keys, part_slots):
                        yield bucket, root, blob
            reducer.partials.clear()


def key_count(node: Node) -> int:
    """The key columns of a node's rows: the slice, where there are slices, and the keys."""
    return len(node.keys) + (node.slices is not None)


def make_reducer(node: Node, budget: int | None = None) -> Reducer:
    """An empty reducer for the rows of a node."""
    return Reducer(key_count(node), [state.op for state in node.states], budget)


def home_bucket(root: int, buckets: int) -> int:
    """The bucket of a root whose rows all have to meet."""
    return root % buckets


def dealt_by_slice(plan: Plan, root: int) -> bool:
    """Whether rows of different slices never meet again: all windows below are slices."""
    slices = plan.nodes[root].slices
    below = [answer for answer in plan.answers if plan.nodes[answer.node].slices == slices]
    windows = [answer.query.window for answer in below]
    return slices is not None and all(w is not None and w.range_us == w.slide_us for w in windows)


def _deal(
    plan: Plan, root: int, keys: list[pa.Array], slots: list[Words], buckets: int
) -> Iterator[tuple[int, list[pa.Array], list[Words]]]:
    if not dealt_by_slice(plan, root):
        yield home_bucket(root, buckets), keys, slots
        return
    bucket_of_row = np.asarray(keys[0]) % buckets
    for bucket in np.unique(bucket_of_row).tolist():
        rows = np.flatnonzero(bucket_of_row == bucket)
        yield bucket, [key.take(pa.array(rows)) for key in keys], [slot[rows] for slot in slots]


def _select(node: Node, columns: Columns, rows: int) -> tuple[Columns, int]:
    """The records that the node is about: its filter is true, and they have a time."""
    keep: Valid | None = None
    if node.filter is not None:
        keep = truth(columns[node.filter])
    if node.slices is not None and columns[node.slices.time].null_count:
        timed = np.asarray(pc.is_valid(columns[node.slices.time]))
        keep = timed if keep is None else keep & timed
    if keep is None or keep.all():
        return columns, rows
    mask = pa.array(keep)
    return {expression: columns[expression].filter(mask) for expression in node_inputs(node)}, int(keep.sum())


def _keys(node: Node, columns: Columns) -> list[pa.Array]:
    keys = [columns[key] for key in node.keys]
    return keys if node.slices is None else [slice_numbers(node.slices, columns[node.slices.time]), *keys]


def slice_numbers(slices: Slices, time: pa.Array) -> pa.Array:
    """The number of the slice that each time is in."""
    times, _ = to_words(time)
    return pa.array((times - slices.offset_us) // slices.size_us)


def _slots(node: Node, columns: Columns, rows: int) -> list[Words]:
    slots: list[Words] = []
    for state in node.states:
        condition = truth(columns[state.condition]) if state.condition is not None else None
        slots += lift(state, rows, [columns[argument] for argument in state.arguments], condition)
    return slots


def truth(column: pa.Array) -> Valid:
    """Where a condition is true: neither false nor null."""
    return np.asarray(pc.fill_null(column, False), dtype=np.bool_)


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
