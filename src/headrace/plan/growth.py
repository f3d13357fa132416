"""How the number of groups grows with the number of records, learned from blocks of neighbouring records.

Within a block it is counted. Records that follow each other are more alike than any others (a flow goes on, a
share is traded in bursts), so what counts are stretches of neighbours, and all of them at once: a group is missing
in a stretch that fits between two of its records, so the gaps between records tell the average over all stretches
of any length, in one pass.

Beyond a block, growth goes on as it did. Each doubling of the records adds r times what the one before it added.
If values are drawn from a pool with equal chances, a doubling squares the chance q of a value to be missed by the
records so far, and r = q + q². If there are ever rarer ones (Zipf), q and r stay. Real keys are between these: q
goes to a power between 1 and 2, as the last doublings show.

What a block cannot show is that values are of their time (flows end and others begin). Blocks far from each other
do: what two of them, four, eight have together is growth again, over the whole stream. The longer the stretch, the
more it is like that, and the less like the growth within a block. Where all blocks together have as many groups as
growth within one promises, records are much the same everywhere, and the power that was shown will hold. Else what
was shown is half of the truth: the other half is a power that was found usual.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass, replace

import numba
import numpy as np
import numpy.typing as npt

from headrace.plan.alike import Hashes, no_rows, place_of

_USUAL = 0.2
"""What the power of q usually is above 1. It was chosen, with the number of blocks and `_STRICT`, for the least
errors of estimates from a hundredth of recorded flights, generated flows and trades (benchmarks/sizes.py)."""
_STRICT = 6
"""To what power the agreement between blocks goes before it speaks for what they show."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How many groups stretches of 1, ..., n/4, n/2, n records have on average.

    `trust`, from 0 to 1, says how far what the last doublings show holds for those to come.
    """

    records: tuple[float, ...]
    groups: tuple[float, ...]
    trust: float = 1.0

    def at(self, records: float) -> float:
        """The groups of a stretch of so many records.

        >>> Growth((1, 2, 4, 8), (1.0, 2.0, 4.0, 8.0)).at(100.0)
        100.0
        >>> Growth((1, 2, 4, 8), (1.0, 1.5, 2.0, 2.0)).at(100.0)
        2.0
        """
        if records <= 1:
            return records
        points = list(zip(self.records, self.groups, strict=True))
        for lower, upper in itertools.pairwise(points):
            if records <= upper[0]:
                return _between(records, lower, upper)
        return self._beyond(records)

    def _beyond(self, records: float) -> float:
        size, found = self.records[-1], self.groups[-1]
        steps = [later - sooner for sooner, later in itertools.pairwise((0.0, *self.groups))][-3:]
        wears = [_wear(later / sooner) if sooner > 0 else 0.0 for sooner, later in itertools.pairwise(steps)]
        shown = min(1.0, max(0.0, wears[-1] / wears[0] - 1)) if len(wears) > 1 and wears[0] > 0 else 0.0
        power = 1 + math.pow(shown, self.trust) * math.pow(_USUAL, 1 - self.trust)
        step, wear = steps[-1], wears[-1] if wears else 0.0
        if step > 0:
            # Few new groups among many old ones are the last, perhaps; they promise no more with each doubling.
            wear = max(wear, (1 - 2 * step / found) / step)
        while True:
            wear *= power
            missed = math.exp(-wear)
            step *= missed + missed * missed
            if records <= 2 * size:
                return min(records, _between(records, (size, found), (2 * size, found + step)))
            size, found = 2 * size, found + step


def _wear(ratio: float) -> float:
    """-ln q, where the ratio of two doublings is q + q²."""
    missed = (math.sqrt(1 + 4 * min(2.0, max(0.0, ratio))) - 1) / 2
    return -math.log(max(missed, 1e-9))


def _between(records: float, lower: tuple[float, float], upper: tuple[float, float]) -> float:
    """Interpolation along a power of the records, which is what growth looks like from near."""
    share = math.log(records / lower[0]) / math.log(upper[0] / lower[0])
    return lower[1] * math.pow(upper[1] / lower[1], share)


@dataclass(frozen=True, slots=True)
class Sampled:
    """What blocks say together: how groups grow within one and from one to another, and the stream's records."""

    near: Growth
    far: Growth
    records: float

    @staticmethod
    def of(hashes: Hashes, ends: npt.NDArray[np.int64], records: float) -> Sampled:
        """From the hashes of the rows of blocks, which end at `ends`, and so many records in all."""
        sizes = np.diff(ends, prepend=0)
        found, met = count_groups(hashes, ends)
        halvings = [*range(int(sizes.min()).bit_length())][::-1]
        near = Growth(
            tuple(np.mean([sizes >> halving for halving in halvings], axis=1).tolist()),
            tuple(found.mean(axis=0)[halvings].tolist()),
        )
        far = _from_block_to_block(near, met)
        promised = near.at(far.records[-1]) / far.groups[-1]
        trust = (1 + min(promised, 1 / promised) ** _STRICT) / 2
        return Sampled(replace(near, trust=trust), replace(far, trust=trust), records)

    def at(self, records: float) -> float:
        """The groups of a stretch of so many records of the stream."""
        near, size = self.near.at(records), self.near.records[-1]
        if records <= size or self.records <= size:
            return near
        distance = min(1.0, math.log(records / size) / math.log(self.records / size))
        return math.pow(near, 1 - distance) * math.pow(self.far.at(records), distance)


