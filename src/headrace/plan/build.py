"""A workload to a plan: one pass over the records for each filter and kind of slices, and below it a tree.

This planner knows no sizes: a pass keeps one phantom with all keys of its queries, and each query comes from the
node with the fewest keys that has all of its own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa

from headrace.algebra.states import Fact, NoState, Recipe, State, make_recipe
from headrace.algebra.words import fits_word
from headrace.plan.plan import Answer, Deal, Node, Plan, Slices
from headrace.query import Expression, Query, Window

Facts = Mapping[Expression, Fact]
"""What is known of every expression over the stream; its type comes from Spark."""

Branch = tuple[Expression | None, Slices | None]


def make_plan(queries: Iterable[Query], facts: Facts, span_us: int | None = None, cores: int = 1) -> Plan:
    """The plan of all queries that have states; the others are beside.

    `span_us` is how long the records go on, where that is known, and `cores` how many tasks can run at a time.
    """
    branches: dict[Branch, list[tuple[Query, tuple[Recipe, ...]]]] = {}
    beside = []
    for query in queries:
        if not query.shareable:
            beside.append((query.name, "; ".join(obstacle.reason for obstacle in query.obstacles)))
            continue
        try:
            recipes = _recipes(query, facts)
        except NoState as reason:
            beside.append((query.name, str(reason)))
            continue
        branches.setdefault((query.where, _slices(query.window)), []).append((query, recipes))
    nodes: list[Node] = []
    parents: list[int | None] = []
    answers: list[Answer] = []
    deals: list[Deal | None] = []
    for branch, members in branches.items():
        root = len(nodes)
        _grow_tree(branch, members, nodes, parents, answers)
        deals += [_deal(branch[1], members, nodes[root:], span_us, cores), *[None] * (len(nodes) - root - 1)]
    return Plan(tuple(nodes), tuple(parents), tuple(deals), tuple(answers), tuple(beside))


_SLICES_PER_CORE = 2
"""With so many slices for each core, dealing by slice alone keeps all of them busy."""


def _deal(
    slices: Slices | None,
    members: Sequence[tuple[Query, tuple[Recipe, ...]]],
    nodes: Sequence[Node],
    span_us: int | None,
    cores: int,
) -> Deal:
    """By slice, where windows are slices; where these are few or windows overlap, by the most common key."""
    windows = [query.window for query, _ in members]
    by_slice = slices is not None and all(w is not None and w.range_us == w.slide_us for w in windows)
    if (
        by_slice
        and span_us is not None
        and slices is not None
        and span_us // slices.size_us >= _SLICES_PER_CORE * cores
    ):
        return Deal(by_slice)
    votes = [key for node in nodes for key in node.keys]
    return Deal(by_slice, max(dict.fromkeys(votes), key=votes.count, default=None))


def _recipes(query: Query, facts: Facts) -> tuple[Recipe, ...]:
    for expression in query.inputs:
        if expression not in facts:
            raise NoState(f"{expression.sql} is of a type that only Spark knows")
    for key in query.keys:
        kind = facts[key].type
        if not (pa.types.is_string(kind) or pa.types.is_binary(kind) or fits_word(kind)):
            raise NoState(f"the key {key.sql} is {kind}")
    if query.window is not None and not pa.types.is_timestamp(facts[query.window.time].type):
        raise NoState(f"the time {query.window.time.sql} is {facts[query.window.time].type}")
    return tuple(
        make_recipe(aggregate, [facts[argument] for argument in aggregate.arguments if argument.sql != "*"])
        for aggregate in query.aggregates
    )


def _slices(window: Window | None) -> Slices | None:
    """The longest slices of equal length that no edge of the window cuts."""
    if window is None:
        return None
    size_us = math.gcd(window.range_us, window.slide_us)
    return Slices(window.time, size_us, window.offset_us % size_us)


def _grow_tree(
    branch: Branch,
    members: Sequence[tuple[Query, tuple[Recipe, ...]]],
    nodes: list[Node],
    parents: list[int | None],
    answers: list[Answer],
) -> None:
    where, slices = branch
    every_key = tuple(dict.fromkeys(key for query, _ in members for key in query.keys))
    groups: dict[frozenset[Expression], list[tuple[Query, tuple[Recipe, ...]]]] = {frozenset(every_key): []}
    for query, recipes in sorted(members, key=lambda member: -len(set(member[0].keys))):
        groups.setdefault(frozenset(query.keys), []).append((query, recipes))
    placed: list[int] = []
    for keys, group in groups.items():
        ancestors = [index for index in placed if keys < set(nodes[index].keys)]
        parents.append(min(ancestors, key=lambda index: len(nodes[index].keys)) if ancestors else None)
        below = [recipe for query, recipes in members if set(query.keys) <= keys for recipe in recipes]
        states: dict[State, None] = dict.fromkeys(state for recipe in below for state in recipe.states)
        placed.append(len(nodes))
        nodes.append(Node(tuple(key for key in every_key if key in keys), tuple(states), slices, where))
        answers += [Answer(query, placed[-1], recipes) for query, recipes in group]
