"""A version of a run's plan, with all that it takes to run it; queries that come and go make a new one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headrace.algebra.states import Fact
from headrace.errors import Problem, WorkloadError
from headrace.kernel.conditions import Conditions
from headrace.kernel.evaluate import Evaluator
from headrace.kernel.low import plan_inputs, table_bytes
from headrace.plan.build import Planner
from headrace.plan.change import cost_of
from headrace.plan.costs import Costs, load_costs
from headrace.plan.guard import Guarded, guarded
from headrace.plan.member import Facts, all_needed
from headrace.plan.plan import Answer, Deal, Plan
from headrace.plan.search import DEFAULT
from headrace.plan.sizes import Sizes
from headrace.plan.slices import Slices
from headrace.query import Expression, Query, Window
from headrace.runtime.finish import GroupNames, finishing_sql, group_schema
from headrace.runtime.live.finisher import Finisher
from headrace.runtime.live.records import Records
from headrace.runtime.prepare import arrow_types, session_of, types_of
from headrace.runtime.reference import analyse
from headrace.runtime.source import Session, Source, Ways, computed, filters_of, find_ways, sizes_by_sample
from headrace.sources import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


STARTED = "__window_started"
"""When the window of a row begins, in microseconds: the last column of what Spark finishes."""
_SAMPLED = 1 << 16
"""Records of a micro-batch that sizes are estimated by, where Spark gives them."""
_CLEARLY_LESS = 0.8
"""A plan has to cost so many times what the one that runs does, to be adopted in its place."""
_STARTED_SQL = "unix_micros(CAST(window.start AS TIMESTAMP))"


@dataclass(frozen=True)
class Version:
    """A plan, and what is known of everything in it."""

    number: int
    plan: Plan
    queries: Mapping[str, Query]
    facts: Facts
    session: Session
    ways: Ways
    conditions: Conditions
    inputs: tuple[Expression, ...]
    """What workers compute of records: the time first, then what roots and the counting of late records need."""
    schemas: tuple[pa.Schema, ...]
    """Those of the answers' groups;"""
    finishers: tuple[Finisher | None, ...]
    """what makes the answers of them, where it is not Spark that has to;"""
    statements: tuple[str, ...]
    """as SQL."""
    joined: Mapping[str, int]
    """The version with which each query came;"""
    backfill: frozenset[str]
    """those that begin with windows of before they came."""
    costs: Costs
    asked: Mapping[str, str] = field(default_factory=dict)
    """The queries that the run was last started with, as texts: others have come, or gone, since."""

    def __post_init__(self) -> None:
        assert len(self.schemas) == len(self.plan.answers)

    @cached_property
    def root_places(self) -> dict[str, int]:
        """Where roots are among the plan's nodes, by their ids."""
        return {self.plan.nodes[root].id: root for root in self.plan.roots}

    def start_of(self, root: str, number: int) -> int:
        """When a slice of a root begins."""
        slices = self.plan.nodes[self.root_places[root]].slices
        assert isinstance(slices, Slices), "roots have slices"
        return slices.start_of(number)

    def open_at(self, time_us: int) -> Iterator[tuple[str, int]]:
        """When the first slice begins that is not over then, of each root whose windows are answered at once."""
        for node, root in self.root_places.items():
            slices = self.plan.nodes[root].slices
            if slices is not None and self.plan.uniform(root):
                yield node, self.start_of(node, slices.open_at(time_us))

    @cached_property
    def roots(self) -> dict[str, str]:
        """The root that each query comes from, by its id."""
        plan = self.plan
        return {answer.query.name: plan.nodes[plan.root_of(answer.node)].id for answer in plan.answers}

    @cached_property
    def windows(self) -> dict[str, Window]:
        """The window of each query."""
        windows = ((answer.query.name, answer.query.window) for answer in self.plan.answers)
        return {name: window for name, window in windows if window is not None}

    @cached_property
    def deals(self) -> dict[str, Deal]:
        """How the rows of roots are dealt, by their ids."""
        return {node: self.plan.deal_of(root) for node, root in self.root_places.items()}


