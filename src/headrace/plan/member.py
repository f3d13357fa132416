"""What a query needs of a plan: its keys as the pass computes them, and the recipes of its aggregates."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headrace.algebra.bag import BagRecipe, bag_arguments, make_bag_recipe
from headrace.algebra.ops import count_slots
from headrace.algebra.ranks import has_order
from headrace.algebra.states import Fact, NoState, State, make_recipe
from headrace.plan.guard import Guarded
from headrace.plan.plan import AnyRecipe
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
    def own_window(self) -> Window | None:
        """The window, where it is a node of its own below that of its slices: one that tumbles is its slices."""
        window = self.query.window
        return None if window is None or window.tumbling else window

    @property
    def node_keys(self) -> frozenset[Expression]:
        """The keys of the node that the query comes from: its own, and what its bags hold."""
        bags = [recipe for recipe in self.recipes if isinstance(recipe, BagRecipe)]
        return frozenset([*self.keys, *(argument for bag in bags for argument in bag.arguments)])

    @property
    def all_keys(self) -> tuple[Expression, ...]:
        """The same in an order: the query's own first."""
        return (*self.keys, *sorted(self.node_keys - set(self.keys), key=str))


@dataclass(frozen=True, slots=True)
class Needs:
    """What queries need of a plan, as far as facts decide it: a plan is right for all records of the same needs.

    `beside` are the queries that have no states, with the reason; `untimed` are times that may be null.
    """

    members: tuple[Member, ...]
    beside: tuple[tuple[str, str], ...]
    untimed: frozenset[Expression]

    @staticmethod
    def of(queries: Iterable[Guarded], facts: Facts) -> Needs:
        """What these queries need."""
        members, beside = [], []
        for guarded in queries:
            try:
                members.append(member_of(guarded, facts))
            except NoState as reason:
                beside.append((guarded.query.name, str(reason)))
        return Needs(tuple(members), tuple(beside), untimed(facts))


def untimed(facts: Facts) -> frozenset[Expression]:
    """Times that may be null: records without a time are in no slice."""
    return frozenset(e for e, fact in facts.items() if pa.types.is_timestamp(fact.type) and fact.nullable)


def needed_expressions(guarded: Guarded) -> tuple[Expression, ...]:
    """Every expression over the stream whose type the plan has to know."""
    query = guarded.query
    needed = [*query.keys, *guarded.keys, query.where, query.window.time if query.window else None]
    for aggregate in guarded.aggregates:
        needed += [*aggregate.arguments, *bag_arguments(aggregate), aggregate.filter]
    return tuple(dict.fromkeys(part for part in needed if part is not None and part.sql != "*"))


def all_needed(queries: Iterable[Guarded]) -> list[Expression]:
    """What queries need that can be shared, each expression once."""
    shareable = (guarded for guarded in queries if guarded.query.shareable)
    return list(dict.fromkeys(e for guarded in shareable for e in needed_expressions(guarded)))


def member_of(guarded: Guarded, facts: Facts) -> Member:
    """A query's place among those that have states; raises `NoState` with the reason why it has none."""
    query = guarded.query
    if not query.shareable:
        raise NoState("; ".join(obstacle.reason for obstacle in query.obstacles))
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


def states_of(members: Iterable[Member]) -> dict[State, None]:
    """The states that queries need, each once, in their order."""
    return dict.fromkeys(state for member in members for recipe in member.recipes for state in recipe.states)


def slots_of(states: Iterable[State]) -> int:
    """How many slots some states have."""
    return count_slots(state.op for state in states)


def _recipe(aggregate: Aggregate, facts: Facts) -> AnyRecipe:
    """From states, where there are some of fixed size, else from a bag."""
    try:
        return make_recipe(aggregate, [facts[a] for a in aggregate.arguments if a.sql != "*"])
    except NoState as no_state:
        try:
            return make_bag_recipe(aggregate, [facts[a].type for a in bag_arguments(aggregate) if a.sql != "*"])
        except NoState as no_bag:
            raise NoState(f"{no_state}; {no_bag}") from no_bag
