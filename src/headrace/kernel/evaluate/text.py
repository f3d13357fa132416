"""Functions of text: LIKE, lengths, pieces, and what joins them."""

from __future__ import annotations

import re
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headrace.kernel.evaluate.nodes import Constant, Node, Unknown, apply, constant
from headrace.kernel.evaluate.numbers import call

LENGTHS = frozenset({"length", "len", "char_length", "character_length", "octet_length"})
_MOST_BYTES = 2**31 - 1


def like(node: Node, pattern: str) -> Node:
    """LIKE with a constant pattern, in which a backslash escapes."""
    if node.type != pa.string():
        raise Unknown("LIKE of something other than text")
    parts = _parts(pattern)
    marks = [part for part in parts if part in (_ANY, _ONE)]
    text = "".join(part for part in parts if part not in (_ANY, _ONE))
    if not marks:
        return apply(call, (node, constant(text, pa.string())), pa.bool_(), "equal")
    edges = (parts[0] is _ANY, parts[-1] is _ANY)
    if all(mark is _ANY for mark in marks) and len(parts) - sum(edges) <= 1:
        return apply(matches, (node,), pa.bool_(), text, edges)
    # Python's escapes are those of RE2 too, other than for the null character.
    shapes = {_ANY: ".*", _ONE: "."}
    shape = "".join(shapes.get(part) or re.escape(part).replace("\x00", r"\x00") for part in parts)
    return apply(matches_shape, (node,), pa.bool_(), rf"(?s)\A{shape}\z")


_ANY, _ONE = "\ue000any", "\ue000one"


def _parts(pattern: str) -> list[str]:
    """Runs of plain text, and the wildcards between them."""
    parts: list[str] = []
    run = ""
    escaped = False
    if "\ue000" in pattern:
        raise Unknown("a private character in a pattern")
    for character in pattern:
        if escaped:
            if character not in "\\%_":
                raise Unknown("an escape that Spark refuses")
            run, escaped = run + character, False
        elif character == "\\":
            escaped = True
        elif character in "%_":
            mark = _ANY if character == "%" else _ONE
            parts += [run, mark] if run else [mark]
            run = ""
        else:
            run += character
    if escaped:
        raise Unknown("an escape of nothing")
    parts += [run] if run else []
    # One % is as good as two.
    return [part for index, part in enumerate(parts) if not (part is _ANY and index and parts[index - 1] is _ANY)]


def matches(value: Any, text: str, edges: tuple[bool, bool]) -> Any:
    """Whether a text stands somewhere, at the end or at the beginning, by whether % is before and behind it."""
    match edges:
        case (True, True):
            return pc.match_substring(value, text)
        case (True, False):
            return pc.ends_with(value, text)
        case _:
            return pc.starts_with(value, text)


def matches_shape(value: Any, shape: str) -> Any:
    """Whether a text has a shape (a regular expression of RE2)."""
    return pc.match_substring_regex(value, shape)


def has(name: str, node: Node, part: str) -> Node:
    """startswith, endswith and contains with a constant."""
    if node.type != pa.string():
        raise Unknown(f"{name} of something other than text")
    return apply(matches, (node,), pa.bool_(), part, (name != "startswith", name != "endswith"))


def length(name: str, node: Node) -> Node:
    """The characters of a text, or the bytes of bytes; octet_length counts bytes of both."""
    if node.type not in (pa.string(), pa.binary()):
        raise Unknown("a length of something other than text or bytes")
    characters = node.type == pa.string() and name != "octet_length"
    function = "utf8_length" if characters else "binary_length"
    return apply(call, (node,), pa.int32(), function, bounds=(0, _MOST_BYTES))


def substring(node: Node, start: Node, count: Node | None) -> Node:
    """A piece of a text, from a constant place on, of constant length."""
    if node.type != pa.string():
        raise Unknown("substring of something other than text")
    first = _integer(start)
    most = None if count is None else _integer(count)
    if first < 0:
        # From the end: where the piece ends before the text does, Spark counts on from before its beginning.
        if most is not None and most < -first:
            raise Unknown("substring from the end")
        return apply(cut, (node,), pa.string(), first, None)
    begin = max(first - 1, 0)
    return apply(cut, (node,), pa.string(), begin, None if most is None else begin + max(most, 0))


def left(node: Node, count: Node) -> Node:
    """The first characters."""
    return substring(node, constant(1, pa.int32()), count)


def right(node: Node, count: Node) -> Node:
    """The last characters."""
    most = _integer(count)
    return substring(node, constant(-most, pa.int32()), None) if most > 0 else left(node, constant(0, pa.int32()))


def cut(value: Any, start: int, stop: int | None) -> Any:
    """Characters from a place to before another."""
    return pc.utf8_slice_codeunits(value, start, stop)


def concat(nodes: tuple[Node, ...]) -> Node:
    """Texts one after the other, null where one is."""
    # Spark may or may not compute what stands behind a null.
    if not nodes or any(node.type != pa.string() or node.raises for node in nodes):
        raise Unknown("concat of something other than text, or of what can raise")
    return apply(join, nodes, pa.string()) if len(nodes) > 1 else nodes[0]


def join(*values: Any) -> Any:
    """The same for Arrow values."""
    return pc.binary_join_element_wise(*values, pa.scalar(""))


def trim(node: Node, name: str) -> Node:
    """Text without spaces (only these) at its ends."""
    if node.type != pa.string():
        raise Unknown("trim of something other than text")
    return apply(strip, (node,), pa.string(), name)


def strip(value: Any, name: str) -> Any:
    """The same for Arrow values."""
    return {"trim": pc.utf8_trim, "ltrim": pc.utf8_ltrim, "rtrim": pc.utf8_rtrim}[name](value, characters=" ")


def _integer(node: Node) -> int:
    if not isinstance(node, Constant) or node.type != pa.int32() or not node.value.is_valid:
        raise Unknown("a place in a text that is not a constant")
    value: int = node.value.as_py()
    if abs(value) > 2**30:
        raise Unknown("a place near the largest integer")
    return value
