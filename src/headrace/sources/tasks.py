"""Who reads what: row groups to tasks, by time where files are in its order, else as they come."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from headrace.plan.slices import Slices
from headrace.sources.parquet import RowGroup, Task

_READ_AGAIN = 0.25
"""Row groups on an edge are read by two tasks; all such may be this part of the records."""

_FEWEST = 1 << 13
"""A task with fewer records than these is not worth reading a row group once more."""

_POINTS = 1000
"""Times at which records are counted, to find those that cut them evenly."""


@dataclass(frozen=True, slots=True)
class Grid:
    """Edges of slices, and what it costs to cut a slice, whose rows then travel.

    That is in records that one task has more than another.
    """

    slices: Slices
    cut: float

    def has(self, time_us: int) -> bool:
        """Whether an edge is at a time."""
        return self.slices.before(time_us) == time_us

    def nearest(self, time_us: int) -> int:
        """The edge nearest to a time."""
        return min(self.slices.after(time_us), self.slices.before(time_us), key=lambda edge: abs(edge - time_us))


def deal_row_groups(groups: Sequence[RowGroup], tasks: int) -> list[Task]:
    """Row groups for so many tasks, in order, about the same number of rows each; a few large ones in parts."""
    total = sum(group.rows for group in groups)
    if len(groups) < (parts := min(tasks, total // _FEWEST)):
        return [_part(groups, number * total // parts, (number + 1) * total // parts) for number in range(parts)]
    tasks = max(1, min(tasks, len(groups)))
    dealt: list[list[RowGroup]] = [[] for _ in range(tasks)]
    seen = 0
    for group in groups:
        # The task in whose share of all rows the middle of this row group lies.
        task = min(tasks - 1, (2 * seen + group.rows) * tasks // max(1, 2 * total))
        dealt[task].append(group)
        seen += group.rows
    return [Task(tuple(task)) for task in dealt]


def _part(groups: Sequence[RowGroup], start: int, end: int) -> Task:
    """The task for the records from one place to another, counted through all row groups."""
    begins = accumulate((group.rows for group in groups), initial=0)
    own = [(begin, g) for begin, g in zip(begins, groups, strict=False) if begin < end and begin + g.rows > start]
    before, _ = own[0]
    return Task(tuple(group for _, group in own), places=(start - before, end - before))


def deal_by_time(groups: Sequence[RowGroup], tasks: int, time: str, grids: Sequence[Grid]) -> list[Task] | None:
    """A stretch of time for each task, with edges on those of slices where that keeps the shares even enough.

    None where that would not pay: a row group does not tell its times, or too many of them would be read twice.
    """
    filled = [group for group in groups if group.rows]
    if not filled or any(time not in group.extents or group.extents[time].nulls for group in filled):
        return None
    ordered = sorted(filled, key=lambda group: group.extents[time].least)
    edges = _edges(ordered, tasks, time, grids)
    starts, ends = [None, *edges], [*edges, None]
    made = [
        Task(tuple(g for g in ordered if _overlaps(g, time, start, end)), time, start, end)
        for start, end in zip(starts, ends, strict=True)
    ]
    total = sum(group.rows for group in ordered)
    read = sum(group.rows for task in made for group in task.groups)
    few = len(ordered) < 2 * tasks
    if read > total * (1.0 + (1.0 if few else _READ_AGAIN)):
        return None
    return [task for task in made if task.groups]


def _overlaps(group: RowGroup, time: str, start: int | None, end: int | None) -> bool:
    extent = group.extents[time]
    return (start is None or extent.most >= start) and (end is None or extent.least < end)


def _edges(groups: Sequence[RowGroup], tasks: int, time: str, grids: Sequence[Grid]) -> list[int]:
    """Times that cut the records into even shares, as far as that costs less than the rows that have to travel."""
    clock = _Clock(groups, time)
    found: list[int] = []
    for number in range(1, tasks):
        records = number * clock.total / tasks
        even = clock.when(records)
        edge = min(
            [even, *(grid.nearest(even) for grid in grids)],
            key=lambda edge: (
                abs(clock.before(edge) - records) + sum(grid.cut for grid in grids if not grid.has(edge))
            ),
        )
        if not found or edge > found[-1]:
            found.append(edge)
    return found


class _Clock:
    """How records lie in time, as if those of a row group came evenly."""

    def __init__(self, groups: Sequence[RowGroup], time: str) -> None:
        self._least = np.array([group.extents[time].least for group in groups], dtype=np.float64)
        self._most = np.array([group.extents[time].most + 1 for group in groups], dtype=np.float64)
        self._rows = np.array([group.rows for group in groups], dtype=np.float64)
        self.total = float(self._rows.sum())

    def before(self, edge: float) -> float:
        """How many records lie before a time."""
        part = (edge - self._least) / (self._most - self._least)
        return float((self._rows * np.clip(part, 0.0, 1.0)).sum())

    def when(self, records: float) -> int:
        """The time before which so many records lie."""
        points = np.unique(np.concatenate([self._least, self._most]))
        if len(points) > _POINTS:
            points = np.unique(np.quantile(points, np.linspace(0.0, 1.0, _POINTS)))
        return int(np.interp(records, [self.before(point) for point in points], points))
