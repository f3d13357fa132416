"""Partials meet: all of a lot in one task, which is told where they lie; where they are few, in the driver.

What lies in files that all can read needs no shuffle: the driver knows the places. Where there is no such folder,
Spark moves the bytes (`Work.shuffled`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headrace.errors import RunError
from headrace.kernel.answer import AnswerError
from headrace.kernel.high import Lot, is_for
from headrace.kernel.shelf import Kept
from headrace.plan.plan import Plan
from headrace.runtime.results import collected
from headrace.runtime.worker import PIECES, Batches, Work, on_tasks, shared_out

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FEW_S = 0.04
"""What takes one core no longer is done by the driver before a job would have begun."""
_MEETING_S = 2e-7
"""What one core takes to read a row that has travelled, and to combine it with others of its group."""


class Line(NamedTuple):
    """A row of `PIECES` about something that lies in a file, or about what a task measured."""

    bucket: int | None
    node: int | None
    answer: int | None
    rows: int | None
    place: str | None
    start: int | None
    size: int | None
    crc: int | None
    measures: str | None

    @property
    def kept(self) -> Kept:
        """Where it lies."""
        return Kept(None, self.place, self.start or 0, self.size or 0, self.crc)

    @property
    def partial(self) -> tuple[int, Kept]:
        """A partial, with its node."""
        assert self.node is not None, "an answer is no partial"
        return self.node, self.kept


def lines_of(pieces: DataFrame) -> list[Line]:
    """The lines of a job; raises `RunError` with what went wrong."""
    return [Line(*row) for row in collected(pieces.select(*Line._fields))]


def meet(work: Work, spark: SparkSession, lines: Iterable[Line], last: bool = False) -> list[Line]:
    """All partials that are for this time that rows come to what is made of them; other lines stay as they are."""
    lots: dict[Lot, list[Line]] = {home: [] for home in work.homes(last)}
    others = []
    for line in lines:
        if line.node is not None and line.bucket is not None and is_for(work.plan, line.node, last):
            lots.setdefault(Lot.of(work.plan, line.node, line.bucket), []).append(line)
        else:
            others.append(line)
    if not lots:
        return others
    seconds = {lot: _seconds(work.plan, partials) for lot, partials in lots.items()}
    tasks = shared_out(seconds, seconds.__getitem__, work.tasks)

    def high(number: int) -> Batches:
        return work.high({lot: [line.partial for line in lots[lot]] for lot in tasks[number]}, last)

    if sum(seconds.values()) > _FEW_S:
        return others + lines_of(on_tasks(spark, len(tasks), high, PIECES))
    try:
        made = [batch for number in range(len(tasks)) for batch in high(number)]
    except AnswerError as error:
        raise RunError(str(error)) from error
    except (pa.ArrowException, OSError) as error:
        raise RunError(f"{type(error).__name__}: {error}") from error
    return others + [Line(*row.values()) for batch in made for row in batch.select(Line._fields).to_pylist()]


def _seconds(plan: Plan, partials: Sequence[Line]) -> float:
    """What one core takes, as the planner has it, to make all that comes of partials."""
    return sum((line.rows or 0) * _seconds_for_each(plan, line.node or 0) for line in partials)


def _seconds_for_each(plan: Plan, node: int) -> float:
    """What one core takes for a row of a node: to let it meet others, and for all that is made of it."""
    below = sum(plan.expected[other].seconds for other in plan.below(node) if other != node)
    return _MEETING_S + below / max(1.0, plan.rows[node])
