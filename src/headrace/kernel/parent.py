"""Rows of a node that others are made from: what several of these need of the rows is worked out once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numba
import numpy as np
import numpy.typing as npt

from headrace.algebra.ops import Words
from headrace.algebra.states import State
from headrace.algebra.words import Valid
from headrace.kernel.conditions import Atom, Conditions
from headrace.kernel.fragments import Truths, read_signatures
from headrace.kernel.records import Coding
from headrace.kernel.rows import Rows
from headrace.kernel.windows import MOST_FOUND, Groups, Kinds, Lanes
from headrace.kernel.windows.nested import chains
from headrace.plan.plan import Node
from headrace.plan.slices import Times, Windows
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
        """What was found together with the groups of another child, and is not asked for yet."""

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
        lanes, _ = self._ordered
        return lanes.rows_of(groups, child.slices, [state.op for state in child.states], coding)

    @cached_property
    def in_turn(self) -> list[int]:
        """The places of the children in the best order to ask for them: what is found together waits least."""
        places = {child: place for place, child in enumerate(self._children)}
        turns: dict[int, None] = {}
        for place, child in enumerate(self._children):
            chain = self._chains.get(child, [child])
            turns.update(dict.fromkeys(places[other] for other in chain if len(chain) > 1) or {place: None})
        return [*turns]

    @cached_property
    def _chains(self) -> dict[Node, list[Node]]:
        """For each child that has some of the rows in order, those it is found with: filters in each other."""
        alike: dict[tuple[Times | None, tuple[State, ...]], list[Node]] = {}
        for child in self._children if len(self.rows) else ():
            if not isinstance(child.slices, Windows) and self.in_order(child):
                alike.setdefault((child.slices, child.states), []).append(child)
        found: dict[Node, list[Node]] = {}
        for nodes in alike.values():
            wanted = np.array([self._wanted(child) for child in nodes])
            rows = wanted @ np.bincount(self.fragments[1], minlength=wanted.shape[1])
            padded = np.pad(wanted, [(0, 0), (0, -wanted.shape[1] % 64)])
            for chain in chains(np.packbits(padded, axis=1).view(np.uint64), rows, MOST_FOUND):
                own = [nodes[number] for number in chain]
                found |= dict.fromkeys(own, own)
        return found

    def _wanted(self, child: Node) -> Valid:
        """For which fragments a child's filter is true."""
        truths, _ = self.fragments
        wanted: Valid = np.logical_or.reduce(truths[:, [self._places[c] for c in child.any_of]], axis=1)
        return wanted

    def _sifted(self, child: Node) -> Groups:
        """What a child's filter chooses, and those that are found with it."""
        assert not isinstance(child.slices, Windows), "filters are about slices"
        if child not in self._found:
            lanes, kinds = self._ordered
            chain = self._chains.get(child, [child])
            ranks = np.array([self._wanted(each) for each in chain]).sum(axis=0, dtype=np.int16)
            found = lanes.sifted(kinds, ranks, len(chain), child.slices, self._states_of(child))
            self._found |= dict(zip(chain, found, strict=True))
        return self._found.pop(child)

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
            self._found |= dict(zip(kinds, found, strict=True))
        return self._found.pop(child)

    def _states_of(self, child: Node) -> list[int]:
        return self.node.states_at(child.states)

    def _lanes_of(self, child: Node) -> Lanes:
        """The rows in order that a child is about."""
        lanes, kinds = self._ordered
        if child.any_of == self.node.any_of:
            return lanes
        if self._chosen is None or self._chosen[0] != child.any_of:
            self._chosen = None  # its memory is for the next one
            self._chosen = child.any_of, lanes.only(kinds, self._wanted(child))
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
