"""Which condition is true wherever another one is.

A condition that is true says between which values some columns lie. What another condition can be for such values
is asked just as for a row group's (see skip.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from headrace.algebra.ops import INT_MAX, INT_MIN
from headrace.kernel.evaluate import Evaluator, numbers
from headrace.kernel.evaluate.nodes import INTEGERS, Apply, Constant, Node, Read
from headrace.kernel.evaluate.operators import logic_of
from headrace.sources.parquet import Extent
from headrace.sources.skip import WHOLE, constant_range, outcomes


def implies(condition: Evaluator, other: Evaluator) -> bool:
    """True only where the other one is true for every record that a condition is true for; neither raises."""
    cases = (tuple(_parts(case, "and_kleene")) for case in _parts(condition.node, "or_kleene"))
    return all(_prove(case, other.node) for case in cases)


def _parts(node: Node, logic: str) -> Iterator[Node]:
    """What is put together by AND, or by OR."""
    match logic_of(node):
        case name, parts if name == logic:
            for part in parts:
                yield from _parts(part, logic)
        case _:
            yield node


def _prove(given: Sequence[Node], condition: Node) -> bool:
    """Whether a condition is true where all that is given is."""
    extents: dict[str, Extent] = {}
    for part in given:
        if (bounds := _bounds(part)) is not None:
            name, least, most = bounds
            known = extents.get(name, Extent(INT_MIN, INT_MAX, 0))
            extents[name] = Extent(max(known.least, least), min(known.most, most), 0)
    return all(part in given or outcomes(part, extents) == {True} for part in _parts(condition, "and_kleene"))


def _bounds(test: Node) -> tuple[str, int, int] | None:
    """A column of whole numbers or times, and from which to which of them it lies where a test is true."""
    if not isinstance(test, Apply):
        return None
    match test.function, test.options, test.operands:
        case numbers.within, (listed, _), (value,) if value.type in WHOLE and len(listed.values):
            words = listed.values.cast(pa.int64()).to_pylist()
            name, least, most = "equal", min(words), max(words)
        case numbers.call, (str(name),), (value, Constant() as bound) if (word := _word(bound)) is not None:
            least = most = word
        case numbers.call, (str(turned),), (Constant() as bound, value) if (word := _word(bound)) is not None:
            name, least, most = numbers.TURNED.get(turned, turned), word, word
        case _:
            return None
    column = _column(value)
    ends = {
        "equal": (least, most),
        "less": (INT_MIN, most - 1),
        "less_equal": (INT_MIN, most),
        "greater": (least + 1, INT_MAX),
        "greater_equal": (least, INT_MAX),
    }
    return (column, *ends[name]) if column is not None and name in ends else None


def _column(value: Node) -> str | None:
    """The column whose whole numbers or times these values are."""
    match value:
        case Read(type=kind, name=name) if kind in WHOLE:
            return name
        case Apply(function=numbers.convert, operands=(inner,), type=kind) if kind in INTEGERS:
            return _column(inner) if inner.type in INTEGERS else None
    return None


def _word(constant: Constant) -> int | None:
    """A whole number, or a time in microseconds."""
    found = constant_range(constant) if constant.type in WHOLE else None
    return int(found.ends[0]) if found is not None and found.ends is not None else None
