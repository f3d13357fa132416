"""Row groups that no query wants: what the extents of columns prove of a condition, without reading a record.

A condition is followed through its compiled nodes, in which Spark's types, time zones and rounding are settled.
Each part tells what it can be in a row group. That may be more than it is: then a row group is read in vain, but
none is left out that has a record for the query.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from itertools import product
from math import isnan
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from headrace.kernel.evaluate import Evaluator, numbers
from headrace.kernel.evaluate.nodes import INTEGERS, UNZONED, ZONED, Apply, Constant, Node, Read
from headrace.kernel.evaluate.operators import logic_of
from headrace.sources.parquet import Extent

Number = int | float | Decimal
Outcomes = frozenset[bool | None]

WHOLE = (*INTEGERS, ZONED, UNZONED)
"""Types of values that are whole numbers, or times as such."""
_ANYTHING: Outcomes = frozenset({True, False, None})
_TRUER = {False: 0, None: 1, True: 2}


def may_match(condition: Evaluator, extents: Mapping[str, Extent]) -> bool:
    """False only where a condition is false or null for every record of a row group, and raises for none."""
    return condition.node.raises or True in outcomes(condition.node, extents)


def outcomes(node: Node, extents: Mapping[str, Extent]) -> Outcomes:
    """What a condition can be."""
    match logic_of(node):
        case "invert", (part,):
            return frozenset(None if found is None else not found for found in outcomes(part, extents))
        case name, parts:
            choose = min if name == "and_kleene" else max
            together = product(*(outcomes(part, extents) for part in parts))
            return frozenset(choose(each, key=_TRUER.__getitem__) for each in together)
    match node:
        case Constant():
            return frozenset({node.value.as_py()})
        case Apply(operands=operands):
            ranges = [found for operand in operands if (found := _range(operand, extents)) is not None]
            return _tested(node, ranges) if len(ranges) == len(operands) else _ANYTHING
    return _ANYTHING


class _Range(NamedTuple):
    """Where the values of a node lie (None: there are none), and whether some may be null."""

    ends: tuple[Number, Number] | None
    null: bool


def _range(node: Node, extents: Mapping[str, Extent]) -> _Range | None:
    """The range of a node; None where nothing is known of it."""
    match node:
        case Constant():
            return constant_range(node)
        case Read(name=name) if name in extents:
            extent = extents[name]
            return _Range((extent.least, extent.most), extent.nulls > 0)
        case Apply(function=numbers.convert, operands=(inner,), type=kind) if inner.type in INTEGERS:
            found = _range(inner, extents)
            if kind in INTEGERS or pa.types.is_decimal(kind):
                return found
            if kind == pa.float64() and found is not None and found.ends is not None:
                # Rounding keeps the order.
                return _Range((float(found.ends[0]), float(found.ends[1])), found.null)
    return None


def constant_range(node: Constant) -> _Range | None:
    """The range that a number or a time is; None for anything else."""
    if not node.value.is_valid:
        return _Range(None, True)
    value = node.value.value if node.type in (ZONED, UNZONED) else node.value.as_py()
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal) or isnan(value):
        return None
    return _Range((value, value), False)


def _tested(test: Apply, ranges: Sequence[_Range]) -> Outcomes:
    """What a test of values in these ranges can be."""
    match test.function, test.options, ranges:
        case numbers.call, ("is_null",), (value,):
            return frozenset({*([True] if value.null else []), *([False] if value.ends else [])})
        case numbers.within, (listed, null_listed), (value,):
            return _within(value, listed.values, null_listed)
        case numbers.null_safe_equal, _, (one, other):
            return _same(one, other)
        case ((numbers.call | numbers.compare_floats), (str(name),), (one, other)) if name in numbers.SIGNS:
            found: set[bool | None] = {sign in numbers.SIGNS[name] for sign in _signs(one, other)}
            return frozenset({*found, *([None] if one.null or other.null else [])})
    return _ANYTHING


def _signs(one: _Range, other: _Range) -> set[int]:
    """On which sides of the other's values those of one can be."""
    if one.ends is None or other.ends is None:
        return set()
    possible = {
        -1: one.ends[0] < other.ends[1],
        0: one.ends[0] <= other.ends[1] and one.ends[1] >= other.ends[0],
        1: one.ends[1] > other.ends[0],
    }
    return {sign for sign, can_be in possible.items() if can_be}


def _same(one: _Range, other: _Range) -> Outcomes:
    """`<=>`."""
    found = {sign == 0 for sign in _signs(one, other)}
    if one.null and other.null:
        found.add(True)
    if (one.null and other.ends) or (other.null and one.ends):
        found.add(False)
    return frozenset(found)


def _within(value: _Range, items: pa.Array, null_listed: bool) -> Outcomes:
    """IN, where the list has integers or times, and perhaps a null."""
    if items.type not in WHOLE:
        return _ANYTHING
    found: set[bool | None] = {None} if value.null else set()
    if value.ends is not None:
        listed, (least, most) = items.cast(pa.int64()), value.ends
        inside = listed.filter(pc.and_(pc.greater_equal(listed, least), pc.less_equal(listed, most)))
        found |= {True} if len(inside) else set()
        if not len(inside) or least < most:
            found.add(None if null_listed else False)
    return frozenset(found)
