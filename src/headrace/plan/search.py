"""The search for a tree: which phantoms pay, and which node every other is made from.

Greedy: as long as some union of two nodes would save more than it costs, the one that saves most joins the tree.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headrace.algebra.states import State
from headrace.plan.costs import Costs
from headrace.plan.shapes import Shape, Shapes
from headrace.plan.sizes import Sizes

States = Mapping[Shape, frozenset[State]]


@dataclass(frozen=True, slots=True)
class Tree:
    """Nodes with their parents (None: the records), parents first, and what the search thinks of each."""

    parents: dict[Shape, Shape | None]
    rows: dict[Shape, float]
    cost: float


def search(wanted: States, shapes: Shapes, sizes: Sizes, costs: Costs) -> Tree:
    """A tree with all nodes that queries want."""
    return _Search(wanted, shapes, sizes, costs).run()


@dataclass
class _Search:
    wanted: States
    shapes: Shapes
    sizes: Sizes
    costs: Costs
    _rows: dict[Shape, float] = field(default_factory=dict)
    _records: dict[Shape, float] = field(default_factory=dict)

    def run(self) -> Tree:
        nodes = list(self.wanted)
        tree, costs = self._settle(nodes)
        waiting: list[tuple[float, int, Shape]] = []
        seen = set(nodes)
        order = itertools.count()

        def consider(candidates: Iterable[Shape | None]) -> None:
            for shape in candidates:
                if shape is not None and shape not in seen:
                    seen.add(shape)
                    gain = self._gain(shape, costs)
                    if gain > 0:
                        heapq.heappush(waiting, (-gain, next(order), shape))

        consider(self.shapes.union(*pair) for pair in itertools.combinations(nodes, 2))
        while waiting:
            _, _, shape = heapq.heappop(waiting)
            gain = self._gain(shape, costs)
            if gain <= 0:
                continue
            if waiting and -waiting[0][0] > gain:
                # What was promised before others joined the tree is out of date.
                heapq.heappush(waiting, (-gain, next(order), shape))
                continue
            better, new_costs = self._settle([*nodes, shape])
            if better.cost < tree.cost:
                nodes.append(shape)
                tree, costs = better, new_costs
                consider(self.shapes.union(shape, other) for other in nodes[:-1])
        for phantom in [node for node in nodes if node not in self.wanted]:
            fewer = [node for node in nodes if node != phantom]
            better, _ = self._settle(fewer)
            if better.cost <= tree.cost:
                nodes, tree = fewer, better
        return tree

    def _gain(self, shape: Shape, costs: Mapping[Shape, tuple[float, int]]) -> float:
        """About what a phantom would save: what its children cost less, without its own cost."""
        rows = self._rows_of(shape)
        saved, slots = 0.0, 0
        for child, (cost, width) in costs.items():
            if self.shapes.makes(shape, child):
                less = cost - self.costs.from_rows(rows, self._rows_of(child), width)
                if less > 0:
                    saved += less
                    slots = max(slots, width)
        own = self.costs.from_records(self._records_of(shape), rows, slots, _key_count(shape))
        for parent, (_, width) in costs.items():
            if self.shapes.makes(parent, shape) and width >= slots:
                own = min(own, self.costs.from_rows(self._rows_of(parent), rows, slots))
        return saved - own

    def _settle(self, nodes: list[Shape]) -> tuple[Tree, dict[Shape, tuple[float, int]]]:
        """The cheapest parent for each node, children first: a parent has the states of all its children."""
        above = {child: [node for node in nodes if self.shapes.makes(node, child)] for child in nodes}
        states: dict[Shape, set[State]] = {node: set(self.wanted.get(node, ())) for node in nodes}
        parents: dict[Shape, Shape | None] = {}
        costs: dict[Shape, tuple[float, int]] = {}
        for child in sorted(nodes, key=lambda node: -len(above[node])):
            own, rows = states[child], self._rows_of(child)
            slots = _slot_count(own)
            best = self.costs.from_records(self._records_of(child), rows, slots, _key_count(child))
            parents[child] = None
            for parent in above[child]:
                more = _slot_count(own - states[parent])
                cost = self.costs.from_rows(self._rows_of(parent), rows, slots)
                cost += self.costs.more_slots(self._rows_of(parent), more)
                if cost < best:
                    best, parents[child] = cost, parent
            if (chosen := parents[child]) is not None:
                states[chosen] |= own
            costs[child] = best, slots
        ordered = {node: parents[node] for node in sorted(nodes, key=lambda node: len(above[node]))}
        total = sum(cost for cost, _ in costs.values())
        return Tree(ordered, {node: self._rows_of(node) for node in nodes}, total), costs

    def _rows_of(self, shape: Shape) -> float:
        if shape not in self._rows:
            self._rows[shape] = self.sizes.groups(
                self.shapes.keys(shape),
                self.shapes.marks(shape),
                self.shapes.filter(shape),
                self.shapes.slices(shape),
            )
        return self._rows[shape]

    def _records_of(self, shape: Shape) -> float:
        if shape not in self._records:
            self._records[shape] = self.sizes.records(self.shapes.filter(shape))
        return self._records[shape]


def _slot_count(states: Iterable[State]) -> int:
    return sum(state.slots for state in states)


def _key_count(shape: Shape) -> int:
    return shape.keys.bit_count() + shape.marks.bit_count()