def _from_block_to_block(near: Growth, met: npt.NDArray[np.int64]) -> Growth:
    """The groups of a part of a block, and on average of one block, two, four, ..., all of them.

    `met` says how many groups are met in how many blocks.
    """
    together, chances = _chances(len(met) - 1)
    size = near.records[-1]
    parts = [size / 8, size / 4, size / 2]
    groups = [*map(near.at, parts), *(chances @ met).tolist()]
    return Growth((*parts, *(size * blocks for blocks in together)), tuple(groups))


@functools.cache
def _chances(blocks: int) -> tuple[list[float], npt.NDArray[np.float64]]:
    """Numbers of blocks, to all of them by doublings, and for each the chances that a group is in any of so many
    blocks, if 0, 1, 2, ... of all have it.

    >>> together, chances = _chances(2)
    >>> together, chances.round(9).tolist()
    ([1.0, 2.0], [[0.0, 0.5, 1.0], [0.0, 1.0, 1.0]])
    """
    doublings = math.floor(math.log2(blocks))
    together = [blocks / 2**halving for halving in range(doublings, -1, -1)]
    missing = [[_missing(blocks, have, some) for have in range(blocks + 1)] for some in together]
    return together, 1 - np.array(missing)


def _missing(blocks: int, have: int, some: float) -> float:
    """The chance that some blocks are all among those without a group; in between whole numbers, smooth."""
    others = blocks - have
    if some > others:
        return 0.0
    logs = math.lgamma(others + 1) - math.lgamma(others - some + 1)
    return math.exp(logs - math.lgamma(blocks + 1) + math.lgamma(blocks - some + 1))


@numba.njit(nogil=True, cache=True)
def count_groups(hashes, ends):  # type: ignore[no-untyped-def]
    """For each block (they end at `ends`), the groups of stretches of n, n/2, n/4, ... of its rows; and how many
    groups are met in 0, 1, 2, ... blocks.

    `gaps[g]` counts gaps of g rows in which a group does not occur: before its first row, between two, after its
    last. There it is missing in g - length + 1 stretches.
    """
    last = no_rows(len(hashes))  # the latest row of each group
    blocks = np.zeros(len(last), dtype=np.uint16)  # in how many blocks each group is met
    places = np.empty(len(hashes), dtype=np.uint32)  # those of the groups of a block
    found = np.zeros((len(ends), 64), dtype=np.float64)
    met = np.zeros(len(ends) + 1, dtype=np.int64)
    start = 0
    for block in range(len(ends)):
        rows = ends[block] - start
        gaps = np.zeros(rows + 1, dtype=np.int32)
        groups = 0
        for row in range(start, start + rows):
            place = place_of(row, hashes, last)
            before = last[place]
            if before <= start:
                places[groups] = place
                groups += 1
                met[blocks[place]] -= 1
                blocks[place] += 1
                met[blocks[place]] += 1
                before = start
            gaps[row - before] += 1
            last[place] = row + 1
        for group in range(groups):
            gaps[start + rows - last[places[group]]] += 1
        wide, missed, halving = 0, 0, 0
        for length in range(rows, 0, -1):
            wide += gaps[length]
            missed += wide
            if length == rows >> halving:
                found[block, halving] = groups - missed / (rows - length + 1)
                halving += 1
        start += rows
    met[0] = 0  # as far as anybody can see
    return found, met
