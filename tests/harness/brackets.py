"""Windows in brackets for random queries that have none: plain Spark is asked what they mean in its own words."""

from __future__ import annotations

from dataclasses import replace

from headrace.errors import QueryError
from headrace.query import Query, parse_query
from tests.harness.cases import Case
from tests.harness.choices import Choices
from tests.harness.queries import GeneratedQuery
from tests.harness.windows import bracket


def with_brackets(case: Case, choices: Choices) -> Case:
    """Some of the queries without a window get one."""
    workload = {
        name: (_bracketed(case, name, query, choices) if choices.chance(50) else None) or query
        for name, query in case.workload.items()
    }
    return replace(case, workload=workload)


def plain_text(case: Case, name: str) -> str:
    """A query of a case as plain Spark reads it."""
    text = case.workload[name].text
    return _parsed(case, name, text).plain if " [RANGE " in text else text


def _bracketed(case: Case, name: str, query: GeneratedQuery, choices: Choices) -> GeneratedQuery | None:
    """None where a window would change what may be compared: LIMIT would keep some of more rows."""
    if query.witness is not None or "window" in query.text.lower():
        return None
    try:
        parsed = _parsed(case, name, query.text)
        if not parsed.shareable or parsed.limit or parsed.offset or parsed.stream_span is None:
            return None
        _, end = parsed.stream_span
        text = f"{query.text[:end]} {bracket(choices)}{query.text[end:]}"
        _parsed(case, name, text)
    except QueryError:
        return None  # a query that only Spark refuses, or a stream that has a column of the window's name
    return replace(query, text=text, ordered=False)


def _parsed(case: Case, name: str, text: str) -> Query:
    return parse_query(name, text, columns=case.table.column_names, time=case.schema.time)
