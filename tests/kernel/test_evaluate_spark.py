"""Compiled expressions against plain Spark: values, nulls, types, and who raises.

Every run takes fresh seeds. A failure names its own; HEADRACE_SEED=<seed> begins with it again.
"""

from __future__ import annotations

import os
import random
from collections.abc import Sequence

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from headrace.kernel.evaluate import Evaluator, compile_expression
from headrace.query.expression import Expression
from tests.harness.choices import Seeded
from tests.harness.data import make_table
from tests.harness.expressions import Scope, number
from tests.harness.predicates import predicate
from tests.harness.schemas import StreamSchema, make_schema
from tests.kernel.spark_expressions import expression

pytestmark = pytest.mark.spark

FIRST_SEED = int(os.environ.get("HEADRACE_SEED") or random.SystemRandom().randrange(10**9))
STREAMS = int(os.environ.get("HEADRACE_STREAMS") or 20)
EACH = 12
"""Expressions of each sort for each stream."""


def test_values_nulls_types_and_errors_are_sparks(spark: SparkSession) -> None:
    """Random conditions and numbers of the harness, and expressions of every function that the kernel knows."""
    tried: dict[str, int] = {}
    known: dict[str, int] = {}
    for seed in range(FIRST_SEED, FIRST_SEED + STREAMS):
        choices = Seeded(seed)
        schema = make_schema(choices)
        table = make_table(choices, schema)
        frame = spark.createDataFrame(table, schema=schema.spark()).alias(schema.table)
        scope = Scope(choices, schema)
        sorts = {
            "predicates": [predicate(scope) for _ in range(EACH)],
            "numbers": [number(scope).sql for _ in range(EACH)],
            "functions": [expression(scope) for _ in range(2 * EACH)],
        }
        for sort, texts in sorts.items():
            ready = _compiled(texts, frame, schema)
            tried[sort] = tried.get(sort, 0) + len(texts)
            known[sort] = known.get(sort, 0) + len(ready)
            _check(ready, frame, table, seed)
    shares = {sort: known[sort] / tried[sort] for sort in tried}
    print(f"known to the kernel, of {tried}: " + ", ".join(f"{s} {share:.0%}" for s, share in shares.items()))
    assert shares["predicates"] > 0.75
    assert shares["numbers"] > 0.8
    assert shares["functions"] > 0.8


def _compiled(texts: Sequence[str], frame: DataFrame, schema: StreamSchema) -> list[tuple[str, Evaluator]]:
    """The texts that Spark takes and the kernel knows, with their evaluators."""
    columns = {column.name: column.type for column in schema.columns}
    ready = []
    for text, result in _types(texts, frame):
        parsed = Expression.parse(text, frozenset({schema.table.lower()}))
        evaluator = compile_expression(parsed, columns, result, "UTC")
        if evaluator is not None:
            ready.append((text, evaluator))
    return ready


def _types(texts: Sequence[str], frame: DataFrame) -> list[tuple[str, pa.DataType]]:
    """Spark's types of the expressions that it takes: of some the types do not go together."""
    try:
        schema = frame.selectExpr(*(f"{text} AS c{index}" for index, text in enumerate(texts))).schema
    except PySparkException:
        if len(texts) == 1:
            return []
        half = len(texts) // 2
        return _types(texts[:half], frame) + _types(texts[half:], frame)
    return list(zip(texts, to_arrow_schema(schema, timezone="UTC").types, strict=True))


def _check(ready: Sequence[tuple[str, Evaluator]], frame: DataFrame, table: pa.Table, seed: int) -> None:
    expected = _sparks([text for text, _ in ready], frame)
    plain = {name: table[name].combine_chunks() for name in table.column_names}
    encoded = {name: c.dictionary_encode() if c.type == pa.string() else c for name, c in plain.items()}
    for (text, evaluator), wanted in zip(ready, expected, strict=True):
        for columns in (plain, encoded):
            found = _kernels(evaluator, columns)
            assert _shown(found) == _shown(wanted), f"seed {seed}: {text}"


def _kernels(evaluator: Evaluator, columns: dict[str, pa.Array]) -> pa.Array | None:
    """The kernel's answer; None if it raises."""
    try:
        found = evaluator({name: columns[name] for name in evaluator.names or columns})
    except ArithmeticError:
        return None
    found.validate(full=True)
    assert found.type == evaluator.result
    return found


def _sparks(texts: Sequence[str], frame: DataFrame) -> list[pa.Array | None]:
    """Spark's answers; None for an expression that raises."""
    if not texts:
        return []
    try:
        answers = frame.selectExpr(*(f"{text} AS c{index}" for index, text in enumerate(texts))).toArrow()
    except PySparkException:
        if len(texts) == 1:
            return [None]
        half = len(texts) // 2
        return _sparks(texts[:half], frame) + _sparks(texts[half:], frame)
    return [answers[f"c{index}"].combine_chunks() for index in range(len(texts))]


def _shown(array: pa.Array | None) -> list[str] | None:
    """Values that are equal only if they are the same: NaN is itself, -0.0 is not 0.0."""
    if array is None:
        return None
    if pa.types.is_timestamp(array.type):
        array = array.cast(pa.int64())
    return [repr(value) for value in array.to_pylist()]
