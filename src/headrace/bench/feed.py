"""A feed: records of some data, with the time of their arrival, in a folder to which a file comes every second."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.bench.question import Data, Question, read_data
from headrace.bench.text import spark_text
from headrace.bench.workloads import TOPICS
from headrace.generate import FlowOptions, generate_flows
from headrace.sources import Stream

_SECONDS = 4
"""A feed goes through so many seconds' records again and again."""
_KEPT_FILES = 60


class Feed:
    """Goes on in a thread from `with` on until its end; files of long ago go."""

    def __init__(self, data: Data, folder: Path, rate: int) -> None:
        """A new folder, with a file that has no record: so that its schema is known."""
        self._data = data
        self._rate = rate
        self.folder = folder
        self.arrived: list[tuple[float, float]] = []
        """Of each file, when its last record and the file itself came."""
        self._records = pq.read_table(data.files[0]).slice(0, _SECONDS * rate)
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="headrace-feed", daemon=True)
        folder.mkdir()
        pq.write_table(self._records.slice(0, 0), folder / "empty.parquet")

    @classmethod
    def of_flows(cls, folder: Path, rate: int) -> Feed:
        """A feed of flows that are made for it."""
        generate_flows(FlowOptions(rows=_SECONDS * rate, profile="enterprise"), folder / "made")
        topic = TOPICS["netflow"]
        return cls(read_data(folder / "made", topic.stream, topic.time), folder / "feed", rate)

    def stream(self, lateness: str | None = None) -> Stream:
        """The feed as headrace's stream."""
        return Stream.parquet(str(self.folder), self._data.stream, self._data.time, lateness)

    def texts(self, questions: Iterable[Question], window: str) -> dict[str, str]:
        """The questions as queries over the feed, with windows in place of theirs of five minutes."""
        return {q.name: spark_text(q, self._data).replace("'5 minutes'", f"'{window}'") for q in questions}

    def __enter__(self) -> Feed:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _run(self) -> None:
        begin = time.time() + 1.0
        for number in itertools.count():
            due = begin + number
            if self._ended.wait(max(0.0, due - time.time())):
                return
            self._write(number, due)
            (self.folder / f"{number - _KEPT_FILES:08}.parquet").unlink(missing_ok=True)

    def _write(self, number: int, due: float) -> None:
        """The records of the second that has just ended."""
        own = self._records.slice(number % _SECONDS * self._rate, self._rate)
        step = 1_000_000 // self._rate
        start = int(due * 1e6) - 1_000_000
        times = pa.array(range(start, start + step * len(own), step), pa.int64())
        place = self._records.schema.get_field_index(self._data.time)
        column = times.cast(pa.timestamp("us")).cast(self._records.schema.field(place).type)
        hidden = self.folder.parent / f".feed-{number}"
        pq.write_table(own.set_column(place, self._data.time, column), hidden)
        hidden.rename(self.folder / f"{number:08}.parquet")
        self.arrived.append((times[-1].as_py() / 1e6, time.time()))
