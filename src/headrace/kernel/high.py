"""The high level: partials of many low levels meet, cascade down the tree and become answers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.ops import Words
from headrace.kernel.cascade import Cascade, Measures, make_reducer, reduce_to
from headrace.kernel.conditions import Conditions
from headrace.kernel.piece import Piece, unpack_slots
from headrace.kernel.records import Coding
from headrace.kernel.reduce import Reducer
from headrace.kernel.rows import Rows
from headrace.plan.plan import Node, Plan

_TOGETHER = 1 << 18
"""Rows that wait for others, at most."""


class HighLevel:
    """One bucket: merges its partials, and gives the answers of its groups.

    Rows come a `last` time where a node's groups are still apart: then all rows of a node are in one bucket.
    """

    def __init__(
        self,
        plan: Plan,
        bucket: int,
        buckets: int,
        last: bool = False,
        measures: Measures | None = None,
        conditions: Conditions | None = None,
    ) -> None:
        self._plan = plan
        self._buckets = buckets
        self._last = last
        self._conditions = conditions or {}
        self.measures = measures if measures is not None else Measures()
        self._meetings: dict[int, _Meeting] = {}
        # A query without keys or window has an answer even where there is no record.
        for answer in plan.answers:
            if answer.query.keys or answer.query.window is not None or not is_for(plan, answer.node, last):
                continue
            _, home = plan.meeting(answer.node)
            if home % buckets == bucket:
                self._meetings[home] = _Meeting(plan.nodes[home], self._conditions)

    def add(self, node: int, columns: Sequence[pa.Array], rows: int) -> None:
        """Take in the columns of a partial that is for this time that rows come."""
        if node not in self._meetings:
            self._meetings[node] = _Meeting(self._plan.nodes[node], self._conditions)
        keys = self._plan.nodes[node].key_count
        self._meetings[node].add(columns[:keys], unpack_slots(columns[keys:]), rows)

    def finish(self) -> Iterator[Piece]:
        """All that comes of the partials, node by node; each is let go before the next."""
        plan = self._plan

        def whole(node: int) -> bool:
            return self._last or plan.whole(node, plan.deal_of(node))

        cascade = Cascade(plan, self._buckets, whole, self._meetings, self.measures, self._conditions)
        for node in sorted(self._meetings):
            yield from cascade.run(node, self._meetings.pop(node).take())


def is_for(plan: Plan, node: int, last: bool) -> bool:
    """Whether rows of a node meet the first or the last time that rows come."""
    return last == (plan.split_at(node) is not None)


class _Meeting:
    """A node's rows of one bucket. Those of several partials go in together, so that keys are coded once."""

    def __init__(self, node: Node, conditions: Conditions) -> None:
        self._node = node
        self._conditions = conditions
        self._reducer: Reducer | None = None
        self._coding = Coding()
        self._waiting: list[tuple[Sequence[pa.Array], Sequence[Words]]] = []
        self._rows = 0

    def add(self, keys: Sequence[pa.Array], slots: Sequence[Words], rows: int) -> None:
        """Take in rows."""
        self._waiting.append((keys, slots))
        self._rows += rows
        if self._rows >= _TOGETHER:
            self._join()

    def pour(self, parent: Node, rows: Rows) -> None:
        """See `Gathering`."""
        own = reduce_to(parent, self._node, rows, self._conditions)
        if len(own):
            keys, states = own.columns(range(len(own.coders)), range(len(own.ops)))
            self.add(keys, [slot for slots in states for slot in slots], len(own))

    def take(self) -> Rows:
        """All rows, which leave."""
        return self._join().take()

    def _join(self) -> Reducer:
        """Let the rows that wait go into the table."""
        waiting, rows = self._waiting, self._rows
        self._waiting, self._rows = [], 0
        if self._reducer is None:
            self._reducer = make_reducer(self._node, expect=rows)
        if rows:
            keys = [pa.concat_arrays(parts) for parts in zip(*(keys for keys, _ in waiting), strict=True)]
            slots = [np.concatenate(parts) for parts in zip(*(slots for _, slots in waiting), strict=True)]
            codes = [self._coding.encode(number, key) for number, key in enumerate(keys)]
            self._reducer.add(tuple(map(self._coding.coder, range(len(keys)))), codes, slots, rows)
        return self._reducer
