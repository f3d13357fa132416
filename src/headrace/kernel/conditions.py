"""Conditions of records, computed of the rows of a node whose keys decide them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.algebra.words import Valid, truth
from headrace.kernel.evaluate import Evaluator
from headrace.kernel.narrow import array_of
from headrace.kernel.rows import Rows
from headrace.plan.plan import Node
from headrace.query import Expression


@dataclass(frozen=True, slots=True)
class Atom:
    """A compiled condition that raises for no record, and the keys that it takes, in the evaluator's order."""

    expression: Expression
    evaluator: Evaluator
    keys: tuple[Expression, ...]

    def truth(self, node: Node, rows: Rows) -> Valid:
        """For which rows of a node the condition is true."""
        names, places = self.evaluator.names, [node.place_of(key) for key in self.keys]
        if len(places) == 1:
            return rows.mapped(places[0], lambda column: truth(self.evaluator({names[0]: column})))
        columns, _ = rows.columns(places, [])
        return truth(self.evaluator(dict(zip(names, map(array_of, columns), strict=True))))


Condition = tuple[Atom, ...]
"""Atoms all of which have to be true: other conditions may have some of them too."""
Conditions = Mapping[Expression, Condition]
"""The conditions that can be computed of rows."""
