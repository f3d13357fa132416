"""The plan: a frozen value that prints, is JSON, and travels to the workers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from headrace.algebra.bag import BagRecipe
from headrace.algebra.states import Recipe, State
from headrace.plan.slices import Slices, Times
from headrace.query import Expression, Query

if TYPE_CHECKING:
    from headrace.plan.build import Planner
    from headrace.plan.change import Change
    from headrace.plan.guard import Guarded

AnyRecipe = Recipe | BagRecipe


def has_bag(recipes: Iterable[AnyRecipe]) -> bool:
    """Whether an aggregate needs a bag."""
    return any(isinstance(recipe, BagRecipe) for recipe in recipes)


_MANY_MARKS = 12
"""Of rows with so many conditions, much that is made differs by these alone."""


def put_in_order(marks: int) -> bool:
    """Whether rows with so many marks are put in order for their children: that pays where these are many."""
    return marks >= _MANY_MARKS


def count_keys(keys: int, marks: int, timed: bool) -> int:
    """The key columns of rows that have so many keys and marks, and a slice if they are `timed`."""
    return keys + bool(marks) + timed


@dataclass(frozen=True, slots=True)
class Node:
    """A relation that is maintained: keys, slices, conditions and states. Its identity is its content.

    It is about the records for which `any_of` some conditions is true; none says all records. `marks` are
    conditions for children that are about fewer records: which of them are true, the fragment, is one more key.
    """

    keys: tuple[Expression, ...]
    states: tuple[State, ...]
    slices: Times | None = None
    any_of: tuple[Expression, ...] = ()
    marks: tuple[Expression, ...] = ()

    @property
    def key_count(self) -> int:
        """How many key columns its rows have."""
        return count_keys(len(self.keys), len(self.marks), self.slices is not None)

    def place_of(self, key: Expression) -> int:
        """Which key column of its rows a key is."""
        return self.keys.index(key) + (self.slices is not None)

    def states_at(self, states: Iterable[State]) -> list[int]:
        """Which of its states some are."""
        return [self.states.index(state) for state in states]

    @property
    def fragment_place(self) -> int:
        """Which key column of its rows the fragment is."""
        return len(self.keys) + (self.slices is not None)

    @property
    def ordered(self) -> bool:
        """Whether its rows are put in order for children that differ by their conditions."""
        return put_in_order(len(self.marks))

    def sifts(self, child: Node) -> bool:
        """Whether a child has some of its rows, those for which one of some marks is true, by the same keys."""
        fewer = child.any_of != self.any_of and {*self.marks}.issuperset(child.any_of)
        return fewer and child.keys == self.keys and not child.marks

    @property
    def id(self) -> str:
        """A short name that equal nodes share."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Deal:
    """Which rows of a root, or of a node that is carried, go to one bucket.

    Those of an equal epoch, of an equal key, of both; or all of them. An epoch is a stretch of time that no slice
    of the nodes in question crosses.
    """

    epoch: Slices | None = None
    key: Expression | None = None

    def keeps(self, slices: Times | None) -> bool:
        """Whether no slice crosses the edge of an epoch; without slices there is a single one, of all time."""
        return self.epoch is None or (slices is not None and slices.has_edges_of(self.epoch))

    def __str__(self) -> str:
        parts = [str(self.epoch)] if self.epoch else []
        return " and ".join([*parts, *([self.key.sql] if self.key else [])]) or "nothing"


@dataclass(frozen=True, slots=True)
class Dependency:
    """Keys whose values decide those of other keys, as far as a sample of the records shows."""

    keys: tuple[Expression, ...]
    decided: tuple[Expression, ...]

    def __str__(self) -> str:
        keys, decided = (", ".join(key.sql for key in side) for side in (self.keys, self.decided))
        return f"{keys} {'decides' if len(self.keys) == 1 else 'decide'} {decided}"


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's place in the plan: the node that it comes from, and a recipe for each of its aggregates.

    The node has the query's groups as its rows or, where an aggregate needs a bag, finer ones. It may have more
    keys than the query, for others that share it: the query's keys decide these, if what is `assumed` is true.
    """

    query: Query
    keys: tuple[Expression, ...]
    """The query's keys, as the node has them."""
    node: int
    recipes: tuple[AnyRecipe, ...]
    assumed: tuple[Dependency, ...] = ()

    @property
    def from_bag(self) -> bool:
        """Whether the rows of the node are finer than the query's groups."""
        return has_bag(self.recipes)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """The expressions over the stream that the query's groups and states are made of."""
        query = self.query
        needed = [*self.keys, query.where, query.window.time if query.window else None]
        for recipe in self.recipes:
            needed += recipe.arguments if isinstance(recipe, BagRecipe) else ()
            for state in recipe.states:
                needed += state.inputs
        return tuple(dict.fromkeys(part for part in needed if part is not None))


