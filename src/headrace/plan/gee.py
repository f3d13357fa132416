"""The seed's estimate of how many groups there are: Charikar's GEE, from records drawn one by one.

It is within a factor of the square root of N / r, for r of N records, and no estimate from a sample can promise
less. The planner goes by blocks of neighbours (growth.py), which see more of a stream, and is held against this.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.plan.alike import Hashes


def gee(hashes: Hashes, records: float) -> float:
    """The groups of so many records, by the hashes of a sample of them.

    >>> gee(np.array([1, 2, 2, 3], dtype=np.uint64), 16)
    5.0
    """
    if len(hashes) == 0:
        return 0.0
    _, counts = np.unique(hashes, return_counts=True)
    once = int((counts == 1).sum())
    return math.sqrt(records / len(hashes)) * once + (len(counts) - once)
