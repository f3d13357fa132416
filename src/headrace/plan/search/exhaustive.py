"""All trees there are, for a few queries: the yardstick of the other searches."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Generic

import numpy as np

from headrace.plan.search.greedy import greedy
from headrace.plan.search.steiner import all_costs, ascend
from headrace.plan.space import N, Space, Tree, variants_below

MOST_PHANTOMS = 64
"""More of them are refused: the time may double with each."""


def exhaustive(space: Space[N]) -> Tree[N]:
    """The cheapest tree whose phantoms are unions of wanted nodes, or variants of these.

    It is the optimum where all queries need the same states, so that edges have costs of their own. Raises
    `ValueError` where there are too many phantoms to try.
    """
    phantoms = candidates(space)
    if len(phantoms) > MOST_PHANTOMS:
        raise ValueError(f"{len(phantoms)} phantoms are too many to try all sets of them")
    return _Descent(space, phantoms).run()


def candidates(space: Space[N]) -> list[N]:
    """Every union of wanted nodes, and every variant of one with the keys or the filter of another above it."""
    found: dict[N, None] = dict.fromkeys(space.wanted)
    fresh = list(found)
    while fresh and len(found) <= MOST_PHANTOMS + len(space.wanted):
        unions = (space.union(one, other) for one, other in itertools.product(fresh, list(found)))
        fresh = list(dict.fromkeys(node for node in unions if node is not None and node not in found))
        found |= dict.fromkeys(fresh)
    found |= dict.fromkeys(variants_below(space, found, found))
    wanted = set(space.wanted)
    return [node for node in found if node not in wanted]


class _Descent(Generic[N]):
    """Branch and bound: each phantom is in or out, and dual ascent says what that costs at least."""

    def __init__(self, space: Space[N], phantoms: Sequence[N]) -> None:
        self._space = space
        self._nodes = [*space.wanted, *phantoms]
        self._edges = all_costs(space, self._nodes)
        self._best = greedy(space)

    def run(self) -> Tree[N]:
        """The cheapest tree."""
        count = len(self._space.wanted)
        self._descend(list(range(1, count + 1)), list(range(count + 1, len(self._nodes) + 1)))
        return self._best

    def _descend(self, inside: list[int], undecided: list[int]) -> None:
        """`inside` are in the tree; the stream is node 0."""
        there = [0, *inside, *undecided]
        used, bound = ascend(self._edges[np.ix_(there, there)], np.arange(1, len(inside) + 1))
        if bound >= self._best.cost * (1 - 1e-9):
            return
        phantoms = [self._nodes[node - 1] for node in inside[len(self._space.wanted) :]]
        self._best = min(self._best, self._space.settled(phantoms), key=lambda tree: tree.cost)
        if undecided:
            # One that a cheap tree leads through decides most.
            chosen = next(
                (node for node, is_used in zip(there, used, strict=True) if is_used and node in undecided),
                undecided[0],
            )
            rest = [node for node in undecided if node != chosen]
            self._descend([*inside, chosen], rest)
            self._descend(inside, rest)
