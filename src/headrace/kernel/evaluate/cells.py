"""Many conditions at a time: records are sorted into cells, and conditions are computed once for each cell.

Conditions are put together from atoms. All atoms that compare one value with constants share a list of cuts: one
binary search tells for a record where its value lies among them, and so the outcome of each. So do atoms that
compare it with multiples of another value: the search is then among the constants times this. Any other atom is
computed once, whatever the number of conditions that it is in. What a record is in all of these is its cell. There
are far fewer cells than records, and a new one is looked at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.algebra.ops import Words
from headrace.algebra.words import truth
from headrace.kernel.evaluate import Evaluator
from headrace.kernel.evaluate.cuts import Cuts, ScaledCuts, Sides, held_as, scaled_sides_of, sides_of
from headrace.kernel.evaluate.nodes import Apply, Batch, Constant, Node, spread
from headrace.kernel.evaluate.operators import logic_of
from headrace.kernel.fragments import sign
from headrace.kernel.table import Table

_ATOM_NS, _VALUE_NS, _CELL_NS = 3, 15, 25
"""What it takes for a record to compute an atom, to find a value among cuts, and to find its cell; about."""
_MOST, _MOST_CELLS = 1 << 62, 1 << 31
_MOST_TRUTHS = 1 << 26
"""Conditions of all cells that are remembered; beyond, they are looked at anew."""

Outcomes = npt.NDArray[np.int8]
"""0 false, 1 null, 2 true: AND is the least of its parts, OR the greatest."""


@dataclass(frozen=True)
class Cells:
    """Conditions that raise for no record; if `scaled`, those that compare with multiples are cut, too."""

    conditions: tuple[Evaluator, ...]
    scaled: bool = True

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that they read."""
        return tuple(dict.fromkeys(name for condition in self.conditions for name in condition.names))

    @cached_property
    def parts(self) -> tuple[tuple[Cuts | ScaledCuts, ...], tuple[Node, ...]]:
        """The values that are cut, and all other atoms."""
        compared: dict[Sides, list[Any]] = {}
        for atom in dict.fromkeys(self._atoms):
            if (found := self._compared(atom)) is not None:
                compared.setdefault(found[0], []).append(found[1])
        cuts: list[Cuts | ScaledCuts] = []
        for sides, given in compared.items():
            constants = np.unique(np.array(given, held_as(sides[0])))
            match sides:
                case (value,):
                    cuts.append(Cuts(value, constants))
                case (value, scale) if ScaledCuts.fits(constants):
                    cuts.append(ScaledCuts(value, scale, constants))
        known = {own.operands for own in cuts}
        others = [atom for atom in dict.fromkeys(self._atoms) if self._sides(atom) not in known]
        return tuple(cuts), tuple(others)

    @property
    def pays(self) -> bool:
        """Whether it takes less than to compute every condition of every record."""
        cuts, others = self.parts
        together = _VALUE_NS * len(cuts) + _ATOM_NS * len(others) + _CELL_NS
        return together < _ATOM_NS * len(self._atoms)

    def comparing(self, cuts: Cuts | ScaledCuts) -> list[Apply]:
        """The atoms that compare a value, each once."""
        found = [atom for atom in dict.fromkeys(self._atoms) if self._sides(atom) == cuts.operands]
        return [atom for atom in found if isinstance(atom, Apply)]

    def _sides(self, atom: Node) -> Sides | None:
        compared = self._compared(atom)
        return compared[0] if compared is not None else None

    def _compared(self, atom: Node) -> tuple[Sides, Any] | None:
        """What an atom compares, and the constant; None for an atom that is computed as it is."""
        return sides_of(atom) or (scaled_sides_of(atom) if self.scaled else None)

    @property
    def _atoms(self) -> list[Node]:
        return [atom for condition in self.conditions for atom in _atoms(condition.node)]


