"""A workload to a plan: one pass over the records for each filter and kind of slices, and below it a tree.

This planner knows no sizes: a pass keeps one phantom with all keys of its queries, and each query comes from the
node with the fewest keys that has all of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from headrace.algebra.bag import BagRecipe, bag_arguments, make_bag_recipe
from headrace.algebra.ranks import has_order
from headrace.algebra.states import Fact, NoState, State, make_recipe
from headrace.plan.guard import Guarded
from headrace.plan.plan import Answer, AnyRecipe, Deal, Node, Plan, Slices
from headrace.query import Aggregate, Expression, Query, Window

Facts = Mapping[Expression, Fact]
"""What is known of every expression over the stream; its type comes from Spark."""


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


def make_plan(queries: Iterable[Guarded], facts: Facts, span_us: int | None = None, cores: int = 1) -> Plan:
    """The plan of all queries that have states; the others are beside.

    `span_us` is how long the records go on, where that is known, and `cores` how many tasks can run at a time.
    """
    branches: dict[Expression | None, list[Member]] = {}
    beside = []
    for guarded in queries:
        query = guarded.query
        if not query.shareable:
            beside.append((query.name, "; ".join(obstacle.reason for obstacle in query.obstacles)))
            continue
        try:
            member = _member(guarded, facts)
        except NoState as reason:
            beside.append((query.name, str(reason)))
            continue
        branches.setdefault(query.where, []).append(member)
    nodes: list[Node] = []
    parents: list[int | None] = []
    answers: list[Answer] = []
    deals: list[Deal | None] = []
    for where, sharing in branches.items():
        for slices, members in _by_slices(sharing):
            for tree in _trees(members):
                deal = _deal(slices, tree, span_us, cores)
                _grow_tree(where, slices, tree, deal, nodes, parents, answers)
                deals += [deal, *[None] * (len(nodes) - len(deals) - 1)]
    return Plan(tuple(nodes), tuple(parents), tuple(deals), tuple(answers), tuple(beside))


def needed_expressions(guarded: Guarded) -> tuple[Expression, ...]:
    """Every expression over the stream whose type the plan has to know."""
    query = guarded.query
    needed = [*query.keys, *guarded.keys, query.where, query.window.time if query.window else None]
    for aggregate in guarded.aggregates:
        needed += [argument for argument in aggregate.arguments if argument.sql != "*"]
        needed += [*bag_arguments(aggregate), aggregate.filter]
    return tuple(dict.fromkeys(part for part in needed if part is not None and part.sql != "*"))


def _trees(members: Sequence[Member]) -> list[list[Member]]:
    """Queries for one root each: a bag with values that no query groups by would make every other node larger."""
    plain = frozenset(key for member in members for key in member.keys)
    trees: dict[frozenset[Expression], list[Member]] = {}
    for member in members:
        trees.setdefault(member.node_keys - plain, []).append(member)
    return list(trees.values())


def _by_slices(members: Sequence[Member]) -> list[tuple[Slices | None, list[Member]]]:
    """Queries whose windows are made of the same slices: the finest of several that have each other's edges."""
    found: list[tuple[Slices | None, list[Member]]] = []
    for member in sorted(members, key=lambda member: _finest_first(_slices(member.query.window))):
        own = _slices(member.query.window)
        for slices, sharing in found:
            if own == slices or (
                own and slices and own.time == slices.time and slices.has_edges_of(own.size_us, own.offset_us)
            ):
                sharing.append(member)
                break
        else:
            found.append((own, [member]))
    return found


def _finest_first(slices: Slices | None) -> int:
    return slices.size_us if slices is not None else 0


_EPOCHS_PER_CORE = 2
"""With so many epochs for each core, dealing by epoch alone keeps all of them busy."""


def _deal(slices: Slices | None, members: Sequence[Member], span_us: int | None, cores: int) -> Deal:
    """By the longest windows of which there are enough; else, or where nobody knows, by the commonest key too."""
    windows = [member.query.window for member in members]
    tumbling = {window for window in windows if window is not None and window.tumbling}
    epoch = None
    for window in sorted(tumbling, key=lambda window: window.range_us):
        if span_us is None or span_us // window.range_us >= _EPOCHS_PER_CORE * cores:
            epoch = Slices(window.time, window.range_us, window.offset_us % window.range_us)
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


def _recipe(aggregate: Aggregate, facts: Facts) -> AnyRecipe:
    """From states, where there are some of fixed size, else from a bag."""
    try:
        return make_recipe(aggregate, [facts[a] for a in aggregate.arguments if a.sql != "*"])
    except NoState as no_state:
        try:
            return make_bag_recipe(aggregate, [facts[argument].type for argument in bag_arguments(aggregate)])
        except NoState as no_bag:
            raise NoState(f"{no_state}; {no_bag}") from no_bag


def _slices(window: Window | None) -> Slices | None:
    """The longest slices of equal length that no edge of the window cuts."""
    if window is None:
        return None
    size_us = math.gcd(window.range_us, window.slide_us)
    return Slices(window.time, size_us, window.offset_us % size_us)


def _grow_tree(
    where: Expression | None,
    slices: Slices | None,
    members: Sequence[Member],
    deal: Deal,
    nodes: list[Node],
    parents: list[int | None],
    answers: list[Answer],
) -> None:
    named = [key for member in members for key in member.keys]
    finer = frozenset().union(*(member.node_keys for member in members))
    every_key = tuple(dict.fromkeys([*named, *sorted(finer, key=str)]))
    # Windows that cross the epochs of the deal have nodes of their own, which nothing else comes from.
    groups: dict[tuple[frozenset[Expression], bool], list[Member]] = {(frozenset(every_key), True): []}
    for member in sorted(members, key=lambda member: -len(member.node_keys)):
        groups.setdefault((member.node_keys, deal.keeps(member.query.window)), []).append(member)
    placed: list[int] = []
    for (keys, kept), group in groups.items():
        above = [index for index in placed if keys < set(nodes[index].keys)]
        above += [index for index in placed if not kept and keys == set(nodes[index].keys)]
        parents.append(min(above, key=lambda index: len(nodes[index].keys)) if above else None)
        below = [recipe for member in members if member.node_keys <= keys for recipe in member.recipes]
        states: dict[State, None] = dict.fromkeys(state for recipe in below for state in recipe.states)
        if kept:
            placed.append(len(nodes))
        answers += [Answer(member.query, member.keys, len(nodes), member.recipes) for member in group]
        nodes.append(Node(tuple(key for key in every_key if key in keys), tuple(states), slices, where))
