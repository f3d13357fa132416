"""Keys that decide others, as the sample shows them: an address has one subnet, two airports have one distance.

Queries whose keys differ only by what they decide have the same groups, and one node is enough for all of them.
That the sample has no exception does not prove that there is none: the kernel asks the rows (`kernel/sure.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence

import numba
import numpy as np
import numpy.typing as npt

from headrace.plan.plan import Dependency
from headrace.plan.sizes import Sizes
from headrace.query import Expression

_ENOUGH, _ENOUGH_SHARE = 32, 1 / 64
"""So many records, and such a part of all, have to agree with an earlier one of the same keys before these are
believed to decide. A wrong belief costs time only."""
_FEW = 1 << 13
"""The first rows, which show most exceptions."""

Keys = tuple[Expression, ...]


class Deciding:
    """Which keys decide which; found in the sample when it is first asked."""

    def __init__(self, sizes: Sizes) -> None:
        self._sizes = sizes
        self._decided: dict[tuple[Keys, Expression], bool] = {}
        self._earlier: dict[tuple[Keys, int | None], npt.NDArray[np.int32]] = {}

    def same_groups(self, sets: Sequence[Collection[Expression]]) -> list[list[int]]:
        """Sets of keys, by their numbers, such that those together have the same groups."""
        found: list[list[int]] = []
        for number, own in enumerate(sets):
            for others in found:
                union = {*own, *(key for other in others for key in sets[other])}
                if all(self.steps(sets[one], union) is not None for one in (number, *others)):
                    others.append(number)
                    break
            else:
                found.append([number])
        return found

    def steps(self, keys: Iterable[Expression], all_keys: Iterable[Expression]) -> list[Dependency] | None:
        """How some keys decide all, one after the other; None where they do not."""
        known = sorted(keys, key=str)
        missing = sorted(set(all_keys).difference(known), key=str)
        steps = []
        while missing:
            found = next(((key, by) for key in missing if (by := self._by(known, key)) is not None), None)
            if found is None:
                return None
            key, by = found
            steps.append(Dependency(by, (key,)))
            known.append(key)
            missing.remove(key)
        return steps

    def _by(self, keys: Sequence[Expression], other: Expression) -> Keys | None:
        """One of some keys, or two, that decide another."""
        for key in keys:
            if self._decides((key,), other):
                return (key,)
        if len(keys) > 1 and self._decides(tuple(keys), other):
            return next((pair for pair in itertools.combinations(keys, 2) if self._decides(pair, other)), None)
        return None

    def _decides(self, keys: Keys, other: Expression) -> bool:
        if (keys, other) not in self._decided:
            self._decided[keys, other] = self._agree(keys, other, _FEW) and self._agree(keys, other, None)
        return self._decided[keys, other]

    def _agree(self, keys: Keys, other: Expression, rows: int | None) -> bool:
        """Whether all of the first rows, or just all, agree with an earlier one, where there is one."""
        columns = [self._sizes.values(key) for key in (*keys, other)]
        known = [column[:rows] for column in columns if column is not None]
        if len(known) < len(columns):
            return False
        *deciding, decided = known
        if (keys, rows) not in self._earlier:
            self._earlier[keys, rows] = earlier(np.add.reduce(deciding))
        same = self._earlier[keys, rows]
        repeated = int(np.count_nonzero(same != np.arange(len(same), dtype=np.int32)))
        enough = rows is not None or repeated >= max(_ENOUGH, _ENOUGH_SHARE * len(same))
        return enough and bool((decided[same] == decided).all())


def gathered(steps: Iterable[Dependency]) -> dict[Keys, Dependency]:
    """By the deciding keys, all that is decided by them."""
    decided: dict[Keys, dict[Expression, None]] = {}
    for step in steps:
        decided.setdefault(step.keys, {}).update(dict.fromkeys(step.decided))
    return {keys: Dependency(keys, tuple(others)) for keys, others in decided.items()}


@numba.njit(nogil=True, cache=True)
def earlier(hashes):  # type: ignore[no-untyped-def]
    """For each row the first one that has the same hash, perhaps itself."""
    capacity = 64
    while capacity < 2 * len(hashes):
        capacity *= 2
    mask = np.uint64(capacity - 1)
    rows = np.zeros(capacity, dtype=np.int32)  # from 1 on
    first = np.empty(len(hashes), dtype=np.int32)
    for row in range(len(hashes)):
        h = hashes[row]
        place = h & mask
        while rows[place] != 0 and hashes[rows[place] - 1] != h:
            place = (place + np.uint64(1)) & mask
        if rows[place] == 0:
            rows[place] = row + 1
        first[row] = rows[place] - 1
    return first
