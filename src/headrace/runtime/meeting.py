"""Partials meet: all of a bucket in one task, which is told where they lie; where they are few, in the driver.

What lies in files that all can read needs no shuffle: the driver knows the places. Where there is no such folder,
Spark moves the bytes (`Work.shuffled`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headrace.errors import RunError
from headrace.kernel.answer import AnswerError
from headrace.kernel.high import is_for
from headrace.runtime.results import collected
from headrace.runtime.worker import PIECES, SCHEMA, Batches, Work, on_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FEW = 1 << 20
"""Rows, each counted for every node that is made of it, that one core has done before a job would have begun."""


class Line(NamedTuple):
    """A row of `PIECES` about something that lies in a file, or about what a task measured."""

    task: int
    bucket: int | None
    node: int | None
    slice: int | None
    answer: int | None
    rows: int | None
    place: str | None
    start: int | None
    size: int | None
    crc: int | None
    measures: str | None


def lines_of(pieces: DataFrame) -> list[Line]:
    """The lines of a job; raises `RunError` with what went wrong."""
    return [Line(*row) for row in collected(pieces.select(*Line._fields))]


def meet(work: Work, spark: SparkSession, lines: Iterable[Line], last: bool = False) -> list[Line]:
    """All partials that are for this time that rows come to what is made of them; other lines stay as they are."""
    own: dict[int, list[Line]] = {task: [] for task in work.always(last)}
    others = []
    for line in lines:
        if line.node is not None and is_for(work.plan, line.node, last):
            own.setdefault(line.task, []).append(line)
        else:
            others.append(line)
    waiting = list(own.items())

    def high(number: int) -> Batches:
        task, partials = waiting[number]
        batch = pa.RecordBatch.from_pylist([line._asdict() for line in partials], schema=SCHEMA)
        return work.high(iter([batch]), task, last)

    if not waiting:
        return others
    if sum(_weight(work, partials) for _, partials in waiting) > _FEW:
        return others + lines_of(on_tasks(spark, len(waiting), high, PIECES))
    try:
        made = [batch for number in range(len(waiting)) for batch in high(number)]
    except AnswerError as error:
        raise RunError(str(error)) from error
    except (pa.ArrowException, OSError) as error:
        raise RunError(f"{type(error).__name__}: {error}") from error
    return others + [Line(*row.values()) for batch in made for row in batch.select(Line._fields).to_pylist()]


def _weight(work: Work, partials: Sequence[Line]) -> int:
    return sum((line.rows or 0) * len(work.plan.below(line.node or 0)) for line in partials)
