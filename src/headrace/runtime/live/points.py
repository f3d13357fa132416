"""Named points between two writes, at which crash tests end the process."""

from __future__ import annotations

import os
import signal

SETTING = "HEADRACE_CRASH_AT"
"""`point` or `point:count`: the process is killed when it passes the point for that time, the first by default."""

POINTS = (
    "begin",
    "partials written",
    "outbox filled",
    "committed",
    "delivered",
    "outbox cleared",
    "version written",
)

_passed: dict[str, int] = {}


def passing(point: str) -> None:
    """Say that a point is passed; with the setting, the process may end here, as if its machine had."""
    assert point in POINTS, point
    wanted = os.environ.get(SETTING)
    if not wanted:
        return
    name, _, count = wanted.partition(":")
    _passed[point] = _passed.get(point, 0) + 1
    if point == name and _passed[point] == int(count or 1):
        os.kill(os.getpid(), signal.SIGKILL)
