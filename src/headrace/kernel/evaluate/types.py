"""Spark's types of constants, and the type to which it brings the two sides of an operator (ANSI mode)."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from math import isinf
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import pyarrow as pa

from headrace.kernel.evaluate.nodes import (
    FLOATS,
    INTEGERS,
    UNZONED,
    ZONED,
    Constant,
    Node,
    Unknown,
    apply,
    constant,
    fits,
)
from headrace.kernel.evaluate.numbers import convert

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d:\d\d(?:\.\d{1,6})?))?(Z|\+00:00)?")
_INTEGER = re.compile(r"-?\d{1,18}")
_INTEGRAL_DIGITS = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 20}
_UTC_NAMES = frozenset({"UTC", "Etc/UTC", "Z", "GMT", "Etc/GMT", "+00:00", "UTC+00:00"})
# Years of which all tables of time zones say the same.
_SETTLED_YEARS = range(1980, 2026)


def is_utc(zone: str) -> bool:
    """Whether a session's zone is UTC, under one of its names."""
    return zone in _UTC_NAMES


def number(text: str) -> Constant:
    """A literal number without a suffix."""
    if re.fullmatch(r"\d+", text):
        value = int(text)
        for kind in (pa.int32(), pa.int64()):
            if fits(value, kind):
                return constant(value, kind)
        return _decimal(Decimal(text))
    if re.fullmatch(r"\d+\.\d*", text):
        return _decimal(Decimal(text))
    if re.fullmatch(r"\d+(\.\d*)?[eE][+-]?\d+", text):
        if isinf(float(text)):
            raise Unknown("a number beyond double")
        return constant(float(text), pa.float64())
    raise Unknown(f"number {text}")


def _decimal(value: Decimal) -> Constant:
    _, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    scale = -exponent
    precision = max(len(digits), scale)
    if not 0 <= scale <= precision <= 38:
        raise Unknown("a decimal of more than 38 digits")
    return constant(value, pa.decimal128(precision, scale))


def moment(text: str, kind: pa.DataType, zone: str) -> Constant:
    """A date or a time of a text in the usual form."""
    try:
        if kind == pa.date32():
            if not _DATE.fullmatch(text):
                raise Unknown(f"date {text}")
            return constant(dt.date.fromisoformat(text), kind)
        found = _MOMENT.fullmatch(text)
        if not found or (found[3] and (kind == UNZONED or not found[2])):
            raise Unknown(f"time {text}")
        seconds, _, fraction = (found[2] or "00:00:00").partition(".")
        value = dt.datetime.fromisoformat(f"{found[1]}T{seconds}.{fraction.ljust(6, '0')}")
    except ValueError as error:
        raise Unknown(f"time {text}") from error
    if kind == ZONED:
        value = value.replace(tzinfo=dt.UTC) if found[3] or is_utc(zone) else _in_zone(value, zone)
    return constant(value, kind)


