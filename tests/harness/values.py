"""The values that columns are filled from, by type, and how each is written as a SQL literal.

Data and queries draw from the same short lists, so that filters hit, groups repeat and edges meet.
"""

from __future__ import annotations

import datetime as dt
import math
import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa

from tests.harness.schemas import (
    INT_BOUNDS,
    LARGE,
    QUARTERS,
    THOUSANDTHS,
    WIDE_DECIMAL_BOUND,
    WIDE_DIGITS,
    Column,
    Kind,
    Role,
)

# Beyond this magnitude the sum of doubles says more about the order of the rows than about the rows: 1e300 + 1 -
# 1e300 is 0 or 1, and 1e308 + 1e308 - 1e308 is an infinity or not. Up to it the error has a useful bound
# (tolerance.py), and sums, squares and fourth powers stay far from overflow.
MAX_MAGNITUDE = 1e15

SPECIAL_FLOATS = (math.nan, math.inf, -math.inf, -0.0)

_FLOATS = {
    QUARTERS: (0.0, 0.25, 1.0, -0.25, 1.5, 3.0, -2.75, 10.0, -100.5, 999.75, 1000.0),
    THOUSANDTHS: (0.0, 0.1, 0.2, 0.3, -0.1, 1.1, 3.333, -7.77, 12.345, 99.999, 0.001, -1000.0),
    LARGE: (0.0, 3.3e10, -1e10, 1.2345e14 + 0.1, -7.77e13 + 0.3, 9.87e14 + 0.7, 1e15, -1e15),
}
_TINY_FLOATS = (0.0, 5e-324, -5e-324, sys.float_info.min, 1e-300)
_CLOSE_FLOATS = (math.nextafter(1.0, 2.0), 0.1 + 0.2, 0.3)
_HUGE_FLOATS = (MAX_MAGNITUDE, -MAX_MAGNITUDE, math.nextafter(MAX_MAGNITUDE, 0.0))
_EXTREME_FLOATS = (*_TINY_FLOATS, *_CLOSE_FLOATS, *_HUGE_FLOATS)

_ASCII = ("a", "b", "A", "", "abc", "ab", "b c", " a", "a ", "it's", "100%", "a_c", "null", "NULL", "0", "\\n")
# é as one code point and as two, an i with a dot above, a family joined by zero-width joiners, a flag, a surrogate
# pair in UTF-16
_UNICODE = (
    *("ß", "\u00e9", "e\u0301", "\u0130", "日本", "a\u0000b", "line\nbreak"),
    *("\U0001f469\u200d\U0001f469\u200d\U0001f467", "\U0001f1e8\U0001f1ed", "\U00010348"),
)
_STRINGS = (*_ASCII, *_UNICODE)
_BINARIES = (b"", b"a", b"\x00", b"\x00\x01", b"\xff", b"\x80\x00")
_DATES = tuple(
    dt.date.fromisoformat(text)
    for text in ("2024-02-29", "2024-03-31", "1969-12-31", "1970-01-01", "1900-01-01", "2024-11-03", "9999-12-31")
)
_STRUCTS = (
    {"p": 1, "q": "a"},
    {"p": 1, "q": None},
    {"p": None, "q": "a"},
    {"p": None, "q": None},
    {"p": -1, "q": ""},
)
_ARRAYS: tuple[list[int | None], ...] = ([1, 2], [], [1], [None], [2, 1], [1, None, 2])

# Moments near which streams take place (UTC): changes of summer time, and what lies before the epoch.
EPOCHS = tuple(
    dt.datetime.fromisoformat(text)
    for text in (
        "2024-01-01T00:00:00",
        "2024-03-31T01:00:00",  # Berlin springs forward
        "2024-10-27T01:00:00",  # and falls back
        "2024-03-10T07:00:00",  # New York
        "2024-11-03T06:00:00",
        "2024-04-06T15:00:00",  # Lord Howe, half an hour
        "1970-01-01T00:00:00",
        "1969-12-31T12:00:00",
        "1916-04-30T22:00:00",  # the first summer time there was
    )
)
# Seconds around an epoch: on the edges of windows, a microsecond beside them, and inside.
OFFSETS_S = (
    0.0,
    60.0,
    300.0,
    -300.0,
    299.999999,
    300.000001,
    -0.000001,
    1.5,
    90.0,
    3600.0,
    -3600.0,
    5400.0,
    754.25,
)


