"""Windows that are due: the partials of their slices to answers, in files of the outbox.

Mostly all partials were made by the plan that runs now, and go down its tree. Where a query's root has changed
while its window was open, each version's partials first go down the tree of that version, to the query's own
groups, and these meet.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headrace.kernel.cascade import Cascade, Measures
from headrace.kernel.conditions import Conditions
from headrace.kernel.due import Due, Numbers, stretch_of
from headrace.kernel.high import HighLevel
from headrace.kernel.piece import Piece
from headrace.kernel.shelf import Kept, Reader
from headrace.plan.member import Member, states_of
from headrace.plan.plan import Answer, Deal, Expected, Node, Plan
from headrace.plan.slices import Slices, Windows
from headrace.runtime.live.log import Commit, Entry, PartialLog
from headrace.runtime.live.version import Version
from headrace.runtime.results import collected
from headrace.runtime.worker import PIECES, SCHEMA, Batches, Work, on_tasks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Groups(NamedTuple):
    """Rows of a query's groups, still to be finished."""

    rows: int
    kept: Kept


class Emitter:
    """Makes the groups of windows that are due."""

    def __init__(self, log: PartialLog, spark: SparkSession, budget: int) -> None:
        self._log = log
        self._spark = spark
        self._budget = budget

    def emit(
        self, version: Version, old: Mapping[int, Version], commit: Commit, due: Mapping[str, Numbers], shelf: str
    ) -> dict[str, list[Groups]]:
        """The groups of the windows that are due, by query.

        `commit` has all partials; `old` are the versions that made some of them. Groups are kept on the shelf.
        """
        sorter = _Sorter(version, old, commit, due)
        jobs = []
        if sorter.direct:
            jobs.append(self._direct(version, sorter, commit, shelf))
        if sorter.mixed:
            jobs.append(self._mixed(version, sorter, commit, shelf))
        found: dict[str, list[Groups]] = {}
        for plan, pieces in jobs:
            for row in collected(pieces.select("answer", "rows", "place", "start", "size")):
                if row.answer is not None:
                    kept = Kept(None, row.place, row.start, row.size)
                    found.setdefault(plan.answers[row.answer].query.name, []).append(Groups(row.rows, kept))
        return found

    def _direct(self, version: Version, sorter: _Sorter, commit: Commit, shelf: str) -> tuple[Plan, DataFrame]:
        """Partials of the roots that queries have now, down the tree."""
        plan = version.plan
        due = Due.of(plan, {version.number_of(query): sorter.due[query] for query in sorter.direct})
        work = self._work(plan, commit, shelf, version.conditions, due)
        lines = []
        for entry in commit.entries:
            root = version.root_places.get(entry.node)
            first, end = due.nodes.get(root, (0, 0)) if root is not None else (0, 0)
            if root is not None and first <= entry.slice < end:
                lines.append(self._line(work, root, entry))

        def high(task: int) -> Batches:
            own = [line for line in lines if line["task"] == task]
            pieces = [pa.RecordBatch.from_pylist(own, schema=SCHEMA)] if own else []
            return work.high(iter(pieces), task, False)

        return plan, work.meet(on_tasks(self._spark, work.tasks, high, PIECES), last=True)

    def _mixed(self, version: Version, sorter: _Sorter, commit: Commit, shelf: str) -> tuple[Plan, DataFrame]:
        """Each version's partials down its own tree, then all of them together."""
        own = _plan_of([version.plan.answers[version.number_of(query)] for query in sorter.mixed])
        wanted = {number: sorter.due[answer.query.name] for number, answer in enumerate(own.answers)}
        work = self._work(own, commit, shelf, {}, Due.of(own, wanted))
        ways = sorter.ways(own, commit.buckets, self._log)
        count = min(len(ways), work.tasks)

        def convert(number: int) -> Batches:
            measures = Measures()
            pieces = (piece for way in ways[number::count] for piece in way.run(measures, work.shelf))
            return work.rows(pieces, measures)

        pieces = on_tasks(self._spark, count, convert, PIECES)
        return own, work.meet(work.meet(pieces), last=True)

    def _work(self, plan: Plan, commit: Commit, shelf: str, conditions: Conditions, due: Due) -> Work:
        tasks = min(self._spark.sparkContext.defaultParallelism, commit.buckets)
        return Work(plan, (), (), self._budget, commit.buckets, tasks, shelf, conditions, due)

    def _line(self, work: Work, node: int, entry: Entry) -> dict[str, object]:
        kept = self._log.kept(entry)
        place = {"place": kept.place, "start": kept.start, "size": kept.size, "crc": kept.crc}
        return {
            "task": entry.bucket % work.tasks,
            "bucket": entry.bucket,
            "node": node,
            "rows": entry.rows,
            **place,
        }


