"""The plan: a frozen value that prints, is JSON, and travels to the workers."""

from __future__ import annotations

import hashlib
import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.algebra.bag import BagRecipe
from headrace.algebra.ops import Words
from headrace.algebra.states import Recipe, State
from headrace.query import Expression, Query, Window
from headrace.query.interval import format_interval

AnyRecipe = Recipe | BagRecipe


@dataclass(frozen=True, slots=True)
class Slices:
    """Stretches of time of equal length: slice i is [offset + i * size, offset + (i + 1) * size)."""

    time: Expression
    size_us: int
    offset_us: int = 0

    def number_of(self, times: Words) -> Words:
        """The numbers of the slices that times are in."""
        return (times - self.offset_us) // self.size_us

    def start_of(self, numbers: Words) -> Words:
        """When slices begin."""
        return numbers * self.size_us + self.offset_us

    def has_edges_of(self, size_us: int, offset_us: int) -> bool:
        """Whether stretches of time of another size begin and end where slices do."""
        return size_us % self.size_us == 0 and (offset_us - self.offset_us) % self.size_us == 0


@dataclass(frozen=True, slots=True)
class Node:
    """A relation that is maintained: keys, slices, filter and states. Its identity is its content."""

    keys: tuple[Expression, ...]
    states: tuple[State, ...]
    slices: Slices | None = None
    filter: Expression | None = None

    @property
    def key_count(self) -> int:
        """The key columns of its rows: the slice, where there are slices, and the keys."""
        return len(self.keys) + (self.slices is not None)

    def place_of(self, key: Expression) -> int:
        """Which key column of its rows a key is."""
        return self.keys.index(key) + (self.slices is not None)

    @property
    def id(self) -> str:
        """A short name that equal nodes share."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Deal:
    """Which rows of a root go to one bucket: those of an equal epoch, of an equal key, of both; or all of them.

    An epoch is a stretch of time that no window of the queries in question crosses.
    """

    epoch: Slices | None = None
    key: Expression | None = None

    @property
    def without_key(self) -> Deal:
        """The same, where all values of the key meet."""
        return Deal(self.epoch)

    def keeps(self, window: Window | None) -> bool:
        """Whether no window of a query crosses the edge of an epoch."""
        if self.epoch is None or window is None:
            return True
        own = Slices(window.time, window.range_us, window.offset_us)
        return window.tumbling and own.has_edges_of(self.epoch.size_us, self.epoch.offset_us)

    def __str__(self) -> str:
        parts = [format_interval(self.epoch.size_us)] if self.epoch else []
        return " and ".join([*parts, *([self.key.sql] if self.key else [])]) or "nothing"


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's place in the plan: the node that it comes from, and a recipe for each of its aggregates.

    The node has the query's groups as its rows or, where an aggregate needs a bag, finer ones.
    """

    query: Query
    keys: tuple[Expression, ...]
    """The query's keys, as the node has them."""
    node: int
    recipes: tuple[AnyRecipe, ...]

    @property
    def from_bag(self) -> bool:
        """Whether the rows of the node are finer than the query's groups."""
        return any(isinstance(recipe, BagRecipe) for recipe in self.recipes)

    @property
    def inputs(self) -> tuple[Expression, ...]:
        """The expressions over the stream that the query's groups and states are made of."""
        query = self.query
        needed = [*self.keys, query.where, query.window.time if query.window else None]
        for recipe in self.recipes:
            needed += recipe.arguments if isinstance(recipe, BagRecipe) else ()
            for state in recipe.states:
                needed += [*state.arguments, state.condition]
        return tuple(dict.fromkeys(part for part in needed if part is not None))


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes, each with its parent (None: the stream itself), and the answers that come from them.

    Nodes without a parent are made at the low level, where records are read; the others where all rows of their
    groups have met. `deals` say how the rows of each root (None for other nodes) are dealt to the high level.
    Parents stand before their children. `beside` are the queries that plain Spark runs, with the reason.
    """

    nodes: tuple[Node, ...]
    parents: tuple[int | None, ...]
    deals: tuple[Deal | None, ...]
    answers: tuple[Answer, ...]
    beside: tuple[tuple[str, str], ...]

    @property
    def roots(self) -> tuple[int, ...]:
        """The nodes that are made from records."""
        return tuple(index for index, parent in enumerate(self.parents) if parent is None)

    def children(self, node: int) -> tuple[int, ...]:
        """The nodes that are made from a node."""
        return tuple(index for index, parent in enumerate(self.parents) if parent == node)

    def answers_of(self, node: int) -> tuple[int, ...]:
        """The numbers of the answers that come from a node."""
        return tuple(number for number, answer in enumerate(self.answers) if answer.node == node)

    def deal_of(self, node: int) -> Deal:
        """How the rows that a node is made from were dealt."""
        while (parent := self.parents[node]) is not None:
            node = parent
        deal = self.deals[node]
        assert deal is not None, "every root is dealt"
        return deal

    def whole(self, node: int, deal: Deal) -> bool:
        """Whether all rows of each of a node's groups, and of those of its queries, meet in one bucket."""
        answers = [self.answers[number] for number in self.answers_of(node)]
        if not all(deal.keeps(answer.query.window) for answer in answers):
            return False
        keys = [self.nodes[node].keys, *(answer.keys for answer in answers if answer.from_bag)]
        return deal.key is None or all(deal.key in own for own in keys)

    @property
    def split_nodes(self) -> tuple[int, ...]:
        """The uppermost nodes whose groups are still apart where their root's rows have met."""
        found: list[int] = []
        below: set[int | None] = set()
        for index, parent in enumerate(self.parents):
            if parent in below:
                below.add(index)
            elif not self.whole(index, self.deal_of(index)):
                found.append(index)
                below.add(index)
        return tuple(found)

    def names(self, node: int) -> tuple[str, ...]:
        """The queries that a node answers; a node that answers none is a phantom."""
        return tuple(answer.query.name for answer in self.answers if answer.node == node)

    def explain(self, notes: Mapping[int, str] | None = None) -> str:
        """The tree as text, and what runs beside it; `notes` are put below the nodes of these numbers."""
        lines = [f"{len(self.answers)} queries from {len(self.roots)} passes over the records"]
        for root in self.roots:
            lines += self._tree(root, "", notes or {})
        if self.beside:
            lines.append(f"{len(self.beside)} queries beside, by plain Spark")
            lines += [f"  {name}: {reason}" for name, reason in self.beside]
        return "\n".join(lines)

    def to_json(self) -> str:
        """The plan as JSON: nodes with parents, queries with their node."""
        nodes = [
            {"id": node.id, "parent": parent, "keys": [key.sql for key in node.keys], "level": _level(parent)}
            | {"filter": node.filter.sql if node.filter else None, "slices": _slices(node.slices)}
            | {"states": len(node.states), "answers": list(self.names(index))}
            | ({"dealt by": str(self.deals[index])} if parent is None else {})
            for index, (node, parent) in enumerate(zip(self.nodes, self.parents, strict=True))
        ]
        return json.dumps({"nodes": nodes, "beside": dict(self.beside)})

    def _repr_html_(self) -> str:
        """The tree for a notebook, each node with its children folded below it."""
        beside = "".join(f"<li>{html.escape(name)}: {html.escape(why)}</li>" for name, why in self.beside)
        trees = "".join(self._html(root) for root in self.roots)
        return (
            f"<p>{len(self.answers)} queries from {len(self.roots)} passes over the records</p><ul>{trees}</ul>"
            + (f"<p>beside, by plain Spark</p><ul>{beside}</ul>" if beside else "")
        )

    def _html(self, index: int) -> str:
        below = "".join(self._html(child) for child in self.children(index))
        line = html.escape(self._line(index))
        return (
            f"<li><details open><summary>{line}</summary><ul>{below}</ul></details></li>"
            if below
            else f"<li>{line}</li>"
        )

    def _line(self, index: int) -> str:
        node, parent = self.nodes[index], self.parents[index]
        keys = ", ".join(key.sql for key in node.keys) or "no keys"
        slices = f" per {_slices(node.slices)}" if node.slices else ""
        where = f" where {node.filter.sql}" if node.filter and parent is None else ""
        answers = ", ".join(self.names(index)) or "phantom"
        dealt = f", dealt by {self.deals[index]}" if self.deals[index] else ""
        return f"({keys}){slices}{where}: {answers} [{_level(parent)} level, {len(node.states)} states{dealt}]"

    def _tree(self, index: int, indent: str, notes: Mapping[int, str]) -> list[str]:
        lines = [f"{indent}- {self._line(index)}"]
        if index in notes:
            lines.append(f"{indent}    {notes[index]}")
        for child in self.children(index):
            lines += self._tree(child, indent + "  ", notes)
        return lines


def _level(parent: int | None) -> str:
    return "low" if parent is None else "high"


def _slices(slices: Slices | None) -> Any:
    return format_interval(slices.size_us) if slices else None
