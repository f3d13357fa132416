"""The high level: partials of many low levels meet, cascade down the tree and become answers."""

from __future__ import annotations

from collections.abc import Iterator

from headrace.kernel.cascade import Cascade, Measures
from headrace.kernel.low import make_reducer
from headrace.kernel.partial import unpack_partial
from headrace.kernel.piece import Piece, home_bucket
from headrace.kernel.records import Coding
from headrace.kernel.reduce import Reducer
from headrace.plan.plan import Deal, Plan


class HighLevel:
    """One bucket: merges its partials, and gives the answers of its groups.

    Rows come a `last` time where a node's groups are still apart: then all rows of a node are in one bucket.
    """

    def __init__(self, plan: Plan, bucket: int, buckets: int, last: bool = False) -> None:
        self._plan = plan
        self._buckets = buckets
        self._last = last
        self.measures = Measures()
        self._reducers: dict[int, Reducer] = {}
        for node in plan.split_nodes if last else plan.roots:
            # A query without keys or window has an answer even where there is no record.
            meets_here = home_bucket(node, buckets) == bucket and (last or plan.deal_of(node).key is None)
            if plan.nodes[node].slices is None and meets_here:
                self._reducers[node] = make_reducer(plan.nodes[node])
        self._codings = {node: Coding() for node in self._reducers}

    def add(self, node: int, blob: bytes) -> None:
        """Take in a partial."""
        if node not in self._reducers:
            self._reducers[node], self._codings[node] = make_reducer(self._plan.nodes[node]), Coding()
        keys, slots, rows = unpack_partial(blob, self._plan.nodes[node].key_count)
        coding = self._codings[node]
        codes = [coding.encode(number, key) for number, key in enumerate(keys)]
        self._reducers[node].add(tuple(coding.coder(number) for number in range(len(keys))), codes, slots, rows)

    def finish(self) -> Iterator[Piece]:
        """All that comes of the partials, node by node; each is let go before the next."""
        for node in sorted(self._reducers):
            reducer = self._reducers.pop(node)
            deal = self._plan.deal_of(node)
            cascade = Cascade(self._plan, self._buckets, Deal() if self._last else deal, self.measures)
            yield from cascade.run(node, reducer.take())
