"""Functions over Arrow values, with Spark's rules for numbers: ANSI errors, NaN, and three-valued logic."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headrace.algebra.words import in_memory

_FEW_ITEMS = 16
_WIDEST = 64
_BEYOND = 2.0**63

SIGNS = {
    "less": {-1},
    "less_equal": {-1, 0},
    "equal": {0},
    "not_equal": {-1, 1},
    "greater_equal": {0, 1},
    "greater": {1},
}
"""The comparisons, and for which signs of left - right each is true."""

TURNED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
"""Comparisons that are others when their sides change places."""


def call(value: Any, *rest: Any) -> Any:
    """An Arrow function by name: the name comes last."""
    *others, name = rest
    return pc.call_function(name, [value, *others])


def checked(*values_and_name: Any) -> Any:
    """An Arrow function of integers that raises on overflow."""
    *values, name = values_and_name
    try:
        return pc.call_function(name, values)
    except pa.ArrowInvalid as error:
        raise OverflowError(f"arithmetic overflow in {name.removesuffix('_checked')}") from error


def convert(value: Any, kind: pa.DataType) -> Any:
    """A cast that cannot fail, or that rounds as Java does."""
    return pc.cast(value, kind, safe=False)


def narrow(value: Any, kind: pa.DataType) -> Any:
    """A cast to a smaller integer, which raises where a value does not fit."""
    try:
        return pc.cast(value, kind)
    except pa.ArrowInvalid as error:
        raise OverflowError(f"cast overflow: {error}") from error


def divide(left: Any, right: Any, name: str) -> Any:
    """A quotient; a zero below a value that is not null raises."""
    _refuse_zero(left, right)
    return checked(left, right, name) if name.endswith("_checked") else pc.call_function(name, [left, right])


def remainder(left: Any, right: Any, kind: pa.DataType) -> Any:
    """The remainder with the sign of the dividend."""
    _refuse_zero(left, right)
    with np.errstate(all="ignore"):  # what lies below nulls can be anything
        values = np.fmod(plain_numbers(left), plain_numbers(right))
    return with_nulls(values, kind, left, right)


def whole(value: Any, name: str) -> pa.Array:
    """The floor or ceiling of doubles that are far from the largest integers."""
    values = plain_numbers(value)
    with np.errstate(invalid="ignore"):  # what lies below nulls can be anything
        rounded = (np.floor(values) if name == "floor" else np.ceil(values)).astype(np.int64)
    return with_nulls(rounded, pa.int64(), value)


def truncate(value: Any, kind: pa.DataType) -> pa.Array:
    """A cast of doubles to integers, which raises where a value does not fit."""
    values = plain_numbers(value)
    most = 2.0 ** (kind.bit_width - 1)
    # Java compares with the largest value as a double: for BIGINT that is one more than there is.
    limit = most if kind.bit_width == _WIDEST else most - 1
    with np.errstate(invalid="ignore"):
        fits = (np.floor(values) <= limit) & (np.ceil(values) >= -most)
    if pc.any(pc.and_(pa.array(~fits), pc.is_valid(value))).as_py():
        raise OverflowError(f"cast overflow: a number does not fit {kind}")
    return with_nulls(_saturated(np.where(fits, values, 0.0)).astype(kind.to_pandas_dtype()), kind, value)


def _saturated(values: Any) -> Any:
    """Doubles as 64-bit integers, with the nearest one for those that are beyond."""
    inside = np.abs(values) < _BEYOND
    edges = np.where(values > 0, np.iinfo(np.int64).max, np.iinfo(np.int64).min)
    return np.where(inside, np.where(inside, values, 0.0).astype(np.int64), edges)


def _refuse_zero(left: Any, right: Any) -> None:
    if isinstance(right, pa.Scalar):
        if not right.is_valid or right.as_py() != 0:
            return
        zero = isinstance(left, pa.Array) and left.null_count < len(left)
    else:
        zeros = pc.equal(right, pa.scalar(0, right.type))
        if isinstance(left, pa.Scalar):
            zeros = zeros if left.is_valid else pa.scalar(False)
        elif left.null_count:
            zeros = pc.and_(zeros, pc.is_valid(left))
        zero = pc.any(zeros).as_py() is True
    if zero:
        raise ZeroDivisionError("division by zero")


def compare_floats(left: Any, right: Any, name: str) -> Any:
    """A comparison in which NaN equals NaN and is greater than all other numbers."""
    if isinstance(left, pa.Scalar):
        return compare_floats(right, left, TURNED.get(name, name))
    if isinstance(right, pa.Scalar):
        if not right.is_valid:
            return pa.nulls(len(left), pa.bool_())
        return (
            _compare_with_nan(left, name) if np.isnan(right.as_py()) else _compare_with_number(left, right, name)
        )
    match name:
        case "equal":
            return pc.or_(pc.equal(left, right), pc.and_(pc.is_nan(left), pc.is_nan(right)))
        case "not_equal":
            return pc.invert(compare_floats(left, right, "equal"))
        case "less":
            return pc.or_(pc.less(left, right), pc.and_not(pc.is_nan(right), pc.is_nan(left)))
        case "greater":
            return compare_floats(right, left, "less")
        case "greater_equal":
            return pc.invert(compare_floats(left, right, "less"))
        case _:
            return pc.invert(compare_floats(right, left, "less"))


def _compare_with_number(left: Any, right: Any, name: str) -> Any:
    # NaN makes every comparison of IEEE false: right for <, <= and =, and the contrary for the others.
    match name:
        case "greater":
            return pc.invert(pc.less_equal(left, right))
        case "greater_equal":
            return pc.invert(pc.less(left, right))
        case _:
            return pc.call_function(name, [left, right])


def _compare_with_nan(left: Any, name: str) -> Any:
    nan = pc.is_nan(left)
    match name:
        case "equal" | "greater_equal":
            return nan
        case "not_equal" | "less":
            return pc.invert(nan)
        case "less_equal":
            return pc.or_(nan, pc.invert(nan))
        case _:
            return pc.and_(nan, pc.invert(nan))


def same(left: Any, right: Any, equal: Any) -> Any:
    """`<=>` from `=`: null equals null, and the answer is never null."""
    known = equal.fill_null(False)
    return pc.or_(known, pc.and_(pc.is_null(left), pc.is_null(right)))


def null_safe_equal(left: Any, right: Any, floats: bool) -> Any:
    """`<=>` between values of one type."""
    for one, other in ((left, right), (right, left)):
        if isinstance(one, pa.Scalar) and not one.is_valid:
            return pc.is_null(other)
    equal = compare_floats(left, right, "equal") if floats else pc.equal(left, right)
    return same(left, right, equal)


def within(value: Any, listed: pa.ListScalar, null_listed: bool) -> Any:
    """IN: null where the value is null, or where nothing is equal and the list has a null."""
    items = listed.values
    if 0 < len(items) <= _FEW_ITEMS and pa.types.is_primitive(value.type):
        # A few comparisons are faster than a hash table, and know nulls by themselves.
        found = functools.reduce(pc.or_, (pc.equal(value, item) for item in items))
        return pc.if_else(found, found, pa.scalar(None, pa.bool_())) if null_listed else found
    found = pc.is_in(value, value_set=items)
    if null_listed:
        found = pc.if_else(found, found, pa.scalar(None, pa.bool_()))
    if not value.null_count:
        return found
    return pc.if_else(pc.is_valid(value), found, pa.scalar(None, pa.bool_()))


def plain_numbers(value: Any) -> Any:
    """The values as NumPy has them, whatever lies below nulls; a scalar as a number of its type."""
    if isinstance(value, pa.Scalar):
        return pa.repeat(value.as_py() if value.is_valid else 0, 1).cast(value.type).to_numpy()[0]
    return in_memory(value, value.type.to_pandas_dtype())


def with_nulls(values: Any, kind: pa.DataType, *sources: Any) -> pa.Array:
    """An array of computed values that is null where one of its sources is."""
    validity = None
    for source in sources:
        if isinstance(source, pa.Scalar):
            if not source.is_valid:
                return pa.nulls(len(values), kind)
        elif source.null_count:
            valid = pc.is_valid(source)
            validity = valid if validity is None else pc.and_(validity, valid)
    values = np.ascontiguousarray(values)
    bitmap = validity.buffers()[1] if validity is not None else None
    return pa.Array.from_buffers(kind, len(values), [bitmap, pa.py_buffer(values)])
