"""Many conditions at a time: records are sorted into cells, and conditions are computed once for each cell.

Conditions are put together from atoms. All atoms that compare one value with constants share a list of cuts: one
binary search tells for a record where its value lies among them, and so the outcome of each. Any other atom is
computed once, whatever the number of conditions that it is in. What a record is in all of these is its cell. There
are far fewer cells than records, and a new one is looked at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.ops import Words
from headrace.algebra.words import in_memory, integers_of, truth
from headrace.kernel.evaluate import Evaluator, numbers
from headrace.kernel.evaluate.nodes import FLOATS, Apply, Batch, Constant, Node, spread
from headrace.kernel.evaluate.operators import logic_of
from headrace.kernel.table import Table

_ATOM_NS, _VALUE_NS, _CELL_NS = 3, 15, 25
"""What it takes for a record to compute an atom, to find a value among cuts, and to find its cell; about."""
_MOST, _MOST_CELLS = 1 << 62, 1 << 31
_MOST_TRUTHS = 1 << 26
"""Conditions of all cells that are remembered; beyond, they are looked at anew."""

Outcomes = npt.NDArray[np.int8]
"""0 false, 1 null, 2 true: AND is the least of its parts, OR the greatest."""


@dataclass(frozen=True)
class Cuts:
    """A value that is compared with constants, and these in order.

    Its classes: 2 i is below constant i and above the one before, 2 i + 1 is equal to it; then NaN, and null.
    """

    value: Node
    constants: npt.NDArray[Any]

    @property
    def classes(self) -> int:
        """How many classes there are."""
        return 2 * len(self.constants) + 3

    def classify(self, values: pa.Array, cells: Words) -> None:
        """Write the class of each value as one more digit of its cell."""
        known = np.empty(0, dtype=np.bool_) if values.null_count == 0 else np.asarray(values.is_valid())
        classify(in_memory(values, self.constants.dtype), known.astype(np.bool_), self.constants, cells)

    @cached_property
    def examples(self) -> pa.Array:
        """A value of each class; anything for a class that has none."""
        constants = self.constants
        between = np.concatenate([_step(constants[:1], -1), _step(constants, 1)])
        found = np.empty(self.classes - 2, dtype=constants.dtype)
        found[0::2], found[1::2] = between, constants
        kind, nan = self.value.type, [float("nan")] if self.value.type in FLOATS else constants[:1].tolist()
        ends = pa.array([*nan, None], pa.from_numpy_dtype(constants.dtype))
        return pa.concat_arrays([pa.array(found), ends]).view(kind)


@dataclass(frozen=True)
class Cells:
    """Conditions that raise for no record."""

    conditions: tuple[Evaluator, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that they read."""
        return tuple(dict.fromkeys(name for condition in self.conditions for name in condition.names))

    @cached_property
    def parts(self) -> tuple[tuple[Cuts, ...], tuple[Node, ...]]:
        """The values that are cut, and all other atoms."""
        compared: list[tuple[Node, list[Any]]] = []
        others: list[Node] = []
        for atom in self._atoms:
            if (found := _compared(atom)) is None:
                others += [atom] if atom not in others else []
                continue
            value, constant = found
            known = next((constants for other, constants in compared if other == value), None)
            if known is None:
                compared.append((value, known := []))
            known.append(constant)
        cuts = (Cuts(value, np.unique(np.array(constants, _held(value)))) for value, constants in compared)
        return tuple(cuts), tuple(others)

    @property
    def pays(self) -> bool:
        """Whether it takes less than to compute every condition of every record."""
        cuts, others = self.parts
        together = _VALUE_NS * len(cuts) + _ATOM_NS * len(others) + _CELL_NS
        return together < _ATOM_NS * len(self._atoms)

    def comparing(self, cuts: Cuts) -> list[Apply]:
        """The atoms that compare a value, each once."""
        found: list[Apply] = []
        for atom in self._atoms:
            compared = _compared(atom)
            if compared is not None and compared[0] == cuts.value and atom not in found:
                assert isinstance(atom, Apply)
                found.append(atom)
        return found

    @property
    def _atoms(self) -> list[Node]:
        return [atom for condition in self.conditions for atom in _atoms(condition.node)]


