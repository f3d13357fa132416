"""A query as a frozen value: what it groups by, what it aggregates, and what comes after."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass, field

from sqlglot.tokenizer_core import TokenType

from headrace.errors import Problem
from headrace.query.aggregate import Aggregate
from headrace.query.dialect import tokenize
from headrace.query.expression import Expression
from headrace.query.ordering import Ordering
from headrace.query.source import Source
from headrace.query.window import Window

NAME = re.compile(r"[A-Za-z_]\w*")
"""A name that needs no backquotes, unless it is a word of Spark's."""


def quote_name(name: str) -> str:
    """A name as Spark reads it, in backquotes where it needs them.

    >>> quote_name("flows"), quote_name("my table")
    ('flows', '`my table`')
    """
    plain = NAME.fullmatch(name) and tokenize(name)[0].token_type is TokenType.VAR
    return name if plain else "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class Output:
    """A column of the answer: an expression over keys and aggregates, with its alias as it was written."""

    expression: Expression
    alias: str | None = None

    @property
    def sql(self) -> str:
        """The item of a SELECT list."""
        return self.expression.sql if self.alias is None else f"{self.expression.sql} AS {self.alias}"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a query cannot be shared and runs as plain Spark, with the place in its text.

    `foreign`: the query has other relations than the stream, so its names cannot be checked against the stream.
    """

    place: Problem = field(compare=False, repr=False)
    foreign: bool = False
    reason: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reason", self.place.message)

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Query:
    """One standing aggregate query over one stream.

    The parts (`outputs` to `offset`) are filled in for queries that can be shared; a query with an obstacle is its
    text, which plain Spark runs. `bracketed`: the text spells the window as `[RANGE ... SLIDE ...]`, which
    Spark cannot read.
    """

    name: str
    source: Source
    stream: str
    outputs: tuple[Output, ...] = ()
    where: Expression | None = None
    window: Window | None = None
    keys: tuple[Expression, ...] = ()
    aggregates: tuple[Aggregate, ...] = ()
    having: Expression | None = None
    order: tuple[Ordering, ...] = ()
    limit: Expression | None = None
    offset: Expression | None = None
    obstacles: tuple[Obstacle, ...] = ()
    bracketed: bool = field(default=False, compare=False)
    stream_span: tuple[int, int] | None = field(default=None, compare=False, repr=False)

    @property
    def text(self) -> str:
        """The text that the user wrote."""
        return self.source.text

    @property
    def shareable(self) -> bool:
        """Whether the query can be planned together with others."""
        return not self.obstacles

    @property
    def after_grouping(self) -> tuple[Expression, ...]:
        """What is computed of groups: outputs, the items of ORDER BY, and HAVING."""
        outputs = (output.expression for output in self.outputs)
        having = (self.having,) if self.having is not None else ()
        return (*outputs, *(item.expression for item in self.order), *having)

    @property
    def plain(self) -> str:
        """The text as plain Spark reads it: what the user wrote, but for a window in brackets."""
        return self.sql if self.bracketed else self.text

    @functools.cached_property
    def sql(self) -> str:
        """The query written anew from its parts: to Spark it means the same as `text`."""
        if not self.shareable:
            return self.text
        relation = quote_name(self.stream)
        grouping = [self.window.sql] if self.window else []
        if self.window and self.window.hopping:
            relation, grouping = f"({self.window.over(relation)})", ["window"]
        grouping += [key.sql for key in self.keys]
        clauses = [
            "SELECT " + ", ".join(output.sql for output in self.outputs),
            f"FROM {relation}",
            f"WHERE {self.where.sql}" if self.where else "",
            "GROUP BY " + ", ".join(grouping) if grouping else "",
            f"HAVING {self.having.sql}" if self.having else "",
            "ORDER BY " + ", ".join(item.sql for item in self.order) if self.order else "",
            f"LIMIT {self.limit.sql}" if self.limit else "",
            f"OFFSET {self.offset.sql}" if self.offset else "",
        ]
        return "\n".join(clause for clause in clauses if clause)
