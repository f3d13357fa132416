"""At the source: what Parquet files tell before they are read, and which task reads what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headrace.algebra.states import MOST_RECORDS, Fact
from headrace.kernel.evaluate import Evaluator, compile_expression, never_raises
from headrace.kernel.low import Stretch
from headrace.plan.build import Facts
from headrace.plan.plan import Plan
from headrace.query import Expression
from headrace.sources import Stream
from headrace.sources.parquet import Footer, Task, can_read, extent_of, read_footers, read_task
from headrace.sources.tasks import Grid, deal_by_time, deal_row_groups


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
        names = {name.lower(): name for name in stream.column_names}
        used = [names[e.column.lower()] for e in expressions if e.column and e.column.lower() in names]
        footers = read_footers(stream.data, sorted({*used, names[stream.time.lower()]}))
        return Source(names, tuple(footers))

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

    def span_us(self, time: str) -> int | None:
        """How long the records go on."""
        extent = extent_of(self.footers, self.columns[time.lower()])
        return extent.most - extent.least if extent is not None else None


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
    """What workers read themselves: these columns, what they make of them (the plan's inputs, in their order), and
    for each task its row groups and its stretch of `time`."""

    names: tuple[str, ...]
    inputs: tuple[tuple[str, Evaluator | str], ...]
    """What each is, for errors, and the way to it: compiled, or the name of a column."""
    tasks: tuple[Task, ...]
    time: Expression | None

    def stretch(self, task: Task) -> Stretch | None:
        """The time whose records a task has all of."""
        return Stretch(self.time, task.start_us, task.end_us) if self.time is not None else None

    def read(self, task: Task) -> Iterator[tuple[pa.RecordBatch, int | None]]:
        """The inputs of a task's records, batch by batch, each with the time that no later batch goes below."""
        for batch, until_us in read_task(task, self.names):
            columns = dict(zip(self.names, batch.columns, strict=True))
            arrays = [_input(what, made, columns) for what, made in self.inputs]
            yield pa.record_batch(arrays, [f"c{index}" for index in range(len(arrays))]), until_us


def _input(what: str, made: Evaluator | str, columns: Mapping[str, pa.Array]) -> pa.Array:
    if isinstance(made, str):
        return columns[made]
    try:
        return made(columns)
    except ArithmeticError as error:
        raise InputError(f"{what}: {error}") from error


def plan_reading(
    source: Source, plan: Plan, inputs: tuple[Expression, ...], facts: Facts, session: Session, tasks: int
) -> Reading | None:
    """Who reads what; None where Spark has to read, since the kernel does not know some expression or type."""
    made: list[tuple[str, Evaluator | str]] = []
    users: dict[Expression, str] = {}
    for answer in plan.answers:
        for expression in answer.inputs:
            users.setdefault(expression, answer.query.name)
    for expression in inputs:
        name = source.name_of(expression)
        how = name if name is not None else _evaluator(expression, facts, session)
        if how is None:
            return None
        user = f"query '{users[expression]}' failed: " if expression in users else ""
        made.append((f"{user}{expression.sql}", how))
    used = [[how] if isinstance(how, str) else how.names for _, how in made]
    names = tuple(dict.fromkeys(name for part in used for name in part))
    if not names or any(name not in session.columns for name in names):
        return None
    if not can_read(source.footers, {name: session.columns[name] for name in names}):
        return None
    groups = [group for footer in source.footers for group in footer.groups]
    epochs = [epoch for root in plan.roots if (epoch := plan.deal_of(root).epoch) is not None]
    times = Counter(epoch.time for epoch in epochs if source.name_of(epoch.time) is not None)
    if times:
        (time, _), *_ = times.most_common(1)
        grids = [Grid(epoch.size_us, epoch.offset_us) for epoch in epochs if epoch.time == time]
        by_time = deal_by_time(groups, tasks, source.name_of(time) or "", grids)
        if by_time is not None:
            return Reading(names, tuple(made), tuple(by_time), time)
    return Reading(names, tuple(made), tuple(deal_row_groups(groups, tasks)), None)


def _evaluator(expression: Expression, facts: Facts, session: Session) -> Evaluator | None:
    if not session.usual:
        return None
    # Conditions that the algebra puts together are not among the facts.
    kind = facts[expression].type if expression in facts else pa.bool_()
    return compile_expression(expression, session.columns, kind, session.time_zone)
