"""The search for a tree: which phantoms pay, and which node every other is made from.

Greedy: as long as some union of two nodes would save more than it costs, the one that saves most joins the tree.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headrace.algebra.states import State
from headrace.plan.costs import Costs
from headrace.plan.shapes import Shape, Shapes
from headrace.plan.sizes import Sizes

Above = Mapping[Shape, Sequence[Shape]]
"""All nodes, each with those that it could be made from."""


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes with their parents (None: the records), parents first, and what the search thinks of each."""

    parents: dict[Shape, Shape | None]
    rows: dict[Shape, float]
    cost: float

    def root_of(self, shape: Shape) -> Shape:
        """The node from records that a node comes from."""
        while (parent := self.parents[shape]) is not None:
            shape = parent
        return shape


@dataclass(frozen=True, slots=True)
class _Settled:
    """A tree, and for each node its cost and the slots of its states."""

    tree: Tree
    each: dict[Shape, tuple[float, int]]


def search(wanted: Mapping[Shape, Iterable[State]], shapes: Shapes, sizes: Sizes, costs: Costs) -> Tree:
    """A tree with all nodes that queries want, each with the states that they need of it."""
    return _Search(wanted, shapes, sizes, costs).run()


class _Search:
    def __init__(
        self, wanted: Mapping[Shape, Iterable[State]], shapes: Shapes, sizes: Sizes, costs: Costs
    ) -> None:
        self._shapes, self._sizes, self._costs = shapes, sizes, costs
        numbers: dict[State, int] = {}
        self._wanted = {
            shape: sum(1 << numbers.setdefault(state, len(numbers)) for state in dict.fromkeys(states))
            for shape, states in wanted.items()
        }
        """The states of each node, as bits."""
        self._widths = [state.slots for state in numbers]
        self._slots: dict[int, int] = {}
        self._rows: dict[Shape, float] = {}
        self._records: dict[Shape, float] = {}

    def run(self) -> Tree:
        above: Above = {}
        for shape in self._wanted:
            above = self._joined(above, shape)
        best = self._settle(above)
        waiting: list[tuple[float, int, Shape]] = []
        seen = set(above)
        order = itertools.count()

        def consider(candidates: Iterable[Shape | None]) -> None:
            for shape in candidates:
                if shape is not None and shape not in seen:
                    seen.add(shape)
                    gain = self._gain(shape, best)
                    if gain > 0:
                        heapq.heappush(waiting, (-gain, next(order), shape))

        consider(self._shapes.union(*pair) for pair in itertools.combinations(above, 2))
        while waiting:
            _, _, shape = heapq.heappop(waiting)
            gain = self._gain(shape, best)
            if gain <= 0:
                continue
            if waiting and -waiting[0][0] > gain:
                # What it promised before others joined the tree is out of date.
                heapq.heappush(waiting, (-gain, next(order), shape))
                continue
            more = self._joined(above, shape)
            settled = self._settle(more)
            if settled.tree.cost < best.tree.cost:
                consider(self._shapes.union(shape, other) for other in above)
                above, best = more, settled
        return self._pruned(above, best).tree

    def _pruned(self, above: Above, best: _Settled) -> _Settled:
        """Without the phantoms that later ones have made useless."""
        for phantom in [shape for shape in above if shape not in self._wanted]:
            fewer = {
                shape: [other for other in others if other != phantom]
                for shape, others in above.items()
                if shape != phantom
            }
            settled = self._settle(fewer)
            if settled.tree.cost <= best.tree.cost:
                above, best = fewer, settled
        return best

    def _joined(self, above: Above, shape: Shape) -> Above:
        makes = self._shapes.makes
        more = {other: [*parents, shape] if makes(shape, other) else parents for other, parents in above.items()}
        return {**more, shape: [other for other in above if makes(other, shape)]}

    def _gain(self, shape: Shape, settled: _Settled) -> float:
        """About what a phantom would save: what its children cost less, without its own cost."""
        rows, makes = self._rows_of(shape), self._shapes.makes
        saved, slots = 0.0, 0
        for child, (cost, width) in settled.each.items():
            if makes(shape, child):
                less = cost - self._costs.from_rows(rows, self._rows_of(child), width)
                if less > 0:
                    saved += less
                    slots = max(slots, width)
        if saved == 0:
            return 0.0
        own = self._costs.from_records(self._records_of(shape), rows, slots, _key_count(shape))
        for parent, (_, width) in settled.each.items():
            if width >= slots and makes(parent, shape):
                own = min(own, self._costs.from_rows(self._rows_of(parent), rows, slots))
        return saved - own

    def _settle(self, above: Above) -> _Settled:
        """The cheapest parent for each node, children first: a parent has the states of all its children."""
        states = {shape: self._wanted.get(shape, 0) for shape in above}
        parents: dict[Shape, Shape | None] = {}
        each: dict[Shape, tuple[float, int]] = {}
        for child in sorted(above, key=lambda shape: -len(above[shape])):
            own, rows = states[child], self._rows_of(child)
            slots = self._slots_of(own)
            best = self._costs.from_records(self._records_of(child), rows, slots, _key_count(child))
            chosen = None
            for parent in above[child]:
                parent_rows = self._rows_of(parent)
                cost = self._costs.from_rows(parent_rows, rows, slots)
                if cost < best:
                    cost += self._costs.more_slots(parent_rows, self._slots_of(own & ~states[parent]))
                    if cost < best:
                        best, chosen = cost, parent
            if chosen is not None:
                states[chosen] |= own
            parents[child] = chosen
            each[child] = best, slots
        ordered = {shape: parents[shape] for shape in sorted(above, key=lambda shape: len(above[shape]))}
        total = sum(cost for cost, _ in each.values())
        return _Settled(Tree(ordered, {shape: self._rows_of(shape) for shape in above}, total), each)

    def _slots_of(self, states: int) -> int:
        if states not in self._slots:
            self._slots[states] = sum(width for bit, width in enumerate(self._widths) if states >> bit & 1)
        return self._slots[states]

    def _rows_of(self, shape: Shape) -> float:
        if shape not in self._rows:
            of = self._shapes
            self._rows[shape] = self._sizes.groups(
                of.keys(shape), of.marks(shape), of.filter(shape), of.slices(shape)
            )
        return self._rows[shape]

    def _records_of(self, shape: Shape) -> float:
        if shape not in self._records:
            self._records[shape] = self._sizes.records(self._shapes.filter(shape))
        return self._records[shape]


def _key_count(shape: Shape) -> int:
    return shape.keys.bit_count() + shape.marks.bit_count()