class Sorter:
    """The cells that records of one task have been in so far."""

    def __init__(self, cells: Cells) -> None:
        self._names = cells.names
        self._cuts, self._others = cells.parts
        self._compared: list[list[Outcomes]] = [[] for _ in self._cuts]
        """For each value the atoms that compare it, by class."""
        atoms: list[Node] = [*self._others]
        for place, cuts in enumerate(self._cuts):
            for atom in cells.comparing(cuts):
                atoms.append(atom)
                self._compared[place].append(_by_class(atom, cuts))
        self._conditions = [_placed(condition.node, atoms) for condition in cells.conditions]
        self._tables: list[Table] = []
        self._truths = np.empty((0, len(cells.conditions)), dtype=np.bool_)

    def sort(self, columns: Mapping[str, pa.Array], length: int) -> list[pa.DictionaryArray]:
        """For each condition where it is true: the cells of records, the same for all, and what it is in each."""
        batch = Batch({name: columns[name] for name in self._names}, length)
        values = [spread(cuts.value.compute(batch), length) for cuts in self._cuts]
        others = [_outcomes(spread(atom.compute(batch), length)) for atom in self._others]
        if self._truths.size > _MOST_TRUTHS:
            self._tables, self._truths = [], self._truths[:0]
        numbers = self._numbers(values, others, length)
        here, first = number_anew(numbers, max(len(self._truths), int(numbers.max(initial=-1)) + 1))
        found = numbers[first]
        new = first[found >= len(self._truths)]
        if len(new):
            self._learn(new, values, others)
        cells = pa.array(here)
        truths = np.ascontiguousarray(self._truths[found].T)
        return [pa.DictionaryArray.from_arrays(cells, pa.array(own), safe=False) for own in truths]

    def _numbers(self, values: Sequence[pa.Array], others: Sequence[Outcomes], length: int) -> Words:
        """The number of each record's cell, in the order in which cells came first."""
        cells, most, found = np.zeros(length, dtype=np.int64), 1, 0
        for place, radix in enumerate([*(cuts.classes for cuts in self._cuts), *[3] * len(others)]):
            if most * radix >= _MOST:
                cells, most, found = self._found(cells, found), _MOST_CELLS, found + 1
            if place < len(values):
                self._cuts[place].classify(values[place], cells)
            else:
                cells *= 3
                cells += others[place - len(values)]
            most *= radix
        return self._found(cells, found)

    def _found(self, cells: Words, table: int) -> Words:
        if table == len(self._tables):
            self._tables.append(Table(1, ()))
        return self._tables[table].add(cells.reshape(-1, 1))

    def _learn(self, records: Words, values: Sequence[pa.Array], others: Sequence[Outcomes]) -> None:
        """Compute the conditions of new cells, each of one of its records, in the order of cells."""
        outcomes = [own[records] for own in others]
        for cuts, compared, own in zip(self._cuts, self._compared, values, strict=True):
            classes = np.zeros(len(records), dtype=np.int64)
            cuts.classify(own.take(pa.array(records)), classes)
            outcomes += [by_class[classes] for by_class in compared]
        truths = [_outcome(condition, outcomes) == 2 for condition in self._conditions]
        self._truths = np.concatenate([self._truths, np.stack(truths, axis=1)])


Placed = int | tuple[str, tuple["Placed", ...]]
"""A condition with atoms by their places: one of them, or AND, OR or NOT of such."""


def _placed(node: Node, atoms: Sequence[Node]) -> Placed:
    logic = logic_of(node)
    if logic is None:
        return atoms.index(node)
    name, parts = logic
    return name, tuple(_placed(part, atoms) for part in parts)


