"""How the number of groups grows with the number of records, learned from blocks of neighbouring records.

Within a block it is counted. Records that follow each other are more alike than any others (a flow goes on, a
share is traded in bursts), so what counts are stretches of neighbours, and all of them at once: a group is missing
in a stretch that fits between two of its records, so the gaps between records tell the average over all stretches
of any length, in one pass.

Beyond a block, growth goes on as it did. Each doubling of the records adds r times what the one before it added.
If values are drawn from a pool with equal chances, a doubling squares the chance q of a value to be missed by the
records so far, and r = q + q². If there are ever rarer ones (Zipf), q and r stay. Real keys are between these: q
goes to the power that the last doublings of the block show. As long as values are hardly met twice, that is near a
square for any keys; where it is less than one, it declines from doubling to doubling.

What a block cannot show is that values are of their time (flows end and others begin). Blocks far from each other
do: few values in common speak of a large pool, as few recaptured fish do of a large lake. The longer the stretch,
the more this counts. It only ever adds: where values have unequal chances, the common ones are recaptured, and the
pool looks smaller than it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np
import numpy.typing as npt

Hashes = npt.NDArray[np.uint64]

_DECLINE = 1.5
"""What a power is above 1 goes to this power with each doubling, so that a square stays one, and anything less
declines the faster. On recorded flights (benchmarks/sizes.py) estimates are 3.7 times too small at worst if it
does not decline (1.0), 2.7 times with 1.3, 1.8 with 1.5; with 1.7, even pools are overestimated."""


@dataclass(frozen=True, slots=True)
class Growth:
    """How many groups stretches of 1, ..., n/4, n/2, n records of a block have on average."""

    records: tuple[int, ...]
    groups: tuple[float, ...]

    @staticmethod
    def of(records: int, halvings: Sequence[float]) -> Growth:
        """From the groups of n, n/2, n/4, ... records; what is too much at the end does not count."""
        lengths = [records >> shift for shift in range(records.bit_length())]
        return Growth(tuple(reversed(lengths)), tuple(reversed(halvings[: len(lengths)])))

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
        power = min(2.0, max(1.0, wears[-1] / wears[0])) if len(wears) > 1 and wears[0] > 0 else 1.0
        step, wear = steps[-1], wears[-1] if wears else 0.0
        while True:
            wear *= power
            power = 1 + (power - 1) ** _DECLINE
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
    """What blocks say together: their growths, the pool they draw from (0: unknown), and the stream's records."""

    growths: tuple[Growth, ...]
    pool: float
    records: float

    def at(self, records: float) -> float:
        """The groups of a stretch of so many records of the stream."""
        weights = [growth.records[-1] for growth in self.growths]
        near = math.fsum(g.at(records) * w for g, w in zip(self.growths, weights, strict=True)) / sum(weights)
        size = sum(weights) / len(weights)
        if records <= size or not self.pool:
            return near
        met = sum(growth.groups[-1] for growth in self.growths) / len(self.growths) / self.pool
        far = min(records, self.pool * (1 - (1 - min(1.0, met)) ** (records / size)))
        distance = min(1.0, math.log(records / size) / math.log(self.records / size))
        return near * math.pow(max(1.0, far / near), distance)


@numba.njit(nogil=True, cache=True)
def count_groups(hashes, ends):  # type: ignore[no-untyped-def]
    """For each block (they end at `ends`), the groups of stretches of n, n/2, n/4, ... of its rows; and the pool.

    `gaps[g]` counts gaps of g rows in which a group does not occur: before its first row, between two, after its
    last. There it is missing in g - length + 1 stretches. The pool is Schnabel's estimate from repeated catches.
    """
    capacity = 64
    while capacity < 2 * len(hashes):
        capacity *= 2
    mask = np.uint64(capacity - 1)
    last = np.zeros(capacity, dtype=np.int32)  # the latest row of each group, from 1 on
    found = np.zeros((len(ends), 64), dtype=np.float64)
    marked, caught, again = 0, 0.0, 0
    start = 0
    for block in range(len(ends)):
        rows = ends[block] - start
        gaps = np.zeros(rows + 1, dtype=np.int32)
        known, fresh = 0, 0
        for row in range(start, start + rows):
            h = hashes[row]
            place = h & mask
            while last[place] != 0 and hashes[last[place] - 1] != h:
                place = (place + np.uint64(1)) & mask
            before = last[place]
            if before <= start:
                if before == 0:
                    fresh += 1
                else:
                    known += 1
                before = start
            gaps[row - before] += 1
            last[place] = row + 1
        for place in range(capacity):
            if last[place] > start:
                gaps[start + rows - last[place]] += 1
        wide, missed, halving = 0, 0, 0
        for length in range(rows, 0, -1):
            wide += gaps[length]
            missed += wide
            if length == rows >> halving:
                found[block, halving] = known + fresh - missed / (rows - length + 1)
                halving += 1
        caught += float(marked) * (known + fresh)
        again += known
        marked += fresh
        start += rows
    return found, caught / (again + 1)
