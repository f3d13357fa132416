"""A whole test case: a schema, a table of it, and a workload over it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from hypothesis import strategies as st

from tests.harness.choices import Choices, Draw, Drawn, Seeded
from tests.harness.compare import ResultsDiffer, compare, with_witness
from tests.harness.data import make_table
from tests.harness.queries import MAX_QUERIES, GeneratedQuery, make_workload
from tests.harness.result import Failure, Outcome, Result
from tests.harness.schemas import StreamSchema, make_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True)
class Case:
    """What hypothesis draws for a differential test."""

    schema: StreamSchema
    table: pa.Table
    workload: dict[str, GeneratedQuery]

    @property
    def texts(self) -> dict[str, str]:
        return {name: query.text for name, query in self.workload.items()}

    def frame(self, spark: SparkSession, partitions: int = 1) -> DataFrame:
        """The table in Spark, in so many partitions."""
        frame = spark.createDataFrame(self.table, schema=self.schema.spark())
        # A checkpoint, because each query would deal the rows out anew.
        return frame.coalesce(1) if partitions == 1 else frame.repartition(partitions).localCheckpoint()

    def register(self, spark: SparkSession, partitions: int = 1) -> DataFrame:
        """The same, under the name that the queries use."""
        frame = self.frame(spark, partitions)
        frame.createOrReplaceTempView(self.schema.view)
        return frame


@st.composite
def cases(draw: Draw, max_queries: int = MAX_QUERIES) -> Case:
    """The cases that `make_case` makes."""
    return make_case(Drawn(draw), max_queries)


def make_case(choices: Choices, max_queries: int = MAX_QUERIES) -> Case:
    """A schema, a table and 1 to `max_queries` queries."""
    schema = make_schema(choices)
    return Case(schema, make_table(choices, schema), make_workload(choices, schema, max_queries))


def case_of_seed(seed: int, max_queries: int = MAX_QUERIES) -> Case:
    """Always the same case for a seed: for fixed sets of cases, where nothing needs to shrink."""
    return make_case(Seeded(seed), max_queries)


def check(
    query: GeneratedQuery, expected: Outcome, actual: Outcome, rows: int, witness: Outcome | None = None
) -> None:
    """Raise `ResultsDiffer` unless two runs of a query over a table of `rows` rows had the same outcome.

    Both may fail: the kind of error is not compared. One may fail alone only if the query says so. `witness` is
    the outcome of the query's witness, if it has one.
    """
    if isinstance(expected, Result) and isinstance(actual, Result):
        if isinstance(witness, Result):
            expected = with_witness(expected, witness, query.comparisons)
        ordered, context = query.ordered, query.text
        compare(expected, actual, query.comparisons, ordered=ordered, rows=rows, context=context)
    elif type(expected) is not type(actual) and not query.may_fail:
        shown = [
            str(side) if isinstance(side, Failure) else f"{len(side.rows)} rows" for side in (expected, actual)
        ]
        raise ResultsDiffer(f"{query.text}\nexpected {shown[0]}, got {shown[1]}")
