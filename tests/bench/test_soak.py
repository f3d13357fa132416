"""Two minutes at a steady rate: memory and log stay flat. `make soak` takes longer, and looks at time too."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headrace.bench.soak import grown_in, soak, thirds

SECONDS, RATE = 120, 2_000


@pytest.mark.spark
def test_nothing_grows(tmp_path: Path, spark: SparkSession) -> None:
    looks = soak(tmp_path, SECONDS, RATE, spark)
    assert looks[-1].batch > 10
    assert looks[-1].log_mb > 0
    found = thirds(looks)
    del found["batch_s"]  # a matter of what else the machine does
    assert grown_in(found) == []
