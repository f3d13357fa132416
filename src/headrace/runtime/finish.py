"""The last step of a query, by Spark: outputs, HAVING, ORDER BY and LIMIT over its keys and aggregates.

The engine gives a query's groups: a column for each key, the window, and a column for each aggregate. What the
query makes of them is its own text with these columns in place of the calls: Spark alone says what it means.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from headrace.plan.member import Facts
from headrace.plan.plan import Answer
from headrace.query import Expression, Query, Source
from headrace.query.aggregate import find_aggregates, parse_aggregate
from headrace.query.dialect import span_of
from headrace.query.having import aliases
from headrace.query.query import quote_name
from headrace.query.rewrite import rewrite
from headrace.query.window import is_window_call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WINDOW = "window"


@dataclass(frozen=True, slots=True)
class GroupNames:
    """The names of the columns that hold a query's groups."""

    keys: tuple[str, ...]
    aggregates: tuple[str, ...]

    @staticmethod
    def of(query: Query, columns: Sequence[str]) -> GroupNames:
        """A key that is a column of the stream keeps its name; the text of the query uses it."""
        known = {column.lower() for column in columns}
        keys = (
            key.column if key.column is not None and key.column.lower() in known else f"__key_{index}"
            for index, key in enumerate(query.keys)
        )
        return GroupNames(tuple(keys), tuple(f"__aggregate_{index}" for index in range(len(query.aggregates))))


def group_schema(answer: Answer, groups: GroupNames, facts: Facts) -> pa.Schema:
    """The columns of an answer as they come from the kernel: the window, the keys, the aggregates."""
    fields = []
    if answer.query.window is not None:
        edge = facts[answer.query.window.time].type
        fields.append(pa.field(WINDOW, pa.struct([pa.field("start", edge), pa.field("end", edge)])))
    fields += [pa.field(n, facts[key].type) for n, key in zip(groups.keys, answer.query.keys, strict=True)]
    fields += [pa.field(n, recipe.type) for n, recipe in zip(groups.aggregates, answer.recipes, strict=True)]
    return pa.schema(fields)


def finishing_sql(
    query: Query, groups: GroupNames, names: Sequence[str], more: Mapping[str, str] | None = None
) -> str:
    """SQL over `{groups}` that gives the query's answer; `names` are those of its columns, and `more` follow."""
    parts = dict(_replacements(query, groups))
    outputs, having = _texts(query, groups, parts)
    columns = [*zip(outputs, names, strict=True), *((sql, name) for name, sql in (more or {}).items())]
    clauses = [
        "SELECT " + ", ".join(f"{sql} AS {_quoted(name)}" for sql, name in columns),
        "FROM {groups}",
        f"WHERE {having}" if having else "",
        "ORDER BY " + ", ".join(f"{rewrite(item.expression, parts)} {item.suffix}" for item in query.order)
        if query.order
        else "",
        f"LIMIT {query.limit.sql}" if query.limit else "",
        f"OFFSET {query.offset.sql}" if query.offset else "",
    ]
    return "\n".join(clause for clause in clauses if clause)


def finishing_texts(query: Query, groups: GroupNames) -> tuple[list[str], str | None]:
    """The outputs, and HAVING if there is one, as SQL over the columns that hold a query's groups."""
    return _texts(query, groups, dict(_replacements(query, groups)))


def _texts(query: Query, groups: GroupNames, parts: dict[Expression, str]) -> tuple[list[str], str | None]:
    outputs = [rewrite(output.expression, parts) for output in query.outputs]
    named = aliases(list(zip(query.outputs, outputs, strict=True)), groups.keys)
    return outputs, rewrite(query.having, named | parts) if query.having else None


def _quoted(name: str) -> str:
    # Braces are how spark.sql names its arguments.
    return "`" + name.replace("`", "``").replace("{", "{{").replace("}", "}}") + "`"


def _replacements(query: Query, groups: GroupNames) -> Iterator[tuple[Expression, str]]:
    for key, name in zip(query.keys, groups.keys, strict=True):
        if key.column != name:
            yield key, quote_name(name)
    for expression in query.after_grouping:
        source = Source(expression.sql, query.name)
        for node in find_aggregates(expression.tree):
            aggregate = parse_aggregate(node, source)
            if aggregate is not None:
                yield Expression.of(source, node), groups.aggregates[query.aggregates.index(aggregate)]
        for node in expression.tree.find_all(exp.Anonymous):
            if is_window_call(node) and span_of(node):
                yield Expression.of(source, node), WINDOW
