"""Step by step: as long as some change of the tree saves anything, the one that saves most is made.

The changes are those of the seed: a phantom that is the union of two nodes joins; a phantom leaves; one takes over
the keys of the node above it, or its filter; and the first together with one of the last two. After each, every
node is made from what is then cheapest for it, so that unions are not for siblings alone.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Iterator

from headrace.plan.space import N, Space, Tree, edge_costs, gain, phantoms_of, pruned


def greedy(space: Space[N]) -> Tree[N]:
    """The tree at which no change helps any more."""
    return improved(space, space.settled(()))


def improved(space: Space[N], tree: Tree[N]) -> Tree[N]:
    """The tree that greedy steps lead to from another one; never a worse one."""
    while True:
        joined = _joined(space, tree)
        tree = _changed(space, pruned(space, joined))
        if tree.cost >= joined.cost:
            return tree


def _joined(space: Space[N], tree: Tree[N]) -> Tree[N]:
    """With all unions that pay, the best first; what a union promised is looked at again before it joins."""
    waiting: list[tuple[float, int, N]] = []
    seen = set(tree.parents)
    order = itertools.count()
    costs = edge_costs(space, tree)

    def consider(candidates: Iterable[N]) -> None:
        for node in candidates:
            if node not in seen:
                seen.add(node)
                if (promised := gain(space, costs, node)) > 0:
                    heapq.heappush(waiting, (-promised, next(order), node))

    consider(_unions(space, tree, itertools.combinations(tree.parents, 2)))
    while waiting:
        _, _, node = heapq.heappop(waiting)
        promised = gain(space, costs, node)
        if promised <= 0:
            continue
        if waiting and -waiting[0][0] > promised:
            heapq.heappush(waiting, (-promised, next(order), node))
            continue
        more = space.settled([*phantoms_of(space, tree), node])
        if more.cost < tree.cost:
            others, tree, costs = list(tree.parents), more, edge_costs(space, more)
            consider(_unions(space, tree, ((node, other) for other in others)))
    return tree


def _unions(space: Space[N], tree: Tree[N], pairs: Iterable[tuple[N, N]]) -> Iterator[N]:
    """The union of each pair, and what it is with the keys or the filter of the node above them."""
    for one, other in pairs:
        union = space.union(one, other)
        if union is None:
            continue
        yield union
        if (parent := tree.parents[one]) == tree.parents[other]:
            yield from space.variants(union, parent)


def _changed(space: Space[N], tree: Tree[N]) -> Tree[N]:
    """With phantoms that take over what the node above them has, where that is cheaper."""
    for phantom in phantoms_of(space, tree):
        if phantom not in tree.parents:
            continue
        parent = tree.parents[phantom]
        others = [other for other in phantoms_of(space, tree) if other != phantom]
        trees = [space.settled([*others, variant]) for variant in space.variants(phantom, parent)]
        tree = min([tree, *trees], key=lambda one: one.cost)
    return tree
