"""Rows of a node that others are made from: what several of these need of the rows is worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from headrace.algebra.ops import Words
from headrace.algebra.words import Valid
from headrace.kernel.conditions import Atom, Conditions
from headrace.kernel.evaluate.cells import number_anew
from headrace.kernel.fragments import Truths, read_signatures
from headrace.kernel.records import Coding
from headrace.kernel.rows import Rows
from headrace.kernel.windows import Groups, Kinds, Lanes
from headrace.plan.plan import Node
from headrace.plan.slices import Windows
from headrace.query import Expression


class Parent:
    """A node with some of its rows, and the children that will be made of them, in their order."""

    def __init__(self, node: Node, rows: Rows, children: Sequence[Node] = ()) -> None:
        self.node = node
        self.rows = rows
        self._children = children
        self._chosen: tuple[tuple[Expression, ...], Lanes] | None = None
        """The rows in order that the last child was about, where it was not all of them."""
        self._true: dict[Expression, Valid] = {}
        """For which rows atoms of conditions are true."""
        self._found: dict[Node, Groups] = {}
        """Windows that were found together with those of another child, and are not asked for yet."""

    @cached_property
    def _places(self) -> dict[Expression, int]:
        """Which column of truths a mark is."""
        return {mark: place for place, mark in enumerate(self.node.marks)}

    @cached_property
    def fragments(self) -> tuple[Truths, Kinds]:
        """Which marks are true in each fragment, and the fragment of each row: once for all children."""
        place = self.node.fragment_place
        there, own = _numbered(self.rows.codes(place))
        signatures = self.rows.coders[place].decode(there)
        return np.asfortranarray(read_signatures(signatures, len(self.node.marks))), own

    def truth(self, condition: Expression, conditions: Conditions) -> Valid:
        """For which rows a condition is true: their fragment tells it, or their keys."""
        if condition not in self.node.marks:
            true: Valid = np.logical_and.reduce([self._true_of(atom) for atom in conditions[condition]])
            return true
        truths, own = self.fragments
        return np.take(truths[:, self._places[condition]], own)

    def _true_of(self, atom: Atom) -> Valid:
        if atom.expression not in self._true:
            self._true[atom.expression] = atom.truth(self.node, self.rows)
        return self._true[atom.expression]

    def in_order(self, child: Node) -> bool:
        """Whether a child is made of the rows in their order: windows, and what is sifted."""
        if isinstance(child.slices, Windows):
            return child.slices != self.node.slices
        return self.node.ordered and self.node.sifts(child)

    def rows_of(self, child: Node, coding: Coding) -> Rows:
        """The rows of such a child, each group once; `coding` is for slices and windows."""
        groups = self._windows(child) if isinstance(child.slices, Windows) else self._sifted(child)
        ops = [state.op for state in child.states]
        return self._lanes_of(child).rows_of(groups, child.slices, ops, coding)

    def _sifted(self, child: Node) -> Groups:
        assert not isinstance(child.slices, Windows), "filters are about slices"
        return self._lanes_of(child).slices(child.slices, self._states_of(child))

    def _windows(self, child: Node) -> Groups:
        """The windows of a child, and of those after it that are alike but for these."""
        if child not in self._found:
            place = self._children.index(child) if child in self._children else len(self._children)
            kinds: dict[Node, Windows] = {}
            for other in self._children[place:] or (child,):
                if not isinstance(other.slices, Windows) or replace(other, slices=child.slices) != child:
                    break
                kinds[other] = other.slices
            found = self._lanes_of(child).windows([*kinds.values()], self._states_of(child))
            self._found = dict(zip(kinds, found, strict=True))
        return self._found.pop(child)

    def _states_of(self, child: Node) -> list[int]:
        return self.node.states_at(child.states)

    def _lanes_of(self, child: Node) -> Lanes:
        """The rows in order that a child is about."""
        lanes, kinds = self._ordered
        if child.any_of == self.node.any_of:
            return lanes
        if self._chosen is None or self._chosen[0] != child.any_of:
            truths, _ = self.fragments
            places = [self._places[condition] for condition in child.any_of]
            wanted: Valid = np.logical_or.reduce(truths[:, places], axis=1)
            self._chosen = None  # its memory is for the next one
            self._chosen = child.any_of, lanes.only(kinds, wanted)
        return self._chosen[1]

    @cached_property
    def _ordered(self) -> tuple[Lanes, Kinds]:
        """The rows in order, with the fragment of each, where there are such."""
        node = self.node
        assert not isinstance(node.slices, Windows), "windows are made of slices"
        timed = node.slices is not None
        lanes, order = Lanes.of(node.slices, self.rows, range(timed, timed + len(node.keys)))
        return lanes, self.fragments[1][order] if node.marks else np.empty(0, dtype=np.int32)


def _numbered(codes: Words) -> tuple[Words, npt.NDArray[np.int32]]:
    """Codes without those that do not occur, and the place of each among them."""
    low, high = (int(codes.min()), int(codes.max())) if len(codes) else (0, 0)
    if high - low < 4 * len(codes):
        own, first = number_anew(codes - low, high - low + 1)
        return codes[first], own
    there = np.unique(codes)
    return there, np.searchsorted(there, codes).astype(np.int32)
