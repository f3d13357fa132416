"""Keys that decide others, as the sample shows them: an address has one subnet, two airports have one distance.

Queries whose keys differ only by what they decide have the same groups, and one node is enough for all of them.
That the sample has no exception does not prove that there is none: the kernel asks the rows (`kernel/sure.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from headrace.plan.alike import Hashes, first_alike
from headrace.plan.plan import Dependency
from headrace.query import Expression

_ENOUGH, _ENOUGH_SHARE = 32, 1 / 64
"""So many records, and such a part of all, have to agree with an earlier one of the same keys before these are
believed to decide. A wrong belief costs time only."""
_FEW, _SOME = 1 << 10, 1 << 13
"""The first rows show most exceptions."""

Keys = tuple[Expression, ...]
Places = npt.NDArray[np.int32]


class Deciding:
    """Which keys decide which; found in the sample when it is first asked."""

    def __init__(self, values: Callable[[Expression], Hashes | None]) -> None:
        """`values` gives hashes of a key's values in some records, or None where the key is not known."""
        self._values = values
        self._agreed: dict[tuple[Keys, Expression, int | None], bool] = {}
        self._repeated: dict[tuple[Keys, int | None], bool] = {}
        self._alike: dict[tuple[Keys, int | None], Places | None] = {}

    def same_groups(self, sets: Sequence[Collection[Expression]]) -> list[list[int]]:
        """Sets of keys, by their numbers, such that those together have the same groups."""
        groups = [[*range(len(sets))]]
        for rows in (_SOME, None):
            groups = [part for group in groups for part in self._parts(group, sets, rows)]
        return groups

    def _parts(
        self, numbers: list[int], sets: Sequence[Collection[Expression]], rows: int | None
    ) -> Iterator[list[int]]:
        """Some of the sets, apart where the first rows, or all, show that their groups are not the same."""
        if len(numbers) == 1:
            yield numbers
            return
        all_keys = {key for number in numbers for key in sets[number]}
        alike: dict[frozenset[Expression], list[int]] = {}
        for number in numbers:
            steps = self._steps(sets[number], all_keys, rows)
            alike.setdefault(frozenset([*sets[number], *(key for _, key in steps)]), []).append(number)
        for part in alike.values():
            together = {key for number in part for key in sets[number]}
            if rows is not None or all(self.steps(sets[number], together) is not None for number in part):
                yield part
            else:  # one decides another through a key that none of them has
                yield from ([number] for number in part)

    def steps(self, keys: Collection[Expression], all_keys: Collection[Expression]) -> list[Dependency] | None:
        """How some keys decide all, one after the other; None where they do not."""
        steps = self._steps(keys, all_keys, None)
        missing = len({*all_keys} - {*keys} - {key for _, key in steps})
        return None if missing else [Dependency(by, (key,)) for by, key in steps]

    def decides(self, key: Expression, other: Expression) -> bool:
        """Whether one key decides another."""
        return self._decide((key,), other, None)

    def _steps(
        self, keys: Iterable[Expression], all_keys: Iterable[Expression], rows: int | None
    ) -> list[tuple[Keys, Expression]]:
        """Which keys decide which others among all, one after the other, in the first rows or in all."""
        known = tuple(sorted(keys, key=str))
        waiting = sorted(set(all_keys).difference(known), key=str)
        steps: list[tuple[Keys, Expression]] = []
        while True:
            found = [(by, key) for key in waiting if (by := self._by(known, key, rows)) is not None]
            if not found:
                return steps
            steps += found
            known += tuple(key for _, key in found)
            waiting = [key for key in waiting if key not in known]

    def _by(self, keys: Keys, other: Expression, rows: int | None) -> Keys | None:
        """One of some keys, or two, that decide another."""
        if not self._agree(keys, other, _FEW):
            return None
        for key in keys:
            if self._decide((key,), other, rows):
                return (key,)
        if len(keys) > 1 and self._agree(keys, other, _SOME):
            pairs = itertools.combinations(keys, 2)
            return next((pair for pair in pairs if self._decide(pair, other, rows)), None)
        return None

    def _decide(self, keys: Keys, other: Expression, rows: int | None) -> bool:
        return self._agree(keys, other, _FEW) and self._repeat(keys, rows) and self._agree(keys, other, rows)

    def _agree(self, keys: Keys, other: Expression, rows: int | None) -> bool:
        """Whether each of the first rows, or of all, agrees with an earlier one, if there is any."""
        place = keys, other, rows
        if place not in self._agreed:
            same, decided = self._first_alike(keys, rows), self._values(other)
            self._agreed[place] = (
                same is not None and decided is not None and bool((decided[same] == decided[:rows]).all())
            )
        return self._agreed[place]

    def _repeat(self, keys: Keys, rows: int | None) -> bool:
        """Whether enough of the rows have an earlier one."""
        place = keys, rows
        if place not in self._repeated:
            same = self._first_alike(keys, rows)
            self._repeated[place] = same is not None and _count_repeated(same) >= max(
                _ENOUGH, _ENOUGH_SHARE * len(same)
            )
        return self._repeated[place]

    def _first_alike(self, keys: Keys, rows: int | None) -> Places | None:
        """For each of the first rows, or of all, the first that has the same keys; None where one is not known."""
        if (keys, rows) not in self._alike:
            known = [values[:rows] for key in keys if (values := self._values(key)) is not None]
            self._alike[keys, rows] = first_alike(np.add.reduce(known)) if len(known) == len(keys) > 0 else None
        return self._alike[keys, rows]


def _count_repeated(same: Places) -> int:
    return int(np.count_nonzero(same != np.arange(len(same), dtype=np.int32)))


def gathered(steps: Iterable[Dependency]) -> dict[Keys, Dependency]:
    """By the deciding keys, all that is decided by them."""
    decided: dict[Keys, dict[Expression, None]] = {}
    for step in steps:
        decided.setdefault(step.keys, {}).update(dict.fromkeys(step.decided))
    return {keys: Dependency(keys, tuple(others)) for keys, others in decided.items()}