def instants() -> list[dt.datetime]:
    return [epoch + dt.timedelta(seconds=offset) for epoch in EPOCHS for offset in OFFSETS_S]


def candidates(column: Column) -> tuple[Any, ...]:
    """The ordinary values of a column: everything but nulls and `SPECIAL_FLOATS`."""
    match column.kind:
        case Kind.INT:
            return _integers(column)
        case Kind.FLOAT:
            wide = _EXTREME_FLOATS if column.role is Role.EXTREME else _FLOATS[column.spread or QUARTERS]
            return tuple(pa.array(wide, column.type).to_pylist())
        case Kind.DECIMAL:
            return _decimals(column)
        case Kind.BOOL:
            return (True, False)
        case Kind.TIMESTAMP:
            return tuple(instant.replace(tzinfo=dt.UTC) for instant in instants())
        case Kind.NTZ:
            return tuple(instants())
        case kind:
            fixed: dict[Kind, tuple[Any, ...]] = {
                Kind.STRING: _STRINGS,
                Kind.BINARY: _BINARIES,
                Kind.DATE: _DATES,
                Kind.STRUCT: _STRUCTS,
                Kind.ARRAY: _ARRAYS,
            }
            return fixed[kind]


def _integers(column: Column) -> tuple[int, ...]:
    bits = column.type.bit_width
    if column.role is Role.EXTREME:
        most = 2 ** (bits - 1) - 1
        return (most, -most - 1, 0, -1, 1, most - 1)
    bound = INT_BOUNDS[bits]
    return (0, 1, 2, 3, -1, 4, -2, 7, 10, bound, -bound)


def _decimals(column: Column) -> tuple[Decimal, ...]:
    precision, scale = column.type.precision, column.type.scale
    one = 10**scale
    unscaled = [0, one, 1, -1, 2 * one, -one, one // 2, 5 * one + 1]
    most = 10**precision - 1
    if precision >= WIDE_DIGITS and column.role is Role.BOUNDED:
        most = int(WIDE_DECIMAL_BOUND) * one
    # Arithmetics would round to the context's 28 digits; reading text does not.
    return tuple(Decimal(f"{value}E-{scale}") for value in (*unscaled, most, -most))


def literal(kind: Kind, value: Any) -> str:
    """A value in SQL."""
    match kind:
        case Kind.STRING:
            # A backslash escapes in Spark's literals; a quote can be doubled.
            text = str(value).replace("\\", "\\\\").replace("'", "''")
            return f"'{text}'"
        case Kind.BINARY:
            return f"X'{value.hex()}'"
        case Kind.BOOL:
            return "TRUE" if value else "FALSE"
        case Kind.DATE:
            return f"DATE '{value}'"
        case Kind.TIMESTAMP:
            # Without a zone the session's would decide.
            return f"TIMESTAMP '{value.replace(tzinfo=None)}Z'"
        case Kind.NTZ:
            return f"TIMESTAMP_NTZ '{value}'"
        case Kind.FLOAT if not math.isfinite(value):
            return f"CAST('{value}' AS DOUBLE)"
        case Kind.FLOAT:
            return f"{value!r}D"
        case Kind.DECIMAL:
            return f"{value:f}"
        case Kind.INT:
            # The parser reads the minus as an operator, and the number after it must fit on its own.
            return str(value) if value >= -(2**63) + 1 else "(-9223372036854775807 - 1)"
        case Kind.ARRAY:
            return "array(" + ", ".join("NULL" if item is None else str(item) for item in value) + ")"
        case Kind.STRUCT:
            p = "CAST(NULL AS INT)" if value["p"] is None else str(value["p"])
            q = "CAST(NULL AS STRING)" if value["q"] is None else literal(Kind.STRING, value["q"])
            return f"named_struct('p', {p}, 'q', {q})"
