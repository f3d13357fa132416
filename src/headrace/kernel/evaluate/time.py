"""Functions of dates and times: parts, truncation and casts, in UTC or without a zone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.kernel.evaluate.nodes import UNZONED, ZONED, Node, Unknown, apply
from headrace.kernel.evaluate.numbers import plain_numbers, with_nulls
from headrace.kernel.evaluate.types import is_utc
from headrace.query.interval import UNIT_US

_SECOND_US, _DAY_US = UNIT_US["second"], UNIT_US["day"]

# The least and the most value; times of day need a time, the others take a date too.
_CLOCK_PARTS = {"hour": (0, 23), "minute": (0, 59), "second": (0, 59)}
_CALENDAR_PARTS = {
    "year": (-6_000_000, 6_000_000),
    "quarter": (1, 4),
    "month": (1, 12),
    "day": (1, 31),
    "dayofweek": (1, 7),
    "weekday": (0, 6),
    "dayofyear": (1, 366),
}
_ALIASES = {"dayofmonth": "day"}
PARTS = frozenset({*_CLOCK_PARTS, *_CALENDAR_PARTS, *_ALIASES})

_CLOCK_UNITS = {
    **{name.upper(): unit_us for name, unit_us in UNIT_US.items() if name != "week"},
    "DD": _DAY_US,
}
_CALENDAR_UNITS = {
    **dict.fromkeys(("YEAR", "YYYY", "YY"), "year"),
    "QUARTER": "quarter",
    **dict.fromkeys(("MONTH", "MON", "MM"), "month"),
    "WEEK": "week",
}


def part(name: str, node: Node, zone: str) -> Node:
    """A part of a date or time."""
    name = _ALIASES.get(name, name)
    timed = _timed(node, zone)
    if name in _CLOCK_PARTS and not timed:
        raise Unknown(f"{name} of a date")
    bounds = _CLOCK_PARTS.get(name) or _CALENDAR_PARTS[name]
    return apply(compute_part, (node,), pa.int32(), name, bounds=bounds)


def truncate(unit: str, node: Node, zone: str) -> Node:
    """date_trunc: a time at the beginning of its unit."""
    unit = unit.upper()
    if not _timed(node, zone) or unit not in {*_CLOCK_UNITS, *_CALENDAR_UNITS}:
        raise Unknown(f"date_trunc to {unit}")
    # A time without a zone is one of the session's to Spark here.
    if not is_utc(zone):
        raise Unknown("date_trunc in a zone")
    return apply(compute_truncated, (node,), ZONED, unit)


def truncate_date(node: Node, unit: str, zone: str) -> Node:
    """trunc: the date at the beginning of a year, quarter, month or week."""
    unit = unit.upper()
    if unit not in _CALENDAR_UNITS:
        raise Unknown(f"trunc to {unit}")
    return apply(compute_truncated_date, (as_date(node, zone),), pa.date32(), unit)


def as_date(node: Node, zone: str) -> Node:
    """The date of a time."""
    return apply(compute_date, (node,), pa.date32()) if _timed(node, zone) else node


def seconds(node: Node, down: bool) -> Node:
    """The seconds since the epoch of a time with a zone, rounded down or towards the epoch."""
    if node.type != ZONED:
        raise Unknown("seconds of something other than a time with a zone")
    return apply(compute_seconds, (node,), pa.int64(), down, bounds=(-(2**44), 2**44))


def days_between(end: Node, start: Node, zone: str) -> Node:
    """datediff."""
    pair = (as_date(end, zone), as_date(start, zone))
    if any(node.raises for node in pair):
        raise Unknown("datediff of what can raise")
    return apply(compute_days_between, pair, pa.int32())


def _timed(node: Node, zone: str) -> bool:
    """Whether a node is a time, not a date; raises `Unknown` for anything else."""
    if node.type == UNZONED or (node.type == ZONED and is_utc(zone)):
        return True
    if node.type != pa.date32():
        raise Unknown("not a date, nor a time in UTC")
    return False


def _days(value: Any) -> Any:
    """Days since the epoch, of dates and of times."""
    if value.type == pa.date32():
        return plain_numbers(value.view(pa.int32())).astype(np.int64)
    return plain_numbers(value.view(pa.int64())) // _DAY_US


def _by_day(value: Any, compute: Callable[[Any], Any]) -> Any:
    """What is computed from days, once for each day where the days lie close together."""
    days = _days(value)
    ends = pc.min_max(value)
    if not ends["min"].is_valid:
        return np.zeros(len(days), np.int64)
    first, last = (int(_days(pa.repeat(ends[end], 1))[0]) for end in ("min", "max"))
    if last - first >= len(days):
        return compute(days)
    # What lies below nulls can be anything, so it is brought between the ends.
    return compute(np.arange(first, last + 1))[np.clip(days, first, last) - first]


def _months(days: Any) -> Any:
    """Months since the epoch: NumPy's calendar has no end where Spark's still goes on."""
    return days.view("M8[D]").astype("M8[M]").view(np.int64)


def _first_days(months: Any) -> Any:
    return months.view("M8[M]").astype("M8[D]").view(np.int64)


def compute_part(value: Any, name: str) -> pa.Array:
    """A part of each date or time."""
    match name:
        case "hour" | "minute" | "second":
            moments = plain_numbers(value.view(pa.int64()))
            _, most = _CLOCK_PARTS[name]
            found = moments // UNIT_US[name] % (most + 1)
        case "dayofweek":
            found = (_days(value) + 4) % 7 + 1
        case "weekday":
            found = (_days(value) + 3) % 7
        case _:
            found = _by_day(value, lambda days: _calendar_part(days, name))
    return with_nulls(found.astype(np.int32), pa.int32(), value)


def _calendar_part(days: Any, name: str) -> Any:
    months = _months(days)
    match name:
        case "year":
            return months // 12 + 1970
        case "quarter":
            return months % 12 // 3 + 1
        case "month":
            return months % 12 + 1
        case "day":
            return days - _first_days(months) + 1
        case _:
            return days - _first_days(months // 12 * 12) + 1


def compute_truncated(value: Any, unit: str) -> pa.Array:
    """Each time at the beginning of its unit."""
    if unit in _CLOCK_UNITS:
        moments = plain_numbers(value.view(pa.int64()))
        return with_nulls(moments // _CLOCK_UNITS[unit] * _CLOCK_UNITS[unit], ZONED, value)
    return with_nulls(_by_day(value, lambda days: _beginnings(days, unit)) * _DAY_US, ZONED, value)


def compute_truncated_date(value: Any, unit: str) -> pa.Array:
    """Each date at the beginning of its unit."""
    return with_nulls(_by_day(value, lambda days: _beginnings(days, unit)).astype(np.int32), pa.date32(), value)


def _beginnings(days: Any, unit: str) -> Any:
    match _CALENDAR_UNITS[unit]:
        case "week":
            return days - (days + 3) % 7
        case "month":
            return _first_days(_months(days))
        case "quarter":
            return _first_days(_months(days) // 3 * 3)
        case _:
            return _first_days(_months(days) // 12 * 12)


def compute_date(value: Any) -> pa.Array:
    """The date of each time."""
    return with_nulls(_days(value).astype(np.int32), pa.date32(), value)


def compute_days_between(end: Any, start: Any) -> pa.Array:
    """The days from one date to another."""
    left, right = (plain_numbers(value.cast(pa.int32())) for value in (end, start))
    return with_nulls(left - right, pa.int32(), end, start)


def compute_seconds(value: Any, down: bool) -> pa.Array:
    """Seconds since the epoch, rounded down or towards the epoch."""
    moments = plain_numbers(value.view(pa.int64()))
    found = moments // _SECOND_US if down else (moments - np.fmod(moments, _SECOND_US)) // _SECOND_US
    return with_nulls(found, pa.int64(), value)
