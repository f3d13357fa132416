"""Unions of nodes drawn at random, and the best tree among them: the seed's second algorithm, from greedy's tree.

Each round draws unions of any number of wanted nodes, and the variants of these that suppress a step. The ones
that could pay join the nodes of the best tree so far, dual ascent finds a tree in the graph of all these, and
greedy steps end the round. The best tree of all rounds counts, so that no other is better: not greedy's, not none.
"""

from __future__ import annotations

import functools
import random
import time

from headrace.plan.search.greedy import greedy, improved
from headrace.plan.search.none import none
from headrace.plan.search.steiner import steiner
from headrace.plan.space import N, Space, Tree, edge_costs, gain, phantoms_of, pruned, variants_below

_ROUNDS = 50
"""The seed's c1; its c2, the unions of a round, is the number of wanted nodes."""
_BUDGET_S = 2.0
"""No round begins later than this. What ends before does not depend on the clock."""
_SHARE = 0.02
_NS_PER_PAIR = 10_000
"""Rounds are begun as long as they take no more than this share of what the tree costs, by a guess at the time
that a round takes for each pair of wanted nodes."""


_MOST_NODES = 32
"""A larger graph has only phantoms that pay by themselves."""


def randomized(space: Space[N], *, seed: int = 0) -> Tree[N]:
    """The best tree found; the same one for the same seed, unless the budget cuts the search short."""
    end = time.monotonic() + _BUDGET_S
    best = min(greedy(space), none(space), key=lambda tree: tree.cost)
    worth = round(_SHARE * best.cost / (_NS_PER_PAIR * max(1, len(space.wanted)) ** 2))
    draw = random.Random(seed)
    tried: set[N] = set()
    wanted = set(space.wanted)
    for _ in range(min(_ROUNDS, worth)):
        if time.monotonic() > end:
            break
        fresh = _draw(space, best, draw) - tried
        tried |= fresh
        # Two phantoms may pay together where neither does alone, so that the best of those join that do not.
        costs = edge_costs(space, best)
        gains = {node: gain(space, costs, node) for node in sorted(fresh, key=repr)}
        ranked = sorted(gains, key=gains.__getitem__, reverse=True)
        room = max(_MOST_NODES - len(best.parents), sum(gains[node] > 0 for node in ranked))
        if not ranked[:room]:
            continue
        chosen = steiner(space, [*best.parents, *ranked[:room]])
        found = pruned(space, space.settled([node for node in chosen if node not in wanted]))
        if found.cost < best.cost:
            best = improved(space, found)
    return best


def _draw(space: Space[N], best: Tree[N], draw: random.Random) -> set[N]:
    """Unions of random wanted nodes, and what they are with the keys or the filter of a node above them."""
    wanted = list(space.wanted)
    unions: dict[N, None] = {}
    for _ in wanted:
        some = draw.sample(wanted, draw.randint(1, len(wanted)))
        unions[functools.reduce(lambda one, other: _union(space, one, other), some)] = None
    variants = variants_below(space, unions, [*phantoms_of(space, best), *unions])
    return {*unions, *variants} - set(best.parents)


def _union(space: Space[N], one: N, other: N) -> N:
    """The union of two nodes, or the first alone where they have none."""
    union = space.union(one, other)
    return one if union is None else union
