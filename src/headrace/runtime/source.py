"""At the source: what Parquet files tell before they are read, and which task reads what."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import pyarrow as pa

from headrace.algebra.states import MOST_RECORDS, Fact
from headrace.kernel.low import Stretch
from headrace.plan.build import Facts
from headrace.plan.plan import Plan
from headrace.query import Expression
from headrace.sources import Stream
from headrace.sources.parquet import Footer, Task, can_read, extent_of, read_footers
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
class Reading:
    """What workers read themselves: these columns, and for each task its row groups and its stretch of `time`."""

    names: tuple[str, ...]
    tasks: tuple[Task, ...]
    time: Expression | None

    def stretch(self, task: Task) -> Stretch | None:
        """The time whose records a task has all of."""
        return Stretch(self.time, task.start_us, task.end_us) if self.time is not None else None


def plan_reading(
    source: Source, plan: Plan, inputs: tuple[Expression, ...], facts: Facts, tasks: int
) -> Reading | None:
    """Who reads what; None where Spark has to read, since the plan needs more than the columns of the files."""
    names = [name for e in inputs if (name := source.name_of(e)) is not None]
    if not names or len(names) < len(inputs):
        return None
    if not can_read(source.footers, {n: facts[e].type for n, e in zip(names, inputs, strict=True)}):
        return None
    groups = [group for footer in source.footers for group in footer.groups]
    epochs = [epoch for root in plan.roots if (epoch := plan.deal_of(root).epoch) is not None]
    times = Counter(epoch.time for epoch in epochs)
    if times:
        (time, _), *_ = times.most_common(1)
        grids = [Grid(epoch.size_us, epoch.offset_us) for epoch in epochs if epoch.time == time]
        by_time = deal_by_time(groups, tasks, names[inputs.index(time)], grids)
        if by_time is not None:
            return Reading(tuple(names), tuple(by_time), time)
    return Reading(tuple(names), tuple(deal_row_groups(groups, tasks)), None)
