"""Windows that are due, and records that are late, against the rule written out."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernel.due import stretch_of
from headrace.query import Expression, Window
from headrace.runtime.live.clock import Clock, due, given_before, latest_given, open_from
from headrace.runtime.live.log import Standing

TIME = Expression.parse("t")
NUMBERS = range(-120, 120)

windows = st.builds(
    lambda longest, slide, offset: Window(TIME, longest, slide, offset % slide),
    st.integers(1, 20),
    st.integers(1, 12),
    st.integers(0, 11),
)
standings = st.builds(Standing, st.integers(-40, 40), st.integers(-40, 60), st.just(1))


def edges(window: Window, number: int) -> tuple[int, int]:
    return stretch_of(window, (number, number + 1))


def is_given(window: Window, standing: Standing, number: int) -> bool:
    start, end = edges(window, number)
    return start >= standing.first_us and end <= standing.until_us


@given(windows, standings, st.integers(-40, 80))
def test_due_are_the_windows_that_end_between_two_watermarks(
    window: Window, standing: Standing, watermark: int
) -> None:
    found = due(window, standing, watermark)
    expected = [
        number
        for number in NUMBERS
        if edges(window, number)[0] >= standing.first_us
        and standing.until_us < edges(window, number)[1] <= watermark
    ]
    if expected:
        assert found == (expected[0], expected[-1] + 1)
    else:
        assert found is None


@given(windows, standings, st.integers(-50, 50))
def test_late_windows_of_a_record(window: Window, standing: Standing, time: int) -> None:
    inside = [n for n in NUMBERS if edges(window, n)[0] <= time < edges(window, n)[1]]
    expected = sum(is_given(window, standing, number) for number in inside)
    assert given_before(window, standing, np.array([time]))[0] == expected
    if time >= latest_given([(window, standing)]):
        assert expected == 0


@given(windows, standings)
def test_nothing_before_the_first_open_window_is_needed(window: Window, standing: Standing) -> None:
    first = min(
        edges(window, n)[0]
        for n in NUMBERS
        if edges(window, n)[0] >= standing.first_us and not is_given(window, standing, n)
    )
    assert open_from(window, standing) == first


def test_the_watermark_never_goes_back() -> None:
    clock = Clock(lateness_us=10, ahead_us=100)
    assert clock.watermark(0, 50) == 40
    assert clock.watermark(40, 45) == 40
    assert clock.watermark(40, None) == 40


def test_no_record_moves_the_watermark_further_than_the_bound() -> None:
    clock = Clock(lateness_us=0, ahead_us=100)
    assert clock.latest(None, 1000) == 1100
    assert clock.latest(5000, 1000) == 5100
    assert clock.latest(500, 1000) == 1100
