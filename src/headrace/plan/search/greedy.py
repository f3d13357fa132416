"""Step by step: unions that save something join, those that promise most first; then the tree is trimmed.

The changes are those of the seed: a phantom that is the union of two nodes joins; a phantom leaves; one takes over
the keys of the node above it, or its filter; and the first together with one of the last two. After each, every
node is made from what is then cheapest for it, so that unions are not for siblings alone.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterator, Mapping, Sequence

from headrace.plan.space import N, Space, Tree, edge_costs, gain, phantoms_of, pruned


def greedy(space: Space[N]) -> Tree[N]:
    """The tree at which no change helps any more."""
    return improved(space, space.settled(()))


def improved(space: Space[N], tree: Tree[N]) -> Tree[N]:
    """The tree that greedy steps lead to from another one; never a worse one."""
    known: set[N] = set()
    while True:
        joined = _joined(space, tree, [node for node in tree.parents if node not in known])
        known.update(joined.parents)
        tree = _changed(space, pruned(space, joined))
        if tree.cost >= joined.cost:
            return tree


def _joined(space: Space[N], tree: Tree[N], fresh: Sequence[N]) -> Tree[N]:
    """With all unions of fresh nodes that pay, the best first; what one promised is looked at again before."""
    waiting: list[tuple[float, int, N]] = []
    seen = set(tree.parents)
    order = itertools.count()
    costs = edge_costs(space, tree)

    def consider(nodes: Sequence[N]) -> None:
        for node in _unions(space, tree, costs, nodes):
            if node not in seen:
                seen.add(node)
                if (promised := gain(space, costs, node)) > 0:
                    heapq.heappush(waiting, (-promised, next(order), node))

    consider(fresh)
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
            tree, costs = more, edge_costs(space, more)
            consider([node])
    return tree


def _unions(space: Space[N], tree: Tree[N], costs: Mapping[N, float], fresh: Sequence[N]) -> Iterator[N]:
    """The unions of fresh nodes with others, and what each is with the keys or the filter of the node above both.

    Of all that a node has, the one counts that promises most for it and the other alone: more of them led to trees
    that cost the same on average, and the groups of each have to be counted.
    """
    nodes, later = list(tree.parents), set(fresh)
    best: dict[N, tuple[float, N, N]] = {}
    for one in fresh:
        later.discard(one)
        for other in nodes:
            if other == one or other in later:
                continue
            union = space.union(one, other)
            if union is None or union in costs:
                continue
            saved = sum(max(0.0, costs[node] - space.floor(union, node)) for node in (one, other))
            promised = saved - space.floor(None, union)
            for node, partner in ((one, other), (other, one)):
                if node not in best or promised >= best[node][0]:
                    best[node] = promised, union, partner
    for node in filter(best.__contains__, nodes):
        _, union, partner = best[node]
        yield union
        if (parent := tree.parents[node]) == tree.parents[partner]:
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
