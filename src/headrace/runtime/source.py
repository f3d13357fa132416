"""At the source: what Parquet files tell before they are read, and which task reads what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from statistics import median
from typing import TYPE_CHECKING

import pyarrow as pa
from sqlglot import exp

from headrace.algebra.states import MOST_RECORDS, Fact
from headrace.kernel.conditions import Atom, Condition, Conditions
from headrace.kernel.evaluate import Evaluator, compile_expression, never_raises
from headrace.kernel.evaluate.cells import Cells, Sorter
from headrace.kernel.low import Stretch
from headrace.kernel.records import Inputs
from headrace.plan.costs import Costs
from headrace.plan.guard import Guarded
from headrace.plan.levels import slice_share
from headrace.plan.member import Facts
from headrace.plan.plan import Plan
from headrace.plan.shapes import Filters
from headrace.plan.sizes import Block, Sizes
from headrace.plan.slices import Slices
from headrace.query import Expression
from headrace.query.condition import parts_of
from headrace.sources import Stream
from headrace.sources.imply import implies
from headrace.sources.parquet import Footer, RowGroup, Task, can_read, extent_of, read_footers, read_task
from headrace.sources.sample import read_sample
from headrace.sources.skip import may_match
from headrace.sources.tasks import Grid, deal_by_time, deal_row_groups

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_READING_NS = 100.0
"""What it takes to read a record, about."""
_BREAK = 3
"""A row group that lasts so many times longer than others has a break in it."""


@dataclass(frozen=True, slots=True)
class Source:
    """The files of a stream, as their footers describe them."""

    columns: Mapping[str, str]
    """The names in the files, by their lower case: Spark does not tell cases apart."""
    footers: tuple[Footer, ...]

    @staticmethod
    def of(stream: Stream, expressions: Iterable[Expression]) -> Source | None:
        """The source of a stream of Parquet; None for a DataFrame."""
        if not isinstance(stream.data, str):
            return None
        names = _names_of(stream)
        used = {column.name.lower() for e in expressions for column in e.tree.find_all(exp.Column)}
        told = {names[name] for name in (*used, stream.time.lower()) if name in names}
        footers = read_footers(stream.data, sorted(told))
        return Source(names, tuple(footers))

    @staticmethod
    def of_files(stream: Stream, files: list[str]) -> Source:
        """The source of some files of a stream, which tell of its time; of none, it knows the columns alone."""
        names = _names_of(stream)
        return Source(names, tuple(read_footers(files, [names[stream.time.lower()]]) if files else ()))

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(group.rows for footer in self.footers for group in footer.groups)

    def name_of(self, expression: Expression) -> str | None:
        """The column that an expression is, or None."""
        return self.columns.get(expression.column.lower()) if expression.column is not None else None

    def fact(self, expression: Expression, kind: pa.DataType) -> Fact:
        """What the footers tell of an expression of a type."""
        records = min(MOST_RECORDS, max(1, self.records))
        name = self.name_of(expression)
        extent = extent_of(self.footers, name) if name is not None else None
        if name is None or extent is None or not can_read(self.footers, {name: kind}):
            return Fact(kind, records=records)
        return Fact(kind, max(abs(extent.least), abs(extent.most)), extent.nulls > 0, records)

    def is_like(self, other: Source, time: str, most: float) -> bool:
        """Whether files have the same columns, and about as many records over about as long a time."""
        if {footer.schema for footer in self.footers} != {footer.schema for footer in other.footers}:
            return False
        for own, others in (
            (self.records, other.records),
            (self.span_us(time), other.span_us(time)),
        ):
            if (own or 0) > most * (others or 0) or (others or 0) > most * (own or 0):
                return False
        return True

    def span_us(self, time: str) -> int | None:
        """How long the records go on, without long breaks: a market closes for the night."""
        name = self.columns[time.lower()]
        extent = extent_of(self.footers, name)
        if extent is None:
            return None
        groups = [group.extents[name] for footer in self.footers for group in footer.groups]
        each = [group.most - group.least for group in groups]
        longest = _BREAK * median(each)
        return min(extent.most - extent.least, int(sum(min(span, longest) for span in each)))


def _names_of(stream: Stream) -> dict[str, str]:
    return {name.lower(): name for name in stream.column_names}


@dataclass(frozen=True, slots=True)
class Session:
    """What the meaning of an expression depends on: the columns' types (as Spark has them), and settings.

    `usual`: ANSI mode, timestamps with a zone, no function that hides a built-in one.
    """

    columns: Mapping[str, pa.DataType]
    time_zone: str
    usual: bool

    def never_raises(self, expression: Expression) -> bool:
        """Whether it is known that an expression raises for no record."""
        return self.usual and never_raises(expression, self.columns, self.time_zone)


class InputError(ArithmeticError):
    """An expression over the stream that has no value: Spark raises an error too."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What workers read themselves: these columns, what they make of them (the plan's inputs), and for each task
    its row groups and its stretch of `time`."""

    names: tuple[str, ...]
    inputs: Inputs
    made_of: tuple[tuple[str, Evaluator | str], ...]
    """What each input is, for errors, and the way to it: compiled, or the name of a column."""
    cells: Cells | None
    """The conditions that are computed together, where that takes less."""
    tasks: tuple[Task, ...]
    time: Expression | None

    def stretch(self, task: Task) -> Stretch | None:
        """The time whose records a task has all of."""
        return Stretch(self.time, task.start_us, task.end_us) if self.time is not None else None

    def read(self, task: Task) -> Iterator[tuple[pa.RecordBatch, int | None]]:
        """The inputs of a task's records, batch by batch, each with the time that no later batch goes below."""
        return self.made(read_task(task, self.names))

    def made(
        self, batches: Iterable[tuple[pa.RecordBatch, int | None]]
    ) -> Iterator[tuple[pa.RecordBatch, int | None]]:
        """The inputs from batches of the columns that are read, each with the same time."""
        sorter = Sorter(self.cells) if self.cells is not None else None
        for batch, until_us in batches:
            columns = dict(zip(self.names, batch.columns, strict=True))
            arrays = [_input(what, made, columns) for what, made in self.made_of]
            if sorter is not None:
                arrays.append(sorter.sort(columns, batch.num_rows))
            yield pa.record_batch(arrays, [f"c{index}" for index in range(len(arrays))]), until_us


