"""Spark's spellings of a stretch of time, to and from microseconds.

Spark's `window()` takes a text ('1 hour 30 minutes', 'interval 90 seconds') or a whole number of microseconds,
and nothing else: INTERVAL literals are refused by Spark itself.
"""

from __future__ import annotations

import re
from fractions import Fraction

UNIT_US = {
    "microsecond": 1,
    "millisecond": 1_000,
    "second": 1_000_000,
    "minute": 60_000_000,
    "hour": 3_600_000_000,
    "day": 86_400_000_000,
    "week": 604_800_000_000,
}
SHORT_US = {
    **dict.fromkeys(("us",), UNIT_US["microsecond"]),
    **dict.fromkeys(("ms",), UNIT_US["millisecond"]),
    **dict.fromkeys(("s", "sec", "secs"), UNIT_US["second"]),
    **dict.fromkeys(("min", "mins"), UNIT_US["minute"]),
    **dict.fromkeys(("h", "hr", "hrs"), UNIT_US["hour"]),
}
"""Units as the papers write them; Spark knows none of them."""
_CALENDAR_UNITS = ("month", "year")
_PART = re.compile(r"\s*([+-]?)\s*(\d+)(\.\d*)?\s*([a-z]+)", re.IGNORECASE)


def parse_interval_us(text: str, *, short: bool = False) -> int:
    """Microseconds of an interval text as Spark reads it; raises ValueError with what would be right.

    `short`: the short units of the papers are known too.

    >>> parse_interval_us("1 hour 30 minutes")
    5400000000
    >>> parse_interval_us("interval 1.5 seconds")
    1500000
    >>> parse_interval_us("1 min 30 s", short=True)
    90000000
    """
    rest = re.sub(r"^\s*interval\s+", "", text, flags=re.IGNORECASE).strip()
    if not rest:
        raise ValueError("an interval needs a number and a unit, such as '5 minutes'")
    total_us, position = Fraction(0), 0
    while position < len(rest):
        part = _PART.match(rest, position)
        if part is None:
            raise ValueError(f"'{text}' is no interval; write a number and a unit, such as '5 minutes'")
        sign, whole, fraction, unit = part.groups()
        unit_us = _unit_us(unit, text, short)
        if fraction and unit_us != UNIT_US["second"]:
            raise ValueError(f"only seconds can have a fraction, not '{unit}'")
        amount = Fraction(whole + (fraction or "")) if fraction != "." else Fraction(whole)
        total_us += (-amount if sign == "-" else amount) * unit_us
        position = part.end()
    return int(total_us)


def parse_count_us(text: str) -> int | None:
    """Microseconds as a whole number, which may be a BIGINT literal; None where a text is no such.

    >>> parse_count_us("60000000L"), parse_count_us("1.5")
    (60000000, None)
    """
    number = text.strip().lower().removesuffix("l")
    return int(number) if number.isdecimal() else None


def _unit_us(unit: str, text: str, short: bool) -> int:
    if short and unit.lower() in SHORT_US:
        return SHORT_US[unit.lower()]
    name = unit.lower().removesuffix("s")
    if name in UNIT_US:
        return UNIT_US[name]
    if name in _CALENDAR_UNITS:
        raise ValueError(f"'{text}': months and years have no fixed length; use weeks, days or smaller units")
    known = f"Spark knows {', '.join(UNIT_US)}" + (f"; short are {', '.join(SHORT_US)}" if short else "")
    raise ValueError(f"unknown unit '{unit}'; {known}")


def format_interval(us: int) -> str:
    """An interval text that Spark reads back as the same number of microseconds.

    >>> format_interval(5_400_000_000)
    '90 minutes'
    """
    unit = next(name for name, size in reversed(UNIT_US.items()) if us % size == 0 and (us or size == 1))
    count = us // UNIT_US[unit]
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"
