"""A workload made ready to run: what Spark says of its expressions, what the source tells, and the plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import TYPE_CHECKING

import pyarrow as pa

from headrace.algebra.states import Fact
from headrace.kernel.conditions import Conditions
from headrace.kernel.low import plan_inputs, table_bytes
from headrace.plan.build import Planner
from headrace.plan.costs import Costs, load_costs
from headrace.plan.guard import Guarded, guarded
from headrace.plan.member import Facts, Needs, all_needed
from headrace.plan.plan import Plan
from headrace.plan.search import DEFAULT
from headrace.plan.sizes import Sizes
from headrace.query import Expression, Query
from headrace.query.functions import spark_functions
from headrace.runtime.finish import GroupNames, group_schema
from headrace.runtime.reference import analyse
from headrace.runtime.source import Session, Source, Ways, computed, filters_of, find_ways, sizes_by_sample
from headrace.runtime.told import Told
from headrace.runtime.worker import Brief
from headrace.sources import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

BUDGET_BYTES = 512 << 20
"""Memory of one worker for groups; what exceeds it leaves as partials."""


_AS_LARGE = 2.0
"""A plan is as good as it was for a stream up to so many times as large, or as small."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A workload whose expressions Spark has looked at: its plan, and what is known of every expression."""

    queries: tuple[Guarded, ...]
    plan: Plan
    facts: Facts
    frame: Callable[[], DataFrame]
    """The stream as plain Spark reads it; made when it is asked for."""
    source: Source | None
    session: Session
    ways: Ways
    brief: Told[Brief]
    costs: Costs

    def renewed(self, stream: Stream, spark: SparkSession) -> Prepared | None:
        """The same for what the stream has now; None where the plan would be wrong for that, or not as good."""
        frame = cache(partial(stream.dataframe, spark))
        if self.source is None:
            return replace(self, frame=frame)
        source = Source.of(stream, self.facts)
        if source is None or not source.is_like(self.source, stream.time, _AS_LARGE):
            return None
        facts = facts_of({e: fact.type for e, fact in self.facts.items()}, source)
        if Needs.of(self.queries, facts) != Needs.of(self.queries, self.facts):
            return None
        return replace(self, frame=frame, source=source, facts=facts)


def prepare(
    queries: Mapping[str, Query],
    stream: Stream,
    spark: SparkSession,
    functions: Collection[str],
    frame: DataFrame | None = None,
    search: str = DEFAULT,
    budget: int = BUDGET_BYTES,
) -> Prepared:
    """Plan a workload; Spark says what type every expression has. Raises `WorkloadError`.

    `functions` are the names of the user's own. `frame` is the stream's DataFrame, where there is one already: to
    make it, Spark reads a footer.
    """
    from pyspark.errors import AnalysisException  # see session.py

    frame = frame if frame is not None else stream.dataframe(spark)
    session = session_of(frame, spark, functions)
    safe = cache(session.never_raises)
    inner = tuple(guarded(query, safe) for query in queries.values())
    needed = all_needed(inner)
    source = Source.of(stream, needed)
    try:
        types = types_of(needed, frame, session.columns)
    except AnalysisException:
        analyse(queries, stream, spark, frame)  # says in which query, and where
        raise
    facts = facts_of(types, source)
    sizes = Sizes()
    ways: Ways = {}
    if source is not None:
        ways = find_ways(source, types, facts, session)
        sizes = sizes_by_sample(source, ways, session, stream.time)
    conditions, filters = filters_of(inner, facts, session)
    cores, memory, costs = spark.sparkContext.defaultParallelism, table_bytes(budget), load_costs()
    plan = Planner(facts, sizes, cores, costs, memory, filters).plan(inner, search)
    brief = Told(_brief(plan, facts, conditions, stream), spark)
    return Prepared(inner, plan, facts, lambda: frame, source, session, ways, brief, costs)


def _brief(plan: Plan, facts: Facts, conditions: Conditions, stream: Stream) -> Brief:
    """What workers have to know of a plan."""
    groups = [GroupNames.of(answer.query, stream.column_names) for answer in plan.answers]
    schemas = (group_schema(*pair, facts) for pair in zip(plan.answers, groups, strict=True))
    return Brief(plan, plan_inputs(plan), tuple(schemas), conditions)


def facts_of(types: Mapping[Expression, pa.DataType], source: Source | None) -> dict[Expression, Fact]:
    """What is known of expressions: their types, and what the source tells of them."""
    return {e: source.fact(e, kind) if source is not None else Fact(kind) for e, kind in types.items()}


def types_of(
    expressions: Sequence[Expression], frame: DataFrame, columns: Mapping[str, pa.DataType]
) -> dict[Expression, pa.DataType]:
    """The types of expressions; one without an Arrow form is left out, and plain Spark runs what needs it.

    Those of `columns` are known; Spark is asked for all others.
    """
    types = {e: columns[e.column] for e in expressions if e.column is not None and e.column in columns}
    others = [e for e in expressions if e not in types]
    if others:
        asked = computed(frame, others)
        kinds = arrow_types(asked)
        types |= {e: kinds[name] for e, name in zip(others, asked.columns, strict=True) if name in kinds}
    return types


def arrow_types(frame: DataFrame) -> dict[str, pa.DataType]:
    """The types of columns, by name, as far as they have an Arrow form."""
    from pyspark.errors import PySparkTypeError  # see session.py
    from pyspark.sql.pandas.types import to_arrow_type

    types = {}
    for field in frame.schema.fields:
        try:
            types[field.name] = to_arrow_type(field.dataType, timezone="UTC")
        except PySparkTypeError:
            continue
    return types


def session_of(frame: DataFrame, spark: SparkSession, functions: Collection[str]) -> Session:
    """What the meaning of expressions over a stream depends on, in this session."""
    usual = (
        spark.conf.get("spark.sql.ansi.enabled") == "true"
        and spark.conf.get("spark.sql.timestampType") == "TIMESTAMP_LTZ"
        and spark_functions().keys().isdisjoint(functions)
    )
    return Session(arrow_types(frame), spark.conf.get("spark.sql.session.timeZone") or "", usual)
