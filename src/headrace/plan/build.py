"""A workload to a plan: what each query needs, the search for a tree, and how the tree's rows are dealt."""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headrace.algebra.bag import BagRecipe, bag_arguments, make_bag_recipe
from headrace.algebra.ranks import has_order
from headrace.algebra.states import Fact, NoState, State, make_recipe
from headrace.plan.common import About, common_slices
from headrace.plan.costs import Costs
from headrace.plan.dependent import Deciding, gathered
from headrace.plan.fragments import common_fragments
from headrace.plan.guard import Guarded
from headrace.plan.lattice import Lattice
from headrace.plan.levels import placed
from headrace.plan.plan import Answer, AnyRecipe, Deal, Estimate, Expected, Node, Plan, has_bag
from headrace.plan.search import DEFAULT, SEARCHES, none
from headrace.plan.shapes import Filters, Shape, Shapes
from headrace.plan.sizes import Sizes
from headrace.plan.slices import Slices, Windows
from headrace.plan.space import Tree
from headrace.query import Aggregate, Expression, Query, Window

Facts = Mapping[Expression, Fact]
"""What is known of every expression over the stream; its type comes from Spark."""

DEFAULT_COSTS = Costs()


@dataclass(frozen=True, slots=True)
class Member:
    """A query with its keys as the pass computes them, and the recipes of its aggregates."""

    query: Query
    keys: tuple[Expression, ...]
    recipes: tuple[AnyRecipe, ...]

    @property
    def node_keys(self) -> frozenset[Expression]:
        """The keys of the node that the query comes from: its own, and what its bags hold."""
        bags = [recipe for recipe in self.recipes if isinstance(recipe, BagRecipe)]
        return frozenset([*self.keys, *(argument for bag in bags for argument in bag.arguments)])


def make_plan(
    queries: Iterable[Guarded],
    facts: Facts,
    sizes: Sizes | None = None,
    cores: int = 1,
    costs: Costs = DEFAULT_COSTS,
    search: str = DEFAULT,
    memory: int = 256 << 20,
    filters: Filters | None = None,
    paned: bool = False,
) -> Plan:
    """The plan of all queries that have states; the others are beside.

    `sizes` tells how many rows nodes will have, `cores` how many tasks can run at a time, each with so many bytes
    of `memory` for groups, and `search` is one of `SEARCHES`. `paned` slices are all of equal length, which is
    never better: the yardstick of seeds 002 and 003.
    """
    sizes = sizes if sizes is not None else Sizes([], 0, None)
    members, beside = [], []
    for guarded in queries:
        query = guarded.query
        if not query.shareable:
            beside.append((query.name, "; ".join(obstacle.reason for obstacle in query.obstacles)))
            continue
        try:
            members.append(_member(guarded, facts))
        except NoState as reason:
            beside.append((query.name, str(reason)))
    times = {member.query.window.time for member in members if member.query.window is not None}
    shapes = Shapes([time for time in times if facts[time].nullable], filters, paned)
    deciding = Deciding(sizes)
    alone = {m.query.name: Slices.of(m.query.window, paned) for m in members if m.query.window is not None}
    sliced = alone if search == "none" else _sliced(members, alone, sizes, costs, paned)
    wanted = _wanted(members, sliced, shapes, deciding)
    unshared = wanted if sliced == alone else _wanted(members, alone, shapes, deciding)
    shapes.learn(deciding.decides)
    lattice = _lattice(wanted, shapes, sizes, costs)
    tree = none(lattice) if search == "none" else _searched(search, lattice, wanted, shapes, sizes, costs)
    expected = _expected(tree, lattice)
    plan = _plan(tree, expected, wanted, shapes, sizes, cores, tuple(beside), costs)
    apart = lattice if unshared is wanted else _lattice(unshared, shapes, sizes, costs)
    seconds = (cost / 1e9 for cost in (tree.cost, none(apart).cost, lattice.least()))
    plan = dataclasses.replace(plan, answers=_assuming(plan, deciding), estimate=Estimate(*seconds))
    return plan if sizes.span_us is None else placed(plan, sizes.span_us, cores, memory, costs)


