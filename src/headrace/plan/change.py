"""Queries that come and go: a plan with one more, or one less, in which all else stays what it is.

The tree is not searched anew. A query that comes is put where it adds least: on a node that is there, on one of
its own, on one that takes in a root too, or on slices that it then has in common with windows of queries like it.
What goes takes with it the nodes that nobody needs any more. Kept nodes have the same content, so that their rows
and those of their slices need not be made again. From when on a change holds is for a run to say.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from headrace.algebra.states import NoState
from headrace.errors import Problem, WorkloadError
from headrace.plan.build import Grown, Planner, node_of
from headrace.plan.guard import Guarded
from headrace.plan.lattice import Lattice
from headrace.plan.member import Member, member_of
from headrace.plan.plan import Node, Plan
from headrace.plan.shapes import Shape
from headrace.plan.slices import Windows


@dataclass(frozen=True)
class Change:
    """From one plan to another."""

    before: Plan
    plan: Plan

    @property
    def kept(self) -> tuple[Node, ...]:
        """The nodes that stay, states and all."""
        there = set(self.plan.nodes)
        return tuple(dict.fromkeys(node for node in self.before.nodes if node in there))

    @property
    def added(self) -> tuple[Node, ...]:
        """The nodes that are new, or have more states than before."""
        there = set(self.before.nodes)
        return tuple(dict.fromkeys(node for node in self.plan.nodes if node not in there))

    @property
    def gone(self) -> tuple[Node, ...]:
        """The nodes that are no longer there as they were."""
        there = set(self.plan.nodes)
        return tuple(dict.fromkeys(node for node in self.before.nodes if node not in there))

    def __str__(self) -> str:
        lines = [*self._lines("-", self.before, self.gone), *self._lines("+", self.plan, self.added)]
        one = len(self.kept) == 1
        return "\n".join([*lines, "1 node stays as it is" if one else f"{len(self.kept)} nodes stay as they are"])

    @staticmethod
    def _lines(sign: str, plan: Plan, nodes: Sequence[Node]) -> Iterator[str]:
        from headrace.plan.show import line  # it knows plans, so they can know it only when they are shown

        for index, node in enumerate(plan.nodes):
            if node in nodes and not plan.carried(index):
                yield f"{sign} {line(plan, index)}"


def with_query(planner: Planner, plan: Plan, guarded: Guarded) -> Change:
    """A plan with one query more; raises `WorkloadError` where there is one of its name already."""
    name = guarded.query.name
    if name in _names(plan):
        raise WorkloadError([Problem(f"there is a query named '{name}' already")])
    try:
        member = member_of(guarded, planner.facts)
    except NoState as reason:
        return Change(plan, replace(plan, beside=(*plan.beside, (name, str(reason)))))
    grown = _grown(planner, plan)
    window = member.query.window
    shape = node_of(member, planner.slices(window) if window is not None else None, grown.shapes)
    lattice = planner.lattice({shape: [member], **grown.wanted}, grown.shapes)
    best = min(_options(lattice, grown, shape, member), key=lambda option: option.more)
    unshared = _unshared(plan) + lattice.cost(None, shape)
    return Change(plan, _planted(planner, best.grown, plan.beside, unshared))


def without_query(planner: Planner, plan: Plan, name: str) -> Change:
    """A plan without one of its queries; raises `WorkloadError` where there is none of this name."""
    if name not in _names(plan):
        raise WorkloadError([Problem(f"there is no query named '{name}'")])
    beside = tuple(pair for pair in plan.beside if pair[0] != name)
    if len(beside) < len(plan.beside):
        return Change(plan, replace(plan, beside=beside))
    grown = _grown(planner, plan)
    wanted = {s: [m for m in own if m.query.name != name] for s, own in grown.wanted.items()}
    wanted = {shape: own for shape, own in wanted.items() if own}
    parents = dict(grown.parents)
    while idle := [s for s in parents if s not in wanted and s not in parents.values()]:
        for shape in idle:
            del parents[shape]
    (gone,) = ((s, m) for s, own in grown.wanted.items() for m in own if m.query.name == name)
    less = planner.lattice({gone[0]: [gone[1]]}, grown.shapes).cost(None, gone[0])
    left = Grown(grown.shapes, wanted, parents)
    return Change(plan, _planted(planner, left, beside, max(0.0, _unshared(plan) - less)))


def _planted(planner: Planner, grown: Grown, beside: Sequence[tuple[str, str]], unshared: float) -> Plan:
    return planner.planted(grown, planner.lattice(grown.wanted, grown.shapes), beside, unshared)


def cost_of(planner: Planner, plan: Plan) -> float:
    """What a plan's tree costs by the sizes and costs of a planner, in nanoseconds."""
    grown = _grown(planner, plan)
    return planner.lattice(grown.wanted, grown.shapes).priced(grown.parents).cost


