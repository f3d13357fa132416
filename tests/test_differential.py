"""Random queries on random data against plain Spark: the heart of the suite."""

from __future__ import annotations

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headrace import Query
from headrace.query import parse_query
from tests.harness.cases import Case, check
from tests.harness.data import tables
from tests.harness.queries import queries
from tests.harness.result import Outcome, collect, outcome
from tests.harness.schemas import schemas

pytestmark = pytest.mark.spark

EXAMPLES, QUERIES = 40, 5


@st.composite
def five_queries(draw: st.DrawFn) -> Case:
    schema = draw(schemas())
    drawn = draw(st.lists(queries(schema), min_size=QUERIES, max_size=QUERIES))
    return Case(schema, draw(tables(schema)), {f"q{number}": query for number, query in enumerate(drawn)})


def parsed(name: str, text: str, case: Case) -> Query:
    """The query, parsed with the stream's columns; a plain parse must succeed as well."""
    parse_query(name, text)
    return parse_query(name, text, columns=case.table.column_names)


@settings(max_examples=EXAMPLES)
@given(case=five_queries())
def test_the_printed_form_means_the_same_to_spark(spark: SparkSession, case: Case) -> None:
    """200 queries: each parses, and what it prints gives Spark's answer to the text, names and types included."""
    case.register(spark)
    for name, generated in case.workload.items():
        query = parsed(name, generated.text, case)
        event("shareable" if query.shareable else f"not shareable: {query.obstacles[0].reason[:40]}")
        expected: Outcome = outcome(lambda text=generated.text: collect(spark.sql(text)))  # type: ignore[misc]
        actual: Outcome = outcome(lambda text=query.sql: collect(spark.sql(text)))  # type: ignore[misc]
        check(generated, expected, actual, case.table.num_rows)


@given(case=five_queries())
def test_the_printed_form_parses_to_itself(case: Case) -> None:
    """No Spark needed: print and parse is a fixed point."""
    for name, generated in case.workload.items():
        query = parsed(name, generated.text, case)
        again = parsed(name, query.sql, case)
        assert again.sql == query.sql
        assert (again.keys, again.window, again.aggregates) == (query.keys, query.window, query.aggregates)