class _Sorter:
    """Which queries come from partials of roots that they have now, and which from those of others too.

    A partial counts for a query if the query came from its node when it was made; those that were made before the
    query joined, as if it had been there.
    """

    def __init__(
        self, version: Version, old: Mapping[int, Version], commit: Commit, due: Mapping[str, Numbers]
    ) -> None:
        self.due = due
        self._versions = {**old, version.number: version}
        self._joined = {query: commit.queries[query].version for query in due}
        self._stretches = {query: stretch_of(version.windows[query], numbers) for query, numbers in due.items()}
        self._lots: dict[tuple[int, str], list[Entry]] = {}
        for entry in commit.entries:
            self._lots.setdefault((entry.version, entry.node), []).append(entry)
        here, deals = version.roots, version.deals
        stale = set()
        for (made, node), entries in self._lots.items():
            for query in due:
                maker = self._maker(query, made)
                if maker.roots[query] != node or (
                    node == here[query] and self._versions[made].deals[node] == deals[node]
                ):
                    continue
                if any(self._inside(query, entry) for entry in entries):
                    stale.add(query)
        self.direct = [query for query in due if query not in stale]
        self.mixed = [query for query in due if query in stale]

    def _maker(self, query: str, made: int) -> Version:
        """The version by which a partial, made by one, is a query's."""
        return self._versions[max(made, self._joined[query])]

    def _inside(self, query: str, entry: Entry) -> bool:
        first, end = self._stretches[query]
        return first <= self._versions[entry.version].start_of(entry.node, entry.slice) < end

    def ways(self, into: Plan, buckets: int, log: PartialLog) -> list[_Way]:
        """The ways of all partials that count for mixed queries: those of one node go together."""
        together: dict[tuple[str, tuple[str, ...], int], list[Entry]] = {}
        latest: dict[tuple[str, tuple[str, ...], int], int] = {}
        for (made, node), entries in sorted(self._lots.items()):
            makers: dict[int, list[str]] = {}
            for query in self.mixed:
                maker = self._maker(query, made)
                if maker.roots[query] == node:
                    # All versions that made rows of a node for some queries will do, to go down from it.
                    makers.setdefault(0 if maker.number == made else maker.number, []).append(query)
            for number, queries in makers.items():
                lot = node, tuple(queries), number
                together.setdefault(lot, []).extend(
                    entry for entry in entries if any(self._inside(query, entry) for query in queries)
                )
                latest[lot] = number or made
        ways = []
        for (node, own, number), entries in together.items():
            maker = self._versions[latest[node, own, number]]
            due = Due.of(maker.plan, {maker.number_of(query): self.due[query] for query in own})
            by_bucket: dict[int, list[Kept]] = {}
            for entry in entries:
                by_bucket.setdefault(entry.bucket, []).append(log.kept(entry))
            for kept in by_bucket.values():
                root = maker.root_places[node]
                ways.append(_Way(maker.plan, root, tuple(kept), due, into, buckets, maker.conditions))
        return ways


def _plan_of(answers: Sequence[Answer]) -> Plan:
    """A plan in which each query has a root that has what it needs, and nothing else."""
    nodes, own = [], []
    for place, answer in enumerate(answers):
        window, where = answer.query.window, answer.query.where
        assert window is not None, "see `check_queries`"
        member = Member(answer.query, answer.keys, answer.recipes)
        times = Slices.of(window) if window.tumbling else Windows(window)
        any_of = () if where is None else (where,)
        nodes.append(Node(tuple(dict.fromkeys(member.all_keys)), tuple(states_of([member])), times, any_of))
        own.append(replace(answer, node=place, assumed=()))
    # A query's own keys keep all rows of a group together, also where the node has more.
    deals = tuple(Deal(key=answer.keys[0] if answer.keys else None) for answer in answers)
    roots: tuple[int | None, ...] = (None,) * len(nodes)
    return Plan(tuple(nodes), roots, deals, tuple(own), (), tuple(Expected(0.0) for _ in nodes))


@dataclass(frozen=True, slots=True)
class _Way:
    """Some partials of a root on their way to the groups of queries."""

    plan: Plan
    root: int
    kept: tuple[Kept, ...]
    due: Due
    into: Plan
    buckets: int
    conditions: Conditions

    def run(self, measures: Measures, shelf: str | None) -> Iterator[Piece]:
        """Down the tree, to partials of the other plan."""
        reader = Reader(shelf)
        level = HighLevel(self.plan, 0, self.buckets, conditions=self.conditions, due=self.due)
        for kept in self.kept:
            level.add(self.root, *reader.read(kept))
        cascade = Cascade(
            self.plan, self.buckets, lambda _: True, {}, measures, self.conditions, due=self.due, into=self.into
        )
        yield from cascade.run(self.root, level.take(self.root))
