"""Partials meet: all of a lot in one task, which is told where they lie; where they are few, in the driver.

What lies in files that all can read needs no shuffle: the driver knows the places. Where there is no such folder,
Spark moves the bytes (`Work.shuffled`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headrace.errors import RunError
from headrace.kernel.answer import AnswerError
from headrace.kernel.high import Lot
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


def meet(work: Work, spark: SparkSession, lines: Iterable[Line]) -> tuple[list[Line], list[Line]]:
    """All partials to what is made of them: the lines of answers and measures, and those of all partials.

    Rows that are dealt in two ways meet twice. But whom no others can bring rows any more meets at once.
    """
    lots: dict[Lot, list[Line]] = {home: [] for last in (False, True) for home in work.homes(last)}
    done: list[Line] = []
    partials: list[Line] = []
    while True:
        for line in lines:
            (done if line.node is None else partials).append(line)
            if line.node is not None and line.bucket is not None:
                lots.setdefault(Lot.of(work.plan, line.node, line.bucket), []).append(line)
        if not lots:
            return done, partials
        waiting = brought_rows(work.plan, lots)
        ready = [lot for lot in lots if lot.dealt not in waiting]
        assert ready, "rows come from above, so that what is uppermost waits for nobody"
        lines = _met(work, spark, {lot: lots.pop(lot) for lot in ready})


def brought_rows(plan: Plan, lots: Mapping[Lot, Sequence[Line]]) -> set[int]:
    """The nodes that lots are named by to which others of them may bring rows: what is split on the way down."""
    brought: set[int] = set()
    for dealt, node in {(lot.dealt, line.node) for lot, lines in lots.items() for line in lines}:
        assert node is not None, "lots are of partials"
        below = [other for other in plan.below(node) if plan.dealt_at(other) == plan.dealt_at(node)]
        brought |= {split for other in below if (split := plan.split_at(other)) is not None and split != dealt}
    return brought


def _met(work: Work, spark: SparkSession, lots: Mapping[Lot, Sequence[Line]]) -> list[Line]:
    """What is made of some lots."""
    seconds = {lot: _seconds(work.plan, partials) for lot, partials in lots.items()}
    tasks = shared_out(seconds, seconds.__getitem__, work.tasks)

    def high(number: int) -> Batches:
        return work.high({lot: [line.partial for line in lots[lot]] for lot in tasks[number]})

    if sum(seconds.values()) > _FEW_S:
        return lines_of(on_tasks(spark, len(tasks), high, PIECES))
    try:
        made = [batch for number in range(len(tasks)) for batch in high(number)]
    except AnswerError as error:
        raise RunError(str(error)) from error
    except (pa.ArrowException, OSError) as error:
        raise RunError(f"{type(error).__name__}: {error}") from error
    return [Line(*row.values()) for batch in made for row in batch.select(Line._fields).to_pylist()]


def _seconds(plan: Plan, partials: Sequence[Line]) -> float:
    """What one core takes, as the planner has it, to make all that comes of partials."""
    return sum((line.rows or 0) * _seconds_for_each(plan, line.node or 0) for line in partials)


def _seconds_for_each(plan: Plan, node: int) -> float:
    """What one core takes for a row of a node: to let it meet others, and for all that is made of it."""
    below = sum(plan.expected[other].seconds for other in plan.below(node) if other != node)
    return _MEETING_S + below / max(1.0, plan.rows[node])
