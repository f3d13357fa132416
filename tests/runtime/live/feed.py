"""A growing folder of small Parquet files, and runs over it."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from headrace import Stream, Workload
from headrace.runtime.live.run import LiveRun

START = datetime(2024, 3, 4, 12, 0, tzinfo=UTC)
Record = tuple[float | None, str, int]
"""Seconds since START, a key, a value."""
_SCHEMA = pa.schema([("t", pa.timestamp("us", "UTC")), ("k", pa.string()), ("v", pa.int64())])
_PATIENCE_S = 60.0
_numbers: Iterator[int] = itertools.count()


def at(seconds: float) -> datetime:
    """A moment of the feed."""
    return START + timedelta(seconds=seconds)


class Feed:
    """The folder, with what a run over it needs."""

    def __init__(self, folder: Path, spark: SparkSession, lateness: str = "0 seconds") -> None:
        self.folder = folder
        self.spark = spark
        self._lateness = lateness
        (folder / "in").mkdir()

    def add(self, *records: Record) -> None:
        """One more file; it appears at once, later than all others."""
        number = next(_numbers)
        times = [at(seconds) if seconds is not None else None for seconds, _, _ in records]
        table = pa.table([times, [k for _, k, _ in records], [v for _, _, v in records]], schema=_SCHEMA)
        hidden = self.folder / f".part-{number}"
        pq.write_table(table, hidden)
        os.utime(hidden, (1_700_000_000 + number, 1_700_000_000 + number))
        hidden.rename(self.folder / "in" / f"part-{number:06}.parquet")

    @property
    def stream(self) -> Stream:
        return Stream.parquet(str(self.folder / "in"), "s", "t", self._lateness)

    @property
    def checkpoint(self) -> str:
        return str(self.folder / "run")

    def start(self, queries: dict[str, str], **options: Any) -> LiveRun:
        """A run, by default until there are no more files, one micro-batch each."""
        given = {"sink": str(self.folder / "out"), "trigger": "available now", "files_per_batch": 1, **options}
        return Workload(queries).start(self.stream, checkpoint=self.checkpoint, spark=self.spark, **given)

    def run(self, queries: dict[str, str], **options: Any) -> LiveRun:
        """A run to the end of what there is."""
        live = self.start(queries, **options)
        try:
            live.await_termination()
        finally:
            live.stop()
        return live

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What a query has given, in the order of rows."""
        files = sorted((self.folder / "out" / query).glob("*.parquet"))
        return sorted(tuple(row.values()) for file in files for row in pq.read_table(file).to_pylist())


def wait_for(live: LiveRun, records: int) -> None:
    """Wait until a run has counted so many records."""
    until = time.monotonic() + _PATIENCE_S
    while True:
        progress = live.progress()
        if progress is not None and progress.total_records >= records:
            return
        live.await_termination(0.05)
        assert time.monotonic() < until, f"the run stands still: {progress}"


def counted(records: Iterable[Record], size: int, slide: int | None = None) -> dict[float, dict[str, int]]:
    """For each window, by its start, the number of records of each key."""
    slide = slide or size
    found: dict[float, dict[str, int]] = {}
    for seconds, key, _ in records:
        if seconds is not None:
            start = seconds - seconds % slide
            while start + size > seconds:
                found.setdefault(start, {})
                found[start][key] = found[start].get(key, 0) + 1
                start -= slide
    return found


def rows_of(windows: dict[float, dict[str, int]], until: float, size: int) -> list[tuple[Any, ...]]:
    """What should have been given when the watermark is somewhere."""
    return sorted(
        (at(start), key, count)
        for start, keys in windows.items()
        if start + size <= until
        for key, count in keys.items()
    )
