"""Values that are compared with constants or with multiples of another value: between which of these they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.ops import Words
from headrace.algebra.words import in_memory, integers_of
from headrace.kernel.evaluate import numbers
from headrace.kernel.evaluate.nodes import FLOATS, Apply, Constant, Node

_BLOCK = 256
"""Values that are searched for together."""
_SIZE = 2.0**500
"""Constants and scales between this and its inverse have products that are exact but for their last digit,"""
_APART = 2.0**-50
"""so that those of constants which are apart by this part of them are in the same order."""


@dataclass(frozen=True)
class Cuts:
    """A value that is compared with constants, and these in order.

    Its classes: 2 i is below constant i and above the one before, 2 i + 1 is equal to it; then NaN, and null.
    """

    value: Node
    constants: npt.NDArray[Any]

    @property
    def operands(self) -> tuple[Node, ...]:
        """What is computed of records."""
        return (self.value,)

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return 2 * len(self.constants) + 3

    def classify(self, values: Sequence[pa.Array], cells: Words) -> bool:
        """Write the class of each value as one more digit of its cell."""
        (own,) = values
        classify(in_memory(own, self.constants.dtype), _known(values), self.constants, cells)
        return True

    @cached_property
    def examples(self) -> tuple[pa.Array, ...]:
        """A value of each class; anything for a class that has none."""
        kind, constants = self.value.type, self.constants
        nan = [float("nan")] if kind in FLOATS else constants[:1].tolist()
        ends = pa.array([*nan, None], pa.from_numpy_dtype(constants.dtype))
        return (pa.concat_arrays([pa.array(_around(constants)), ends]).view(kind),)


@dataclass(frozen=True)
class ScaledCuts:
    """A value that is compared with multiples of another one, its scale, and the factors of these in order.

    Its classes: as those of `Cuts` where the scale is positive; as many where it is negative, of the value with
    the other sign; below, equal to and above a scale that is zero; a value, a scale, or both that are NaN; null. A
    scale beyond `_SIZE` has none: products might not be in the order of their factors.
    """

    value: Node
    scale: Node
    constants: npt.NDArray[Any]

    @property
    def operands(self) -> tuple[Node, ...]:
        """What is computed of records."""
        return self.value, self.scale

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return 2 * (2 * len(self.constants) + 1) + 7

    def classify(self, values: Sequence[pa.Array], cells: Words) -> bool:
        """Write the class of each value as one more digit of its cell; says if all have one."""
        own, scales = (in_memory(each, self.constants.dtype) for each in values)
        return bool(classify_scaled(own, scales, _known(values), self.constants, _SIZE, cells))

    @cached_property
    def examples(self) -> tuple[pa.Array, ...]:
        """A value and a scale of each class."""
        around, ones = _around(self.constants), np.ones(2 * len(self.constants) + 1)
        nan = float("nan")
        values = np.concatenate([around, -around, [-1.0, 0.0, 1.0], [nan, 1.0, nan]])
        scales = np.concatenate([ones, -ones, [0.0, 0.0, 0.0], [1.0, nan, nan]])
        null = pa.nulls(1, pa.float64())
        return tuple(pa.concat_arrays([pa.array(each), null]) for each in (values, scales))

    @staticmethod
    def fits(constants: npt.NDArray[Any]) -> bool:
        """Whether products of such constants are in their order."""
        sizes = np.abs(constants[constants != 0])
        apart = np.diff(constants) > _APART * np.maximum(np.abs(constants[1:]), np.abs(constants[:-1]))
        return bool(apart.all() and (sizes < _SIZE).all() and (sizes > 1 / _SIZE).all())


def _known(values: Sequence[pa.Array]) -> npt.NDArray[np.bool_]:
    """Where none of some values is null; of no length where that is everywhere."""
    valid = [np.asarray(each.is_valid(), dtype=np.bool_) for each in values if each.null_count]
    return np.logical_and.reduce(valid) if valid else np.empty(0, dtype=np.bool_)


def _around(constants: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """A number below all constants, each of them, and a number after each."""
    found = np.empty(2 * len(constants) + 1, dtype=constants.dtype)
    found[0::2] = np.concatenate([_step(constants[:1], -1), _step(constants, 1)])
    found[1::2] = constants
    return found


Sides = tuple[Node, ...]
"""A value that is compared with constants, or with multiples of a second one."""


def sides_of(atom: Node) -> tuple[Sides, Any] | None:
    """A value, and the number or time that an atom compares it with; None for any other atom."""
    match _comparison(atom):
        case (Constant() as bound, value) | (value, Constant() as bound):
            held = held_as(value)
            if value.raises or not value.names or bound.type != value.type or held is None:
                return None
            constant = _number_in(bound, held)
            return None if constant is None else ((value,), constant)
    return None


def scaled_sides_of(atom: Node) -> tuple[Sides, float] | None:
    """A value and a scale, and the factor of the multiple of this that an atom compares it with."""
    match _comparison(atom):
        case (Apply(function=numbers.call, options=("multiply",)) as product, value) | (
            value,
            Apply(function=numbers.call, options=("multiply",)) as product,
        ):
            pass
        case _:
            return None
    match product.operands:
        case (Constant() as bound, scale) | (scale, Constant() as bound):
            pass
        case _:
            return None
    sides = value, scale
    if product.type != pa.float64() or any(side.raises or not side.names for side in sides):
        return None
    constant = _number_in(bound, np.dtype(np.float64))
    return None if constant is None else (sides, constant)


def _comparison(atom: Node) -> tuple[Node, ...] | None:
    """The two sides of an atom that is a comparison."""
    match atom:
        case Apply(function=(numbers.call | numbers.compare_floats), operands=(_, _) as sides, options=(name,)):
            return sides if name in numbers.SIGNS else None
    return None


def _number_in(bound: Constant, held: np.dtype[Any]) -> Any:
    """A constant as the number that it is in memory; None where there is none, or no other is like it."""
    if not bound.value.is_valid:
        return None
    (constant,) = in_memory(pa.array([bound.value.as_py()], bound.type), held).tolist()
    return constant if constant == constant else None


def held_as(value: Node) -> np.dtype[Any] | None:
    """The numbers that values are in memory; None where they are something else."""
    return np.dtype(value.type.to_pandas_dtype()) if value.type in FLOATS else integers_of(value.type)


def _step(numbers: npt.NDArray[Any], way: int) -> npt.NDArray[Any]:
    """The next number after each, or before; itself where there is none."""
    if numbers.dtype.kind == "f":
        following: npt.NDArray[Any] = np.nextafter(numbers, numbers.dtype.type(way * np.inf))
        return following
    end = np.iinfo(numbers.dtype).max if way > 0 else np.iinfo(numbers.dtype).min
    return np.where(numbers == end, numbers, numbers + numbers.dtype.type(way))


@numba.njit(nogil=True, cache=True)
def classify(values, known, constants, cells):  # type: ignore[no-untyped-def]
    """Write the class of each value among the constants as one more digit of its cell: see `Cuts`."""
    count, below = len(constants), np.empty(_BLOCK, dtype=np.int64)
    classes = 2 * count + 3
    for begin in range(0, len(values), _BLOCK):
        own = values[begin : begin + _BLOCK]
        _search(own, constants, below)
        for i in range(len(own)):
            low = below[i]
            found = 2 * low + (low < count and constants[np.uint64(low)] == own[i])
            if own[i] != own[i]:
                found = classes - 2
            if len(known) and not known[begin + i]:
                found = classes - 1
            cells[begin + i] = cells[begin + i] * classes + found


@numba.njit(nogil=True, cache=True)
def classify_scaled(values, scales, known, constants, size, cells):  # type: ignore[no-untyped-def]
    """Write the class of each value among multiples of its scale as one more digit of its cell: see `ScaledCuts`.

    Says if all have one.
    """
    count, below = len(constants), np.empty(_BLOCK, dtype=np.int64)
    own, sizes = np.empty(_BLOCK), np.empty(_BLOCK)
    around, least = 2 * count + 1, 1 / size
    classes = 2 * around + 7
    for begin in range(0, len(values), _BLOCK):
        length = min(_BLOCK, len(values) - begin)
        for i in range(length):
            negative = scales[begin + i] < 0
            own[i] = -values[begin + i] if negative else values[begin + i]
            sizes[i] = abs(scales[begin + i])
        _search_scaled(own[:length], sizes, constants, below)
        for i in range(length):
            value, scale, low = own[i], sizes[i], below[i]
            if len(known) and not known[begin + i]:
                found = classes - 1
            elif scale != scale:
                found = classes - (2 if value != value else 3)
            elif scale != 0 and not least < scale < size:
                return False
            elif value != value:
                found = classes - 4
            elif scale == 0:
                found = 2 * around + 1 + (value > 0) - (value < 0)
            else:
                found = 2 * low + (low < count and constants[np.uint64(low)] * scale == value)
                found += around * (scales[begin + i] < 0)
            cells[begin + i] = cells[begin + i] * classes + found
    return True


# Searches go step by step for a whole block, which the processor does for several values at a time.


@numba.njit(nogil=True, cache=True)
def _search(values, constants, below):  # type: ignore[no-untyped-def]
    """How many constants are below each value of a block."""
    below[:] = 0
    left = len(constants)
    while left > 0:
        half = (left + 1) >> 1
        for i in range(len(values)):
            below[i] += half * (constants[np.uint64(below[i] + half - 1)] < values[i])
        left -= half


@numba.njit(nogil=True, cache=True)
def _search_scaled(values, scales, constants, below):  # type: ignore[no-untyped-def]
    """How many constants times its scale are below each value of a block."""
    below[:] = 0
    left = len(constants)
    while left > 0:
        half = (left + 1) >> 1
        for i in range(len(values)):
            below[i] += half * (constants[np.uint64(below[i] + half - 1)] * scales[i] < values[i])
        left -= half