def _input(what: str, made: Evaluator | str, columns: Mapping[str, pa.Array]) -> pa.Array:
    if isinstance(made, str):
        return columns[made]
    try:
        return made(columns)
    except ArithmeticError as error:
        raise InputError(f"{what}: {error}") from error


Ways = Mapping[Expression, Evaluator | str]
"""How workers come by expressions, as far as they can: compiled, or the name of a column."""


def computed(frame: DataFrame, expressions: Iterable[Expression]) -> DataFrame:
    """The stream's records, by Spark, as the values of expressions."""
    return frame.selectExpr(*(f"{expression.sql} AS `c{index}`" for index, expression in enumerate(expressions)))


def find_ways(source: Source, expressions: Iterable[Expression], facts: Facts, session: Session) -> Ways:
    """The ways to all expressions that the kernel knows."""
    ways = {e: source.name_of(e) or _evaluator(e, facts, session) for e in expressions}
    return {expression: how for expression, how in ways.items() if how is not None}


def _names_in(ways: Iterable[Evaluator | str]) -> tuple[str, ...]:
    """The columns that are read for them, each once."""
    used = [(how,) if isinstance(how, str) else how.names for how in ways]
    return tuple(dict.fromkeys(name for part in used for name in part))


def _can_read(source: Source, names: Sequence[str], session: Session) -> bool:
    """Whether there are columns to read, all of them known to Spark, and of the types that it gives them."""
    if not names or any(name not in session.columns for name in names):
        return False
    return can_read(source.footers, {name: session.columns[name] for name in names})


