"""The stream's time: what is late, what is due, and what nobody can need any more.

The watermark is the latest time of any record so far, less the lateness. A window is given in the micro-batch in
which the watermark reaches its end. So a record counts for each of its windows that has not been given before its
micro-batch, and for none that has.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

from headrace.algebra.ops import Words
from headrace.kernel.due import Numbers
from headrace.plan.plan import Plan
from headrace.plan.slices import FOREVER_US, Windows
from headrace.query import Window
from headrace.runtime.live.log import Standing

"""Later than any time."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def moment(time_us: int) -> datetime:
    """A time as Python and people have it."""
    return _EPOCH + timedelta(microseconds=time_us)


@dataclass(frozen=True, slots=True)
class Clock:
    """The rules of a stream, in microseconds.

    A record whose time is more than `ahead_us` after both the wall clock and the latest record is set aside: no
    single record moves the watermark further than that.
    """

    lateness_us: int
    ahead_us: int

    def latest(self, seen_us: int | None, now_us: int) -> int:
        """The latest time that a record may have."""
        return max(now_us, seen_us if seen_us is not None else now_us) + self.ahead_us

    def watermark(self, watermark_us: int, seen_us: int | None) -> int:
        """The watermark after records until some time; it never goes back."""
        return watermark_us if seen_us is None else max(watermark_us, seen_us - self.lateness_us)


def given_windows(window: Window, standing: Standing) -> Numbers:
    """The windows that a query has given; there are none where the first is not before the end."""
    windows = Windows(window)
    return windows.first_from(standing.first_us), windows.open_at(standing.until_us)


def first_open(window: Window, standing: Standing) -> int:
    """The number of the first window that a query has not given yet."""
    return max(given_windows(window, standing))


def due(window: Window, standing: Standing, watermark_us: int) -> Numbers | None:
    """The windows that a query is to give now; None where there are none."""
    first, end = first_open(window, standing), Windows(window).open_at(watermark_us)
    return (first, end) if first < end else None


def still_open(window: Window, standing: Standing, latest_us: int) -> Numbers | None:
    """The windows that a query has not given yet and that have begun by the latest record's time."""
    first, end = first_open(window, standing), Windows(window).first_from(latest_us + 1)
    return (first, end) if first < end else None


def open_from(window: Window, standing: Standing) -> int:
    """When the first window begins that a query has not given yet."""
    return Windows(window).start_of(first_open(window, standing))


def roots_open_from(plan: Plan, standings: Mapping[str, Standing]) -> dict[int, int]:
    """When the first slice of each root begins that some query still needs."""
    found = dict.fromkeys(plan.roots, FOREVER_US)
    for answer in plan.answers:
        assert answer.query.window is not None, "see `check_queries`"
        root = plan.root_of(answer.node)
        begin = open_from(answer.query.window, standings[answer.query.name])
        found[root] = min(found[root], begin)
    return found


def latest_given(windows: Iterable[tuple[Window, Standing]]) -> int:
    """Records from this time on are late for nobody."""
    return max((open_from(window, standing) + _overlap(window) for window, standing in windows), default=0)


def _overlap(window: Window) -> int:
    """How long the window before the first open one goes on after that has begun."""
    return max(0, window.range_us - window.slide_us)


def given_before(window: Window, standing: Standing, times: Words) -> Words:
    """How many windows of each record have been given already."""
    windows = Windows(window)
    first, end = given_windows(window, standing)
    ended = np.minimum(windows.first_from(times + 1), end)
    count: Words = np.clip(ended - np.maximum(windows.open_at(times), first), 0, None)
    return count


def given_before_sql(window: Window, standing: Standing, moment: str) -> str:
    """SQL: whether any window of a record has been given already, by its time in microseconds."""
    offset_us, (first, end) = Windows(window).offset_us, given_windows(window, standing)
    earliest = f"floor(({moment} - {window.range_us} - {offset_us}) / {window.slide_us}D) + 1"
    latest = f"floor(({moment} - {offset_us}) / {window.slide_us}D)"
    return f"least({latest}, {end - 1}) >= greatest({earliest}, {first})"
