"""A cheap tree from the stream to all wanted nodes within a graph: Wong's dual ascent.

A price is put on sets of nodes that a wanted node can be reached from but the stream is not in, as high as the
edges into the set can pay. Edges that have paid in full are open. When open edges lead from the stream to every
wanted node, the prices add up to what any tree in this graph costs at least, and a good tree is among these edges.
"""

from __future__ import annotations

from collections.abc import Sequence

import numba
import numpy as np
import numpy.typing as npt

from headrace.plan.space import N, Space

Costs = npt.NDArray[np.float64]


def steiner(space: Space[N], nodes: Sequence[N]) -> list[N]:
    """Those of some nodes (the wanted ones are among them) that open edges lead through."""
    costs = all_costs(space, nodes)
    wanted = set(space.wanted)
    ends = np.array([place for place, node in enumerate(nodes, start=1) if node in wanted], dtype=np.int64)
    used, _ = ascend(costs, ends)
    return [node for node, is_used in zip(nodes, used[1:], strict=True) if is_used]


def all_costs(space: Space[N], nodes: Sequence[N]) -> Costs:
    """What each edge costs, infinite where there is none; node 0 is the stream."""
    costs = np.full((len(nodes) + 1, len(nodes) + 1), np.inf)
    for child, node in enumerate(nodes, start=1):
        costs[0, child] = space.cost(None, node)
        for parent, other in enumerate(nodes, start=1):
            if space.makes(other, node):
                costs[parent, child] = space.cost(other, node)
    return costs


@numba.njit(nogil=True, cache=True)
def ascend(costs, ends):  # type: ignore[no-untyped-def]
    """Which nodes lie on open ways from node 0 to the `ends`, and the sum of all prices.

    `costs[i, j]` is that of the edge from i to j, infinite where there is none.
    """
    size = len(costs)
    left = costs.copy()
    bound = 0.0
    waiting = np.ones(len(ends), dtype=np.bool_)
    widths = np.zeros(len(ends), dtype=np.int64)
    while waiting.any():
        # The set with the fewest edges into it first; what is known of a set is looked at again before it counts.
        place = -1
        for other in range(len(ends)):
            if waiting[other] and (place < 0 or widths[other] < widths[place]):
                place = other
        inside = _before(left, ends[place])
        if inside[0]:
            waiting[place] = False
            continue
        width, least = 0, np.inf
        for parent in range(size):
            if not inside[parent]:
                for child in range(size):
                    if inside[child] and costs[parent, child] < np.inf:
                        width += 1
                        least = min(least, left[parent, child])
        if width > widths[place]:
            widths[place] = width
            continue
        for parent in range(size):
            if not inside[parent]:
                for child in range(size):
                    if inside[child]:
                        left[parent, child] -= least
        bound += least
    used = np.zeros(size, dtype=np.bool_)
    for end in ends:
        used |= _before(left, end)
    return used & _before(left.T, 0), bound


@numba.njit(nogil=True, cache=True)
def _before(left, end):  # type: ignore[no-untyped-def]
    """The nodes from which open edges lead to one; with edges turned round, those that they lead to from it."""
    size = len(left)
    found = np.zeros(size, dtype=np.bool_)
    found[end] = True
    stack = [end]
    while stack:
        child = stack.pop()
        for parent in range(size):
            if left[parent, child] <= 0 and not found[parent]:
                found[parent] = True
                stack.append(parent)
    return found