def needed_expressions(guarded: Guarded) -> tuple[Expression, ...]:
    """Every expression over the stream whose type the plan has to know."""
    query = guarded.query
    needed = [*query.keys, *guarded.keys, query.where, query.window.time if query.window else None]
    for aggregate in guarded.aggregates:
        needed += [argument for argument in aggregate.arguments if argument.sql != "*"]
        needed += [*bag_arguments(aggregate), aggregate.filter]
    return tuple(dict.fromkeys(part for part in needed if part is not None and part.sql != "*"))


Sliced = Mapping[str, Slices]
"""The slices that queries with a window come from, by their names."""


def _sliced(members: Iterable[Member], alone: Sliced, sizes: Sizes, costs: Costs, paned: bool) -> Sliced:
    """Queries that differ in windows alone have slices in common, where that costs less.

    Those of tumbling windows come from any node that has shorter slices, as the tree will have it.
    """
    alike: dict[object, dict[str, tuple[Member, Window]]] = {}
    for member in members:
        window = member.query.window
        if window is not None and not window.tumbling:
            same = alike.setdefault((member.node_keys, member.query.where, window.time), {})
            same[member.query.name] = member, window
    sliced = dict(alone)
    for same in alike.values():
        (first, _), *_ = same.values()
        where = first.query.where
        slots = _slots(_states(member for member, _ in same.values()))
        about = About(first.node_keys, () if where is None else (where,), slots)
        common = common_slices({window for _, window in same.values()}, about, sizes, costs, paned)
        sliced |= {name: common[window] for name, (_, window) in same.items()}
    return sliced


def _searched(
    search: str,
    lattice: Lattice,
    wanted: Mapping[Shape, Sequence[Member]],
    shapes: Shapes,
    sizes: Sizes,
    costs: Costs,
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
    tree: Tree[Shape] = SEARCHES[search](_lattice(seen, shapes, sizes, costs))
    return lattice.settled([node for node in tree.parents if node not in wanted])


def _lattice(wanted: Mapping[Shape, Sequence[Member]], shapes: Shapes, sizes: Sizes, costs: Costs) -> Lattice:
    return Lattice({shape: _states(sharing) for shape, sharing in wanted.items()}, shapes, sizes, costs)


def _shape(member: Member, slices: Slices | None, shapes: Shapes) -> Shape:
    keys = [*member.keys, *sorted(member.node_keys - set(member.keys), key=str)]
    return shapes.shape(keys, member.query.where, slices)


def _wanted(
    members: Iterable[Member], sliced: Sliced, shapes: Shapes, deciding: Deciding
) -> dict[Shape, list[Member]]:
    """The nodes that queries come from. Those of the same groups come from one, which has the keys of all."""
    wanted: dict[Shape, list[Member]] = {}
    for member in members:
        wanted.setdefault(_shape(member, sliced.get(member.query.name), shapes), []).append(member)
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
        dataclasses.replace(answer, assumed=tuple({all_decided[step.keys]: None for step in steps}))
        for answer, steps in zip(plan.answers, assumed, strict=True)
    )


_EPOCHS_PER_CORE = 2
"""With so many epochs for each core, dealing by epoch alone keeps all of them busy."""


def _deal(members: Sequence[Member], slices: Slices | None, span_us: int | None, cores: int) -> Deal:
    """By the longest windows of which there are enough; else, or where nobody knows, by the commonest key too."""
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
    return Deal(epoch, max(dict.fromkeys(votes), key=votes.count, default=None))


def _member(guarded: Guarded, facts: Facts) -> Member:
    """A query's place among those that have states; raises `NoState`."""
    query = guarded.query
    for expression in needed_expressions(guarded):
        if expression not in facts:
            raise NoState(f"{expression.sql} is of a type that only Spark knows")
    for key in query.keys:
        kind = facts[key].type
        if not has_order(kind):
            raise NoState(f"the key {key.sql} is {kind}")
    if query.window is not None and not pa.types.is_timestamp(facts[query.window.time].type):
        raise NoState(f"the time {query.window.time.sql} is {facts[query.window.time].type}")
    return Member(query, guarded.keys, tuple(_recipe(aggregate, facts) for aggregate in guarded.aggregates))