class Sorter:
    """The cells that records of one task have been in so far."""

    def __init__(self, cells: Cells) -> None:
        self._cells = cells
        self._cuts, self._others = cells.parts
        self._compared: list[list[Outcomes]] = [[] for _ in self._cuts]
        """For each value the atoms that compare it, by class."""
        atoms: list[Node] = [*self._others]
        for place, cuts in enumerate(self._cuts):
            for atom in cells.comparing(cuts):
                atoms.append(atom)
                self._compared[place].append(_by_class(atom, cuts))
        places = {atom: place for place, atom in enumerate(atoms)}
        self._conditions = [_placed(condition.node, places) for condition in cells.conditions]
        self._tables: list[Table] = []
        self._fragments = self._none

    def sort(self, columns: Mapping[str, pa.Array], length: int) -> pa.DictionaryArray:
        """The cell of each record, and for each cell its fragment: the signature of the conditions.

        Cells keep their numbers, so that what is known of those before need not be asked again. When they are too
        many, all are forgotten.
        """
        batch = Batch({name: columns[name] for name in self._cells.names}, length)
        values = [[spread(own.compute(batch), length) for own in cuts.operands] for cuts in self._cuts]
        others = [_outcomes(spread(atom.compute(batch), length)) for atom in self._others]
        if len(self._fragments) * len(self._conditions) > _MOST_TRUTHS:
            self._tables, self._fragments = [], self._none
        numbers = self._numbers(values, others, length)
        if numbers is None:
            return self._unscaled.sort(columns, length)
        news = np.flatnonzero(numbers >= len(self._fragments))
        if len(news):
            _, first = np.unique(numbers[news], return_index=True)
            self._learn(news[first], values, others)
        return pa.DictionaryArray.from_arrays(pa.array(numbers), self._fragments, safe=False)

    @cached_property
    def _unscaled(self) -> Sorter:
        """For batches with a scale of which too little is known."""
        return Sorter(replace(self._cells, scaled=False))

    @property
    def _none(self) -> pa.Array:
        return sign(np.empty((0, len(self._conditions)), dtype=np.bool_))

    def _numbers(
        self, values: Sequence[Sequence[pa.Array]], others: Sequence[Outcomes], length: int
    ) -> npt.NDArray[np.int32] | None:
        """The number of each record's cell, in the order in which cells came first; None if one has no class."""
        cells, most, found = np.zeros(length, dtype=np.int64), 1, 0
        for place, radix in enumerate([*(cuts.classes for cuts in self._cuts), *[3] * len(others)]):
            if most * radix >= _MOST:
                cells, most, found = self._found(cells, found).astype(np.int64), _MOST_CELLS, found + 1
            if place < len(values):
                if not self._cuts[place].classify(values[place], cells):
                    return None
            else:
                cells *= 3
                cells += others[place - len(values)]
            most *= radix
        return self._found(cells, found)

    def _found(self, cells: Words, table: int) -> npt.NDArray[np.int32]:
        if table == len(self._tables):
            self._tables.append(Table(1, ()))
        return self._tables[table].add(cells.reshape(-1, 1)).astype(np.int32)

    def _learn(self, records: Words, values: Sequence[Sequence[pa.Array]], others: Sequence[Outcomes]) -> None:
        """Compute the conditions of new cells, each of one of its records, in the order of cells."""
        outcomes = [own[records] for own in others]
        for cuts, compared, own in zip(self._cuts, self._compared, values, strict=True):
            classes = np.zeros(len(records), dtype=np.int64)
            cuts.classify([each.take(pa.array(records)) for each in own], classes)
            outcomes += [by_class[classes] for by_class in compared]
        truths = [_outcome(condition, outcomes) == 2 for condition in self._conditions]
        self._fragments = pa.concat_arrays([self._fragments, sign(np.stack(truths, axis=1))])


Placed = int | tuple[str, tuple["Placed", ...]]
"""A condition with atoms by their places: one of them, or AND, OR or NOT of such."""


def _placed(node: Node, places: Mapping[Node, int]) -> Placed:
    logic = logic_of(node)
    if logic is None:
        return places[node]
    name, parts = logic
    return name, tuple(_placed(part, places) for part in parts)


def _outcome(condition: Placed, outcomes: Sequence[Outcomes]) -> Outcomes:
    """What a condition is, by its atoms."""
    if isinstance(condition, int):
        return outcomes[condition]
    name, parts = condition
    found = [_outcome(part, outcomes) for part in parts]
    if name == "invert":
        return (2 - found[0]).astype(np.int8)
    return np.minimum(*found) if name == "and_kleene" else np.maximum(*found)


def _by_class(atom: Apply, cuts: Cuts | ScaledCuts) -> Outcomes:
    """What an atom is for each class of the value that it compares."""
    examples = dict(zip(cuts.operands, cuts.examples, strict=True))

    def shown(part: Node) -> Any:
        match part:
            case Constant():
                return part.value
            case Apply() if part not in examples:
                return part.function(*map(shown, part.operands), *part.options)
        return examples[part]

    return _outcomes(atom.function(*map(shown, atom.operands), *atom.options))


def _atoms(node: Node) -> Iterator[Node]:
    """What a condition is put together from."""
    logic = logic_of(node)
    if logic is None:
        yield node
    else:
        for part in logic[1]:
            yield from _atoms(part)


def _outcomes(found: pa.Array) -> Outcomes:
    outcomes = truth(found).view(np.int8) * np.int8(2)
    if found.null_count:
        outcomes[np.asarray(found.is_null())] = 1
    return outcomes
