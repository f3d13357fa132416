"""What the two papers measured, as their text gives it, on their machines of 2005 and 2006.

Krishnamurthy, Wu, Franklin: "On-the-fly sharing for streamed aggregation" (SIGMOD 2006), Section 6: 256 ungrouped
queries on an hour of trades. Krishnamurthy, Franklin: "Shared hierarchical aggregation for monitoring distributed
streams" (UCB/CSD-05-1381), Section 6.3: 2 and 32 queries on a day of TCP packets.
"""

from __future__ import annotations

from collections.abc import Mapping

from headrace.bench.sharing.counts import Count

QUERIES = 256
ROWS = 1_138_636
"""As many trades as the hour has."""

SECONDS: Mapping[tuple[str, str], float] = {
    ("a", "unshared paired"): 50.48,
    ("a", "shared paned"): 6.90,
    ("a", "shared paired"): 2.63,
    ("b", "unshared paired"): 27.25,
    ("b", "shared paired"): 3.01,
    ("c_regular", "unshared paired"): 31.19,
    ("c_regular", "shared paired"): 3.67,
    ("c_low", "unshared paired"): 34.56,
    ("c_low", "shared paired"): 17.73,
}
"""Of a query set and a strategy."""

COUNTS: Mapping[tuple[str, str], Count] = {
    ("a", "unshared paired"): Count(291_490_816, 6_813),
    ("a", "shared paned"): Count(1_138_636, 2_340_842),
    ("a", "shared paired"): Count(1_138_636, 1_462_391),
    ("b", "unshared paired"): Count(0, 116_101_112),
    ("b", "shared paired"): Count(1_094_947, 6_677_009),
    ("c_regular", "unshared paired"): Count(100_902_960, 6_955),
    ("c_regular", "shared paired"): Count(1_138_636, 2_256_496),
    ("c_low", "unshared paired"): Count(120_672_210, 6_812),
    ("c_low", "shared paired"): Count(1_294_064, 63_984_043),
}

FIGURE8: Mapping[tuple[int, bool, str], float] = {
    (2, False, "unshared paired"): 17,
    (2, False, "shared paned"): 13,
    (2, False, "shared paired"): 11,
    (32, False, "unshared paired"): 241,
    (32, False, "shared paned"): 100,
    (32, False, "shared paired"): 39,
    (2, True, "unshared paired"): 53,
    (2, True, "shared paned"): 94,
    (2, True, "shared paired"): 33,
    (32, True, "unshared paired"): 1013,
    (32, True, "shared paned"): 1120,
    (32, True, "shared paired"): 505,
}
"""Seconds of so many queries, grouped or not, by a strategy."""