def _states(members: Iterable[Member]) -> dict[State, None]:
    """The states that queries need, each once, in their order."""
    return dict.fromkeys(state for member in members for recipe in member.recipes for state in recipe.states)


def _slots(states: Iterable[State]) -> int:
    return sum(state.slots for state in states)


def _recipe(aggregate: Aggregate, facts: Facts) -> AnyRecipe:
    """From states, where there are some of fixed size, else from a bag."""
    try:
        return make_recipe(aggregate, [facts[a] for a in aggregate.arguments if a.sql != "*"])
    except NoState as no_state:
        try:
            return make_bag_recipe(aggregate, [facts[argument].type for argument in bag_arguments(aggregate)])
        except NoState as no_bag:
            raise NoState(f"{no_state}; {no_bag}") from no_bag


def _expected(tree: Tree[Shape], lattice: Lattice) -> tuple[Expected, ...]:
    """What each node of a tree has and takes, and what it saves its children."""
    costs = lattice.edges(tree.parents)
    found = []
    for shape, parent in tree.parents.items():
        children = [child for child, above in tree.parents.items() if above == shape]
        without = sum(lattice.cost(parent, child) for child in children)
        saved = without - costs[shape] - sum(costs[child] for child in children)
        found.append(Expected(lattice.rows(shape), costs[shape] / 1e9, saved / 1e9))
    return tuple(found)


def _plan(
    tree: Tree[Shape],
    expected: tuple[Expected, ...],
    wanted: Mapping[Shape, Sequence[Member]],
    shapes: Shapes,
    sizes: Sizes,
    cores: int,
    beside: tuple[tuple[str, str], ...],
    costs: Costs,
) -> Plan:
    """The tree as a plan: each node with the states of all that comes from it, and windows below their slices."""
    order = list(tree.parents)
    states: dict[Shape, dict[State, None]] = {shape: {} for shape in order}
    for shape in reversed(order):
        states[shape] |= _states(wanted.get(shape, ()))
        if (parent := tree.parents[shape]) is not None:
            states[parent] |= states[shape]
    sharing: dict[Shape, list[Member]] = {}
    for shape, own in wanted.items():
        sharing.setdefault(tree.root_of(shape), []).extend(own)
    places = {shape: index for index, shape in enumerate(order)}
    nodes, deals = [], []
    for shape in order:
        slices = shapes.slices(shape)
        about = shapes.any_of(shape), shapes.marks(shape)
        nodes.append(Node(shapes.keys(shape), tuple(states[shape]), slices, *about))
        deals.append(_deal(sharing[shape], slices, sizes.span_us, cores) if shape in sharing else None)
    parents = [places[parent] if (parent := tree.parents[shape]) is not None else None for shape in order]
    answers, found = [], list(expected)
    for shape in order:
        windows: dict[Window | None, list[Member]] = {}
        for member in wanted.get(shape, ()):
            window = member.query.window
            windows.setdefault(None if window is None or window.tumbling else window, []).append(member)
        for window, own in windows.items():
            place = places[shape]
            if window is not None:
                node = dataclasses.replace(
                    nodes[place], states=tuple(_states(own)), slices=Windows(window), marks=()
                )
                place = len(nodes)
                rows = sizes.groups(node.keys, (), node.any_of, node.slices)
                found.append(Expected(rows, costs.groups(rows, _slots(node.states)) / 1e9))
                nodes.append(node)
                parents.append(places[shape])
                deals.append(None)
            answers += [Answer(member.query, member.keys, place, member.recipes) for member in own]
    return Plan(tuple(nodes), tuple(parents), tuple(deals), tuple(answers), beside, tuple(found))
