"""The slice manager tells the edges of the windows that are there, and only these."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.plan.slice_manager import SliceManager
from headrace.plan.slices import Slices
from headrace.query import Window
from tests.plan.test_slices import WINDOWS, together, window_of


@given(st.lists(st.tuples(WINDOWS, st.booleans(), st.integers(1, 40)), min_size=1, max_size=12))
def test_edges_are_those_of_the_windows_that_are_there(steps: list[tuple[Window, bool, int]]) -> None:
    """Windows join, leave and join again; between, time goes on."""
    manager, there = SliceManager(0), list[Window]()
    for window, leaves, length in steps:
        if leaves and there:
            manager.remove(there.pop())
        else:
            manager.add(window)
            there.append(window)
        now, end = manager.now_us + 1, manager.now_us + 1 + length
        assert list(manager.until(end)) == (together(there).edges(now, end).tolist() if there else [])
    assert (manager.peek() is None) == (not there)


def test_edges_that_windows_share_are_kept_once() -> None:
    manager = SliceManager(0)
    one, other = window_of(10, 5), window_of(20, 5)
    manager.add(one)
    manager.add(other)
    assert len(manager) == 1
    manager.remove(one)
    assert manager.advance() == 5
    manager.remove(other)
    assert manager.advance() is None
    with pytest.raises(KeyError):
        manager.remove(other)


def test_the_seeds_composition() -> None:
    """W[18, 15] and W[12, 9] of the seeds end at multiples of their slides."""
    manager = SliceManager(0)
    for window in (window_of(18, 15, -18 % 15), window_of(12, 9, -12 % 9)):
        manager.add(window)
    edges = [0, *manager.until(46)]
    assert [b - a for a, b in itertools.pairwise(edges)] == [6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3]
    assert Slices.of(window_of(12, 9, -12 % 9)).edges(0, 9).tolist() == [0, 6]
