"""Random queries on random data against plain Spark: the heart of the suite.

Every run takes fresh seeds. A failure names its own; HEADRACE_SEED=<seed> begins with it again.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import given
from pyspark.sql import SparkSession

from headrace import Query
from headrace.query import parse_query
from tests.harness.cases import Case, case_of_seed, cases, check
from tests.harness.result import Outcome, collect, outcome

FIRST_SEED = int(os.environ.get("HEADRACE_SEED") or random.SystemRandom().randrange(10**9))
QUERIES = 200


def parsed(name: str, text: str, case: Case) -> Query:
    """The query, parsed with the stream's columns; a plain parse must succeed as well."""
    parse_query(name, text)
    return parse_query(name, text, columns=case.table.column_names)


@pytest.mark.spark
def test_the_printed_form_means_the_same_to_spark(spark: SparkSession) -> None:
    """200 queries or more: each parses, and what it prints gives Spark's answer to the text, names and all."""
    tried = shareable = 0
    seed = FIRST_SEED
    while tried < QUERIES:
        case = case_of_seed(seed, max_queries=8)
        case.register(spark)
        for name, generated in case.workload.items():
            query = parsed(name, generated.text, case)
            texts = (generated.text, query.sql)
            expected, actual = (answer(spark, text) for text in texts)
            try:
                check(generated, expected, actual, case.table.num_rows)
            except AssertionError as error:
                raise AssertionError(f"seed {seed}, {name}:\n{query.sql}\n{error}") from error
            tried += 1
            shareable += query.shareable
        seed += 1
    assert shareable >= 0.9 * tried  # the printed form of the others is their text, which would prove nothing


def answer(spark: SparkSession, text: str) -> Outcome:
    return outcome(lambda: collect(spark.sql(text)))


@given(case=cases(max_queries=4))
def test_the_printed_form_parses_to_itself(case: Case) -> None:
    """No Spark needed: print and parse is a fixed point."""
    for name, generated in case.workload.items():
        query = parsed(name, generated.text, case)
        again = parsed(name, query.sql, case)
        assert again.sql == query.sql
        assert (again.keys, again.window, again.aggregates) == (query.keys, query.window, query.aggregates)
