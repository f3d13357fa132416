"""The batch runtime: one Spark job for the whole workload, in two levels.

Low level: each task reduces its records to partials. They cross the shuffle as bytes in a binary column. High
level: each task merges the partials of a bucket and gives all answers of its groups, again as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.errors import RunError
from headrace.kernel.high import reduce_bucket
from headrace.kernel.low import LowLevel, node_inputs
from headrace.kernel.partial import unpack_columns
from headrace.plan.build import Types, make_plan
from headrace.plan.plan import Answer, Plan
from headrace.query import Expression, Query
from headrace.runtime.finish import WINDOW, Groups, finishing_sql
from headrace.runtime.reference import run_reference
from headrace.runtime.results import Results
from headrace.sources import Stream
from headrace.sources.parquet import Split, can_read, make_splits, read_footers, read_split

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

BUDGET_BYTES = 512 << 20
"""Memory for the tables of one worker; what exceeds it leaves as partials."""

_PARTIALS = "bucket int, root int, blob binary"
_ANSWERS = "answer int, rows bigint, blob binary"


@dataclass(frozen=True, slots=True)
class Prepared:
    """A workload that Spark has looked at: its plan, the types of all expressions, and each query's own answer."""

    plan: Plan
    types: Types
    reference: Results


def prepare(queries: Mapping[str, Query], stream: Stream, spark: SparkSession) -> Prepared:
    """Plan a workload; Spark says what type every expression has."""
    reference = run_reference(queries, stream, spark)
    shareable = [query for query in queries.values() if query.shareable]
    types = _types(_needed(shareable), stream, spark)
    return Prepared(make_plan(queries.values(), types), types, reference)


def run_batch(
    queries: Mapping[str, Query], stream: Stream, spark: SparkSession, budget: int = BUDGET_BYTES
) -> Results:
    """The answers of all queries: those with states by one shared pass, the others by plain Spark beside it."""
    prepared = prepare(queries, stream, spark)
    plan, reference = prepared.plan, prepared.reference
    frames = {name: reference[name] for name, _ in plan.beside}
    if plan.answers:
        answers = _answers(plan, prepared.types, stream, spark, budget).persist()
        for number, answer in enumerate(plan.answers):
            expected = reference[answer.query.name].schema
            frames[answer.query.name] = _finish(answers, number, answer, prepared, expected, stream, spark)
    return Results({name: frames[name] for name in queries}, spark)


def _needed(queries: Iterable[Query]) -> list[Expression]:
    """Every expression over the stream whose type the plan has to know."""
    needed: dict[Expression, None] = {}
    for query in queries:
        parts = [*query.keys, query.where, query.window.time if query.window else None]
        for aggregate in query.aggregates:
            parts += [*(a for a in aggregate.arguments if a.sql != "*"), aggregate.filter]
        needed |= dict.fromkeys(part for part in parts if part is not None)
    return list(needed)


def _types(expressions: list[Expression], stream: Stream, spark: SparkSession) -> dict[Expression, pa.DataType]:
    from pyspark.sql.pandas.types import to_arrow_type  # see session.py

    if not expressions:
        return {}
    columns = [f"{expression.sql} AS `c{index}`" for index, expression in enumerate(expressions)]
    schema = stream.dataframe(spark).selectExpr(*columns).schema
    kinds = [to_arrow_type(field.dataType, timezone="UTC") for field in schema.fields]
    return dict(zip(expressions, kinds, strict=True))


