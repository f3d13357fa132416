"""Slices: the seeds' examples, and that they are sufficient and minimal for any windows."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.plan.slices import Pair, Slices, Windows
from headrace.query import Expression, Window

TIME = Expression.parse("ts")


def window_of(range_us: int, slide_us: int, offset_us: int = 0) -> Window:
    return Window(TIME, range_us, slide_us, offset_us)


def lengths(slices: Slices, start_us: int, end_us: int) -> list[int]:
    """The lengths of the slices between two edges."""
    edges = [*slices.edges(start_us, end_us).tolist(), end_us]
    return [after - before for before, after in itertools.pairwise(edges)]


def together(windows: list[Window]) -> Slices:
    def both(one: Slices, other: Slices) -> Slices:
        found = one.together(other)
        assert found is not None
        return found

    return functools.reduce(both, map(Slices.of, windows))


def test_the_seeds_window_as_panes_and_as_a_pair() -> None:
    """W[18, 15] ends at multiples of its slide, in the seeds; Spark's windows begin there."""
    window = window_of(18, 15, offset_us=-18 % 15)
    assert lengths(Slices.of(window, paned=True), 0, 15) == [3, 3, 3, 3, 3]
    assert lengths(Slices.of(window), 0, 15) == [12, 3]
    assert lengths(Slices.of(window_of(18, 15)), 0, 15) == [3, 12]
    assert Slices.of(window_of(10, 4)) == Slices.every(TIME, 2)


def test_the_seeds_windows_together() -> None:
    """U(12, 3) and V(6, 3), stretched to their common period of 45."""
    u = Slices(TIME, (Pair(15, 12, 3),))
    v = Slices(TIME, (Pair(9, 6, 3),))
    assert lengths(u, 0, 45) == [12, 3] * 3
    assert lengths(v, 0, 45) == [6, 3] * 5
    both = u.together(v)
    assert both is not None
    assert lengths(both, 0, 45) == [6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3]
    assert both.length_us == 45 / 12


WINDOWS = st.builds(
    lambda length, slide, offset: window_of(length, slide, offset % slide),
    st.integers(1, 60),
    st.integers(1, 30),
    st.integers(0, 29),
)
SPAN = range(-90, 90)


@given(st.lists(WINDOWS, min_size=1, max_size=5))
def test_slices_are_sufficient_and_minimal(windows: list[Window]) -> None:
    """There is an edge where a window begins or ends, and nowhere else."""
    slices = together(windows)
    expected = {
        time
        for time in SPAN
        if any(
            (time - window.offset_us) % window.slide_us == 0
            or (time - window.offset_us - window.range_us) % window.slide_us == 0
            for window in windows
        )
    }
    assert slices.edges(SPAN.start, SPAN.stop).tolist() == sorted(expected)


@given(st.lists(WINDOWS, min_size=1, max_size=4), st.lists(st.integers(-10_000, 10_000), max_size=50))
def test_numbers(windows: list[Window], times: list[int]) -> None:
    slices = together(windows)
    found = slices.start_of(slices.number_of(np.array(times, dtype=np.int64)))
    assert found.tolist() == [slices.before(time) for time in times]
    for time in times:
        edges = slices.edges(time - 60, time + 61).tolist()
        assert slices.before(time) == max(edge for edge in edges if edge <= time)
        assert slices.after(time) == min(edge for edge in edges if edge >= time)
        assert slices.start_of(np.array([slices.first_from(time)]))[0] == slices.after(time)
        assert slices.start_of(np.array([slices.open_at(time)]))[0] == slices.before(time)


@given(st.lists(WINDOWS, min_size=1, max_size=4))
def test_only_gaps_are_left_out(windows: list[Window]) -> None:
    covered = together(windows).covers(np.array(SPAN))
    for time, inside in zip(SPAN, covered, strict=True):
        assert inside == any((time - w.offset_us) % w.slide_us < w.range_us for w in windows)


@given(WINDOWS, WINDOWS)
def test_what_makes_what(one: Window, other: Window) -> None:
    a, b = Slices.of(one), Slices.of(other)
    edges = [set(slices.edges(-4000, 4000).tolist()) for slices in (a, b)]
    covered = [set(np.flatnonzero(slices.covers(np.arange(-4000, 4000)))) for slices in (a, b)]
    # It may take several that recur to have the edges of one other: that is not looked for.
    assert edges[1] <= edges[0] or not a.has_edges_of(b)
    assert (edges[1] <= edges[0] and covered[1] <= covered[0]) or not a.makes(b)
    assert a.makes(a)
    assert together([one, other]).makes(a)


def test_a_pair_that_both_have_stays() -> None:
    """Each of two sets of slices has the pair, so that neither needs the other's: one of them is kept."""
    one, two, both = window_of(300, 180), window_of(120, 120), window_of(210, 120, 90)
    left, right = together([one, two]), together([one, both])
    common = left.together(right)
    assert common is not None
    for slices in (left, right, *map(Slices.of, (one, two, both))):
        assert common.makes(slices)


@given(WINDOWS, st.integers(-200, 200))
def test_windows_have_numbers(window: Window, time: int) -> None:
    windows = Windows(window)
    numbers = np.arange(-500, 500)
    starts = windows.start_of(numbers)
    assert windows.first_from(time) == numbers[starts >= time][0]
    assert windows.open_at(time) == numbers[starts + window.range_us > time][0]
    inside = numbers[(starts <= time) & (time < starts + window.range_us)]
    assert windows.numbers_at(np.array([time])).tolist() == inside.tolist()


@pytest.mark.parametrize(
    ("window", "epoch", "inside"),
    [
        (window_of(5, 10), Slices.every(TIME, 10), True),
        (window_of(5, 10), Slices.every(TIME, 20, 5), True),
        (window_of(5, 10), Slices.every(TIME, 20, 4), False),
        (window_of(5, 10), Slices.every(TIME, 15), False),
        (window_of(20, 10), Slices.every(TIME, 10), False),
    ],
)
def test_windows_that_cross_no_edge(window: Window, epoch: Slices, inside: bool) -> None:
    assert Windows(window).has_edges_of(epoch) == inside
