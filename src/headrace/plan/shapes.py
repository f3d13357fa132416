"""What nodes can be about, and which can be made from which: small numbers in place of expressions.

A search looks at thousands of nodes. Here a set of keys is the bits of an integer, and so is one of conditions.

A child that is about fewer records than its parent needs to know of each row whether its condition is true. Either
the parent's keys decide that (`dstport = 443` where dstport is a key), or its truth is one more key: a mark.
"""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.plan.plan import Node, count_keys, put_in_order
from headrace.plan.slices import Slices
from headrace.query import Expression


class Shape(NamedTuple):
    """A node without its states.

    It is about the records for which any of some conditions is true; without any, about all. `slices` is a place
    in a list of `Shapes`, None where there are none.
    """

    keys: int
    marks: int
    any_of: int
    slices: int | None

    @property
    def ordered(self) -> bool:
        """See `Node`."""
        return put_in_order(self.marks.bit_count())

    @property
    def key_count(self) -> int:
        """See `Node`."""
        return count_keys(self.keys.bit_count(), self.marks.bit_count(), self.slices is not None)

    def sifts(self, child: Shape) -> bool:
        """See `Node`."""
        fewer = child.any_of != self.any_of and not child.any_of & ~self.marks
        return fewer and child.keys == self.keys and not child.marks


@dataclass(frozen=True, slots=True)
class Filters:
    """What is known of filters: the keys that decide one, and the others that are true wherever one is."""

    decided_by: Mapping[Expression, Collection[Expression]] = field(default_factory=dict)
    wider: Mapping[Expression, Collection[Expression]] = field(default_factory=dict)

    def decided(self, one: Expression, keys: Collection[Expression]) -> bool:
        """Whether rows of a node with these keys tell if a filter is true."""
        return one in self.decided_by and all(key in keys for key in self.decided_by[one])

    def keys_for(self, child: Node, parent: Node) -> frozenset[Expression]:
        """The keys of a parent that a child is made from: its own, and those that decide what it is about."""
        chosen = child.any_of if child.any_of != parent.any_of else ()
        asked = {*chosen, *child.marks} - {*parent.marks}
        return frozenset([*child.keys, *(key for condition in asked for key in self.decided_by[condition])])

    def within(self, one: Expression, other: Expression) -> bool:
        """Whether another filter is true wherever one is."""
        return one == other or other in self.wider.get(one, ())

    def same(self, one: Expression, other: Expression) -> bool:
        """Whether two filters are true for the same records."""
        return self.within(one, other) and self.within(other, one)


