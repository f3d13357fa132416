"""What a search walks over: nodes, which of them can be made from which, and at what cost."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

N = TypeVar("N", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Tree(Generic[N]):
    """Nodes with their parents (None: the stream), parents first, and what it costs to make them all."""

    parents: Mapping[N, N | None]
    cost: float

    def root_of(self, node: N) -> N:
        """The node from records that a node comes from."""
        while (parent := self.parents[node]) is not None:
            node = parent
        return node


class Space(Protocol[N]):
    """The aggregate graph: an edge leads from a node to every other that can be made from its rows.

    `makes` is a partial order. Costs are nanoseconds of one core.
    """

    @property
    def wanted(self) -> Sequence[N]:
        """The nodes that queries come from; all others are phantoms."""

    def makes(self, parent: N, child: N) -> bool:
        """Whether a node can be made from another's rows."""

    def below(self, parent: N, nodes: Iterable[N]) -> list[N]:
        """Those of some nodes that can be made from one."""

    def above(self, child: N, nodes: Iterable[N]) -> list[N]:
        """Those of some nodes that one can be made from."""

    def union(self, one: N, other: N) -> N | None:
        """The least node that both can be made from; None where there is none."""

    def variants(self, node: N, above: N | None) -> Iterable[N]:
        """A node with the keys of one above it (None: the stream), and one with its filter.

        These suppress one of the two steps between them, to group and to filter.
        """

    def cost(self, parent: N | None, child: N) -> float:
        """What an edge costs, as far as it can be said without the rest of the tree."""

    def floor(self, parent: N | None, child: N) -> float:
        """What an edge costs at least, which is quicker to say."""

    def priced(self, parents: Mapping[N, N | None]) -> Tree[N]:
        """The tree with these parents, and its cost."""

    def settled(self, phantoms: Collection[N]) -> Tree[N]:
        """A cheap tree of the wanted nodes and these: each node from the parent that suits it."""


def phantoms_of(space: Space[N], tree: Tree[N]) -> list[N]:
    """The nodes of a tree that no query comes from."""
    wanted = set(space.wanted)
    return [node for node in tree.parents if node not in wanted]


def variants_below(space: Space[N], nodes: Iterable[N], above: Iterable[N]) -> Iterator[N]:
    """What some nodes are with the keys or the filter of the stream, or of each of others that is above them."""
    for node, other in itertools.product(nodes, [None, *above]):
        if other is None or space.makes(other, node):
            yield from space.variants(node, other)


def edge_costs(space: Space[N], tree: Tree[N]) -> dict[N, float]:
    """What each node of a tree costs by itself."""
    return {node: space.cost(parent, node) for node, parent in tree.parents.items()}


def gain(space: Space[N], costs: Mapping[N, float], node: N) -> float:
    """About what a phantom would save: what its children would cost less, without its own cost.

    With the costs of the seed (a row costs as much as the child has keys), over a stream of N records and children
    of X keys in all, a phantom of Y keys and S rows saves N·X and costs N·Y + S·X. It pays if S < N·(X - Y) / X.
    `costs` are those of the tree's nodes now, see `edge_costs`.
    """
    children = space.below(node, costs)
    parents: list[N | None] = []
    saved = 0.0
    for cost in (space.floor, space.cost):  # most candidates do not pay, however few rows they might have
        saved = sum(max(0.0, costs[child] - cost(node, child)) for child in children)
        if saved <= 0:
            return saved
        parents = parents or [None, *space.above(node, costs)]
        saved -= min(cost(parent, node) for parent in parents)
        if saved <= 0:
            return saved
    return saved


def pruned(space: Space[N], tree: Tree[N]) -> Tree[N]:
    """A tree without the phantoms that it is no worse without."""
    phantoms = phantoms_of(space, tree)
    for phantom in reversed(phantoms.copy()):
        fewer = [other for other in phantoms if other != phantom]
        settled = space.settled(fewer)
        if settled.cost <= tree.cost:
            phantoms, tree = fewer, settled
    return tree
