"""One phantom for all queries, or as few as the slices of their windows allow."""

from __future__ import annotations

from headrace.plan.space import N, Space, Tree


def one(space: Space[N]) -> Tree[N]:
    """The tree in which everything comes from the union of all nodes, however large that is."""
    tops: list[N] = []
    for node in space.wanted:
        for place, top in enumerate(tops):
            union = top if top == node or space.makes(top, node) else space.union(top, node)
            if union is not None:
                tops[place] = union
                break
        else:
            tops.append(node)
    parents: dict[N, N | None] = dict.fromkeys(tops)
    for node in space.wanted:
        if node not in parents:
            parents[node] = next(top for top in tops if space.makes(top, node))
    return space.priced(parents)