class Desk:
    """Makes versions: it knows the stream, and asks Spark what expressions mean."""

    def __init__(self, stream: Stream, spark: SparkSession, budget: int, functions: Collection[str]) -> None:
        """`functions` are the user's own."""
        self._stream = stream
        self._spark = spark
        self._budget = budget
        self._frame = stream.dataframe(spark)
        self._session = session_of(self._frame, spark, functions)
        self._safe = cache(self._session.never_raises)
        self._costs = load_costs()
        # What is known of queries and expressions already: only what is new has to be looked at.
        self._schemas: dict[str, pa.Schema] = {}
        self._facts: dict[Expression, Fact] = {}
        self._ways: dict[Expression, Evaluator | str] = {}
        self._endings: dict[str, _Ending] = {}
        self._sizes: Sizes | None = None

    def first(self, queries: Mapping[str, Query], number: int = 1) -> Version:
        """The version of some queries, planned from what the stream shows; raises `WorkloadError`."""
        with self._analysing(queries):
            known = self._look_at(queries)
            plan = known.planner.plan(known.inner.values(), DEFAULT)
        return self._version(number, plan, queries, known)

    def with_query(self, version: Version, query: Query, backfill: bool = False) -> Version:
        """A version with one query more; raises `WorkloadError`, and nothing has changed."""
        queries = {**version.queries, query.name: query}
        with self._analysing(queries):
            known = self._look_at(queries)
            plan = version.plan.with_query(known.inner[query.name], known.planner).plan
        made = self._version(version.number + 1, plan, queries, known)
        return replace(
            made,
            asked=version.asked,
            joined={**version.joined, query.name: made.number},
            backfill=version.backfill | {query.name} if backfill else version.backfill - {query.name},
        )

    def replaced(self, version: Version, query: Query) -> Version:
        """A version with another query of the same name; it joins as one that is new."""
        others = {name: other for name, other in version.queries.items() if name != query.name}
        if not others:
            return replace(self.first({query.name: query}, version.number + 1), asked=version.asked)
        return self.with_query(self.without_query(version, query.name), query)

    def without_query(self, version: Version, name: str) -> Version:
        """A version with one query less; raises `WorkloadError` where there is no such query."""
        queries = {other: query for other, query in version.queries.items() if other != name}
        if not queries:
            raise WorkloadError(
                [Problem(f"'{name}' is the only query left; stop the run in place of removing it")]
            )
        with self._analysing(queries):
            known = self._look_at(queries)
            plan = version.plan.without_query(name, known.planner).plan
        made = self._version(version.number + 1, plan, queries, known)
        return replace(
            made,
            asked=version.asked,
            joined={query: number for query, number in version.joined.items() if query != name},
            backfill=version.backfill - {name},
        )

    def sizes_of(self, version: Version, records: Records) -> Sizes:
        """Sizes by a micro-batch's records: of its files where workers read them, else as Spark gives them."""
        if records.files is not None:
            return self._by_sample(Source.of_files(self._stream, records.files))
        needed = list(version.facts)
        table = computed(records.frame(), needed).limit(_SAMPLED).toArrow().combine_chunks()
        batches = table.to_batches()
        blocks = [dict(zip(needed, batch.columns, strict=True)) for batch in batches]
        return Sizes(blocks)

    def better(self, version: Version, sizes: Sizes) -> Version | None:
        """A version with a plan that costs clearly less by sizes that are newer; None where there is none."""
        self._sizes = sizes
        with self._analysing(version.queries):
            known = self._look_at(version.queries)
            plan = known.planner.plan(known.inner.values(), DEFAULT)
        assert plan.estimate is not None, "a search estimates what it finds"
        if plan.estimate.tree * 1e9 > _CLEARLY_LESS * cost_of(known.planner, version.plan):
            return None
        made = self._version(version.number + 1, plan, version.queries, known)
        return replace(made, asked=version.asked, joined=version.joined, backfill=version.backfill)

    @contextmanager
    def _analysing(self, queries: Mapping[str, Query]) -> Iterator[None]:
        """Meanwhile Spark looks at queries that are new; its complaints come before all others."""
        check_queries(queries.values(), self._stream)
        new = {name: query for name, query in queries.items() if query.plain not in self._schemas}
        if not new:
            yield
            return
        with ThreadPoolExecutor(1) as threads:
            analysis = threads.submit(analyse, new, self._stream, self._spark, self._frame)
            try:
                yield
            finally:
                found = _schemas(analysis.result())
        self._schemas |= {query.plain: found[name] for name, query in new.items()}

    def _look_at(self, queries: Mapping[str, Query]) -> _Known:
        """What is known of queries' expressions."""
        frame, session = self._frame, self._session
        inner = {name: guarded(query, self._safe) for name, query in queries.items()}
        needed = all_needed(inner.values())
        unknown = [expression for expression in needed if expression not in self._facts]
        if unknown:
            # What is to come may be larger than anything so far, or null.
            facts = {e: Fact(kind) for e, kind in types_of(unknown, frame, session.columns).items()}
            self._facts |= facts
            self._ways |= find_ways(Source.of_files(self._stream, []), facts, facts, session)
        if self._sizes is None:
            self._sizes = self._sampled(needed)
        known = {e: self._facts[e] for e in needed if e in self._facts}
        conditions, filters = filters_of(inner.values(), known, session)
        cores, memory = self._spark.sparkContext.defaultParallelism, table_bytes(self._budget)
        planner = Planner(known, self._sizes, cores, self._costs, memory, filters, end=False)
        ways = {e: self._ways[e] for e in needed if e in self._ways}
        return _Known(inner, known, session, ways, conditions, planner)

    def _sampled(self, needed: Iterable[Expression]) -> Sizes:
        """Sizes by what the stream shows already; of a DataFrame, nothing yet."""
        source = Source.of(self._stream, needed)
        return self._by_sample(source) if source is not None else Sizes()

    def _by_sample(self, source: Source) -> Sizes:
        return sizes_by_sample(source, self._ways, self._session, self._stream.time)

    def _version(self, number: int, plan: Plan, queries: Mapping[str, Query], known: _Known) -> Version:
        if plan.beside:
            problems = [Problem(f"cannot run in a stream: {reason}", origin=name) for name, reason in plan.beside]
            raise WorkloadError(problems)
        endings = [self._ending(answer, known) for answer in plan.answers]
        (time,) = {answer.query.window.time for answer in plan.answers if answer.query.window is not None}
        wheres = [answer.query.where for answer in plan.answers if answer.query.where is not None]
        inputs = tuple(dict.fromkeys([time, *plan_inputs(plan), *wheres]))
        return Version(
            number,
            plan,
            queries,
            known.facts,
            known.session,
            known.ways,
            known.conditions,
            inputs,
            tuple(ending.schema for ending in endings),
            tuple(ending.finisher for ending in endings),
            tuple(ending.statement for ending in endings),
            dict.fromkeys(queries, number),
            frozenset(),
            self._costs,
        )

    def _ending(self, answer: Answer, known: _Known) -> _Ending:
        """How a query's groups are finished."""
        query = answer.query
        if query.plain not in self._endings:
            groups, schema = GroupNames.of(query, self._stream.column_names), self._schemas[query.plain]
            held = group_schema(answer, groups, known.facts)
            finisher = Finisher.of(query, groups, held, schema, known.session.time_zone)
            statement = finishing_sql(query, groups, schema.names, {STARTED: _STARTED_SQL})
            self._endings[query.plain] = _Ending(held, finisher, statement)
        return self._endings[query.plain]

    def read(self, files: Sequence[str]) -> DataFrame:
        """Some files of the stream as Spark reads them."""
        assert isinstance(self._stream.data, str), "only a folder has files"
        # Columns may be in the names of folders, from the stream's own on.
        reader = self._spark.read.schema(self._frame.schema).option("basePath", self._stream.data)
        return reader.parquet(*files)


