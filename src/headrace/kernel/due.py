"""What is wanted of a plan for now: in a stream, the windows that have just ended, and no others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from headrace.kernel.piece import slice_numbers
from headrace.kernel.rows import Rows
from headrace.plan.plan import Plan
from headrace.plan.slices import Times, Windows
from headrace.query import Window

Numbers = tuple[int, int]
"""From one to before another."""


@dataclass(frozen=True, slots=True)
class Due:
    """The windows that are wanted of each answer, and the slices that they need of each node.

    Answers and nodes that are not here need not be made.
    """

    answers: Mapping[int, Numbers]
    nodes: Mapping[int, Numbers]

    @staticmethod
    def of(plan: Plan, answers: Mapping[int, Numbers]) -> Due:
        """The windows of some answers, and what they need of nodes."""
        stretches: dict[int, Numbers] = {}
        for number, wanted in answers.items():
            answer = plan.answers[number]
            assert answer.query.window is not None, "an answer without a window is never due"
            own = stretch_of(answer.query.window, wanted)
            for node in (answer.node, *plan.above(answer.node)):
                first, end = stretches.get(node, own)
                stretches[node] = min(first, own[0]), max(end, own[1])
        nodes = {node: _numbers(plan.nodes[node].slices, stretch) for node, stretch in stretches.items()}
        return Due(answers, nodes)


def stretch_of(window: Window, numbers: Numbers) -> Numbers:
    """The time that windows are about: from when to before when."""
    first, end = numbers
    windows = Windows(window)
    return windows.start_of(first), windows.end_of(end - 1)


def only(rows: Rows, numbers: Numbers) -> Rows:
    """The rows of some slices, or windows."""
    if len(rows) == 0:
        return rows
    own = slice_numbers(rows)
    inside = (own >= numbers[0]) & (own < numbers[1])
    return rows.where(inside)


def _numbers(slices: Times | None, stretch: Numbers) -> Numbers:
    """The slices that begin inside a stretch of time; the windows that are inside it."""
    assert slices is not None, "windows are made of slices"
    first, end = stretch
    return slices.first_from(first), slices.open_at(end) if isinstance(slices, Windows) else slices.first_from(end)