class Shapes:
    """All that shapes are made of: the keys, filters and slices of a workload's queries."""

    def __init__(
        self, untimed: Collection[Expression] = (), filters: Filters | None = None, paned: bool = False
    ) -> None:
        """`untimed` are times that may be null: records without a time are in no slice. `paned` slices are all of
        equal length."""
        self._paned = paned
        self._untimed = frozenset(untimed)
        self._filters = filters or Filters()
        self._keys: dict[Expression, int] = {}
        self._conditions: dict[Expression, int] = {}
        self._wider: list[int] = []
        """For each condition those that are true wherever it is, itself among them."""
        self._slices: dict[Hashable, int] = {}
        self._listed: list[Slices] = []
        """By their places."""
        self._common: dict[tuple[int, int], int | None] = {}
        self._shorter: dict[tuple[int | None, int | None], bool] = {}
        self._decided: dict[int, int] = {}
        self._deciding: list[tuple[int, int]] = []
        """Keys that decide others, with those."""

    def shape(self, keys: Iterable[Expression], where: Expression | None, slices: Slices | None) -> Shape:
        """The shape of a query's node."""
        bits = sum(1 << self._keys.setdefault(key, len(self._keys)) for key in dict.fromkeys(keys))
        self._decided.clear()
        return Shape(bits, 0, self._condition(where), self._place(slices))

    def of_node(self, node: Node) -> Shape:
        """The shape of a node of a plan."""
        slices = node.slices if isinstance(node.slices, Slices) else None
        bare = self.shape(node.keys, None, slices)
        marks, any_of = (
            functools.reduce(operator.or_, map(self._condition, own), 0) for own in (node.marks, node.any_of)
        )
        return bare._replace(marks=marks, any_of=any_of)

    def with_slices(self, one: Shape, other: Shape) -> Shape | None:
        """A shape with slices that another's can be made of too."""
        shared = self._common_slices(one.slices, other.slices)
        return one._replace(slices=shared) if shared is not None else None

    def _condition(self, where: Expression | None) -> int:
        """The bit of a filter; filters that are true for the same records are one condition."""
        if where is None:
            return 0
        same = [other for other in self._conditions if self._filters.same(where, other)]
        where = same[0] if same else where
        if where not in self._conditions:
            bit = 1 << len(self._conditions)
            wider = bit
            for other, place in self._conditions.items():
                wider |= self._filters.within(where, other) << place
                self._wider[place] |= bit * self._filters.within(other, where)
            self._conditions[where] = len(self._conditions)
            self._wider.append(wider)
        return 1 << self._conditions[where]

    def keys(self, shape: Shape) -> tuple[Expression, ...]:
        """The keys of a shape, in the order in which queries name them first."""
        return _some(self._keys, shape.keys)

    def learn(self, decides: Callable[[Expression, Expression], bool]) -> None:
        """Take note of the keys that decide others; of some that decide each other, the first decides."""
        pairs = itertools.permutations(self._keys.items(), 2)
        decided = {(i, j) for (one, i), (other, j) in pairs if decides(one, other)}
        decided -= {(j, i) for i, j in decided if i < j}
        masks = ((i, sum(1 << j for one, j in decided if one == i)) for i in self._keys.values())
        self._deciding = [(1 << i, others) for i, others in masks if others]

    def deciding_keys(self, shape: Shape) -> tuple[Expression, ...]:
        """The keys of a shape without those that others of them decide: there are as many groups of these."""
        keys = shape.keys
        for key, others in self._deciding:
            if shape.keys & key:
                keys &= ~others
        return _some(self._keys, keys)

    def marks(self, shape: Shape) -> tuple[Expression, ...]:
        """The marks of a shape."""
        return _some(self._conditions, shape.marks)

    def any_of(self, shape: Shape) -> tuple[Expression, ...]:
        """The conditions one of which is true for all records that a shape is about."""
        return _some(self._conditions, shape.any_of)

    def slices(self, shape: Shape) -> Slices | None:
        """The slices of a shape."""
        return self._listed[shape.slices] if shape.slices is not None else None

    def makes(self, parent: Shape, child: Shape) -> bool:
        """Whether one node can be made from another's rows."""
        if child.keys & ~parent.keys or parent == child:
            return False
        if parent.any_of and not self._covers(parent.any_of, child.any_of):
            return False
        if self.asked(parent, child) & ~parent.marks & ~self._decided_of(parent.keys):
            return False
        return parent.slices == child.slices or self._makes_slices(parent.slices, child.slices)

    def below(self, parent: Shape, nodes: Iterable[Shape]) -> list[Shape]:
        """Those of some nodes that can be made from one; most have a key that it has not."""
        others = ~parent.keys
        return [node for node in nodes if not node.keys & others and self.makes(parent, node)]

    def above(self, child: Shape, nodes: Iterable[Shape]) -> list[Shape]:
        """Those of some nodes that one can be made from; most lack one of its keys."""
        keys = child.keys
        return [node for node in nodes if node.keys & keys == keys and self.makes(node, child)]

    def asked(self, parent: Shape, child: Shape) -> int:
        """The conditions whose truth a child has to know of its parent's rows."""
        return child.marks | (child.any_of if child.any_of != parent.any_of else 0)

    def union(self, one: Shape, other: Shape) -> Shape | None:
        """The least shape that both can be made from; None where there is none."""
        shared = self._common_slices(one.slices, other.slices)
        if shared is None and (one.slices is not None or other.slices is not None):
            return None
        any_of = self._cover(one.any_of | other.any_of) if one.any_of and other.any_of else 0
        return self._marked(one.keys | other.keys, any_of, shared, (one, other))

    def variants(self, node: Shape, above: Shape | None) -> Iterator[Shape]:
        """A node with the keys of one above it, and one with its records; the stream (None) has all records."""
        changed = [(node.keys, above.any_of if above is not None else 0)]
        if above is not None:
            changed.append((above.keys, node.any_of))
        for keys, any_of in changed:
            variant = self._marked(keys, any_of, node.slices, (node,))
            if variant not in (node, above):
                yield variant

    def _marked(self, keys: int, any_of: int, slices: int | None, children: Iterable[Shape]) -> Shape:
        """A shape with the marks that children need of it."""
        bare = Shape(keys, 0, any_of, slices)
        marks = 0
        for child in children:
            marks |= self.asked(bare, child)
        return Shape(keys, marks & ~self._decided_of(keys), any_of, slices)

    def _covers(self, any_of: int, of: int) -> bool:
        """Whether one of some conditions is true wherever one of others is, of which there have to be some."""
        if not of & ~any_of:
            return of != 0
        return all(self._wider[place] & any_of for place in _places(of))

    def _cover(self, any_of: int) -> int:
        """Conditions without those that others among them contain."""
        for place in _places(any_of):
            if self._wider[place] & any_of & ~(1 << place):
                any_of &= ~(1 << place)
        return any_of

    def _decided_of(self, keys: int) -> int:
        """The conditions that some keys decide."""
        if keys not in self._decided:
            there = set(_some(self._keys, keys))
            self._decided[keys] = sum(
                1 << place
                for condition, place in self._conditions.items()
                if self._filters.decided(condition, there)
            )
        return self._decided[keys]

    def _place(self, slices: Slices | None) -> int | None:
        if slices is None:
            return None
        # Slices of other windows may have the same edges: as two places they would make each other.
        same = slices.time, slices.recurring, slices.pairs if slices.gaps else ()
        if same not in self._slices:
            self._slices[same] = len(self._listed)
            self._listed.append(slices)
        return self._slices[same]

    def _makes_slices(self, shorter: int | None, longer: int | None) -> bool:
        if (shorter, longer) not in self._shorter:
            self._shorter[shorter, longer] = self._finer(shorter, longer)
        return self._shorter[shorter, longer]

    def _finer(self, shorter: int | None, longer: int | None) -> bool:
        if shorter is None:
            return longer is None
        listed = self._listed
        if longer is None:
            return listed[shorter].time not in self._untimed and not listed[shorter].gaps
        return listed[shorter].makes(listed[longer])

    def _common_slices(self, one: int | None, other: int | None) -> int | None:
        for shorter, longer in ((one, other), (other, one)):
            if self._makes_slices(shorter, longer):
                return shorter
        if one is None or other is None:
            return None
        if (one, other) not in self._common:
            self._common[one, other] = self._place(self._listed[one].together(self._listed[other], self._paned))
        return self._common[one, other]


def _places(bits: int) -> Iterator[int]:
    """Which bits are set."""
    while bits:
        yield (bits & -bits).bit_length() - 1
        bits &= bits - 1


def _some(places: Mapping[Expression, int], bits: int) -> tuple[Expression, ...]:
    return tuple(expression for expression, place in places.items() if bits >> place & 1)
