"""One micro-batch: records to partials, windows that are due to answers, and the commit between the two writes.

The order of writes is what makes it exactly once. Partials and answers lie in files that nobody knows of; one
rename makes the commit, and with it both count; then answers go to the sinks, which know what they have had. A
micro-batch that Spark gives again finds its commit, and has only the last step left to do.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.kernel.due import Numbers
from headrace.plan.slices import FOREVER_US
from headrace.query import Window
from headrace.runtime.live.clock import Clock, due, open_from, still_open
from headrace.runtime.live.compact import compacted
from headrace.runtime.live.dead import LETTERS, write_letters
from headrace.runtime.live.emit import Emitter
from headrace.runtime.live.emitted import Emitted, Places
from headrace.runtime.live.files import Folder
from headrace.runtime.live.intake import Receiver, Taken
from headrace.runtime.live.log import Commit, Entry, Given, PartialLog, Standing
from headrace.runtime.live.outbox import Outbox
from headrace.runtime.live.points import passing
from headrace.runtime.live.records import Records
from headrace.runtime.live.sinks import Delivery, Sink
from headrace.runtime.live.version import Version
from headrace.runtime.live.versions import Versions
from headrace.sources import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class Settings:
    """What a run is started with."""

    name: str
    clock: Clock
    retain_us: int
    budget: int
    buckets: int
    dead_letters: str | None = None
    """A folder for records that did not count."""
    early: bool = False
    """Whether sinks are also given windows that are still open, after each micro-batch."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a micro-batch did, for whoever watches."""

    commit: Commit
    version: Version
    taken: Taken | None
    seconds: Mapping[str, float]
    """The time that each phase took."""


