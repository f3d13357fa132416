"""Operators as nodes, typed as Spark types them: comparisons, logic, arithmetic, casts."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from headrace.kernel.evaluate import numbers as numbers
from headrace.kernel.evaluate import time as time
from headrace.kernel.evaluate.nodes import (
    FLOATS,
    INTEGERS,
    UNZONED,
    ZONED,
    Apply,
    Bounds,
    Constant,
    Node,
    Unknown,
    apply,
    constant,
    fits,
)
from headrace.kernel.evaluate.types import aligned, is_utc, moment, to_type, wider_number

_MOST_FLOATS_LISTED = 10
_COMPARABLE = (pa.bool_(), pa.string(), pa.binary(), pa.date32(), ZONED, UNZONED, *INTEGERS, *FLOATS)


def compare(name: str, left: Node, right: Node, zone: str) -> Node:
    """A comparison by the name of Arrow's function, or `same` for `<=>`."""
    left, right = aligned(left, right, zone)
    kind = left.type
    if kind not in _COMPARABLE and not pa.types.is_decimal(kind):
        raise Unknown(f"a comparison of {kind}")
    floats = kind in FLOATS
    if name == "same":
        # Both sides are computed, whether null or not.
        if right.raises:
            raise Unknown("<=> with a right side that can raise")
        return apply(numbers.null_safe_equal, (left, right), pa.bool_(), floats)
    return apply(numbers.compare_floats if floats else numbers.call, (left, right), pa.bool_(), name)


def contains(node: Node, items: tuple[Node, ...], zone: str) -> Node:
    """IN with a list of constants."""
    listed = [item for item in items if isinstance(item, Constant)]
    if len(listed) < len(items):
        raise Unknown("a list of more than constants")
    given = [item for item in listed if item.value.is_valid]
    null_listed = len(given) < len(listed)
    # Spark brings all items to one type, which is not the type of each with the value if their families differ.
    if not given or (len({_family(item.type) for item in given}) > 1 and node.type not in FLOATS):
        raise Unknown("a list of several types")
    if node.type in INTEGERS and given[0].type in INTEGERS:
        fitting = [item.value.as_py() for item in given if fits(item.value.as_py(), node.type)]
        return apply(numbers.within, (node,), pa.bool_(), pa.scalar(fitting, pa.list_(node.type)), null_listed)
    pairs = [aligned(node, item, zone) for item in given]
    value = pairs[0][0]
    if any(one.type != value.type for one, _ in pairs):
        raise Unknown("a list of several types")
    if value.type in FLOATS:
        if len(given) > _MOST_FLOATS_LISTED:
            raise Unknown("a long list of floating numbers")
        found = [compare("equal", value, item, zone) for _, item in pairs]
        found += [constant(None, pa.bool_())] if null_listed else []
        return logic("or_kleene", *found)
    scalars = [item.value for _, item in pairs if isinstance(item, Constant)]
    listed_values = pa.scalar(scalars, pa.list_(value.type))
    return apply(numbers.within, (value,), pa.bool_(), listed_values, null_listed)


def _family(kind: pa.DataType) -> str:
    if kind in FLOATS:
        return "floating"
    if kind in INTEGERS:
        return "integer"
    return "decimal" if pa.types.is_decimal(kind) else str(kind)


def logic(name: str, *operands: Node) -> Node:
    """AND or OR of conditions; raises `Unknown` where one can raise, since the order of them would matter."""
    result = truth(operands[0])
    for operand in map(truth, operands[1:]):
        if result.raises or operand.raises:
            raise Unknown("AND or OR of what can raise")
        result = apply(numbers.call, (result, operand), pa.bool_(), name)
    return result


def logic_of(node: Node) -> tuple[str, tuple[Node, ...]] | None:
    """AND, OR or NOT by the name of Arrow's function, and what it is of; None for any other node."""
    match node:
        case Apply(
            function=numbers.call, operands=parts, options=(("and_kleene" | "or_kleene" | "invert") as name,)
        ):
            return name, parts
    return None


def truth(node: Node) -> Node:
    """A node that is a condition."""
    if node.type == pa.null():
        return constant(None, pa.bool_())
    if node.type != pa.bool_():
        raise Unknown("a condition that is no boolean")
    return node


def negation(node: Node) -> Node:
    """NOT."""
    return apply(numbers.call, (truth(node),), pa.bool_(), "invert")


def arithmetic(name: str, left: Node, right: Node) -> Node:
    """`+`, `-` and `*`."""
    left, right = _numbers(left, right)
    kind = left.type
    if kind in FLOATS:
        return apply(numbers.call, (left, right), kind, name)
    bounds, raises = _bounded(name, left, right)
    if not raises:
        return apply(numbers.call, (left, right), kind, name, bounds=bounds)
    return apply(numbers.checked, (left, right), kind, f"{name}_checked", raises=True)


def _numbers(left: Node, right: Node) -> tuple[Node, Node]:
    """Both sides of an operator in the type of its result."""
    if pa.null() in (left.type, right.type):
        raise Unknown("arithmetic with NULL")
    # A decimal constant beside a floating number is a double.
    pair = [pa.float64() if _decimal_beside_float(a, b) else a.type for a, b in ((left, right), (right, left))]
    kind = wider_number(*pair)
    if kind is None or kind not in (*INTEGERS, *FLOATS):
        raise Unknown(f"arithmetic of {left.type} and {right.type}")
    return to_type(left, kind), to_type(right, kind)


def _decimal_beside_float(node: Node, other: Node) -> bool:
    return isinstance(node, Constant) and pa.types.is_decimal(node.type) and other.type in FLOATS