def _answers(plan: Plan, types: Types, stream: Stream, spark: SparkSession, budget: int) -> DataFrame:
    """The job of both levels, not yet run: rows of (answer, rows, bytes)."""
    buckets = max(1, spark.sparkContext.defaultParallelism)

    def high(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext  # in the worker

        context = TaskContext.get()
        assert context is not None
        partials = (
            (root.as_py(), blob.as_py())
            for batch in batches
            for root, blob in zip(batch["root"], batch["blob"], strict=True)
        )
        for number, rows, blob in reduce_bucket(plan, context.partitionId(), buckets, partials):
            yield pa.record_batch({"answer": pa.array([number], pa.int32()), "rows": [rows], "blob": [blob]})

    partials = _partials(plan, types, stream, spark, budget, buckets)
    return partials.repartitionById(buckets, "bucket").mapInArrow(high, _ANSWERS)


def _partials(
    plan: Plan, types: Types, stream: Stream, spark: SparkSession, budget: int, buckets: int
) -> DataFrame:
    """The low level: at the source where the plan needs plain columns of Parquet, else through Spark."""
    inputs = tuple(dict.fromkeys(e for root in plan.roots for e in node_inputs(plan.nodes[root])))

    def reduce(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        level = LowLevel(plan, inputs, budget)
        for batch in batches:
            level.add(batch)
        for bucket, root, blob in level.partials(buckets):
            numbers = {"bucket": pa.array([bucket], pa.int32()), "root": pa.array([root], pa.int32())}
            yield pa.record_batch({**numbers, "blob": [blob]})

    at_source = _splits(inputs, types, stream, buckets)
    if at_source is not None:
        names, splits = at_source

        def low(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            tasks = [number.as_py() for batch in batches for number in batch.column(0)]
            yield from reduce(b for task in tasks for split in splits[task] for b in read_split(split, names))

        return spark.range(0, len(splits), 1, len(splits)).mapInArrow(low, _PARTIALS)
    columns = [f"{expression.sql} AS `c{index}`" for index, expression in enumerate(inputs)]
    return stream.dataframe(spark).selectExpr(*columns).mapInArrow(reduce, _PARTIALS)


def _splits(
    inputs: Sequence[Expression], types: Types, stream: Stream, tasks: int
) -> tuple[list[str], list[list[Split]]] | None:
    """The columns of the inputs and who reads which row groups, or None where Spark has to read."""
    own = {name.lower(): name for name in stream.column_names}
    names = [own[e.column.lower()] for e in inputs if e.column is not None and e.column.lower() in own]
    if not isinstance(stream.data, str) or not names or len(names) < len(inputs):
        return None
    footers = read_footers(stream.data)
    if not can_read(footers, {name: types[e] for name, e in zip(names, inputs, strict=True)}):
        return None
    return names, make_splits(footers, tasks)


def _finish(
    answers: DataFrame,
    number: int,
    answer: Answer,
    prepared: Prepared,
    expected: StructType,
    stream: Stream,
    spark: SparkSession,
) -> DataFrame:
    """A query's DataFrame: its groups, decoded, and its own last step."""
    from pyspark.sql.pandas.types import from_arrow_schema  # see session.py

    query = answer.query
    groups = Groups.of(query, stream.column_names)
    schema = _group_schema(answer, groups, prepared.types)
    windowed = query.window is not None

    def decode(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for blob in batch["blob"]:
                columns, _ = unpack_columns(blob.as_py())
                if windowed:
                    ends = schema.field(WINDOW).type
                    edges = [column.view(ends.field(0).type) for column in columns[:2]]
                    columns = [pa.StructArray.from_arrays(edges, fields=list(ends)), *columns[2:]]
                # Times come in the session's zone, which is not part of a value.
                typed = [column.cast(field.type) for column, field in zip(columns, schema, strict=True)]
                yield pa.record_batch(typed, schema=schema)

    blobs = answers.where(f"answer = {number}").select("blob")
    decoded = blobs.mapInArrow(decode, from_arrow_schema(schema, prefer_timestamp_ntz=True))
    finished = spark.sql(finishing_sql(query, groups, expected.names), groups=decoded)
    kinds = [(field.name, field.dataType.simpleString()) for field in finished.schema.fields]
    wanted = [(field.name, field.dataType.simpleString()) for field in expected.fields]
    if kinds != wanted:
        raise RunError(f"query '{query.name}' would give {kinds} instead of Spark's {wanted}: please report it")
    return finished


def _group_schema(answer: Answer, groups: Groups, types: Types) -> pa.Schema:
    fields = []
    if answer.query.window is not None:
        time = types[answer.query.window.time]
        fields.append(pa.field(WINDOW, pa.struct([pa.field("start", time), pa.field("end", time)])))
    fields += [pa.field(n, types[key]) for n, key in zip(groups.keys, answer.query.keys, strict=True)]
    fields += [pa.field(n, recipe.type) for n, recipe in zip(groups.aggregates, answer.recipes, strict=True)]
    return pa.schema(fields)
