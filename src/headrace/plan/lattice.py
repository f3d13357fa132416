"""The space of the engine's nodes: sizes from a sample, costs of this engine, and states that parents carry."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from headrace.algebra.states import State
from headrace.plan.costs import Costs
from headrace.plan.shapes import Shape, Shapes
from headrace.plan.sizes import Sizes
from headrace.plan.space import Tree


class _Rate(NamedTuple):
    """What a node costs that is about so many records: from records, for each row of a parent, for its groups."""

    records: float
    from_records: float
    each_row: float
    groups: float


class Lattice:
    """All shapes that queries want or could share; see `Space`.

    A node has the states of all that is made from it, so that the cost of an edge depends on what is below it. By
    itself, an edge is taken to carry what the wanted nodes below it need.
    """

    def __init__(
        self, wanted: Mapping[Shape, Iterable[State]], shapes: Shapes, sizes: Sizes, costs: Costs
    ) -> None:
        self._shapes, self._sizes, self._costs = shapes, sizes, costs
        self.makes, self.below, self.above = shapes.makes, shapes.below, shapes.above
        self.variants = shapes.variants
        numbers: dict[State, int] = {}
        self._wanted = {
            shape: sum(1 << numbers.setdefault(state, len(numbers)) for state in dict.fromkeys(states))
            for shape, states in wanted.items()
        }
        """The states of each node, as bits."""
        self._widths = [state.slots for state in numbers]
        self._slots: dict[int, int] = {}
        self._carried: dict[Shape, int] = {}
        self._carried_least: dict[Shape, int] = {}
        self._rows: dict[Shape, float] = {}
        self._least: dict[Shape, float] = {}
        self._records = sizes.records(())
        self._chosen: dict[int, float] = {}
        self._tables: dict[int | None, float] = {}
        self._edges: dict[tuple[Shape | None, Shape, int], float] = {}
        """Of trees; the last are states."""
        self._wanted_below: dict[Shape, list[Shape]] = {}
        self._rates: dict[Shape, _Rate] = {}
        """For nodes with the states of all wanted ones below them."""
        self._above: dict[Shape, list[Shape]] = {}
        """The nodes of all trees so far, each with those that it can be made from."""

    @property
    def wanted(self) -> Sequence[Shape]:
        """See `Space`."""
        return tuple(self._wanted)

    def union(self, one: Shape, other: Shape) -> Shape | None:
        """See `Space`."""
        union = self._shapes.union(one, other)
        if union is not None and union not in self._least:
            self._least[union] = max(self._rows_at_least(one), self._rows_at_least(other))
            self._carried_least[union] = self._carried_at_least(one) | self._carried_at_least(other)
        return union

    def rows(self, shape: Shape) -> float:
        """How many rows a node is thought to have: no fewer than one that is made from it."""
        if shape not in self._rows:
            of = self._shapes
            found = self._sizes.groups(
                of.deciding_keys(shape), of.marks(shape), of.any_of(shape), of.slices(shape)
            )
            if shape not in self._wanted:
                found = max(found, *map(self.rows, self._made_from(shape)), 0.0)
            if shape.marks:
                found = max(found, self.rows(Shape(shape.keys, 0, shape.any_of, shape.slices)))
            self._rows[shape] = found
        return self._rows[shape]

    def cost(self, parent: Shape | None, child: Shape) -> float:
        """See `Space`."""
        return self._from(parent, self.rows, child, self._rate(child))

    def floor(self, parent: Shape | None, child: Shape) -> float:
        """See `Space`: a union has as many rows at least, and as many states, as what it is the union of."""
        rate = self._rates.get(child)
        if rate is None:
            rate = self._rate_of(child, self._rows_at_least(child), self._carried_at_least(child))
        return self._from(parent, self._rows_at_least, child, rate)

    def priced(self, parents: Mapping[Shape, Shape | None]) -> Tree[Shape]:
        """See `Space`."""
        costs = self.edges(parents)
        return Tree({shape: parents[shape] for shape in costs}, math.fsum(costs.values()))

    def edges(self, parents: Mapping[Shape, Shape | None]) -> dict[Shape, float]:
        """What each node of a tree costs, with the states of all that comes from it; parents first."""
        states = {shape: self._wanted.get(shape, 0) for shape in parents}
        costs: dict[Shape, float] = {}
        order = self._parents_first(parents)
        for shape in reversed(order):
            parent, own = parents[shape], states[shape]
            costs[shape] = self._edge(parent, shape, own)
            if parent is not None:
                states[parent] |= own
        return {shape: costs[shape] for shape in order}

    def least(self) -> float:
        """What no tree can save: a group found for every record once, and the rows of the wanted nodes made."""
        records = max(map(self._records_of, self._wanted), default=0.0)
        own = ((self.rows(shape), self._slots_of(states)) for shape, states in self._wanted.items())
        return self._costs.from_records(records, 0.0, 0, 0) + sum(
            self._costs.groups(rows, slots) for rows, slots in own
        )

    def settled(self, phantoms: Collection[Shape]) -> Tree[Shape]:
        """See `Space`. Children choose first: what they need of a parent, their siblings get for nothing."""
        nodes = dict.fromkeys([*self._wanted, *phantoms])
        states = {shape: self._wanted.get(shape, 0) for shape in nodes}
        parents: dict[Shape, Shape | None] = {}
        for child in reversed(self._parents_first(nodes)):
            own = states[child]
            best, chosen = self._edge(None, child, own), None
            for parent in self._above[child]:
                if parent not in nodes:
                    continue
                cost = self._edge(parent, child, own)
                if cost < best:
                    cost += self._costs.more_slots(self.rows(parent), self._slots_of(own & ~states[parent]))
                    if cost < best:
                        best, chosen = cost, parent
            if chosen is not None:
                states[chosen] |= own
            parents[child] = chosen
        return self.priced({shape: parents[shape] for shape in nodes})

    def _edge(self, parent: Shape | None, child: Shape, states: int) -> float:
        """An edge of a tree, in which the child has these states."""
        place = parent, child, states
        if place not in self._edges:
            rate = self._rate_of(child, self.rows(child), states)
            self._edges[place] = self._from(parent, self.rows, child, rate)
        return self._edges[place]

    def _from(self, parent: Shape | None, rows_of: Callable[[Shape], float], child: Shape, rate: _Rate) -> float:
        if parent is None:
            return rate.from_records
        rows, records = rows_of(parent), self._records_of(parent)
        if parent.ordered and parent.sifts(child):
            share = min(1.0, rate.records / records) if records else 1.0
            return rows * (self._costs.sifted + share * self._costs.taken) + rate.groups
        own = rows * (rate.each_row if rate.records >= records else rate.each_row * rate.records / records)
        asked = self._shapes.asked(parent, child)
        return own + rate.groups + (self._costs.conditions(rows, asked.bit_count()) if asked else 0.0)

    def _rate(self, shape: Shape) -> _Rate:
        """What a node costs that has the states of all wanted ones below it."""
        if shape not in self._rates:
            self._rates[shape] = self._rate_of(shape, self.rows(shape), self._carried_by(shape))
        return self._rates[shape]

    def _rate_of(self, shape: Shape, rows: float, states: int) -> _Rate:
        costs, records, slots = self._costs, self._records_of(shape), self._slots_of(states)
        keys, tables = shape.key_count, self._tables_of(shape)
        from_records = costs.from_records(records, rows, slots, keys, tables)
        from_records += costs.conditions(self._records, (shape.any_of | shape.marks).bit_count())
        ordered = rows * costs.ordered if shape.ordered else 0.0
        groups = costs.groups(rows, slots) + ordered
        return _Rate(records, from_records + ordered, costs.each_row(rows, slots, keys, tables), groups)

    def _tables_of(self, shape: Shape) -> float:
        """One for each slice."""
        if shape.slices not in self._tables:
            self._tables[shape.slices] = self._sizes.slices(self._shapes.slices(shape))
        return self._tables[shape.slices]

    def _rows_at_least(self, shape: Shape) -> float:
        """The rows of a node where they are known, else those that it has at least."""
        if shape in self._rows:
            return self._rows[shape]
        if shape in self._wanted:
            return self.rows(shape)
        return self._least.get(shape, 0.0)

    def _carried_at_least(self, shape: Shape) -> int:
        return self._carried_least.get(shape, self._wanted.get(shape, 0))

    def _parents_first(self, nodes: Iterable[Shape]) -> list[Shape]:
        """Nodes with fewer others above them come first: what can make a node can make all that is below it."""
        there = dict.fromkeys(nodes)
        for shape in there:
            self._take_in(shape)
        return sorted(there, key=lambda shape: sum(parent in there for parent in self._above[shape]))

    def _take_in(self, shape: Shape) -> None:
        if shape in self._above:
            return
        for other in self.below(shape, self._above):
            self._above[other].append(shape)
        self._above[shape] = self.above(shape, self._above)

    def _made_from(self, shape: Shape) -> list[Shape]:
        """The wanted nodes that can be made from one."""
        if shape not in self._wanted_below:
            self._wanted_below[shape] = self.below(shape, self._wanted)
        return self._wanted_below[shape]

    def _carried_by(self, shape: Shape) -> int:
        """The states of all wanted nodes that can be made from one."""
        if shape not in self._carried:
            self._carried[shape] = self._wanted.get(shape, 0)
            for other in self._made_from(shape):
                self._carried[shape] |= self._wanted[other]
        return self._carried[shape]

    def _slots_of(self, states: int) -> int:
        if states not in self._slots:
            self._slots[states] = sum(width for bit, width in enumerate(self._widths) if states >> bit & 1)
        return self._slots[states]

    def _records_of(self, shape: Shape) -> float:
        if shape.any_of not in self._chosen:
            self._chosen[shape.any_of] = self._sizes.records(self._shapes.any_of(shape))
        return self._chosen[shape.any_of]
