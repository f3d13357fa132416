"""A soak: standing queries at a steady rate for long, with memory, log and time per micro-batch on record.

`python -m headrace.bench.soak --minutes 30`, or `make soak`. It fails where the last third needs more than the
middle third by more than it may.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

import psutil
import typer
from pyspark.sql import SparkSession

from headrace.bench.feed import Feed
from headrace.bench.memory import held_below, java_pid
from headrace.bench.workloads import TOPICS
from headrace.errors import BenchError
from headrace.kernel.compiled import load_kernels
from headrace.runtime.session import open_session
from headrace.workload import Workload

_GROWTH = 1.15
"""The last third may need so many times what the middle third does: time, memory and log."""
_SLACK = {
    "batch_s": 0.2,
    "driver_mb": 20.0,
    "java_mb": 200.0,
    "workers_mb": 100.0,
    "log_mb": 2.0,
    "checkpoint_files": 8.0,
}
"""And so much besides, which is noise."""
_EVERY_S = 2.0
_WINDOW = "20 seconds"


@dataclass(frozen=True, slots=True)
class Look:
    """What a look at the run showed: megabytes of the driver, of Java and of the workers, and of the log."""

    at_s: float
    batch: int
    batch_s: float
    driver_mb: float
    java_mb: float
    workers_mb: float
    log_mb: float
    checkpoint_files: int


def main(
    minutes: Annotated[float, typer.Option(min=0.5, help="how long")] = 30.0,
    rate: Annotated[int, typer.Option(min=100, help="records a second")] = 20_000,
    json_file: Annotated[Path | None, typer.Option("--json", help="write what was seen to this file")] = None,
) -> None:
    """Run, look every few seconds, and compare the thirds."""
    with tempfile.TemporaryDirectory(prefix="headrace-soak-") as place, open_session() as spark:
        load_kernels()
        looks = soak(Path(place), minutes * 60, rate, spark)
    found = thirds(looks)
    print(json.dumps(found, indent=2))
    if json_file is not None:
        json_file.write_text(json.dumps({**found, "looks": [asdict(look) for look in looks]}) + "\n")
    if grown := grown_in(found):
        raise BenchError(f"grew by more than {_GROWTH:.2f}x from the middle third to the last: {', '.join(grown)}")


def grown_in(found: dict[str, dict[str, float]]) -> list[str]:
    """What the last third had clearly more of than the middle one."""
    return [name for name, seen in found.items() if seen["last"] > _GROWTH * seen["middle"] + seen["slack"]]


def soak(folder: Path, seconds: float, rate: int, spark: SparkSession) -> list[Look]:
    """The 22 queries for some seconds, and what was seen every two of them."""
    feed = Feed.of_flows(folder, rate)
    looks: list[Look] = []
    live = Workload(feed.texts(TOPICS["netflow"].questions, _WINDOW)).start(
        feed.stream("1 second"),
        sink=str(folder / "out"),
        checkpoint=str(folder / "run"),
        spark=spark,
        trigger="1 second",
    )
    java = psutil.Process(java_pid(spark))
    began = time.monotonic()
    with live, feed:
        while time.monotonic() - began < seconds:
            live.await_termination(_EVERY_S)
            progress = live.progress()
            if progress is not None:
                seen = progress.batch, progress.seconds, progress.log_bytes / 1e6
                looks.append(_look(time.monotonic() - began, seen, java, folder / "run"))
    return looks


def _look(at_s: float, seen: tuple[int, float, float], java: psutil.Process, run: Path) -> Look:
    batch, batch_s, log_mb = seen
    files = sum(len(names) for _, _, names in os.walk(run / "partials"))
    own_mb, java_mb = (process.memory_info().rss / 1e6 for process in (psutil.Process(), java))
    return Look(at_s, batch, batch_s, own_mb, java_mb, sum(held_below(java)) / 1e6, log_mb, files)


def thirds(looks: list[Look]) -> dict[str, dict[str, float]]:
    """Medians of the middle and the last third; the first is for things to settle."""
    if len(looks) < 9:
        raise BenchError("the soak was too short")
    part = len(looks) // 3
    found = {}
    thirds = looks[part : 2 * part], looks[2 * part :]
    for name, room in _SLACK.items():
        middle, last = (median(float(getattr(look, name)) for look in third) for third in thirds)
        found[name] = {"middle": round(middle, 3), "last": round(last, 3), "slack": room}
    return found


if __name__ == "__main__":
    typer.run(main)
