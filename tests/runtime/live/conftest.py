"""A feed for each test."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.live.feed import Feed


@pytest.fixture
def feed(tmp_path: Path, spark: SparkSession) -> Feed:
    return Feed(tmp_path, spark)
