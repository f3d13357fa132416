"""Which queries are made of common fragments: to share, or not to share, for filters.

Queries that have the same keys and many different filters can be made from one node, whose rows know for each
filter whether it is true: its fragments. There are as many unions of some of them as of any nodes, but what a
fragment costs does not depend on how many queries ask for it, so that it pays for all of them or for none: these
two are compared, before the search looks at the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.plan.lattice import Lattice
from headrace.plan.plan import put_in_order
from headrace.plan.shapes import Shape


def common_fragments(lattice: Lattice) -> tuple[Mapping[Shape, Sequence[Shape]], Sequence[Shape]]:
    """Nodes whose fragments many wanted nodes are made of, each with these; and nodes that would have to be many,
    but are better apart."""
    alike: dict[tuple[int, bool], list[Shape]] = {}
    for shape in lattice.wanted:
        if shape.any_of:
            alike.setdefault((shape.keys, shape.slices is None), []).append(shape)
    common, apart = {}, []
    for shapes in alike.values():
        # Fewer filters are left to the search, which looks at all of their unions.
        if put_in_order(len({shape.any_of for shape in shapes})):
            union = _union(lattice, shapes)
            if union is not None and union not in shapes and _pays(lattice, union, shapes):
                common[union] = shapes
            else:
                apart += shapes
    return common, apart


def _union(lattice: Lattice, shapes: Sequence[Shape]) -> Shape | None:
    union: Shape | None = shapes[0]
    for shape in shapes[1:]:
        union = lattice.union(union, shape) if union is not None else None
    return union


def _pays(lattice: Lattice, union: Shape, shapes: Sequence[Shape]) -> bool:
    apart = sum(lattice.cost(None, shape) for shape in shapes)
    return lattice.cost(None, union) + sum(lattice.cost(union, shape) for shape in shapes) < apart
