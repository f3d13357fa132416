"""A slice of `make fuzz` with fresh seeds: random workloads through the shared engine, against plain Spark.

A failure names its seed; HEADRACE_SEED=<seed> begins with it again. HEADRACE_FUZZ=<number> takes more workloads.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.harness.fuzz import BUDGETS, PARTITIONS, Way, fuzz, ways_of_seed
from tests.test_differential import FIRST_SEED

WORKLOADS = int(os.environ.get("HEADRACE_FUZZ") or 18)
MAX_QUERIES = 12


@pytest.mark.spark
@pytest.mark.parametrize("number", range(WORKLOADS))
def test_random_workload(spark: SparkSession, tmp_path: Path, number: int) -> None:
    report = fuzz(spark, FIRST_SEED + number, MAX_QUERIES, tmp_path)
    assert not report.differences, "\n\n".join(map(str, report.differences))


def test_the_rotation_is_balanced() -> None:
    """Each workload meets both ways in, both numbers of partitions, every budget; 36 meet all twelve alike."""
    met: Counter[Way] = Counter()
    for seed in range(36):
        ways = ways_of_seed(seed)
        assert {way.at_source for way in ways} == {True, False}
        assert {way.partitions for way in ways} == {1, PARTITIONS}
        assert {way.budget for way in ways} == set(BUDGETS)
        met.update(ways)
    assert len(met) == 12
    assert set(met.values()) == {9}