class Engine:
    """Takes in micro-batches, one after another."""

    def __init__(
        self,
        stream: Stream,
        spark: SparkSession,
        folder: Folder,
        sinks: Sequence[Sink],
        settings: Settings,
    ) -> None:
        self._stream = stream
        self._spark = spark
        self._sinks = tuple(sinks)
        self._settings = settings
        self._folder = folder
        self.log = PartialLog(folder)
        self.versions = Versions(folder / "versions")
        self._outbox = Outbox(folder / "outbox", spark)
        self._receiver = Receiver(
            stream, self.log, spark, settings.budget, settings.clock, retain=settings.retain_us > 0
        )
        self._emitter = Emitter(self.log, spark, settings.budget)
        self.commit = self.log.recover() or Commit(settings.name, buckets=settings.buckets)
        self._outbox.sweep(self.commit.batch)
        for name in ("shelves", "early"):
            folder.delete(name)
        (folder / "shelves").make()

    def resume(self) -> None:
        """Deliver what the last commit has made final and a sink may not have."""
        self._deliver(self.commit)

    def take(self, records: Records, batch: int, version: Version) -> Done:
        """Count a micro-batch by a version of the plan."""
        watch, before = _Watch(), self.commit
        if batch <= before.batch:
            self._deliver(before)
            return Done(before, version, None, watch.phases)
        passing("begin")
        commit = joined(before, version)
        standings = commit.queries
        most_us = self._settings.clock.latest(commit.latest_us, time.time_ns() // 1000)
        with self._shelf() as shelf:
            places = Places(shelf, self._outbox.of(batch).make().uri)
            taken = self._receiver.take(records, version, commit, most_us, places)
            watch.note("take in")
            passing("partials written")
            commit = self._emit(self._counted(commit, batch, version, taken), version, taken.emitted, places)
            watch.note("emit")
        if self._settings.dead_letters is not None and taken.counts.lost:
            folder = self._outbox.of(batch)
            letters = write_letters(records.frame(), self._stream.time, version, standings, most_us, folder)
            commit = replace(commit, given=(*commit.given, *letters))
            watch.note("dead letters")
        commit = self._trim(commit, version)
        commit = replace(
            commit, entries=compacted(commit.entries, self._versions_of(commit), self.log, self._spark)
        )
        watch.note("compact")
        self.log.commit(commit)
        self.commit = commit
        watch.note("commit")
        passing("committed")
        self._deliver(commit)
        watch.note("deliver")
        if self._settings.early:
            self._give_early(commit, version)
            watch.note("early")
        self.log.tidy(commit, before.files | {entry.file for entry in taken.entries})
        self.versions.forget(_needed(commit))
        watch.note("tidy")
        return Done(commit, version, taken, watch.phases)

    def _counted(self, commit: Commit, batch: int, version: Version, taken: Taken) -> Commit:
        """A commit with what a micro-batch adds, but for the windows that are due now."""
        latest = max((us for us in (commit.latest_us, taken.latest_us) if us is not None), default=None)
        whole = dict(commit.whole_from)
        if taken.until_us is not None:
            for node, first_us in version.open_at(taken.until_us):
                whole[node] = max(whole[node], first_us)
        return replace(
            commit,
            batch=batch,
            latest_us=latest,
            watermark_us=self._settings.clock.watermark(commit.watermark_us, latest),
            whole_from=whole,
            entries=commit.entries + taken.entries,
            counts=commit.counts.plus(taken.counts),
            given=(),
        )

    def _emit(self, commit: Commit, version: Version, at_once: Emitted, places: Places) -> Commit:
        """The answers of windows that the watermark has passed, into the outbox; some are there at once."""
        wanted = _wanted(version, commit, lambda window, own: due(window, own, commit.watermark_us))
        emitted = self._emitter.emit(version, self._versions_of(commit), commit, wanted, places)
        emitted.add(at_once)
        given = self._outbox.fill(self._outbox.of(commit.batch), version, emitted, places.shelf)
        if given:
            passing("outbox filled")
        standings = {
            query: replace(standing, until_us=max(standing.until_us, commit.watermark_us))
            for query, standing in commit.queries.items()
        }
        return replace(commit, queries=standings, given=given)

    def _give_early(self, commit: Commit, version: Version) -> None:
        """What open windows would answer by now, to the sinks: they may change, and nobody remembers them."""
        latest_us = commit.latest_us
        if latest_us is None or not commit.entries:
            return
        wanted = _wanted(version, commit, lambda window, own: still_open(window, own, latest_us))
        # Not in the outbox: what is there is final.
        folder = self._folder / "early"
        with self._shelf() as shelf:
            places, old = Places(shelf, folder.make().uri), self._versions_of(commit)
            emitted = self._emitter.emit(version, old, commit, wanted, places, together=True)
            given = self._outbox.fill(folder, version, emitted, shelf)
        for each in given:
            self._hand_over(each, commit, version, folder, early=True)
        self._folder.delete(folder.name)

    @contextmanager
    def _shelf(self) -> Iterator[str]:
        """A folder for groups until they are answers."""
        shelves, name = self._folder / "shelves", uuid.uuid4().hex
        try:
            yield (shelves / name).make().uri
        finally:
            shelves.delete(name)

    def _versions_of(self, commit: Commit) -> dict[int, Version]:
        return {number: self.versions[number] for number in _needed(commit)}

    def _trim(self, commit: Commit, version: Version) -> Commit:
        """Without partials that no open window and no query that may join can need."""
        retained_us = commit.watermark_us - self._settings.retain_us if self._settings.retain_us else FOREVER_US
        opens = {q: open_from(window, commit.queries[q]) for q, window in version.windows.items()}
        since: dict[tuple[int, str], int] = {}
        kept: list[Entry] = []
        here = set(version.roots.values())
        for entry in commit.entries:
            lot = entry.version, entry.node
            if lot not in since:
                needed = [us for query, us in opens.items() if self._counts(commit, query, lot)]
                since[lot] = min([*needed, *([retained_us] if entry.node in here else [])], default=FOREVER_US)
            if self.versions[entry.version].start_of(entry.node, entry.slice) >= since[lot]:
                kept.append(entry)
        first_kept = {node: min((us for (_, n), us in since.items() if n == node), default=0) for node in here}
        whole = {
            node: us if node not in {n for _, n in since} else max(us, first_kept[node])
            for node, us in commit.whole_from.items()
        }
        return replace(commit, entries=tuple(kept), whole_from=whole)

    def _counts(self, commit: Commit, query: str, lot: tuple[int, str]) -> bool:
        """Whether partials of a version's node count for a query."""
        made, node = lot
        maker = self.versions[commit.queries[query].maker(made)]
        return maker.roots.get(query) == node

    def _deliver(self, commit: Commit) -> None:
        """Give what a commit has made final to all sinks."""
        folder = self._outbox.of(commit.batch)
        there = set(folder.names())
        version = self.versions[commit.version] if commit.given else None
        for given in commit.given:
            if given.query == LETTERS and given.file in there and self._settings.dead_letters is not None:
                name = f"{commit.run}-{commit.batch:012}.parquet"
                Folder(self._settings.dead_letters).copy(folder, given.file, name)
            elif given.file in there and version is not None:
                self._hand_over(given, commit, version, folder)
                folder.delete(given.file)
        passing("delivered")
        self._outbox.clear(commit.batch)
        passing("outbox cleared")

    def _hand_over(
        self, given: Given, commit: Commit, version: Version, folder: Folder, early: bool = False
    ) -> None:
        """A file of a folder, to all sinks."""
        range_us = version.windows[given.query].range_us
        delivery = Delivery(commit.run, commit.batch, given, range_us, folder, early)
        for sink in self._sinks:
            sink.deliver(delivery, self._spark)


def _wanted(
    version: Version, commit: Commit, numbers_of: Callable[[Window, Standing], Numbers | None]
) -> dict[str, Numbers]:
    """Windows of each query that has some."""
    found = {query: numbers_of(window, commit.queries[query]) for query, window in version.windows.items()}
    return {query: numbers for query, numbers in found.items() if numbers is not None}


def joined(commit: Commit, version: Version) -> Commit:
    """A commit whose queries are those of a version: some may have joined since, others left.

    A query that joins begins with its first window that no record so far can be in; with a backfill, with the
    first of which the log has all slices.
    """
    if commit.version == version.number:
        return commit
    fresh = commit.version == 0
    after_us = commit.latest_us + 1 if commit.latest_us is not None else -FOREVER_US
    whole = {
        node: -FOREVER_US if fresh else commit.whole_from.get(node, after_us)
        for node in set(version.roots.values())
    }
    queries = {}
    for query in version.queries:
        standing = commit.queries.get(query)
        if standing is not None and not _came_again(commit, version, query):
            queries[query] = standing
        elif fresh:
            queries[query] = Standing(-FOREVER_US, commit.watermark_us, version.number)
        elif query in version.backfill:
            queries[query] = Standing(whole[version.roots[query]], -FOREVER_US, version.number)
        else:
            queries[query] = Standing(after_us, commit.watermark_us, version.number)
    return replace(commit, version=version.number, queries=queries, whole_from=whole)


def _came_again(commit: Commit, version: Version, query: str) -> bool:
    """Whether a query of this name left and another one came, since the last commit."""
    return version.joined[query] > commit.version


def _needed(commit: Commit) -> set[int]:
    """The versions that a commit's partials, and queries, were made by."""
    return {
        commit.version,
        *(entry.version for entry in commit.entries),
        *(standing.version for standing in commit.queries.values()),
    }


class _Watch:
    """The time that phases take."""

    def __init__(self) -> None:
        self.phases: dict[str, float] = {}
        self._since = time.perf_counter()

    def note(self, phase: str) -> None:
        """A phase has ended."""
        now = time.perf_counter()
        self.phases[phase] = now - self._since
        self._since = now
