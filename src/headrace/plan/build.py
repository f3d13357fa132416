"""A workload to a plan: what each query needs, the search for a tree, and how the tree's rows are dealt."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from headrace.algebra.states import State
from headrace.plan.common_fragments import common_fragments
from headrace.plan.common_slices import About, common_slices
from headrace.plan.costs import Costs
from headrace.plan.dependent import Deciding, gathered
from headrace.plan.guard import Guarded
from headrace.plan.lattice import Lattice
from headrace.plan.levels import placed
from headrace.plan.member import Facts, Member, Needs, slots_of, states_of, untimed
from headrace.plan.plan import Answer, Deal, Estimate, Expected, Node, Plan, has_bag
from headrace.plan.search import DEFAULT, SEARCHES, none
from headrace.plan.shapes import Filters, Shape, Shapes
from headrace.plan.sizes import Sizes
from headrace.plan.slices import Slices, Windows
from headrace.plan.space import Tree
from headrace.query import Window

DEFAULT_COSTS = Costs()


@dataclass(frozen=True)
class Planner:
    """What plans are made with.

    `sizes` tells how many rows nodes will have, `cores` how many tasks can run at a time, each with so many bytes
    of `memory` for groups (as many as they want, if nobody says). `paned` slices are all of equal length, which is
    never better: the yardstick of seeds 002 and 003. Where records never `end`, no node is carried.
    """

    facts: Facts
    sizes: Sizes
    cores: int = 1
    costs: Costs = DEFAULT_COSTS
    memory: float = math.inf
    filters: Filters | None = None
    paned: bool = False
    end: bool = True

    def plan(self, queries: Iterable[Guarded], search: str = DEFAULT) -> Plan:
        """The plan of all queries that have states; the others are beside. `search` is one of `SEARCHES`."""
        needs = Needs.of(queries, self.facts)
        members = needs.members
        shapes = self.shapes()
        alone = {m.query.name: self.slices(m.query.window) for m in members if m.query.window is not None}
        sliced = alone if search == "none" else _sliced(members, alone, self)
        wanted = _wanted(members, sliced, shapes, self.sizes.deciding)
        unshared = wanted if sliced == alone else _wanted(members, alone, shapes, self.sizes.deciding)
        shapes.learn(self.sizes.deciding.decides)
        lattice = self.lattice(wanted, shapes)
        tree = none(lattice) if search == "none" else _searched(search, lattice, wanted, shapes, self)
        apart = lattice if unshared is wanted else self.lattice(unshared, shapes)
        return self.planted(Grown(shapes, wanted, tree.parents), lattice, needs.beside, none(apart).cost)

    def shapes(self) -> Shapes:
        """Shapes of nothing yet."""
        return Shapes(untimed(self.facts), self.filters, self.paned)

    def slices(self, window: Window) -> Slices:
        """The slices that a window has of its own."""
        return Slices.of(window, self.paned)

    def lattice(self, wanted: Mapping[Shape, Sequence[Member]], shapes: Shapes) -> Lattice:
        """The space of all nodes that queries could share."""
        states = {shape: states_of(sharing) for shape, sharing in wanted.items()}
        return Lattice(states, shapes, self.sizes, self.costs)

    def planted(self, grown: Grown, lattice: Lattice, beside: Iterable[tuple[str, str]], unshared: float) -> Plan:
        """A tree of some lattice as a plan; `unshared` is what its queries would cost without it."""
        tree = lattice.priced(grown.parents)
        plan = _plan(tree, _expected(tree, lattice), grown, self, tuple(beside))
        seconds = (cost / 1e9 for cost in (tree.cost, unshared, lattice.least()))
        plan = replace(plan, answers=_assuming(plan, self.sizes.deciding), estimate=Estimate(*seconds))
        if self.span_us is None:
            return plan
        return placed(plan, self.sizes, self.filters or Filters(), self.cores, self.memory, self.costs)

    @property
    def span_us(self) -> int | None:
        """How long the records go on, where they end and that is known."""
        return self.sizes.span_us if self.end else None


@dataclass(frozen=True, slots=True)
class Grown:
    """A tree: shapes, which queries want which of them, and what each is made from."""

    shapes: Shapes
    wanted: Mapping[Shape, Sequence[Member]]
    parents: Mapping[Shape, Shape | None]


def node_of(member: Member, slices: Slices | None, shapes: Shapes) -> Shape:
    """The node that has what a query needs, and nothing else."""
    return shapes.shape(member.all_keys, member.query.where, slices)


Sliced = Mapping[str, Slices]
"""The slices that queries with a window come from, by their names."""


def _sliced(members: Iterable[Member], alone: Sliced, planner: Planner) -> Sliced:
    """Queries that differ in windows alone have slices in common, where that costs less.

    Those of tumbling windows come from any node that has shorter slices, as the tree will have it.
    """
    alike: dict[object, dict[str, tuple[Member, Window]]] = {}
    for member in members:
        if (window := member.own_window) is not None:
            same = alike.setdefault((member.node_keys, member.query.where, window.time), {})
            same[member.query.name] = member, window
    sliced = dict(alone)
    for same in alike.values():
        (first, _), *_ = same.values()
        where = first.query.where
        slots = slots_of(states_of(member for member, _ in same.values()))
        about = About(first.node_keys, () if where is None else (where,), slots)
        windows = {window for _, window in same.values()}
        common = common_slices(windows, about, planner.sizes, planner.costs, planner.paned)
        sliced |= {name: common[window] for name, (_, window) in same.items()}
    return sliced


def _searched(
    search: str, lattice: Lattice, wanted: Mapping[Shape, Sequence[Member]], shapes: Shapes, planner: Planner
) -> Tree[Shape]:
    """The tree that a search finds, which sees fragments that many queries have in common as one of them."""
    common, apart = common_fragments(lattice)
    if not common and not apart:
        return SEARCHES[search](lattice)
    above = {shape: union for union, below in common.items() for shape in below}
    seen: dict[Shape, list[Member]] = {}
    for shape, sharing in wanted.items():
        if shape not in apart:
            seen.setdefault(above.get(shape, shape), []).extend(sharing)
    tree: Tree[Shape] = SEARCHES[search](planner.lattice(seen, shapes))
    settled = lattice.settled([node for node in tree.parents if node not in wanted])
    # By itself, a node may choose another parent where all together are better off with theirs.
    parents = {
        shape: parent for shape, parent in settled.parents.items() if shape in wanted and shape not in above
    }
    together = lattice.priced({**tree.parents, **parents, **above})
    return min(together, settled, key=lambda tree: tree.cost)


def _wanted(
    members: Iterable[Member], sliced: Sliced, shapes: Shapes, deciding: Deciding
) -> dict[Shape, list[Member]]:
    """The nodes that queries come from. Those of the same groups come from one, which has the keys of all."""
    wanted: dict[Shape, list[Member]] = {}
    for member in members:
        wanted.setdefault(node_of(member, sliced.get(member.query.name), shapes), []).append(member)
    alike: dict[Shape, list[Shape]] = {}
    for shape, sharing in wanted.items():
        apart = any(has_bag(member.recipes) for member in sharing)
        alike.setdefault(shape if apart else shape._replace(keys=0), []).append(shape)
    merged: dict[Shape, list[Member]] = {}
    for likely in alike.values():
        for same in deciding.same_groups([shapes.keys(shape) for shape in likely]):
            keys = functools.reduce(operator.or_, (likely[number].keys for number in same))
            sharing = [member for number in same for member in wanted[likely[number]]]
            merged.setdefault(likely[0]._replace(keys=keys), []).extend(sharing)
    return merged


def _assuming(plan: Plan, deciding: Deciding) -> tuple[Answer, ...]:
    """Answers with what they assume of keys: all that is decided by the same ones is one thing to be sure of."""
    assumed = []
    for answer in plan.answers:
        # Where there are bags, rows are grouped anyway.
        node_keys = answer.keys if answer.from_bag else plan.nodes[answer.node].keys
        steps = deciding.steps(answer.keys, node_keys)
        assert steps is not None, "queries share a node only if their keys decide those of all"
        assumed.append(steps)
    all_decided = gathered(step for steps in assumed for step in steps)
    return tuple(
        replace(answer, assumed=tuple({all_decided[step.keys]: None for step in steps}))
        for answer, steps in zip(plan.answers, assumed, strict=True)
    )


_EPOCHS_PER_CORE = 2
"""With so many epochs for each core, dealing by epoch alone keeps all of them busy."""


def _deal(members: Sequence[Member], slices: Slices | None, planner: Planner) -> Deal:
    """By the longest windows of which there are enough; else, or where nobody knows, by the commonest key too."""
    span_us, cores = planner.span_us, planner.cores
    windows = [member.query.window for member in members]
    tumbling = dict.fromkeys(Slices.of(window) for window in windows if window is not None and window.tumbling)
    epoch = None
    for own in sorted(tumbling, key=lambda own: own.unit_us):
        enough = span_us is None or span_us // own.unit_us >= _EPOCHS_PER_CORE * cores
        if enough and slices is not None and slices.has_edges_of(own):
            epoch = own
    if epoch is not None and span_us is not None:
        return Deal(epoch)
    votes = [key for member in members for key in member.keys]
    key = max(dict.fromkeys(votes), key=votes.count, default=None)
    # Queries that come and go have other windows: where records never end, rows are dealt so that these stay.
    return Deal(epoch if planner.end or key is None else None, key)


def _expected(tree: Tree[Shape], lattice: Lattice) -> dict[Shape, Expected]:
    """What each node of a tree has and takes, and what it saves its children."""
    costs = lattice.edges(tree.parents)
    found = {}
    for shape, parent in tree.parents.items():
        children = [child for child, above in tree.parents.items() if above == shape]
        without = sum(lattice.cost(parent, child) for child in children)
        saved = without - costs[shape] - sum(costs[child] for child in children)
        found[shape] = Expected(lattice.rows(shape), costs[shape] / 1e9, saved / 1e9)
    return found


def _plan(
    tree: Tree[Shape],
    expected: Mapping[Shape, Expected],
    grown: Grown,
    planner: Planner,
    beside: tuple[tuple[str, str], ...],
) -> Plan:
    """The tree as a plan: each node with the states of all that comes from it, and windows below their slices."""
    order, wanted, shapes, sizes = list(tree.parents), grown.wanted, grown.shapes, planner.sizes
    states: dict[Shape, dict[State, None]] = {shape: {} for shape in order}
    for shape in reversed(order):
        states[shape] |= states_of(wanted.get(shape, ()))
        if (parent := tree.parents[shape]) is not None:
            states[parent] |= states[shape]
    sharing: dict[Shape, list[Member]] = {}
    for shape, own in wanted.items():
        sharing.setdefault(tree.root_of(shape), []).extend(own)
    made = [shape for shape in order if not _passed_over(tree, shape, wanted.get(shape, ()))]
    places = {shape: index for index, shape in enumerate(made)}
    node_of_shape = {
        shape: Node(
            shapes.keys(shape),
            tuple(states[shape]),
            shapes.slices(shape),
            shapes.any_of(shape),
            shapes.marks(shape),
        )
        for shape in order
    }
    nodes = [node_of_shape[shape] for shape in made]
    deals = [_deal(sharing[shape], shapes.slices(shape), planner) if shape in sharing else None for shape in made]
    parents = [places[parent] if (parent := tree.parents[shape]) is not None else None for shape in made]
    answers, found = [], [expected[shape] for shape in made]
    for shape in order:
        windows: dict[Window | None, list[Member]] = {}
        for member in wanted.get(shape, ()):
            windows.setdefault(member.own_window, []).append(member)
        source = shape if shape in places else tree.parents[shape]
        assert source is not None, "a node that is passed over has one above it"
        for window, own in windows.items():
            place = places[source]
            if window is not None:
                node = replace(
                    node_of_shape[shape], states=tuple(states_of(own)), slices=Windows(window), marks=()
                )
                rows = sizes.groups(node.keys, (), node.any_of, node.slices)
                seconds = planner.costs.groups(rows, slots_of(node.states)) / 1e9
                if source != shape:
                    seconds += expected[shape].seconds / len(windows)
                found.append(Expected(rows, seconds))
                parents.append(place)
                place = len(nodes)
                nodes.append(node)
                deals.append(None)
            answers += [Answer(member.query, member.keys, place, member.recipes) for member in own]
    return Plan(tuple(nodes), tuple(parents), tuple(deals), tuple(answers), beside, tuple(found))


def _passed_over(tree: Tree[Shape], shape: Shape, members: Sequence[Member]) -> bool:
    """Whether a node would only choose among rows in order, for windows: these can choose by themselves."""
    parent = tree.parents[shape]
    return (
        bool(members)
        and all(member.own_window is not None for member in members)
        and parent is not None
        and parent.ordered
        and parent.sifts(shape)
        and shape not in tree.parents.values()
    )