def _in_zone(value: dt.datetime, zone: str) -> dt.datetime:
    try:
        info = ZoneInfo(zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise Unknown(f"time zone {zone}") from error
    first, second = (value.replace(tzinfo=info, fold=fold) for fold in (0, 1))
    # Times that a change of the clocks skips or repeats have two offsets.
    if value.year not in _SETTLED_YEARS or first.utcoffset() != second.utcoffset():
        raise Unknown("a time that not all tables of time zones agree about")
    return first.astimezone(dt.UTC)


def to_type(node: Node, kind: pa.DataType) -> Node:
    """A node in a wider type, as Spark's implicit casts have it; constants are cast here and now."""
    if node.type == kind:
        return node
    if isinstance(node, Constant):
        value = node.value.as_py()
        if value is None:
            return constant(None, kind)
        if kind in FLOATS:
            return constant(float(value), kind)
        if kind in INTEGERS or pa.types.is_decimal(kind):
            return constant(Decimal(value) if pa.types.is_decimal(kind) else value, kind)
    bounds = node.bounds if kind in INTEGERS or (kind == pa.float64() and node.type in INTEGERS) else None
    return apply(convert, (node,), kind, kind, bounds=bounds)


def wider_number(one: pa.DataType, other: pa.DataType) -> pa.DataType | None:
    """The type of two integers or floats together."""
    if one == other:
        return one
    if one in INTEGERS and other in INTEGERS:
        return max(one, other, key=lambda kind: kind.bit_width)
    numbers = (*INTEGERS, *FLOATS)
    return pa.float64() if one in numbers and other in numbers else None


def common(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """Values of CASE, coalesce and IF, brought to their one type."""
    kind: pa.DataType | None = None
    for node in nodes:
        if node.type == pa.null():
            continue
        kind = node.type if kind is None else wider_number(kind, node.type)
        if kind is None:
            raise Unknown("values of different types")
    if kind is None:
        raise Unknown("nothing but null")
    # From float to double by way of an integer between them: the order of the values would matter.
    if kind == pa.float64() and len({node.type for node in nodes} - {pa.null()}) > 2:
        raise Unknown("three types of numbers")
    return tuple(to_type(node, kind) for node in nodes)


def aligned(left: Node, right: Node, zone: str) -> tuple[Node, Node]:
    """The two sides of a comparison in one type, in which comparing gives what Spark's comparison gives."""
    if pa.null() in (left.type, right.type):
        kind = left.type if right.type == pa.null() else right.type
        if kind == pa.null() or pa.types.is_nested(kind):
            raise Unknown("a comparison of nulls")
        return to_type(left, kind), to_type(right, kind)
    if left.type == right.type:
        return left, right
    for this, other, swapped in ((left, right, False), (right, left, True)):
        pair = _to_left(this, other, zone)
        if pair is not None:
            return (pair[1], pair[0]) if swapped else pair
    raise Unknown(f"{left.type} compared with {right.type}")


def _to_left(this: Node, other: Node, zone: str) -> tuple[Node, Node] | None:
    kind = this.type
    value = other.value.as_py() if isinstance(other, Constant) else None
    if other.type == pa.string() and value is not None:
        return _with_text(this, value, zone)
    if kind in INTEGERS and other.type in INTEGERS:
        if value is not None and fits(value, kind):
            return this, constant(value, kind)  # what is cast is the constant, not the column
        wider = wider_number(kind, other.type)
        return to_type(this, wider), to_type(other, wider)
    if kind in FLOATS and other.type in (*INTEGERS, *FLOATS):
        return to_type(this, pa.float64()), to_type(other, pa.float64())
    if kind in FLOATS and isinstance(value, Decimal):
        return to_type(this, pa.float64()), to_type(other, pa.float64())
    if pa.types.is_decimal(kind) and (other.type in INTEGERS or pa.types.is_decimal(other.type)):
        return _decimals(this, other)
    if kind in (ZONED, UNZONED) and other.type == pa.date32() and (kind == UNZONED or is_utc(zone)):
        return this, to_type(other, kind)
    if kind == ZONED and other.type == UNZONED and is_utc(zone):
        return this, to_type(other, kind)
    return None


def _with_text(this: Node, text: str, zone: str) -> tuple[Node, Node] | None:
    """Spark casts a text to the type of the other side; integers and it to BIGINT."""
    if this.type in (pa.date32(), ZONED, UNZONED):
        return this, moment(text, this.type, zone)
    if this.type in INTEGERS and _INTEGER.fullmatch(text):
        return to_type(this, pa.int64()), constant(int(text), pa.int64())
    return None


def _decimals(this: Node, other: Node) -> tuple[Node, Node] | None:
    """Both in a decimal that holds all digits of both, if there is one."""
    digits, scales = zip(*(_digits(node) for node in (this, other)), strict=True)
    scale = max(scales)
    precision = max(d - s for d, s in zip(digits, scales, strict=True)) + scale
    if precision > 38:
        return None
    # Spark itself compares in a type that can be wider: integers have up to 20 digits there.
    widest = max(
        _INTEGRAL_DIGITS.get(node.type, d - s) for node, d, s in zip((this, other), digits, scales, strict=True)
    )
    if widest + scale > 38:
        return None
    kind = pa.decimal128(precision, scale)
    return to_type(this, kind), to_type(other, kind)


def _digits(node: Node) -> tuple[int, int]:
    if node.type in INTEGERS:
        return (_INTEGRAL_DIGITS[node.type], 0) if node.type != pa.int64() else (19, 0)
    return node.type.precision, node.type.scale