class _Ending(NamedTuple):
    schema: pa.Schema
    finisher: Finisher | None
    statement: str


@dataclass(frozen=True, slots=True)
class _Known:
    inner: Mapping[str, Guarded]
    facts: Facts
    session: Session
    ways: Ways
    conditions: Conditions
    planner: Planner


def _schemas(frames: Mapping[str, DataFrame]) -> dict[str, pa.Schema]:
    """Those of the answers; raises `WorkloadError` where one could not be written to a file."""
    schemas, problems = {}, []
    for name, frame in frames.items():
        kinds = arrow_types(frame)
        names = [field.name.lower() for field in frame.schema.fields]
        odd = next(
            (f.name for f in frame.schema.fields if f.name not in kinds or names.count(f.name.lower()) > 1), None
        )
        if odd is not None:
            hint = "give it a name of its own, or another type"
            problems.append(Problem(f"the column '{odd}' cannot be written to a file", origin=name, hint=hint))
        schemas[name] = pa.schema(list(kinds.items()))
    if problems:
        raise WorkloadError(problems)
    return schemas


def check_queries(queries: Iterable[Query], stream: Stream) -> None:
    """Raise `WorkloadError` with all reasons why queries cannot run over a stream that never ends."""
    problems = []
    for query in queries:
        if not query.shareable:
            problems += [
                replace(obstacle.place, message=f"cannot run in a stream: {obstacle.reason}")
                for obstacle in query.obstacles
            ]
        elif query.window is None:
            hint = f"add window({stream.time}, '1 minute') to GROUP BY"
            message = "has no window, so that its answer would never be complete"
            problems.append(Problem(message, origin=query.source.origin or query.name, hint=hint))
        elif (query.window.time.column or "").lower() != stream.time.lower():
            message = f"has a window over {query.window.time.sql}; the stream's time is {stream.time}"
            problems.append(Problem(message, origin=query.source.origin or query.name))
    if problems:
        raise WorkloadError(problems)