def plan_reading(
    source: Source,
    plan: Plan,
    inputs: tuple[Expression, ...],
    known: Ways,
    facts: Facts,
    session: Session,
    tasks: int,
    costs: Costs,
    skip: bool = True,
) -> Reading | None:
    """Who reads what; None where Spark has to read, since the kernel does not know some expression or type.

    `known` are the ways that have been found already, and `costs` say which edges between tasks are the best.
    Row groups that no filter can want are left out, but for `skip`.
    """
    ways = {**known, **find_ways(source, [e for e in inputs if e not in known], facts, session)}
    if any(expression not in ways for expression in inputs):
        return None
    names = _names_in(ways[expression] for expression in inputs)
    if not _can_read(source, names, session):
        return None
    users: dict[Expression, str] = {}
    for answer in plan.answers:
        for expression in answer.inputs:
            users.setdefault(expression, answer.query.name)
    together, roots = _together(plan, ways), [plan.nodes[root] for root in plan.roots]
    values = {e for node in roots for e in (*node.keys, *(a for state in node.states for a in state.arguments))}
    apart = Inputs(tuple(e for e in inputs if e not in together or e in values), (*together,))
    made = []
    for expression in apart.expressions:
        user = f"query '{users[expression]}' failed: " if expression in users else ""
        made.append((f"{user}{expression.sql}", ways[expression]))
    read = names, apart, tuple(made), Cells((*together.values(),)) if together else None
    wheres = dict.fromkeys(where for root in plan.roots for where in plan.nodes[root].any_of or (None,))
    filters = [ways[where] if where is not None else None for where in wheres] if skip else [None]
    groups = _wanted(source, filters)
    slices = [node.slices for node in plan.nodes if node.slices is not None]
    times = Counter(each.time for each in slices if source.name_of(each.time) is not None)
    if times:
        (time, _), *_ = times.most_common(1)
        span_us = max(1, source.span_us(source.name_of(time) or "") or 1)
        grids = _grids(plan, time, span_us, _travel(plan, source.records, tasks, costs))
        by_time = deal_by_time(groups, tasks, source.name_of(time) or "", grids)
        if by_time is not None:
            return Reading(*read, tuple(by_time), time)
    return Reading(*read, tuple(deal_row_groups(groups, tasks)), None)


def _together(plan: Plan, ways: Ways) -> Mapping[Expression, Evaluator]:
    """The conditions of records that are computed together, where that takes less."""
    nodes = [plan.nodes[root] for root in plan.roots]
    asked = dict.fromkeys(condition for node in nodes for condition in (*node.marks, *node.any_of))
    found = {}
    for expression in asked:
        way = ways[expression]
        if isinstance(way, Evaluator) and way.tells:
            found[expression] = way
    return found if found and Cells((*found.values(),)).pays else {}


def sample(source: Source, ways: Ways, session: Session) -> list[Block]:
    """Some records: the values of all expressions that the kernel can compute, block by block."""
    names = _names_in(ways.values())
    if not _can_read(source, names, session):
        return []
    blocks: list[Block] = []
    for batch in read_sample(source.footers, names):
        columns = dict(zip(names, batch.columns, strict=True))
        block = {expression: _sampled(how, columns) for expression, how in ways.items()}
        blocks.append({expression: column for expression, column in block.items() if column is not None})
    return blocks


def sizes_by_sample(source: Source, ways: Ways, session: Session, time: str) -> Sizes:
    """Sizes by a sample of a source, whose records have a time column."""
    return Sizes(sample(source, ways, session), source.records, source.span_us(time))


def _sampled(made: Evaluator | str, columns: Mapping[str, pa.Array]) -> pa.Array | None:
    """The values of an expression; None where it raises, which is for the pass to report."""
    try:
        return _input("", made, columns)
    except InputError:
        return None


