"""A run: the handle to a stream's standing queries, which feels like Spark's own StreamingQuery."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError, Problem, RunError, WorkloadError
from headrace.plan.plan import Plan
from headrace.plan.sizes import Sizes
from headrace.query import Query
from headrace.runtime.live.control import Controller
from headrace.runtime.live.engine import Engine
from headrace.runtime.live.metrics import MetricsServer
from headrace.runtime.live.points import passing
from headrace.runtime.live.progress import Progress, Watcher
from headrace.runtime.live.records import Records
from headrace.runtime.live.version import Desk, Version
from headrace.runtime.results import describe_failure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery


logger = logging.getLogger("headrace.live")


class LiveRun:
    """A stream's standing queries at work: `add` and `remove` queries, see `progress`, `stop`."""

    def __init__(
        self,
        engine: Engine,
        desk: Desk,
        planning: Future[Version],
        watcher: Watcher,
        parse: Callable[[str, str], Query],
        metrics_port: int | None,
        replan_s: float,
    ) -> None:
        """`parse` makes a checked query of a name and a text; every `replan_s` a better plan is looked for."""
        self._metrics = MetricsServer(watcher, metrics_port) if metrics_port is not None else None
        self._controller: Controller | None = None
        self._engine = engine
        self._desk = desk
        self._planning = planning
        self._watcher = watcher
        self._parse = parse
        self._changing = threading.Lock()
        self._looking: threading.Thread | None = None
        self._looked: float | None = None
        self._replan_s = replan_s
        self._query: StreamingQuery | None = None
        self._error: HeadraceError | None = None

    @property
    def name(self) -> str:
        """The run's name."""
        return self._engine.commit.run

    @property
    def queries(self) -> Mapping[str, Query]:
        """The standing queries."""
        return self._version.queries

    @property
    def plan(self) -> Plan:
        """The plan that runs, or will with the next micro-batch."""
        return self._version.plan

    def add(self, name: str, text: str, *, backfill: bool = False) -> None:
        """Have one more query, from the next micro-batch on; raises `WorkloadError`, and nothing has changed.

        Its first window is the first that no record so far can be in; with `backfill`, the first one of which all
        slices are still kept.
        """
        with self._changing:
            query = self._parse(name, text)
            if name.lower() in {other.lower() for other in self._version.queries}:
                raise WorkloadError([Problem(f"there is a query named '{name}' already")])
            self._adopt(self._desk.with_query(self._version, query, backfill))

    def remove(self, name: str) -> None:
        """Let a query go, from the next micro-batch on; raises `WorkloadError` where there is none of the name."""
        with self._changing:
            self._adopt(self._desk.without_query(self._having(name), name))

    def replace(self, name: str, text: str) -> None:
        """Have another query of the same name, which joins as one that is new; raises `WorkloadError`."""
        with self._changing:
            self._adopt(self._desk.replaced(self._having(name), self._parse(name, text)))

    @property
    def _version(self) -> Version:
        """The version that runs, or will with the next micro-batch; a first one may have to be waited for."""
        return self._planning.result()

    def _having(self, name: str) -> Version:
        """The version, if it has a query; raises `WorkloadError`."""
        if name not in self._version.queries:
            raise WorkloadError([Problem(f"there is no query named '{name}'")])
        return self._version

    def _adopt(self, version: Version) -> None:
        self._engine.versions.put(version)
        passing("version written")
        self._planning = Future()
        self._planning.set_result(version)

    def progress(self) -> Progress | None:
        """What the last micro-batch did; None before the first one."""
        return self._watcher.last

    @property
    def recent_progress(self) -> Sequence[Progress]:
        """What the last micro-batches did, the oldest first."""
        return tuple(self._watcher.recent)

    @property
    def status(self) -> dict[str, Any]:
        """What Spark says of the stream."""
        return dict(self._started.status)

    @property
    def is_active(self) -> bool:
        """Whether the run goes on."""
        return bool(self._started.isActive)

    def exception(self) -> HeadraceError | None:
        """Why the run has ended; None where it goes on, or was stopped."""
        if self._error is not None:
            return self._error
        error = self._started.exception()
        return RunError(describe_failure(error)) if error is not None else None

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the run has ended, for so many seconds at most; raises `RunError` where it has failed."""
        from pyspark.errors import StreamingQueryException  # see session.py

        try:
            ended = self._started.awaitTermination(timeout)  # type: ignore[arg-type]  # parts of seconds are fine
        except StreamingQueryException as error:
            raise (self._error or RunError(describe_failure(error))) from error
        return True if timeout is None else bool(ended)

    def stop(self) -> None:
        """End the run, after the micro-batch that it is at; whoever starts it again goes on from there."""
        if self._controller is not None:
            self._controller.close()
        self._started.stop()
        if self._looking is not None:
            self._looking.join()
        if self._metrics is not None:
            self._metrics.close()

    def __enter__(self) -> LiveRun:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def _started(self) -> StreamingQuery:
        assert self._query is not None, "a run is handed out when it has started"
        return self._query

    @property
    def metrics_port(self) -> int | None:
        """Where Prometheus finds the metrics, if it does."""
        return self._metrics.port if self._metrics is not None else None

    @property
    def refused(self) -> Mapping[str, str]:
        """Queries of the watched folder that could not be added, and why."""
        return dict(self._controller.refused) if self._controller is not None else {}

    def listen(self, controller: Controller) -> None:
        """Take changes from outside this process."""
        self._controller = controller
        controller.start()

    def begin(self, records: DataFrame, of_files: bool, checkpoint: str, trigger: Mapping[str, Any]) -> None:
        """Have Spark give micro-batches: of records, or `of_files` that have some."""
        writer = records.writeStream.foreachBatch(partial(self._take, of_files)).queryName(self.name)
        self._query = writer.option("checkpointLocation", checkpoint).trigger(**trigger).start()

    def _take(self, of_files: bool, frame: DataFrame, batch: int) -> None:
        try:
            # Not a URI, where some characters would be encoded: Spark's own form of a path.
            files = sorted(row.path.removeprefix("file:") for row in frame.collect()) if of_files else None
            records = Records(partial(self._desk.read, files) if files is not None else lambda: frame, files)
            done = self._engine.take(records, batch, self._version)
            self._watcher.note(done)
            self._adapt(records)
        except HeadraceError as error:
            self._error = error
            raise

    def _adapt(self, records: Records) -> None:
        """Now and then, look for a better plan by the sizes of this micro-batch, in a thread of its own."""
        now, looked = time.monotonic(), self._looked
        if looked is not None and (now - looked < self._replan_s or self._is_looking):
            return
        self._looked = now
        if looked is None and records.files is not None:
            return  # the first plan was made by a sample of the same files
        sizes = self._desk.sizes_of(self._version, records)
        self._looking = threading.Thread(target=self._better, args=(sizes,), name="headrace-replan", daemon=True)
        self._looking.start()

    @property
    def _is_looking(self) -> bool:
        return self._looking is not None and self._looking.is_alive()

    def _better(self, sizes: Sizes) -> None:
        with self._changing:
            better = self._desk.better(self._version, sizes)
            if better is not None:
                logger.info("version %d of the plan costs less by what the stream shows now", better.number)
                self._adopt(better)
