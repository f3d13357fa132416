"""The seed's own world: nodes are a range of one attribute and a set of keys, with its three kinds of edges."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headrace.plan.space import Tree

C_F = 1.0
"""To check a range."""
C_H = 5.0
"""To hash a key: ten times as much for two of them, as the seed has it."""


@dataclass(frozen=True)
class Spot:
    """A filter (None: all tuples pass) and keys (None: tuples are not grouped)."""

    range: tuple[int, int] | None
    keys: frozenset[str] | None

    def __str__(self) -> str:
        return f"{self.range or 'all'} {''.join(sorted(self.keys)) if self.keys is not None else 'tuples'}"


class SeedSpace:
    """Queries over so many tuples of an attribute `a` that is even from 0 to 1000, at most one filter on it."""

    def __init__(self, queries: Mapping[str, tuple[int, int]], tuples: float, values: Mapping[str, int]) -> None:
        self.wanted: Sequence[Spot] = [Spot(range, frozenset(keys)) for keys, range in queries.items()]
        self._tuples, self._values = tuples, values

    def share(self, range: tuple[int, int] | None) -> float:
        """The part of all tuples that pass: sigma."""
        return (range[1] - range[0]) / 1000 if range is not None else 1.0

    def size(self, keys: frozenset[str] | None, range: tuple[int, int] | None) -> float:
        """The seed's sz: tuples that pass, or groups of these."""
        passing = self.share(range) * self._tuples
        if keys is None:
            return passing
        groups = self.share(range) if "a" in keys else 1.0
        for key in keys:
            groups *= self._values[key]
        return min(groups, passing)

    def makes(self, parent: Spot, child: Spot) -> bool:
        return parent != child and _in_range(child.range, parent.range) and _among(child.keys, parent.keys)

    def below(self, parent: Spot, nodes: Iterable[Spot]) -> list[Spot]:
        return [node for node in nodes if self.makes(parent, node)]

    def above(self, child: Spot, nodes: Iterable[Spot]) -> list[Spot]:
        return [node for node in nodes if self.makes(node, child)]

    def union(self, one: Spot, other: Spot) -> Spot | None:
        range, keys = None, None
        if one.range is not None and other.range is not None:
            range = min(one.range[0], other.range[0]), max(one.range[1], other.range[1])
        if one.keys is not None and other.keys is not None:
            keys = one.keys | other.keys
        union = Spot(range, keys)
        return None if union == Spot(None, None) else union

    def variants(self, node: Spot, above: Spot | None) -> Iterator[Spot]:
        top = above or Spot(None, None)
        for variant in (Spot(node.range, top.keys), Spot(top.range, node.keys)):
            if variant not in (node, top):
                yield variant

    def cost(self, parent: Spot | None, child: Spot) -> float:
        above = parent or Spot(None, None)
        rows = self.size(above.keys, above.range)
        hashing = C_H * len(child.keys) if child.keys is not None else 0.0
        if child.range == above.range:
            return rows * hashing
        if child.keys == above.keys:
            return rows * C_F
        filter_first = rows * C_F + self.size(above.keys, child.range) * hashing
        group_first = rows * hashing + self.size(child.keys, above.range) * C_F
        return min(filter_first, group_first)

    floor = cost

    def priced(self, parents: Mapping[Spot, Spot | None]) -> Tree[Spot]:
        order = sorted(parents, key=lambda node: sum(self.makes(other, node) for other in parents))
        return Tree({node: parents[node] for node in order}, sum(self.cost(parents[node], node) for node in order))

    def settled(self, phantoms: Collection[Spot]) -> Tree[Spot]:
        nodes = dict.fromkeys([*self.wanted, *phantoms])
        parents: dict[Spot, Spot | None] = {}
        for node in nodes:
            above: list[Spot | None] = [None, *(other for other in nodes if self.makes(other, node))]
            parents[node] = min(above, key=lambda parent: self.cost(parent, node))
        return self.priced(parents)


def _in_range(inner: tuple[int, int] | None, outer: tuple[int, int] | None) -> bool:
    return outer is None or (inner is not None and outer[0] <= inner[0] and inner[1] <= outer[1])


def _among(inner: frozenset[str] | None, outer: frozenset[str] | None) -> bool:
    return outer is None or (inner is not None and inner <= outer)
