"""No sharing: every query from the stream."""

from __future__ import annotations

from headrace.plan.space import N, Space, Tree


def none(space: Space[N]) -> Tree[N]:
    """The tree in which all nodes are made from records; what other trees are compared with."""
    return space.priced(dict.fromkeys(space.wanted))
