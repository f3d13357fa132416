"""Time windows: `window(time, range [, slide [, offset]])` of a GROUP BY, as a frozen value.

The spellings of intervals are in `interval.py`. Time is int64 microseconds UTC, windows are half-open
[start, end): the window number i is [offset + i * slide, offset + i * slide + range).
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from headrace.query.dialect import span_of
from headrace.query.expression import Expression
from headrace.query.interval import format_interval, parse_interval_us
from headrace.query.source import Source


@dataclass(frozen=True, slots=True)
class Window:
    """A tumbling window (range = slide) or a sliding one (range > slide)."""

    time: Expression
    range_us: int
    slide_us: int
    offset_us: int = 0

    @property
    def tumbling(self) -> bool:
        """Whether no two windows overlap."""
        return self.range_us == self.slide_us

    @property
    def sql(self) -> str:
        """The call as Spark reads it, with the arguments that are needed."""
        arguments = [self.time.sql, f"'{format_interval(self.range_us)}'"]
        if not self.tumbling or self.offset_us:
            arguments.append(f"'{format_interval(self.slide_us)}'")
        if self.offset_us:
            arguments.append(f"'{format_interval(self.offset_us)}'")
        return f"window({', '.join(arguments)})"


class WindowFault(ValueError):
    """A window that Spark would refuse, with the node that is to blame."""

    def __init__(self, message: str, node: exp.Expr) -> None:
        super().__init__(message)
        self.node = node


class UnreadWindow(Exception):
    """A window whose arguments are written in a way that only Spark can judge."""


def is_call(node: exp.Expr, name: str) -> bool:
    """Whether a node is a call of the function `name`."""
    return isinstance(node, exp.Anonymous) and node.name.lower() == name


def is_window_call(node: exp.Expr) -> bool:
    """Whether a node is a call of Spark's `window` function."""
    return is_call(node, "window")


def find_window(node: exp.Expr) -> exp.Anonymous | None:
    """The window call of a grouping expression: `window(...)`, `window(...).start` or `window(...).end`."""
    if isinstance(node, exp.Dot) and node.expression.name.lower() in ("start", "end"):
        node = node.this
    while isinstance(node, exp.Paren):
        node = node.this
    return node if isinstance(node, exp.Anonymous) and is_window_call(node) else None


def parse_window(call: exp.Anonymous, source: Source, qualifiers: frozenset[str] = frozenset()) -> Window:
    """The window that a call describes; raises `WindowFault` where Spark would refuse it, or `UnreadWindow`."""
    arguments = call.expressions
    if not 2 <= len(arguments) <= 4:
        raise WindowFault("window() takes a time column, a range, and optionally a slide and an offset", call)
    time = Expression.of(source, arguments[0], qualifiers)
    range_us = _duration_us(arguments[1], source)
    slide_us = _duration_us(arguments[2], source) if len(arguments) > 2 else range_us
    offset_us = _duration_us(arguments[3], source) if len(arguments) > 3 else 0
    if range_us <= 0:
        raise WindowFault("the window's range must be longer than zero", arguments[1])
    if slide_us <= 0:
        raise WindowFault("the window's slide must be longer than zero", arguments[2])
    if slide_us > range_us:
        raise WindowFault("Spark's window() does not allow a slide longer than the range", arguments[2])
    if abs(offset_us) >= slide_us:
        raise WindowFault("the window's offset must be shorter than its slide", arguments[3])
    return Window(time, range_us, slide_us, offset_us)


def _duration_us(node: exp.Expr, source: Source) -> int:
    if isinstance(node, exp.Paren):
        return _duration_us(node.this, source)
    if isinstance(node, exp.Neg):
        return -_duration_us(node.this, source)
    if isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string):
        try:
            return parse_interval_us(node.name)
        except ValueError as error:
            raise WindowFault(str(error), node) from error
    span = span_of(node)
    number = source.cut(span).strip().lower().removesuffix("l") if span else ""
    if number.isdecimal():
        return int(number)
    if isinstance(node, exp.Interval):
        raise WindowFault("Spark's window() takes a text such as '10 minutes', not an INTERVAL", node)
    raise UnreadWindow