@dataclass(frozen=True, slots=True)
class Expected:
    """What the planner thinks of a node: its rows, the seconds of one core that it takes to make them, and the
    seconds that it saves, if what is made from it would be made from its parent."""

    rows: float
    seconds: float = 0.0
    saved: float = 0.0
    low: bool = False
    """Whether tasks that read records have most of its slices whole, and memory for its rows (see `levels.py`)."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What the planner thinks of a tree, in seconds of one core.

    `tree` is what all its nodes cost, `unshared` what they would without sharing, and `least` what no tree can
    save: to find a group for every record once, and to make the queries' own rows.
    """

    tree: float
    unshared: float
    least: float

    def __str__(self) -> str:
        return (
            f"{self.tree:.2f} s of one core, by estimate ({self.unshared:.2f} s without sharing, "
            f"{self.least:.2f} s at least)"
        )


@dataclass(frozen=True)
class Plan:
    """Nodes, each with its parent (None: the stream itself), and the answers that come from them.

    A child has fewer keys than its parent, longer slices, or is about fewer records. Nodes without a
    parent are made where records are read, and others there too as far as tasks have all of their slices; the rest
    is made where rows of all tasks meet. `deals` say how the rows of each root, and of each node that is carried,
    are dealt to the high level (None for other nodes). Parents stand before their children. `beside` are the
    queries that plain Spark runs, with the reason.
    """

    nodes: tuple[Node, ...]
    parents: tuple[int | None, ...]
    deals: tuple[Deal | None, ...]
    answers: tuple[Answer, ...]
    beside: tuple[tuple[str, str], ...]
    expected: tuple[Expected, ...]
    """What the planner thinks of each node."""
    estimate: Estimate | None = None
    tree: Plan | None = None
    """The same without carried nodes and what is made again of them, where there are such."""

    @cached_property
    def rows(self) -> tuple[float, ...]:
        """How many rows each node is thought to have."""
        return tuple(expected.rows for expected in self.expected)

    @property
    def roots(self) -> tuple[int, ...]:
        """The nodes that are made from records."""
        return tuple(index for index, parent in enumerate(self.parents) if parent is None)

    def children(self, node: int) -> tuple[int, ...]:
        """The nodes that are made from a node."""
        return self._children[node]

    def answers_of(self, node: int) -> tuple[int, ...]:
        """The numbers of the answers that come from a node."""
        return self._answers[node]

    @cached_property
    def numbers(self) -> Mapping[str, int]:
        """Which of the answers is a query's, by the queries' names."""
        return {answer.query.name: number for number, answer in enumerate(self.answers)}

    def above(self, node: int) -> tuple[int, ...]:
        """The nodes on the way from a node to its root, the nearest first."""
        return self._above[node]

    def below(self, node: int) -> tuple[int, ...]:
        """A node and all that come from it, parents first."""
        return self._below[node]

    @cached_property
    def _children(self) -> tuple[tuple[int, ...], ...]:
        return _listed(self.parents, len(self.nodes))

    @cached_property
    def _answers(self) -> tuple[tuple[int, ...], ...]:
        return _listed([answer.node for answer in self.answers], len(self.nodes))

    @cached_property
    def _below(self) -> tuple[tuple[int, ...], ...]:
        below: list[list[int]] = [[] for _ in self.nodes]
        for node in range(len(self.nodes)):
            for other in (node, *self.above(node)):
                below[other].append(node)
        return tuple(map(tuple, below))

    @cached_property
    def _above(self) -> tuple[tuple[int, ...], ...]:
        ways: list[tuple[int, ...]] = []
        for parent in self.parents:
            ways.append(() if parent is None else (parent, *ways[parent]))
        return tuple(ways)

    def root_of(self, node: int) -> int:
        """The root of the tree that a node is in."""
        return (node, *self.above(node))[-1]

    def deal_of(self, node: int) -> Deal:
        """How the rows that a node is made from were dealt."""
        deal = self.deals[self.dealt_at(node)]
        assert deal is not None
        return deal

    def dealt_at(self, node: int) -> int:
        """The node whose rows are dealt for a node to be made from: its root, or one that is carried."""
        return next(other for other in (node, *self.above(node)) if self.deals[other] is not None)

    def whole(self, node: int, deal: Deal) -> bool:
        """Whether all rows of each of a node's groups, and of those of its queries, meet in one bucket."""
        if not deal.keeps(self.nodes[node].slices):
            return False
        answers = [self.answers[number] for number in self.answers_of(node)]
        finer = (answer for answer in answers if answer.from_bag or answer.assumed)
        keys = [self.nodes[node].keys, *(answer.keys for answer in finer)]
        return deal.key is None or all(deal.key in own for own in keys)

    def carried(self, node: int) -> bool:
        """Whether a node's rows are its parent's, with what is made of them elsewhere: there they travel."""
        return self.parents[node] is not None and self.deals[node] is not None

    def carries(self, node: int) -> bool:
        """Whether some of what comes from a node is carried, or made from a carried node's rows."""
        return node in self._carrying

    @cached_property
    def _carrying(self) -> frozenset[int]:
        return frozenset(way for node in range(len(self.nodes)) if self.carried(node) for way in self.above(node))

    def rises(self, node: int) -> bool:
        """Whether a node is made from rows that were carried."""
        return any(map(self.carried, (node, *self.above(node))))

    @property
    def split_nodes(self) -> tuple[int, ...]:
        """The uppermost nodes whose groups are still apart where their root's rows have met."""
        return tuple(node for node in range(len(self.nodes)) if self.split_at(node) == node)

    def split_at(self, node: int) -> int | None:
        """The uppermost split node on the way from the root to a node."""
        return self._splits[node]

    @cached_property
    def _splits(self) -> tuple[int | None, ...]:
        splits: list[int | None] = []
        for node, parent in enumerate(self.parents):
            above = splits[parent] if parent is not None and self.deals[node] is None else None
            splits.append(above if above is not None or self.whole(node, self.deal_of(node)) else node)
        return tuple(splits)

    def meeting(self, node: int) -> tuple[Deal, int]:
        """How rows of a node are dealt, and the node that names the bucket where they are not."""
        return self._meetings[node]

    @cached_property
    def _meetings(self) -> tuple[tuple[Deal, int], ...]:
        return tuple(map(self._meeting, range(len(self.nodes))))

    def _meeting(self, node: int) -> tuple[Deal, int]:
        split = self.split_at(node)
        if split is None:
            return self.deal_of(node), self.dealt_at(node)
        below = [other for other in range(len(self.nodes)) if self.split_at(other) == split]
        common = [key for key in self.nodes[split].keys if self.all_have(key, below)]
        return Deal(key=common[0] if common else None), split

    def all_have(self, key: Expression, nodes: Iterable[int]) -> bool:
        """Whether rows of all these nodes can be dealt by a key."""
        return all(self.whole(node, Deal(key=key)) for node in nodes)

    def gathers(self, node: int) -> bool:
        """Whether rows of a node come from several rounds of its parent's: records, or shorter slices."""
        parent = self.parents[node]
        return parent is None or self.nodes[parent].slices != self.nodes[node].slices

    def uniform(self, root: int) -> bool:
        """Whether all that comes from a root has its slices, so that nothing has to gather but its own rows."""
        return not any(self.gathers(node) or self.carried(node) for node in self.below(root)[1:])

    def names(self, node: int) -> tuple[str, ...]:
        """The queries that a node answers; a node that answers none is a phantom."""
        return tuple(self.answers[number].query.name for number in self.answers_of(node))

    def with_query(self, query: Guarded, planner: Planner) -> Change:
        """This plan with one query more, and what changes: for queries that come while others run."""
        from headrace.plan.change import with_query  # it knows plans, so they can know it only when they change

        return with_query(planner, self, query)

    def without_query(self, name: str, planner: Planner) -> Change:
        """This plan without one of its queries, and what changes."""
        from headrace.plan.change import without_query  # see `with_query`

        return without_query(planner, self, name)

    def explain(self, notes: Mapping[int, str] | None = None) -> str:
        """The tree as text, and what runs beside it; `notes` are put below the nodes of these numbers."""
        from headrace.plan.show import as_text  # it knows plans, so they can know it only when they are shown

        return as_text(self, notes or {})

    def reasons(self) -> dict[int, str]:
        """What is expected of each node, and why each phantom is there: notes for `explain`."""
        from headrace.plan.show import reasons  # see `explain`

        return reasons(self)

    def to_json(self) -> str:
        """The plan as JSON: nodes with parents, queries with their node."""
        from headrace.plan.show import as_json  # see `explain`

        return as_json(self)

    def picture(self) -> str:
        """The tree as a picture: the text of an SVG file."""
        from headrace.plan.show import as_picture  # see `explain`

        return as_picture(self)

    def _repr_html_(self) -> str:
        """The picture, for a notebook."""
        return self.picture()


def _listed(values: Sequence[int | None], count: int) -> tuple[tuple[int, ...], ...]:
    """For each number below the count, where it stands in a list."""
    places: list[list[int]] = [[] for _ in range(count)]
    for place, value in enumerate(values):
        if value is not None:
            places[value].append(place)
    return tuple(map(tuple, places))
