"""How much memory processes hold at most, found out by looking again and again."""

from __future__ import annotations

import threading
from types import TracebackType
from typing import TYPE_CHECKING, Any

import psutil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SECONDS_BETWEEN_LOOKS = 0.1


class MemoryWatch:
    """While the block runs, the most that a process and all below it held together, in MB of resident memory.

    `largest_below_mb` is the most that any one process below it held: of a Spark session, its largest worker.
    """

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._peak = 0
        self._largest_below = 0

    @property
    def peak_mb(self) -> float:
        """The peak so far."""
        return self._peak / 2**20

    @property
    def largest_below_mb(self) -> float:
        """The peak of the largest single process below the root, so far."""
        return self._largest_below / 2**20

    def __enter__(self) -> MemoryWatch:
        self._look()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._done.set()
        self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._done.wait(_SECONDS_BETWEEN_LOOKS):
            self._look()

    def _look(self) -> None:
        try:
            own, below = self._root.memory_info().rss, held_below(self._root)
        except psutil.NoSuchProcess:
            return  # whoever waits for the process reports that it ended
        self._largest_below = max([self._largest_below, *below])
        self._peak = max(self._peak, own + sum(below))


def held_below(process: psutil.Process) -> list[int]:
    """The bytes of resident memory of each process below one."""
    held = []
    for below in process.children(recursive=True):
        try:
            held.append(below.memory_info().rss)
        except psutil.NoSuchProcess:
            continue  # workers come and go
    return held


def java_pid(spark: SparkSession) -> int:
    """The process of the session's Java, above all of its Python workers."""
    gateway: Any = spark.sparkContext._gateway
    return int(gateway.proc.pid)
