"""Functions called by name, as nodes."""

from __future__ import annotations

import functools

import pyarrow as pa

from headrace.kernel.evaluate import numbers as numbers
from headrace.kernel.evaluate import operators as operators
from headrace.kernel.evaluate import text as text
from headrace.kernel.evaluate import time as time
from headrace.kernel.evaluate.nodes import (
    FLOATS,
    INTEGERS,
    Constant,
    Node,
    Unknown,
    apply,
    choose,
    coalesce,
    constant,
)
from headrace.kernel.evaluate.types import common, to_type

CASTS = {
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
}
"""Types whose names are functions that cast."""

_FAR = 2**62


def function(name: str, nodes: tuple[Node, ...], zone: str) -> Node:
    """A call of a function whose name is in lower case; raises `Unknown`."""
    match name, nodes:
        case "if", (condition, one, other):
            return choose((operators.truth(condition),), common((one, other)))
        case ("coalesce", (_, *_)) | ("nvl" | "ifnull", (_, _)):
            return coalesce(common(nodes))
        case "nullif", (one, other):
            equal = operators.compare("equal", one, other, zone)
            return choose((equal,), (constant(None, one.type), one))
        case (("isnull" | "isnotnull"), (node,)):
            return apply(numbers.call, (node,), pa.bool_(), "is_null" if name == "isnull" else "is_valid")
        case (("greatest" | "least"), (_, _, *_)):
            return _extreme(name, common(nodes), zone)
        case "abs", (node,):
            return operators.unary("abs", node)
        case "mod", (one, other):
            return operators.remainder(one, other)
        case (("floor" | "ceil" | "ceiling"), (node,)):
            return _whole("floor" if name == "floor" else "ceil", node)
        case "sqrt", (node,) if node.type in (*INTEGERS, *FLOATS):
            return apply(numbers.call, (to_type(node, pa.float64()),), pa.float64(), "sqrt")
        case _, (node,) if name in CASTS:
            return operators.cast(node, CASTS[name], zone)
        case _:
            return _text_function(name, nodes, zone)


def _extreme(name: str, nodes: tuple[Node, ...], zone: str) -> Node:
    """greatest and least: nulls do not count."""
    if any(node.raises for node in nodes):
        raise Unknown(f"{name} of what can raise")
    if nodes[0].type in (*INTEGERS, pa.string()):
        arrow = "max_element_wise" if name == "greatest" else "min_element_wise"
        return apply(numbers.call, nodes, nodes[0].type, arrow)

    def better(best: Node, node: Node) -> Node:
        wins = operators.compare("greater" if name == "greatest" else "less", node, best, zone)
        return choose((wins,), (node, coalesce((best, node))))

    return functools.reduce(better, nodes)


def _whole(name: str, node: Node) -> Node:
    """floor and ceil, which give BIGINT."""
    if node.type in INTEGERS:
        return to_type(node, pa.int64())
    # Versions of Spark differ in what they do with numbers beyond BIGINT.
    if node.type not in FLOATS or node.bounds is None or max(map(abs, node.bounds)) >= _FAR:
        raise Unknown(f"{name} of what can be large")
    return apply(numbers.whole, (to_type(node, pa.float64()),), pa.int64(), name, bounds=node.bounds)


def _text_function(name: str, nodes: tuple[Node, ...], zone: str) -> Node:
    match name, nodes:
        case _, (node,) if name in text.LENGTHS:
            return text.length(name, node)
        case (("trim" | "ltrim" | "rtrim"), (node,)):
            return text.trim(node, name)
        case "concat", _:
            return text.concat(nodes)
        case "left", (node, count):
            return text.left(node, count)
        case "right", (node, count):
            return text.right(node, count)
        case (("startswith" | "endswith" | "contains"), (node, part)) if _is_text(part):
            return text.has(name, node, _text(part))
        case _:
            return _time_function(name, nodes, zone)


def _time_function(name: str, nodes: tuple[Node, ...], zone: str) -> Node:
    match name, nodes:
        case _, (node,) if name in time.PARTS:
            return time.part(name, node, zone)
        case "date_trunc", (unit, node) if _is_text(unit):
            return time.truncate(_text(unit), node, zone)
        case "trunc", (node, unit) if _is_text(unit):
            return time.truncate_date(node, _text(unit), zone)
        case ("to_date", (node,)) if node.type != pa.string():
            return time.as_date(node, zone)
        case (("unix_timestamp" | "to_unix_timestamp" | "unix_seconds"), (node,)):
            return time.seconds(node, down=name == "unix_seconds")  # the older ones round towards the epoch
        case (("datediff" | "date_diff"), (end, start)):
            return time.days_between(end, start, zone)
    raise Unknown(f"function {name}")


def _is_text(node: Node) -> bool:
    return isinstance(node, Constant) and node.type == pa.string() and node.value.is_valid


def _text(node: Node) -> str:
    assert isinstance(node, Constant)
    return str(node.value.as_py())
