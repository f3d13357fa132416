"""Windows that are due in steps: each window is in one of them, with all the partials that it needs."""

from __future__ import annotations

from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st

from headrace.kernel.due import Numbers, stretch_of
from headrace.plan.build import Planner
from headrace.plan.guard import guarded
from headrace.plan.slices import Windows
from headrace.query import parse_query
from headrace.runtime.live.log import Entry
from headrace.runtime.live.steps import Step, cut, step_of
from headrace.runtime.live.version import Version
from tests.plan.test_build import FACTS, sizes_of

MINUTE = 60 * 10**6
WINDOWS = ("'5 minutes'", "'15 minutes'", "'1 hour'", "'15 minutes', '10 minutes'", "'40 minutes', '5 minutes'")
PLANNER = Planner(FACTS, sizes_of(10_000_000, src=100, dst=100, port=50), cores=2, end=False)


def version_of(windows: tuple[str, ...]) -> Version:
    texts = {
        f"q{n}": f"SELECT src, count(*) FROM t GROUP BY window(ts, {window}), src"
        for n, window in enumerate(windows)
    }
    queries = {name: parse_query(name, text, time="ts") for name, text in texts.items()}
    plan = PLANNER.plan([guarded(query, lambda _: False) for query in queries.values()])
    nothing = cast(Any, None)
    schemas = (nothing,) * len(plan.answers)
    unused = (nothing,) * 8
    return Version(1, plan, queries, *unused[:5], schemas, *unused[:2], {}, frozenset(), nothing)


def cut_evenly(version: Version, until: int, rows: int, tasks: int) -> tuple[Step, list[list[Step]] | None]:
    """Partials of `rows` rows for each slice from the beginning on; windows are due that end until some minute."""
    entries = []
    for name, root in version.root_places.items():
        slices = version.plan.nodes[root].slices
        assert slices is not None
        numbers = range(slices.first_from(0), slices.first_from(until * MINUTE))
        entries += [Entry(1, name, n, n % 3, rows, "", 0, 0, 0) for n in numbers]
    wanted = {
        query: (Windows(window).first_from(0), Windows(window).open_at(until * MINUTE))
        for query, window in version.windows.items()
    }
    due = {query: (first, end) for query, (first, end) in wanted.items() if first < end}
    whole = step_of(version, due, entries)
    return whole, cut(version, due, whole, tasks)


@given(
    st.lists(st.sampled_from(WINDOWS), min_size=1, max_size=4, unique=True).map(tuple),
    st.integers(1, 40).map(lambda number: 5 * number),
    st.sampled_from([10, 30_000, 200_000]),
    st.integers(1, 4),
)
def test_each_window_is_in_one_step_with_what_it_needs(
    windows: tuple[str, ...], until: int, rows: int, tasks: int
) -> None:
    version = version_of(windows)
    whole, lots = cut_evenly(version, until, rows, tasks)
    steps = [step for lot in lots for step in lot] if lots is not None else [whole]
    for number, (first, end) in whole.due.answers.items():
        parts: list[Numbers] = [step.due.answers[number] for step in steps if number in step.due.answers]
        assert [n for part in parts for n in range(*part)] == list(range(first, end))
    for step in steps:
        for number, numbers in step.due.answers.items():
            answer = version.plan.answers[number]
            root = version.plan.root_of(answer.node)
            start, end = stretch_of(version.windows[answer.query.name], numbers)
            there = {entry for _, entry in step.entries}
            for entry in (entry for other, entry in whole.entries if other == root):
                if start <= version.start_of(entry.node, entry.slice) < end:
                    assert entry in there
    if lots is not None and len(lots) > 1:
        assert len(lots) == tasks
        assert all(lots)


def test_many_windows_are_dealt_by_time() -> None:
    _, lots = cut_evenly(version_of(("'5 minutes'", "'15 minutes'")), 120, 100_000, 2)
    assert lots is not None
    assert [len(lot) for lot in lots] == [4, 4]


def test_one_window_of_many_rows_is_dealt_by_keys() -> None:
    _, lots = cut_evenly(version_of(("'5 minutes'",)), 5, 10_000_000, 2)
    assert lots is None


def test_few_rows_are_for_one_task() -> None:
    _, lots = cut_evenly(version_of(WINDOWS), 200, 10, 4)
    assert lots is not None
    assert [len(lot) for lot in lots] == [1]


def test_windows_that_overlap_much_are_not_counted_again_and_again() -> None:
    whole, lots = cut_evenly(version_of(("'40 minutes', '5 minutes'",)), 60, 200_000, 4)
    assert len(whole.entries) > 8
    assert lots is None