def _outcome(condition: Placed, outcomes: Sequence[Outcomes]) -> Outcomes:
    """What a condition is, by its atoms."""
    if isinstance(condition, int):
        return outcomes[condition]
    name, parts = condition
    found = [_outcome(part, outcomes) for part in parts]
    if name == "invert":
        return (2 - found[0]).astype(np.int8)
    return np.minimum(*found) if name == "and_kleene" else np.maximum(*found)


def _by_class(atom: Apply, cuts: Cuts) -> Outcomes:
    """What an atom is for each class of the value that it compares."""
    operands = [part.value if isinstance(part, Constant) else cuts.examples for part in atom.operands]
    return _outcomes(atom.function(*operands, *atom.options))


def _atoms(node: Node) -> Iterator[Node]:
    """What a condition is put together from."""
    logic = logic_of(node)
    if logic is None:
        yield node
    else:
        for part in logic[1]:
            yield from _atoms(part)


def _compared(atom: Node) -> tuple[Node, Any] | None:
    """A value, and the number or time that an atom compares it with; None for any other atom."""
    match atom:
        case Apply(function=(numbers.call | numbers.compare_floats), operands=(one, Constant() as bound)):
            value = one
        case Apply(function=(numbers.call | numbers.compare_floats), operands=(Constant() as bound, other)):
            value = other
        case _:
            return None
    if atom.options[0] not in numbers.SIGNS or value.raises or not value.names or not bound.value.is_valid:
        return None
    held = _held(value)
    if bound.type != value.type or held is None:
        return None
    (constant,) = in_memory(pa.array([bound.value.as_py()], value.type), held).tolist()
    return None if constant != constant else (value, constant)


def _held(value: Node) -> np.dtype[Any] | None:
    """The numbers that values are in memory; None where they are something else."""
    return np.dtype(value.type.to_pandas_dtype()) if value.type in FLOATS else integers_of(value.type)


def _step(numbers: npt.NDArray[Any], way: int) -> npt.NDArray[Any]:
    """The next number after each, or before; itself where there is none."""
    if numbers.dtype.kind == "f":
        following: npt.NDArray[Any] = np.nextafter(numbers, numbers.dtype.type(way * np.inf))
        return following
    end = np.iinfo(numbers.dtype).max if way > 0 else np.iinfo(numbers.dtype).min
    return np.where(numbers == end, numbers, numbers + numbers.dtype.type(way))


def _outcomes(found: pa.Array) -> Outcomes:
    outcomes = truth(found).view(np.int8) * np.int8(2)
    if found.null_count:
        outcomes[np.asarray(found.is_null())] = 1
    return outcomes


@numba.njit(nogil=True, cache=True)
def classify(values, known, constants, cells):  # type: ignore[no-untyped-def]
    """Write the class of each value among the constants as one more digit of its cell: see `Cuts`."""
    count = len(constants)
    classes = 2 * count + 3
    for i in range(len(values)):
        value = values[i]
        low, high = 0, count
        while low < high:
            middle = (low + high) >> 1
            if constants[middle] < value:
                low = middle + 1
            else:
                high = middle
        own = 2 * low + (low < count and constants[low] == value)
        if value != value:
            own = classes - 2
        if len(known) and not known[i]:
            own = classes - 1
        cells[i] = cells[i] * classes + own


@numba.njit(nogil=True, cache=True)
def number_anew(numbers, most):  # type: ignore[no-untyped-def]
    """Numbers below a most by the order in which they come, and where each of them comes first."""
    anew = np.full(most, -1, dtype=np.int32)
    own = np.empty(len(numbers), dtype=np.int32)
    first = np.empty(min(most, len(numbers)), dtype=np.int64)
    count = 0
    for i in range(len(numbers)):
        if anew[numbers[i]] < 0:
            anew[numbers[i]] = count
            first[count] = i
            count += 1
        own[i] = anew[numbers[i]]
    return own, first[:count]
