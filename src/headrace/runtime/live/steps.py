"""Windows that are due, in steps: each has all windows of all queries that end in a stretch of time.

All partials of a step can be in one task, so that its answers are made there at once, and go into files without
having to meet those of others. That takes several steps, or few rows: else cores would be idle.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from headrace.kernel.due import Due, Numbers
from headrace.plan.slices import FOREVER_US, Windows
from headrace.query import Window
from headrace.runtime.live.log import Entry
from headrace.runtime.live.version import Version

_STEP_ROWS = 1 << 17
"""About so many rows of roots make a step: their groups are in the processor's cache."""
_FEW_ROWS = 1 << 16
"""So many rows are not worth a second task."""
_LEAST_ROWS = 1 << 13
"""So few take less time than it takes Spark to have a worker do it."""
_MOST_AGAIN = 1.25
"""Rows of slices that windows of several steps need are counted again: so many times the rows, at most."""


class Step(NamedTuple):
    """Windows that are due, of queries that have some, and the partials that they need, each with its root."""

    due: Due
    entries: tuple[tuple[int, Entry], ...]


def step_of(version: Version, due: Mapping[str, Numbers], entries: Iterable[Entry]) -> Step:
    """All windows that are due in one step, with those of the entries that they need."""
    wanted = Due.of(version.plan, {version.plan.numbers[query]: numbers for query, numbers in due.items()})
    needed = []
    for entry in entries:
        root = version.root_places.get(entry.node, -1)
        first, end = wanted.nodes.get(root, (0, 0))
        if first <= entry.slice < end:
            needed.append((root, entry))
    return Step(wanted, tuple(needed))


def cut(version: Version, due: Mapping[str, Numbers], whole: Step, tasks: int) -> list[list[Step]] | None:
    """The steps that each task takes, in the order of time; None where partials had better be dealt by keys."""
    entries = [entry for _, entry in whole.entries]
    rows = _rows([whole])
    if rows <= _FEW_ROWS:
        return [[whole]] if entries else []
    count = max(tasks, rows // _STEP_ROWS)
    while count >= tasks:
        cuts = _cuts(version, due, whole, count)
        steps = [step_of(version, part, entries) for part in _between(version.windows, due, cuts)]
        if len(steps) >= tasks and _rows(steps) <= _MOST_AGAIN * rows:
            edges = [number * len(steps) // tasks for number in range(tasks + 1)]
            return [steps[first:end] for first, end in itertools.pairwise(edges)]
        count //= 2
    return None


def worth_a_task(steps: Iterable[Sequence[Step]]) -> bool:
    """Whether there are so many rows that workers had better count them."""
    return sum(map(_rows, steps)) > _LEAST_ROWS


def _cuts(version: Version, due: Mapping[str, Numbers], whole: Step, count: int) -> list[int]:
    """When steps end, at most so many of about equally many rows: where slices begin, better where windows end."""
    rows: dict[int, int] = {}
    for _, entry in whole.entries:
        start_us = version.start_of(entry.node, entry.slice)
        rows[start_us] = rows.get(start_us, 0) + entry.rows
    starts = np.array(sorted(rows))
    before = np.cumsum([0, *(rows[us] for us in starts.tolist())])
    aligned = np.ones(len(starts), dtype=bool)
    for window in {version.windows[query] for query in due}:
        aligned &= (starts - Windows(window).end_of(0)) % window.slide_us == 0
    places = np.flatnonzero(aligned if aligned[1:].any() else np.ones_like(aligned))
    wanted = before[-1] * np.arange(1, count) / count
    chosen = places[np.minimum(np.searchsorted(before[places], wanted), len(places) - 1)]
    return [*np.unique(starts[chosen[chosen > 0]]).tolist(), FOREVER_US]


def _rows(steps: Sequence[Step]) -> int:
    return sum(entry.rows for step in steps for _, entry in step.entries)


def _between(
    windows: Mapping[str, Window], due: Mapping[str, Numbers], cuts: Sequence[int]
) -> list[dict[str, Numbers]]:
    """The windows of each query that end until the first cut, then until the second, and so on."""
    steps: list[dict[str, Numbers]] = [{} for _ in cuts]
    for query, (first, end) in due.items():
        until = np.clip([Windows(windows[query]).open_at(cut) for cut in cuts], first, end).tolist()
        for step, low, high in zip(steps, [first, *until], until, strict=False):
            if low < high:
                step[query] = low, high
    return steps
