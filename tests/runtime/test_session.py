"""The session: workers run the same Python, with the same packages."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession


@pytest.mark.spark
def test_workers_run_this_python(spark: SparkSession) -> None:
    def where(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        import headrace

        for _ in batches:
            yield pa.record_batch(
                [pa.array([sys.executable]), pa.array([headrace.__version__])], ["python", "version"]
            )

    ((python, version),) = (
        spark.range(1, numPartitions=1).mapInArrow(where, "python string, version string").collect()
    )
    assert python == sys.executable
    assert version