def _travel(plan: Plan, records: int, tasks: int, costs: Costs) -> float:
    """What a row that travels costs, in records: tasks share the one, while one waits for another's records."""
    made = sum(expected.seconds for expected in plan.expected) * 1e9 / max(1, records)
    return costs.shipped / tasks / (_READING_NS + made)


def _grids(plan: Plan, time: Expression, span_us: int, travel: float) -> list[Grid]:
    """The edges of the slices of all nodes whose rows gather below, with what it costs to cut a slice."""
    cuts: dict[Slices, float] = {}
    for index, node in enumerate(plan.nodes):
        gathers = plan.gathers(index) and not plan.rises(index)
        # Wherever tasks are cut, some windows that overlap are cut too.
        if gathers and isinstance(node.slices, Slices) and node.slices.time == time:
            rows = plan.rows[index] * slice_share(node.slices, span_us)
            cuts[node.slices] = cuts.get(node.slices, 0.0) + rows * travel
    return [Grid(slices, cut) for slices, cut in cuts.items()]


def _wanted(source: Source, filters: Sequence[Evaluator | str | None]) -> list[RowGroup]:
    """The row groups that may have a record for one of the filters; a column, or no filter, may match anywhere."""
    conditions = [condition for condition in filters if isinstance(condition, Evaluator)]
    every = len(conditions) < len(filters)
    groups = [group for footer in source.footers for group in footer.groups]
    return [g for g in groups if every or any(may_match(condition, g.extents) for condition in conditions)]


def filters_of(queries: Collection[Guarded], facts: Facts, session: Session) -> tuple[Conditions, Filters]:
    """`learn_filters` of all queries' filters and keys."""
    wheres = [guarded.query.where for guarded in queries]
    known = dict.fromkeys(where for where in wheres if where is not None and where in facts)
    return learn_filters(known, [key for guarded in queries for key in guarded.keys], facts, session)


def learn_filters(
    wheres: Iterable[Expression], keys: Iterable[Expression], facts: Facts, session: Session
) -> tuple[Conditions, Filters]:
    """The filters that can be computed of rows with some of these keys, and what the planner has to know of all.

    Of values that are equal as keys, a condition might tell some apart if they are floating (0.0 and -0.0).
    """
    by_name = {key.column.lower(): key for key in keys if key.column is not None}
    compiled = cache(partial(_compiled_filter, facts=facts, session=session))
    known = {where: how for where in wheres if (how := compiled(where)) is not None}
    conditions: dict[Expression, Condition] = {}
    for where, how in known.items():
        floating = any(pa.types.is_floating(session.columns[name]) for name in how.names)
        if not floating and all(name.lower() in by_name for name in how.names):
            parts = {part: compiled(part) for part in parts_of(where)}
            atoms = {part: way for part, way in parts.items() if way is not None}
            conditions[where] = tuple(
                Atom(atom, way, tuple(by_name[name.lower()] for name in way.names))
                for atom, way in (atoms if len(atoms) == len(parts) else {where: how}).items()
            )
    wider = {
        one: frozenset(other for other, b in known.items() if set(b.names) <= set(a.names) and implies(a, b))
        for one, a in known.items()
    }
    decided_by = {
        where: frozenset(key for atom in atoms for key in atom.keys) for where, atoms in conditions.items()
    }
    return conditions, Filters(decided_by, wider)


def _compiled_filter(where: Expression, facts: Facts, session: Session) -> Evaluator | None:
    """A condition of columns that raises for no record; None where it is no such, or is not known."""
    how = _evaluator(where, facts, session)
    return how if how is not None and how.tells else None


def _evaluator(expression: Expression, facts: Facts, session: Session) -> Evaluator | None:
    if not session.usual:
        return None
    # Conditions that the algebra puts together are not among the facts.
    kind = facts[expression].type if expression in facts else pa.bool_()
    return compile_expression(expression, session.columns, kind, session.time_zone)
