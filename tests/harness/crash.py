"""A run that is killed and started again, as often as one likes: its answers must be those of an undisturbed one.

The run is a process of its own (`python -m tests.harness.crash FOLDER`), which ends by itself when all files have
been read. It is killed with SIGKILL, at a named point or at any moment; or its workers are; or its disk is full.
"""

from __future__ import annotations

import contextlib
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.runtime.live.points import SETTING

QUERIES = {
    "by_key": "SELECT window.start AS at, k, count(*) AS n, sum(v) AS total FROM s "
    "GROUP BY window(t, '1 minute'), k",
    "overlapping": "SELECT window, k, max(v) AS most FROM s WHERE v > 20 "
    "GROUP BY window(t, '3 minutes', '1 minute'), k",
    "all": "SELECT window.start AS at, count(*) AS n, avg(v) AS mean FROM s GROUP BY window(t, '2 minutes')",
    "top": "SELECT window.start AS at, k, sum(v) AS total FROM s GROUP BY window(t, '1 minute'), k "
    "ORDER BY total DESC, k LIMIT 2",
}
FILES, ROWS = 6, 400
SPAN_US = 10 * 60 * 10**6
START_US = 1_709_510_400 * 10**6
FULL_DISK = "HEADRACE_TEST_FULL_DISK"
_PATIENCE_S = 180


def make_files(folder: Path) -> None:
    """A stream in files, in the order of their time, a little disordered."""
    folder.mkdir(parents=True)
    rng = random.Random(7)
    times = sorted(START_US + rng.randrange(SPAN_US) for _ in range(FILES * ROWS))
    times = [us + rng.randrange(5 * 10**6) for us in times]
    keys = [rng.choice("abcdef") for _ in times]
    values = [rng.randrange(100) for _ in times]
    for number in range(FILES):
        own = slice(number * ROWS, (number + 1) * ROWS)
        columns = {"t": pa.array(times[own], pa.timestamp("us", "UTC")), "k": keys[own], "v": values[own]}
        path = folder / f"part-{number}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def answers(folder: Path) -> dict[str, list[tuple[object, ...]]]:
    """The rows of every query, in an order that does not depend on files."""
    found = {}
    for query in QUERIES:
        tables = [pq.read_table(file) for file in sorted((folder / "out" / query).glob("*.parquet"))]
        rows = [tuple(row.values()) for table in tables for row in table.to_pylist()]
        found[query] = sorted(rows, key=str)
    return found


@dataclass(frozen=True)
class Ended:
    """How a process ended: its code, and what it said."""

    code: int
    said: str


def run_once(folder: Path, point: str | None = None, disturb: Callable[[int], None] | None = None) -> Ended:
    """Run until the end, or until it is killed; `disturb` is called with the process' number when it works."""
    environment = {**os.environ, **({SETTING: point} if point is not None else {})}
    command = [sys.executable, "-m", "tests.harness.crash", str(folder)]
    process = subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    said: list[str] = []
    assert process.stdout is not None
    for line in process.stdout:
        said.append(line)
        if disturb is not None and line.startswith("running"):
            disturb(process.pid)
            disturb = None
    return Ended(process.wait(_PATIENCE_S), "".join(said))


def until_done(folder: Path, tries: int = 5) -> None:
    """Start again until a run comes to its end."""
    for _ in range(tries):
        ended = run_once(folder)
        if ended.code == 0:
            return
    raise AssertionError(f"the run did not come to an end:\n{ended.said[-3000:]}")


def kill_later(pid: int, seconds: float) -> None:
    """Kill a process in a while, as a crash would."""
    time.sleep(seconds)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def kill_workers_later(pid: int, seconds: float) -> None:
    """Kill the Python workers of a process in a while."""
    time.sleep(seconds)
    for worker in workers_of(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)


def workers_of(pid: int) -> list[int]:
    """The processes of a session that are Spark's Python daemon, or its children."""
    found = []
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                line = (place / "cmdline").read_bytes()
                session = int((place / "stat").read_text().rpartition(")")[2].split()[3])
                if session == os.getsid(pid) and b"headrace.runtime.daemon" in line:
                    found.append(int(place.name))
    return found


def fill_disk(limit: int = 2048) -> None:
    """From now on no file of this process, and of those that it starts, can grow beyond so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))


def main(folder: Path) -> None:
    """The run."""
    from headrace import Stream, Workload
    from headrace.runtime.session import open_session
    from tests.harness.fuzz import SETTINGS

    with open_session(cores=2, conf=SETTINGS) as spark:
        stream = Stream.parquet(str(folder / "in"), "s", "t", "5 seconds")
        print("running", flush=True)
        live = Workload(QUERIES).start(
            stream,
            sink=str(folder / "out"),
            checkpoint=str(folder / "run"),
            spark=spark,
            trigger="available now",
            files_per_batch=1,
        )
        live.await_termination()
        live.stop()


if __name__ == "__main__":
    if os.environ.get(FULL_DISK):
        fill_disk()
    main(Path(sys.argv[1]))
