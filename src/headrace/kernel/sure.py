"""Whether what the planner assumes of keys is true of rows: that the values of some decide those of others."""

from __future__ import annotations

from collections.abc import Iterable

import numba
import numpy as np

from headrace.algebra.ops import Words
from headrace.kernel.rows import Rows
from headrace.kernel.table import mix
from headrace.plan.alike import first_alike
from headrace.plan.plan import Answer, Dependency, Node
from headrace.query import Expression

_FEW = 1 << 13
"""So many rows are asked first: they mostly know already what is not true."""


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
            rows = self._rows.matrix
            self._found[dependency] = all(decides(asked, *bits) for asked in (rows[:_FEW], rows))
        return self._found[dependency]

    def _bits(self, keys: Iterable[Expression]) -> Words:
        """Which bits of the words of each row's key belong to some keys."""
        return self._rows.layout.bits([self._node.place_of(key) for key in keys])


@numba.njit(nogil=True, cache=True)
def decides(rows, deciding, decided):  # type: ignore[no-untyped-def]
    """Whether rows that are equal in the `deciding` bits of their words are equal in the `decided` ones.

    Rows that merely have the same hash are compared too: that may say no where it is yes, but never the reverse.
    """
    hashes = np.zeros(len(rows), dtype=np.uint64)
    for word in range(len(deciding)):
        for i in range(len(rows)):
            hashes[i] = mix(hashes[i], rows[i, word] & deciding[word])
    first = first_alike(hashes)
    for word in range(len(decided)):
        for i in range(len(rows)):
            if (rows[i, word] ^ rows[first[i], word]) & decided[word]:
                return False
    return True
