"""Time windows: `window(time, range [, slide [, offset]])` of a GROUP BY, as a frozen value.

The spellings of intervals are in `interval.py`, the brackets of the papers in `bracket.py`. Time is int64
microseconds UTC, windows are half-open [start, end): with start = offset mod slide, the window number i is
[start + i * slide, start + i * slide + range).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sqlglot import exp

from headrace.query.dialect import span_of
from headrace.query.expression import Expression
from headrace.query.interval import format_interval, parse_count_us, parse_interval_us
from headrace.query.source import Source


@dataclass(frozen=True, slots=True)
class Window:
    """A window that is tumbling (range = slide), overlapping (range > slide) or hopping (range < slide)."""

    time: Expression
    range_us: int
    slide_us: int
    offset_us: int = 0

    @property
    def tumbling(self) -> bool:
        """Whether each window begins where the one before ends."""
        return self.range_us == self.slide_us

    @property
    def overlapping(self) -> bool:
        """Whether a record may be in several windows."""
        return self.range_us > self.slide_us

    @property
    def hopping(self) -> bool:
        """Whether there are gaps between windows: a record may be in none. Spark's window() knows no such."""
        return self.range_us < self.slide_us

    @property
    def sql(self) -> str:
        """The call as Spark reads it, with the arguments that are needed (hopping windows it refuses)."""
        arguments = [self.time.sql, f"'{format_interval(self.range_us)}'"]
        if not self.tumbling or self.offset_us:
            arguments.append(f"'{format_interval(self.slide_us)}'")
        if self.offset_us:
            arguments.append(f"'{format_interval(self.offset_us)}'")
        return f"window({', '.join(arguments)})"

    def over(self, relation: str) -> str:
        """A relation's records with a column `window`, for a hopping window: of each slide, the first part.

        Days of an INTERVAL have 23 or 25 hours when clocks are changed, hence the seconds.
        """
        slides = replace(self, range_us=self.slide_us)
        length = f"make_interval(0, 0, 0, 0, 0, 0, {self.range_us // 10**6}.{self.range_us % 10**6:06})"
        start, end = "window.start", f"window.start + {length}"
        return (
            f"SELECT * EXCEPT (window), named_struct('start', {start}, 'end', {end}) AS window "
            f"FROM (SELECT *, {slides.sql} AS window FROM {relation}) WHERE {self.time.sql} < {end}"
        )


@dataclass(frozen=True, slots=True)
class Duration:
    """A stretch of time, and where the text says so."""

    us: int
    span: tuple[int, int] | None = None


class WindowFault(ValueError):
    """A window that cannot be, with the place that is to blame and what would be right."""

    def __init__(self, message: str, span: tuple[int, int] | None, hint: str = "") -> None:
        super().__init__(message)
        self.span = span
        self.hint = hint


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
        message = "window() takes a time column, a range, and optionally a slide and an offset"
        raise WindowFault(message, span_of(call))
    time = Expression.of(source, arguments[0], qualifiers)
    durations = [Duration(_duration_us(node, source), span_of(node)) for node in arguments[1:]]
    window = make_window(time, *durations)
    if window.hopping:
        message = "Spark's window() does not allow a slide longer than the range"
        hint = "for windows with gaps write FROM stream [RANGE '...' SLIDE '...'] instead of window()"
        raise WindowFault(message, durations[1].span, hint)
    return window


def make_window(
    time: Expression, range_: Duration, slide: Duration | None = None, offset: Duration | None = None
) -> Window:
    """The window of these lengths; raises `WindowFault` where one of them makes no sense."""
    slide = slide or range_
    offset = offset or Duration(0)
    for name, duration in (("range", range_), ("slide", slide)):
        if duration.us <= 0:
            raise WindowFault(f"the window's {name} must be longer than zero", duration.span)
    if abs(offset.us) >= slide.us:
        raise WindowFault("the window's offset must be shorter than its slide", offset.span)
    return Window(time, range_.us, slide.us, offset.us)


def read_length_us(
    quoted: str | None, plain: str, span: tuple[int, int] | None, short: bool = False
) -> int | None:
    """The length that a text in quotes says, or a plain number of microseconds; None for anything else."""
    if quoted is None:
        return parse_count_us(plain)
    try:
        return parse_interval_us(quoted, short=short)
    except ValueError as error:
        raise WindowFault(str(error), span) from error


def _duration_us(node: exp.Expr, source: Source) -> int:
    if isinstance(node, exp.Paren):
        return _duration_us(node.this, source)
    if isinstance(node, exp.Neg):
        return -_duration_us(node.this, source)
    span, quoted = span_of(node), None
    if isinstance(node, exp.RawString) or (isinstance(node, exp.Literal) and node.is_string):
        quoted = node.name
    length_us = read_length_us(quoted, source.cut(span) if span else "", span)
    if length_us is not None:
        return length_us
    if isinstance(node, exp.Interval):
        raise WindowFault("Spark's window() takes a text such as '10 minutes', not an INTERVAL", span)
    raise UnreadWindow
