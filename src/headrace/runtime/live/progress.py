"""What a run does, micro-batch by micro-batch: as a value, as JSON in the checkpoint, for whoever watches."""

from __future__ import annotations

import json
import logging
import time
from collections import deque
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from headrace.runtime.live.clock import moment
from headrace.runtime.live.engine import Done
from headrace.runtime.live.files import Folder
from headrace.runtime.profile import Profile

FILE = "progress.json"
_KEPT = 60
"""Micro-batches that are kept."""

logger = logging.getLogger("headrace.live")


@dataclass(frozen=True, slots=True)
class Progress:
    """What one micro-batch did."""

    run: str
    batch: int
    at: str
    seconds: float
    phases: dict[str, float]
    records: int
    records_per_second: float
    no_time: int
    ahead: int
    late: dict[str, int]
    """Since the beginning: records without a time, too far ahead, and late (see `Counts`)."""
    total_records: int
    watermark: str
    latest: str | None
    lag_s: float | None
    """How far the latest record is behind the wall clock."""
    version: int
    queries: int
    nodes: list[dict[str, Any]]
    """Rows in and out of each node, and seconds of all cores."""
    given: dict[str, int]
    """The rows of windows that were given, by query."""
    given_at_once: int
    """How many of these rows were made where records were read, without the log."""
    log_partials: int
    log_rows: int
    log_bytes: int

    def to_json(self) -> str:
        """All of it as JSON."""
        return json.dumps(asdict(self))


class Watcher:
    """Makes progress of what is done, and keeps the last of it."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self.recent: deque[Progress] = deque(maxlen=_KEPT)

    @property
    def last(self) -> Progress | None:
        """What the last micro-batch did."""
        return self.recent[-1] if self.recent else None

    def note(self, done: Done) -> Progress:
        """A micro-batch is done."""
        progress = _progress(done)
        self.recent.append(progress)
        self._folder.put(FILE, json.dumps([asdict(each) for each in self.recent]).encode())
        logger.info(progress.to_json())
        return progress


def _progress(done: Done) -> Progress:
    commit, taken = done.commit, done.taken
    seconds = sum(done.seconds.values())
    records = taken.counts.records if taken is not None else 0
    profile = Profile.of(done.version.plan, taken.measures if taken is not None else (), seconds)
    given: dict[str, int] = {}
    for each in commit.given:
        given[each.query] = given.get(each.query, 0) + each.rows
    counts = commit.counts
    return Progress(
        commit.run,
        commit.batch,
        datetime.now(UTC).isoformat(timespec="milliseconds"),
        round(seconds, 3),
        {phase: round(took, 3) for phase, took in done.seconds.items()},
        records,
        round(records / seconds, 1) if seconds else 0.0,
        counts.no_time,
        counts.ahead,
        dict(counts.late),
        counts.records,
        moment(commit.watermark_us).isoformat(),
        moment(commit.latest_us).isoformat() if commit.latest_us is not None else None,
        round(time.time() - commit.latest_us / 1e6, 3) if commit.latest_us is not None else None,
        commit.version,
        len(commit.queries),
        [
            {"node": done.version.plan.nodes[index].id, **asdict(measure)}
            for index, measure in sorted(profile.nodes.items())
        ],
        given,
        taken.emitted.rows if taken is not None else 0,
        len(commit.entries),
        sum(entry.rows for entry in commit.entries),
        sum(entry.size for entry in commit.entries),
    )
