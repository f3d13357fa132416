"""Whether what the planner assumes of keys is true of rows: that the values of some decide those of others."""

from __future__ import annotations

from collections.abc import Iterable

import numba
import numpy as np

from headrace.algebra.ops import Words
from headrace.kernel.rows import Rows
from headrace.kernel.table import mix
from headrace.plan.plan import Answer, Dependency, Node
from headrace.query import Expression


class Sure:
    """What is true of a node's rows; found out when it is first asked.

    What is known to be true of the rows that these were made of, which are `above`, need not be asked again.
    """

    def __init__(self, node: Node, rows: Rows, above: Sure | None) -> None:
        self._node, self._rows = node, rows
        known: dict[Dependency, bool] = above._found if above is not None else {}
        self._found: dict[Dependency, bool] = {dependency: True for dependency, true in known.items() if true}

    def of(self, answer: Answer) -> bool:
        """Whether all that an answer assumes is true; of no rows anything is."""
        return len(self._rows) == 0 or all(map(self._holds, answer.assumed))

    def _holds(self, dependency: Dependency) -> bool:
        if dependency not in self._found:
            decided = [key for key in dependency.decided if key in self._node.keys]
            bits = self._bits(dependency.keys), self._bits(decided)
            self._found[dependency] = decides(self._rows.matrix, *bits)
        return self._found[dependency]

    def _bits(self, keys: Iterable[Expression]) -> Words:
        """Which bits of the words of each row's key belong to some keys."""
        return self._rows.layout.bits([self._node.place_of(key) for key in keys])


@numba.njit(nogil=True, cache=True)
def decides(rows, deciding, decided):  # type: ignore[no-untyped-def]
    """Whether rows that are equal in the `deciding` bits of their words are equal in the `decided` ones."""
    index = np.zeros(1 << 10, dtype=np.int32)  # a row of each value, from 1 on
    values = 0
    for i in range(len(rows)):
        if 2 * values >= len(index):
            index = _indexed(rows, deciding, index, 4 * len(index))
        place = _place(rows, i, deciding, index)
        if index[place] == 0:
            index[place] = i + 1
            values += 1
        elif not _equal(rows, i, index[place] - 1, decided):
            return False
    return True


@numba.njit(nogil=True, cache=True)
def _indexed(rows, deciding, index, size):  # type: ignore[no-untyped-def]
    """The same values in an index of another size."""
    larger = np.zeros(size, dtype=np.int32)
    for entry in index:
        if entry != 0:
            larger[_place(rows, entry - 1, deciding, larger)] = entry
    return larger


@numba.njit(nogil=True, cache=True)
def _place(rows, i, deciding, index):  # type: ignore[no-untyped-def]
    """Where in an index the row of the same value is, or has its place."""
    h = np.uint64(0)
    for word in range(len(deciding)):
        h = mix(h, rows[i, word] & deciding[word])
    mask = np.uint64(len(index) - 1)
    place = h & mask
    while index[place] != 0 and not _equal(rows, i, index[place] - 1, deciding):
        place = (place + np.uint64(1)) & mask
    return place


@numba.njit(nogil=True, cache=True)
def _equal(rows, i, j, bits):  # type: ignore[no-untyped-def]
    differences = np.int64(0)
    for word in range(len(bits)):
        differences |= (rows[i, word] ^ rows[j, word]) & bits[word]
    return differences == 0
