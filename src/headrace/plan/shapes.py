"""What nodes can be about, and which can be made from which: small numbers in place of expressions.

A search looks at thousands of nodes. Here a set of keys is the bits of an integer, and so is one of marks.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from dataclasses import dataclass

from headrace.plan.plan import Slices
from headrace.query import Expression


@dataclass(frozen=True, slots=True)
class Shape:
    """A node without its states. `filter` and `slices` are places in lists of `Shapes`, None where there is none.

    Nothing is made from a node for windows that `overlap`: its rows are still apart where others are whole.
    """

    keys: int
    marks: int
    filter: int | None
    slices: int | None
    overlap: bool = False


class Shapes:
    """All that shapes are made of: the keys, filters and slices of a workload's queries."""

    def __init__(self, untimed: Collection[Expression] = ()) -> None:
        """`untimed` are times that may be null: records without a time are in no slice."""
        self._untimed = frozenset(untimed)
        self._keys: dict[Expression, int] = {}
        self._filters: dict[Expression, int] = {}
        self._slices: dict[Slices, int] = {}
        self._shorter: dict[tuple[int | None, int | None], bool] = {}

    def shape(
        self, keys: Iterable[Expression], where: Expression | None, slices: Slices | None, overlap: bool
    ) -> Shape:
        """The shape of a query's node."""
        bits = sum(1 << self._keys.setdefault(key, len(self._keys)) for key in dict.fromkeys(keys))
        condition = self._filters.setdefault(where, len(self._filters)) if where is not None else None
        return Shape(bits, 0, condition, self._place(slices), overlap)

    def keys(self, shape: Shape) -> tuple[Expression, ...]:
        """The keys of a shape, in the order in which queries name them first."""
        return tuple(key for key, place in self._keys.items() if shape.keys >> place & 1)

    def marks(self, shape: Shape) -> tuple[Expression, ...]:
        """The marks of a shape."""
        return tuple(condition for condition, place in self._filters.items() if shape.marks >> place & 1)

    def filter(self, shape: Shape) -> Expression | None:
        """The filter of a shape."""
        return list(self._filters)[shape.filter] if shape.filter is not None else None

    def slices(self, shape: Shape) -> Slices | None:
        """The slices of a shape."""
        return list(self._slices)[shape.slices] if shape.slices is not None else None

    def makes(self, parent: Shape, child: Shape) -> bool:
        """Whether one node can be made from another's rows."""
        if child.keys & ~parent.keys or parent.overlap or parent == child:
            return False
        if child.filter == parent.filter:
            if child.marks & ~parent.marks:
                return False
        elif child.filter is None or child.marks or not parent.marks >> child.filter & 1:
            return False
        return parent.slices == child.slices or self._makes_slices(parent.slices, child.slices)

    def union(self, one: Shape, other: Shape) -> Shape | None:
        """The least shape that both can be made from; None where there is none."""
        shared = self._common_slices(one.slices, other.slices)
        if shared is None and (one.slices is not None or other.slices is not None):
            return None
        marks = one.marks | other.marks
        if one.filter == other.filter:
            return Shape(one.keys | other.keys, marks, one.filter, shared)
        for condition in (one.filter, other.filter):
            marks |= 1 << condition if condition is not None else 0
        return Shape(one.keys | other.keys, marks, None, shared)

    def _place(self, slices: Slices | None) -> int | None:
        return self._slices.setdefault(slices, len(self._slices)) if slices is not None else None

    def _makes_slices(self, shorter: int | None, longer: int | None) -> bool:
        if (shorter, longer) not in self._shorter:
            self._shorter[shorter, longer] = self._finer(shorter, longer)
        return self._shorter[shorter, longer]

    def _finer(self, shorter: int | None, longer: int | None) -> bool:
        if shorter is None:
            return longer is None
        listed = list(self._slices)
        if longer is None:
            return listed[shorter].time not in self._untimed
        return listed[shorter].has_edges_of(listed[longer])

    def _common_slices(self, one: int | None, other: int | None) -> int | None:
        for shorter, longer in ((one, other), (other, one)):
            if self._makes_slices(shorter, longer):
                return shorter
        if one is None or other is None:
            return None
        a, b = list(self._slices)[one], list(self._slices)[other]
        if a.time != b.time:
            return None
        size_us = math.gcd(a.size_us, b.size_us, a.offset_us - b.offset_us)
        return self._place(Slices(a.time, size_us, a.offset_us % size_us))
