"""The session: workers run the same Python, with the same packages."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession

from headrace.runtime.daemon import quietly


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


def test_a_worker_that_nobody_listens_to_ends_in_silence() -> None:
    """Spark lets idle workers go, and closes their socket: that is no error to show."""
    own, other = socket.socketpair()
    other.close()

    def worker(sock: socket.socket, _: bool) -> int:
        with sock:
            return sock.send(b"done")

    assert quietly(worker)(own, True) != 0, "with 0, it would be asked to work on"
