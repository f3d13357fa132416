"""An item of ORDER BY: what it orders by, and how; of a query, or of an aggregate's WITHIN GROUP."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.query.expression import Expression
from headrace.query.source import Source


@dataclass(frozen=True, slots=True)
class Ordering:
    """An item of ORDER BY; `suffix` holds ASC, DESC, NULLS FIRST or NULLS LAST, in upper case."""

    expression: Expression
    suffix: str = ""

    @staticmethod
    def of(source: Source, item: exp.Expr, qualifiers: frozenset[str] = frozenset()) -> Ordering:
        """The item that a node of a parsed query stands for."""
        whole, inner = (Expression.of(source, node, qualifiers) for node in (item, item.this))
        return Ordering(inner, whole.sql[len(inner.sql) :].strip().upper())

    @property
    def descends(self) -> bool:
        """Whether the largest comes first."""
        return self.suffix.startswith("DESC")

    @property
    def sql(self) -> str:
        """The item as Spark reads it."""
        return f"{self.expression.sql} {self.suffix}".rstrip()
