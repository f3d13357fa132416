"""The plan: a frozen value that prints, is JSON, and travels to the workers."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from headrace.algebra.states import Recipe, State
from headrace.query import Expression, Query
from headrace.query.interval import format_interval


@dataclass(frozen=True, slots=True)
class Slices:
    """Stretches of time of equal length: slice i is [offset + i * size, offset + (i + 1) * size)."""

    time: Expression
    size_us: int
    offset_us: int = 0


@dataclass(frozen=True, slots=True)
class Node:
    """A relation that is maintained: keys, slices, filter and states. Its identity is its content."""

    keys: tuple[Expression, ...]
    states: tuple[State, ...]
    slices: Slices | None = None
    filter: Expression | None = None

    @property
    def id(self) -> str:
        """A short name that equal nodes share."""
        return hashlib.sha256(repr(self).encode()).hexdigest()[:8]


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's place in the plan: the node that has its groups, and a recipe for each of its aggregates."""

    query: Query
    node: int
    recipes: tuple[Recipe, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Nodes, each with its parent (None: the stream itself), and the answers that come from them.

    Nodes without a parent are made at the low level, where records are read; the others at the high level. Parents
    stand before their children. `beside` are the queries that plain Spark runs, with the reason.
    """

    nodes: tuple[Node, ...]
    parents: tuple[int | None, ...]
    answers: tuple[Answer, ...]
    beside: tuple[tuple[str, str], ...]

    @property
    def roots(self) -> tuple[int, ...]:
        """The nodes that are made from records."""
        return tuple(index for index, parent in enumerate(self.parents) if parent is None)

    def children(self, node: int) -> tuple[int, ...]:
        """The nodes that are made from a node."""
        return tuple(index for index, parent in enumerate(self.parents) if parent == node)

    def names(self, node: int) -> tuple[str, ...]:
        """The queries that a node answers; a node that answers none is a phantom."""
        return tuple(answer.query.name for answer in self.answers if answer.node == node)

    def explain(self) -> str:
        """The tree as text, and what runs beside it."""
        lines = [f"{len(self.answers)} queries from {len(self.roots)} passes over the records"]
        for root in self.roots:
            lines += self._tree(root, "")
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
            for index, (node, parent) in enumerate(zip(self.nodes, self.parents, strict=True))
        ]
        return json.dumps({"nodes": nodes, "beside": dict(self.beside)})

    def _tree(self, index: int, indent: str) -> list[str]:
        node = self.nodes[index]
        keys = ", ".join(key.sql for key in node.keys) or "no keys"
        slices = f" per {_slices(node.slices)}" if node.slices else ""
        where = f" where {node.filter.sql}" if node.filter and not indent else ""
        answers = ", ".join(self.names(index)) or "phantom"
        level = f"{_level(self.parents[index])} level"
        lines = [f"{indent}- ({keys}){slices}{where}: {answers} [{level}, {len(node.states)} states]"]
        for child in self.children(index):
            lines += self._tree(child, indent + "  ")
        return lines


def _level(parent: int | None) -> str:
    return "low" if parent is None else "high"


def _slices(slices: Slices | None) -> Any:
    return format_interval(slices.size_us) if slices else None