def _names(plan: Plan) -> set[str]:
    return {*plan.numbers, *(name for name, _ in plan.beside)}


def _unshared(plan: Plan) -> float:
    """What the queries of a plan would cost without it, in nanoseconds."""
    return plan.estimate.unshared * 1e9 if plan.estimate is not None else 0.0


def _grown(planner: Planner, plan: Plan) -> Grown:
    """The tree that a plan was made of, without what levels have put into it."""
    plan = plan.tree or plan
    shapes = planner.shapes()
    own = {
        index: shapes.of_node(node)
        for index, node in enumerate(plan.nodes)
        if not isinstance(node.slices, Windows)
    }
    for index, node in enumerate(plan.nodes):
        if isinstance(node.slices, Windows):
            (above, *_) = plan.above(index)
            # Windows may be made of rows that are about more records: then a node was passed over.
            own[index] = shapes.of_node(replace(node, slices=plan.nodes[above].slices))
            if own[index].any_of == own[above].any_of:
                own[index] = own[above]
    parents: dict[Shape, Shape | None] = {}
    for index, shape in own.items():
        others = (own[way] for way in plan.above(index))
        parents.setdefault(shape, next((other for other in others if other != shape), None))
    wanted: dict[Shape, list[Member]] = {}
    for answer in plan.answers:
        wanted.setdefault(own[answer.node], []).append(Member(answer.query, answer.keys, answer.recipes))
    shapes.learn(planner.sizes.deciding.decides)
    return Grown(shapes, wanted, parents)


class _Option(NamedTuple):
    """A place for a query: the tree with it, and what that costs more."""

    more: float
    grown: Grown


_MOST_UNIONS = 4
"""Roots that a query is joined with, to see what that costs: those that promise most."""


def _options(lattice: Lattice, grown: Grown, shape: Shape, member: Member) -> Iterator[_Option]:
    """The places that a query could have."""
    if shape in grown.parents:
        yield _Option(0.0, _asked(grown, shape, member, grown.parents))
        return
    above: list[Shape | None] = [None, *lattice.above(shape, grown.parents)]
    best = min(above, key=lambda parent: lattice.cost(parent, shape))
    own = lattice.cost(best, shape)
    yield _Option(own, _asked(grown, shape, member, {**grown.parents, shape: best}))
    promising = []
    for root in (node for node, parent in grown.parents.items() if parent is None):
        union = lattice.union(root, shape)
        if union is not None and union not in (root, shape, *grown.parents):
            least = lattice.floor(None, union) + lattice.floor(union, shape) - lattice.floor(None, root)
            promising.append((least, root, union))
    for least, root, union in sorted(promising, key=operator.itemgetter(0))[:_MOST_UNIONS]:
        if least < own:
            parents = {**_in_place(grown, root, union), shape: union}
            yield _Option(_more(lattice, grown.parents, parents), _asked(grown, shape, member, parents))
    yield from _in_common(lattice, grown, shape, member)


def _more(lattice: Lattice, before: Mapping[Shape, Shape | None], after: Mapping[Shape, Shape | None]) -> float:
    """What one tree costs more than another, of which it has most edges."""
    new = sum(lattice.cost(parent, node) for node, parent in after.items() if before.get(node, node) != parent)
    old = sum(lattice.cost(parent, node) for node, parent in before.items() if after.get(node, node) != parent)
    return new - old


def _asked(grown: Grown, shape: Shape, member: Member, parents: Mapping[Shape, Shape | None]) -> Grown:
    wanted = {**grown.wanted, shape: [*grown.wanted.get(shape, ()), member]}
    return Grown(grown.shapes, wanted, parents)


def _in_place(grown: Grown, old: Shape, new: Shape) -> dict[Shape, Shape | None]:
    """A tree in which a node makes all that another one made; that other one too, if it is wanted."""
    above = grown.parents[old]
    fitting = above is not None and grown.shapes.makes(above, new)
    parents = {shape: new if parent == old else parent for shape, parent in grown.parents.items()}
    parents[new] = above if fitting else None
    if old in grown.wanted:
        parents[old] = new
    else:
        del parents[old]
    return parents


def _in_common(lattice: Lattice, grown: Grown, shape: Shape, member: Member) -> Iterator[_Option]:
    """Slices that a window has in common with those of queries like it."""
    if member.own_window is None:
        return
    for other, own in grown.wanted.items():
        alike = other._replace(slices=shape.slices) == shape and other.slices is not None
        if not alike or any(each.own_window is None for each in own):
            continue
        common = grown.shapes.with_slices(other, shape)
        if common is None:
            continue
        kept = {each: members for each, members in grown.wanted.items() if each != other}
        left = Grown(grown.shapes, kept, grown.parents)
        parents = grown.parents if common == other else _in_place(left, other, common)
        wanted = {**kept, common: [*own, member]}
        yield _Option(_more(lattice, grown.parents, parents), Grown(grown.shapes, wanted, parents))
