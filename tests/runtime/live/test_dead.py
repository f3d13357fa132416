"""Dead letters that cannot be written."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headrace.errors import RunError
from headrace.runtime.live.dead import write_letters
from headrace.runtime.live.files import Folder

pytestmark = pytest.mark.spark


def test_a_failing_job_is_an_error_of_headrace(spark: SparkSession, tmp_path: Path) -> None:
    version: Any = SimpleNamespace(windows={})
    frame = spark.range(3).selectExpr("timestamp_micros(CAST(1 / id AS BIGINT)) AS t")
    with pytest.raises(RunError, match=r"dead letters failed: .*zero"):
        write_letters(frame, "t", version, {}, -1, Folder(str(tmp_path)))