def _bounded(name: str, left: Node, right: Node) -> tuple[Bounds | None, bool]:
    """The bounds of a result, and whether they are beyond its type."""
    assert left.bounds is not None
    assert right.bounds is not None
    operations: dict[str, Callable[[int, int], int]] = {
        "add": int.__add__,
        "subtract": int.__sub__,
        "multiply": int.__mul__,
    }
    corners = [operations[name](a, b) for a in left.bounds for b in right.bounds]
    low, high = min(corners), max(corners)
    return ((low, high), False) if fits(low, left.type) and fits(high, left.type) else (None, True)


def division(left: Node, right: Node) -> Node:
    """`/`, which is a division of doubles."""
    for one, other in ((left, right), (right, left)):
        if one.type not in (*INTEGERS, *FLOATS) and not _decimal_beside_float(one, other):
            raise Unknown(f"division of {left.type} by {right.type}")
    pair = (to_type(left, pa.float64()), to_type(right, pa.float64()))
    bounds = None
    if left.type in INTEGERS and right.type in INTEGERS and not _may_be_zero(right):
        assert right.bounds is not None
        most = _farthest(left) // min(abs(bound) for bound in right.bounds) + 1
        bounds = (-most, most)
    return apply(
        numbers.divide, pair, pa.float64(), "divide", raises=_may_be_zero(right), order=(1, 0), bounds=bounds
    )


def _farthest(node: Node) -> int:
    assert node.bounds is not None
    return max(abs(bound) for bound in node.bounds)


def integral_division(left: Node, right: Node) -> Node:
    """`div`, which is one of BIGINT."""
    if left.type not in INTEGERS or right.type not in INTEGERS:
        raise Unknown("div of something other than integers")
    pair = (to_type(left, pa.int64()), to_type(right, pa.int64()))
    return apply(numbers.divide, pair, pa.int64(), "divide_checked", raises=True, order=(1, 0))


def remainder(left: Node, right: Node) -> Node:
    """`%`."""
    left, right = _numbers(left, right)
    bounds = None
    if right.bounds is not None:
        most = _farthest(right)
        bounds = (1 - max(most, 1), max(most, 1) - 1)
    raises = _may_be_zero(right)
    return apply(
        numbers.remainder, (left, right), left.type, left.type, raises=raises, order=(1, 0), bounds=bounds
    )


def _may_be_zero(node: Node) -> bool:
    if isinstance(node, Constant):
        return not node.value.is_valid or node.value.as_py() == 0
    return node.bounds is None or node.bounds[0] <= 0 <= node.bounds[1]


def unary(name: str, node: Node) -> Node:
    """`negate` or `abs`."""
    if node.type in FLOATS or pa.types.is_decimal(node.type):
        return apply(numbers.call, (node,), node.type, name)
    if node.type not in INTEGERS or node.bounds is None:
        raise Unknown(f"{name} of {node.type}")
    low, high = node.bounds
    bounds = (-high, -low) if name == "negate" else (0, max(abs(low), abs(high)))
    if fits(-low, node.type):
        return apply(numbers.call, (node,), node.type, name, bounds=bounds)
    return apply(numbers.checked, (node,), node.type, f"{name}_checked", raises=True)


def bitwise(name: str, left: Node, right: Node) -> Node:
    """`&`, `|` and `^` of integers."""
    if left.type not in INTEGERS or right.type not in INTEGERS:
        raise Unknown("bits of something other than integers")
    left, right = _numbers(left, right)
    return apply(numbers.call, (left, right), left.type, name)


def cast(node: Node, kind: pa.DataType, zone: str) -> Node:
    """CAST where it is exact, or raises just where Spark does."""
    own = node.type
    if own == kind:
        return node
    if own == pa.null():
        return constant(None, kind)
    if own == pa.string() and isinstance(node, Constant) and node.value.is_valid:
        return _cast_text(node.value.as_py(), kind, zone)
    if own in INTEGERS and kind in INTEGERS:
        return _cast_integer(node, kind)
    if isinstance(node, Constant) and pa.types.is_decimal(own) and kind == pa.float64():
        return to_type(node, kind)
    exact = (
        (own in INTEGERS and kind in (*FLOATS, pa.string(), pa.bool_()))
        or (own in FLOATS and kind in FLOATS)
        or (own == pa.bool_() and kind in (*INTEGERS, *FLOATS, pa.string()))
        or (own == pa.date32() and (kind == UNZONED or (kind == ZONED and is_utc(zone))))
        or ({own, kind} == {ZONED, UNZONED} and is_utc(zone))
    )
    if exact:
        bounds = (0, 1) if own == pa.bool_() and kind in INTEGERS else None
        return apply(numbers.convert, (node,), kind, kind, bounds=bounds)
    if own in FLOATS and kind in INTEGERS:
        return apply(numbers.truncate, (to_type(node, pa.float64()),), kind, kind, raises=True)
    if kind == pa.date32() and own in (ZONED, UNZONED):
        return time.as_date(node, zone)
    if kind == pa.int64() and own == ZONED:
        return time.seconds(node, down=True)
    raise Unknown(f"a cast from {own} to {kind}")


def _cast_integer(node: Node, kind: pa.DataType) -> Node:
    assert node.bounds is not None
    if all(fits(bound, kind) for bound in node.bounds):
        return apply(numbers.convert, (node,), kind, kind, bounds=node.bounds)
    return apply(numbers.narrow, (node,), kind, kind, raises=True)


def _cast_text(text: str, kind: pa.DataType, zone: str) -> Node:
    if kind in (pa.date32(), ZONED, UNZONED):
        return moment(text, kind, zone)
    special = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}
    if kind in FLOATS and text.lower() in special:
        return constant(special[text.lower()], kind)
    raise Unknown("a cast of text")
