"""What a compiled expression is made of: frozen nodes that compute Arrow values from the rows of a batch.

A node knows its type, the columns that it reads, and whether it can raise. What can raise is computed only for
the rows for which Spark would compute it. A node that reads a single column of text, and cannot raise, is computed
once for each different text where the column comes dictionary-encoded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
FLOATS = (pa.float32(), pa.float64())
ZONED = pa.timestamp("us", "UTC")
UNZONED = pa.timestamp("us")

Bounds = tuple[int, int]


class Unknown(Exception):
    """The kernel does not know an expression."""


class Batch:
    """The columns of a batch, or of some of its rows."""

    def __init__(self, columns: Mapping[str, pa.Array], length: int) -> None:
        self.length = length
        self.constant = not columns  # no column has a part in what is computed
        self._columns = columns
        self._plain: dict[str, pa.Array] = {}

    def plain(self, name: str) -> pa.Array:
        """A column, decoded."""
        if name not in self._plain:
            column = self._columns[name]
            encoded = isinstance(column, pa.DictionaryArray)
            self._plain[name] = column.dictionary_decode() if encoded else column
        return self._plain[name]

    def encoded(self, name: str) -> pa.DictionaryArray | None:
        """A column that is dictionary-encoded, if computing on the dictionary is less work."""
        column = self._columns[name]
        return column if isinstance(column, pa.DictionaryArray) and len(column.dictionary) < self.length else None

    def where(self, mask: pa.Array, names: frozenset[str]) -> Batch:
        """The rows where the mask is true, with the columns of these names."""
        kept = {name: pc.filter(self._columns[name], mask) for name in names}
        return Batch(kept, pc.sum(mask).as_py() or 0)


@dataclass(frozen=True)
class Node:
    """A value for each row: an Arrow array, or a scalar where all rows have the same."""

    type: pa.DataType
    names: frozenset[str]
    raises: bool
    text: str | None  # the column of text that is all that the node reads
    bounds: Bounds | None  # the least and the most number that there can be, and no NaN; integers always have them

    def compute(self, batch: Batch) -> Any:
        """The values of these rows."""
        if self.text is None or self.raises or (encoded := batch.encoded(self.text)) is None:
            return self._compute(batch)
        texts, places = encoded.dictionary, encoded.indices
        if places.null_count:
            # One entry more than the dictionary has stands for rows that are null.
            texts = pa.concat_arrays([texts, pa.nulls(1, texts.type)])
            places = places.fill_null(len(texts) - 1)
        return _look_up(spread(self._compute(Batch({self.text: texts}, len(texts))), len(texts)), places)

    def where(self, batch: Batch, mask: pa.Array) -> Any:
        """The values of the rows where the mask is true; others raise nothing.

        Mostly no row raises, and then computing all of them is faster than setting some aside.
        """
        try:
            return self.compute(batch)
        except ArithmeticError:
            some = batch.where(mask, self.names)
        values = spread(self.compute(some), some.length)
        chosen = mask.to_numpy(zero_copy_only=False)
        return values.take(pa.array(np.cumsum(chosen) - 1, mask=~chosen))

    def _compute(self, batch: Batch) -> Any:
        raise NotImplementedError


@dataclass(frozen=True)
class Read(Node):
    """A column."""

    name: str

    def _compute(self, batch: Batch) -> Any:
        column = batch.plain(self.name)
        if column.type == self.type:
            return column
        if plain_type(column.type) == plain_type(self.type):
            return column.view(self.type)
        raise ValueError(f"column '{self.name}' is {column.type}, expected {self.type}")


@dataclass(frozen=True)
class Constant(Node):
    """One value for all rows, as Arrow has it."""

    value: Any

    def _compute(self, batch: Batch) -> Any:
        return spread(self.value, batch.length) if batch.constant else self.value


@dataclass(frozen=True)
class Apply(Node):
    """A function of operands and of options; `order` says which operand Spark looks at first.

    The second one is computed only where the first one is not null.
    """

    function: Callable[..., Any]
    operands: tuple[Node, ...]
    options: tuple[Any, ...]
    order: tuple[int, ...]

    def _compute(self, batch: Batch) -> Any:
        values: dict[int, Any] = {}
        for place, index in enumerate(self.order):
            operand = self.operands[index]
            if place and operand.raises:
                first = spread(values[self.order[0]], batch.length)
                values[index] = operand.where(batch, pc.is_valid(first))
            else:
                values[index] = operand.compute(batch)
        return self.function(*(values[index] for index in range(len(values))), *self.options)


@dataclass(frozen=True)
class Choose(Node):
    """CASE: for each row the value of the first condition that holds, else the last value."""

    conditions: tuple[Node, ...]
    branches: tuple[Node, ...]

    def _compute(self, batch: Batch) -> Any:
        if not self.raises:
            result = self.branches[-1].compute(batch)
            for condition, branch in zip(self.conditions[::-1], self.branches[-2::-1], strict=True):
                result = pc.if_else(_holds(condition.compute(batch)), branch.compute(batch), result)
            return result
        left = spread(pa.scalar(True), batch.length)
        result = pa.nulls(batch.length, self.type)
        for condition, branch in zip(self.conditions, self.branches, strict=False):
            chosen = pc.and_(left, _holds(spread(condition.where(batch, left), batch.length)))
            result = pc.if_else(chosen, branch.where(batch, chosen), result)
            left = pc.and_not(left, chosen)
        return pc.if_else(left, self.branches[-1].where(batch, left), result)


@dataclass(frozen=True)
class Coalesce(Node):
    """The first operand that is not null."""

    operands: tuple[Node, ...]

    def _compute(self, batch: Batch) -> Any:
        result = spread(self.operands[0].compute(batch), batch.length)
        for operand in self.operands[1:]:
            if result.null_count == 0:
                break
            result = pc.coalesce(result, operand.where(batch, pc.is_null(result)))
        return result


def plain_type(kind: pa.DataType) -> pa.DataType:
    """A type without the name of its zone, which is no part of a value."""
    return ZONED if pa.types.is_timestamp(kind) and kind.tz and kind.unit == "us" else kind


def read(name: str, kind: pa.DataType) -> Node:
    """A column."""
    text = name if kind == pa.string() else None
    return Read(kind, frozenset({name}), False, text, _range(kind), name)


def constant(value: Any, kind: pa.DataType) -> Constant:
    """A constant of a Python value."""
    scalar = pa.scalar(value, kind)
    bounds = (value, value) if kind in INTEGERS and value is not None else _range(kind)
    return Constant(kind, frozenset(), False, None, bounds, scalar)


def apply(
    function: Callable[..., Any],
    operands: tuple[Node, ...],
    kind: pa.DataType,
    *options: Any,
    raises: bool = False,
    bounds: Bounds | None = None,
    order: tuple[int, ...] | None = None,
) -> Node:
    """A function of nodes, computed at once where they are all constants.

    Raises `Unknown` where Spark might compute operands in another order, and the order matters.
    """
    order = order or tuple(range(len(operands)))
    if len(operands) > 2 and any(operand.raises for operand in operands[1:]):
        raise Unknown("an operand beyond the second that can raise")
    fields = _fields(operands, kind, raises)
    node = Apply(*fields, bounds or _range(kind), function, operands, options, order)
    return fold(node) if all(isinstance(operand, Constant) for operand in operands) else node


def choose(conditions: tuple[Node, ...], branches: tuple[Node, ...]) -> Node:
    """CASE over branches of one type."""
    bounds = _joined(branches)
    node = Choose(*_fields((*conditions, *branches), branches[0].type, False), bounds, conditions, branches)
    return fold(node) if all(isinstance(part, Constant) for part in (*conditions, *branches)) else node


def coalesce(operands: tuple[Node, ...]) -> Node:
    """The first one of one type that is not null."""
    node = Coalesce(*_fields(operands, operands[0].type, False), _joined(operands), operands)
    return fold(node) if all(isinstance(operand, Constant) for operand in operands) else node


def fold(node: Node) -> Node:
    """The constant that a node without columns is; raises `Unknown` where computing it fails."""
    try:
        value = spread(node.compute(Batch({}, 1)), 1)[0]
    except (ArithmeticError, ValueError) as error:
        raise Unknown("a constant that raises") from error
    return constant(value.as_py(), node.type) if node.type in INTEGERS else _constant_of(value)


def fits(value: int, kind: pa.DataType) -> bool:
    """Whether an integer is one of a type."""
    bounds = _range(kind)
    return bounds is not None and bounds[0] <= value <= bounds[1]


def spread(value: Any, length: int) -> pa.Array:
    """A value for each row as an array."""
    return pa.repeat(value, length) if isinstance(value, pa.Scalar) else value


def _look_up(values: pa.Array, places: pa.Array) -> pa.Array:
    """The values at places that are not null: NumPy is faster than `take` where values are booleans."""
    if values.type != pa.bool_():
        return values.take(places)
    numbers = places.to_numpy()
    mask = values.is_null().to_numpy(zero_copy_only=False)[numbers] if values.null_count else None
    return pa.array(values.fill_null(False).to_numpy(zero_copy_only=False)[numbers], mask=mask)


def _constant_of(value: pa.Scalar) -> Constant:
    return Constant(value.type, frozenset(), False, None, None, value)


def _fields(
    parts: tuple[Node, ...], kind: pa.DataType, raises: bool
) -> tuple[pa.DataType, frozenset[str], bool, str | None]:
    names: frozenset[str] = frozenset().union(*(part.names for part in parts))
    texts = {part.text for part in parts if part.names}
    raises = raises or any(part.raises for part in parts)
    return kind, names, raises, texts.pop() if len(texts) == 1 else None


def _joined(parts: tuple[Node, ...]) -> Bounds | None:
    bounds = [part.bounds for part in parts if part.bounds is not None]
    if len(bounds) < len(parts):
        return None
    return min(low for low, _ in bounds), max(high for _, high in bounds)


def _range(kind: pa.DataType) -> Bounds | None:
    return (-(2 ** (kind.bit_width - 1)), 2 ** (kind.bit_width - 1) - 1) if kind in INTEGERS else None


def _holds(condition: Any) -> Any:
    """Conditions with false in place of null, as an array or a scalar."""
    if isinstance(condition, pa.Scalar):
        return pa.scalar(condition.as_py() is True)
    return condition.fill_null(False) if condition.null_count else condition
