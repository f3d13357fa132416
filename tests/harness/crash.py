"""A run that is killed and started again, as often as one likes: its answers must be those of an undisturbed one.

The run is a process of its own (`python -m tests.harness.crash FOLDER`), which ends by itself when all files have
been read. It is killed with SIGKILL, at a named point or at any moment; or its workers are; or its disk is full.
"""

from __future__ import annotations

import contextlib
import os
import random
import re
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.runtime.live.points import SETTING
from headrace.runtime.live.run import LiveRun
from headrace.runtime.live.sinks import WindowAnswer

QUERIES = {
    "by_key": "SELECT window.start AS at, k, count(*) AS n, sum(v) AS total FROM s "
    "GROUP BY window(t, '1 minute'), k",
    "overlapping": "SELECT window, k, max(v) AS most FROM s WHERE v > 20 "
    "GROUP BY window(t, '3 minutes', '1 minute'), k",
    "all": "SELECT window.start AS at, count(*) AS n, avg(v) AS mean FROM s GROUP BY window(t, '2 minutes')",
    "top": "SELECT window.start AS at, k, sum(v) AS total FROM s GROUP BY window(t, '1 minute'), k "
    "ORDER BY total DESC, k LIMIT 2",
}
GUESTS = {
    "guest": "SELECT window.start AS at, k, sum(v) AS total, min(v) AS least FROM s "
    "GROUP BY window(t, '1 minute'), k",
    "other_guest": "SELECT window.start AS at, v % 3 AS third, count(*) AS n FROM s WHERE k < 'd' "
    "GROUP BY window(t, '1 minute'), v % 3",
}
CHANGES = {0: "guest", 2: "other_guest", 5: "guest"}
"""Which guest comes, or goes if it is there, when the window of `by_key` with a number has been given."""
SAME = "same_windows"
"""A file of this name in its folder gives all queries of a run the same windows: most are answered at once."""
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


Rows = list[tuple[object, ...]]


def answers(folder: Path, queries: Iterable[str] = QUERIES) -> dict[str, Rows]:
    """The rows of queries, in an order that does not depend on files."""
    return {query: _rows(folder, query) for query in queries}


def _rows(folder: Path, query: str) -> Rows:
    tables = [pq.read_table(file) for file in sorted((folder / "out" / query).glob("*.parquet"))]
    return sorted((tuple(row.values()) for table in tables for row in table.to_pylist()), key=str)


def guests_windows(folder: Path, expected: Mapping[str, Rows]) -> int:
    """How many windows guests have given: each must be what it is for one who was there all along, and once."""
    windows = 0
    for guest in GUESTS:
        found = _rows(folder, guest)
        there = {row[0] for row in found}
        assert found == [row for row in expected[guest] if row[0] in there], guest
        windows += len(there)
    return windows


@dataclass(frozen=True)
class Ended:
    """How a process ended: its code, and what it said."""

    code: int
    said: str


def run_once(
    folder: Path,
    point: str | None = None,
    disturb: Callable[[int], None] | None = None,
    guests: str = "come and go",
) -> Ended:
    """Run until the end, or until it is killed; `disturb` is called with the process' number when it works."""
    environment = {**os.environ, **({SETTING: point} if point is not None else {})}
    command = [sys.executable, "-m", "tests.harness.crash", str(folder), guests]
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


class Host:
    """Has guests come and go: always when the same windows have been given, a first time or again."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._texts = texts
        self._live: LiveRun | None = None
        self._waiting: list[int] = []

    def note(self, answer: WindowAnswer) -> None:
        """A window was given: its guest comes, or goes."""
        number = int(answer.start.timestamp() * 10**6 - START_US) // (60 * 10**6)
        if answer.query == "by_key" and number in CHANGES:
            self._waiting.append(number)
            self._change()

    def begin(self, live: LiveRun) -> None:
        """A run has started; it may have given windows already."""
        self._live = live
        self._change()

    def _change(self) -> None:
        while self._live is not None and self._waiting:
            number = self._waiting.pop(0)
            guest, leaves = CHANGES[number], CHANGES[number] in [CHANGES[n] for n in CHANGES if n < number]
            if leaves and guest in self._live.queries:
                self._live.remove(guest)
            elif not leaves and guest not in self._live.queries:
                self._live.add(guest, self._texts[guest])


def _with_windows(texts: Mapping[str, str]) -> dict[str, str]:
    """The queries, all with the same windows, of which each file has some to itself."""
    return {name: re.sub(r"window\(t,[^)]*\)", "window(t, '30 seconds')", text) for name, text in texts.items()}


def main(folder: Path, guests: str) -> None:
    """The run; guests are there `all along`, or `come and go`."""
    from headrace import Stream, Workload
    from headrace.runtime.session import open_session
    from tests.harness.fuzz import SETTINGS

    same = (folder / SAME).exists()
    queries, others = (_with_windows(texts) if same else texts for texts in (QUERIES, GUESTS))
    all_along, host = guests == "all along", Host(others)
    with open_session(cores=2, conf=SETTINGS) as spark:
        stream = Stream.parquet(str(folder / "in"), "s", "t", "5 seconds")
        print("running", flush=True)
        live = Workload(queries | others if all_along else queries).start(
            stream,
            sink=[str(folder / "out"), host.note],
            checkpoint=str(folder / "run"),
            spark=spark,
            trigger="available now",
            files_per_batch=1,
        )
        if not all_along:
            host.begin(live)
        live.await_termination()
        live.stop()
        print("rows given at once:", sum(progress.given_at_once for progress in live.recent_progress), flush=True)


if __name__ == "__main__":
    if os.environ.get(FULL_DISK):
        fill_disk()
    main(Path(sys.argv[1]), sys.argv[2])
