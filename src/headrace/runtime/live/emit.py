"""Windows that are due: the partials of their slices to answers.

Where there are several windows, or few rows, a task has all partials of some time and writes answers at once. Else
it has those of some keys, and answers meet once more to be written.

Mostly all partials were made by the plan that runs now, and go down its tree. Where a query's root has changed
while its window was open, each version's partials first go down the tree of that version, to the query's own
groups, and these meet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from headrace.kernel.cascade import Cascade, Measures
from headrace.kernel.conditions import Conditions
from headrace.kernel.due import Due, Numbers, stretch_of
from headrace.kernel.high import HighLevel
from headrace.kernel.piece import Piece
from headrace.kernel.shelf import Kept, Reader
from headrace.plan.member import Member, states_of
from headrace.plan.plan import Answer, Deal, Expected, Node, Plan
from headrace.plan.slices import Slices, Windows
from headrace.runtime.live.emitted import Emitted, Places
from headrace.runtime.live.log import Commit, Entry, PartialLog
from headrace.runtime.live.steps import Step, cut, step_of, worth_a_task
from headrace.runtime.live.version import Version
from headrace.runtime.live.walk import LINES, Walk
from headrace.runtime.meeting import Line, lines_of, meet
from headrace.runtime.results import collected
from headrace.runtime.scratch import Scratch
from headrace.runtime.told import Told
from headrace.runtime.worker import PIECES, Batches, Brief, Work, on_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Emitter:
    """Makes the answers of windows that are due."""

    def __init__(self, log: PartialLog, spark: SparkSession, budget: int) -> None:
        self._log = log
        self._spark = spark
        self._budget = budget

    def emit(
        self,
        version: Version,
        old: Mapping[int, Version],
        commit: Commit,
        due: Mapping[str, Numbers],
        places: Places,
        together: bool = False,
    ) -> Emitted:
        """The windows that are due, to their places: one file for each query, if `together`.

        `commit` has all partials; `old` are the versions that made some of them.
        """
        sorter = _Sorter(version, old, commit, due)
        found = Emitted()
        mixed, own = sorter.stale, _without(due, sorter.stale)
        tasks = 1 if together else self._spark.sparkContext.defaultParallelism
        steps = cut(version, own, step_of(version, own, commit.entries), tasks)
        if steps is not None:
            self._by_time(version, steps, places, found)
        else:
            # Rows of one key have to be in one bucket, whichever version dealt them.
            mixed, own = mixed | sorter.dealt_otherwise, _without(own, sorter.dealt_otherwise)
            if own:
                _note(version.plan, self._by_keys(version, own, commit, places.shelf), found)
        if mixed:
            _note(*self._mixed(version, sorter, mixed, commit, places.shelf), found)
        return found

    def _by_time(self, version: Version, steps: Sequence[Sequence[Step]], places: Places, found: Emitted) -> None:
        """All partials of a step in one task, which makes whole answers of them; of few, it is done here."""
        walks = []
        for number, own in enumerate(steps):
            parts = [(s.due, tuple((root, self._log.kept(e)) for root, e in s.entries)) for s in own]
            walks.append(Walk(version, tuple(parts), places, f"{number}"))
        if not worth_a_task(steps):
            for walk in walks:
                found.add(walk.run())
            return
        for row in collected(on_tasks(self._spark, len(walks), lambda task: walks[task].lines(), LINES)):
            found.add(Emitted.from_json(row.emitted))

    def _by_keys(self, version: Version, due: Mapping[str, Numbers], commit: Commit, shelf: str) -> list[Line]:
        """Partials of the roots that queries have now, down the tree: a task has those of some keys."""
        whole = step_of(version, due, commit.entries)
        work = self._work(version.plan, commit, shelf, version.conditions, whole.due)
        lines = [self._line(root, entry) for root, entry in whole.entries]
        done, _ = meet(work, self._spark, lines)
        return done

    def _mixed(
        self, version: Version, sorter: _Sorter, queries: Collection[str], commit: Commit, shelf: str
    ) -> tuple[Plan, list[Line]]:
        """Each version's partials down its own tree, then all of them together."""
        own = _plan_of([version.plan.answers[version.plan.numbers[query]] for query in sorted(queries)])
        wanted = {number: sorter.due[answer.query.name] for number, answer in enumerate(own.answers)}
        work = self._work(own, commit, shelf, {}, Due.of(own, wanted))
        ways = sorter.ways(queries, own, commit.buckets, self._log)
        count = min(len(ways), work.tasks)

        def convert(number: int) -> Batches:
            measures = Measures()
            pieces = (piece for way in ways[number::count] for piece in way.run(measures, shelf))
            return work.rows(pieces, measures)

        lines = lines_of(on_tasks(self._spark, count, convert, PIECES))
        done, _ = meet(work, self._spark, lines)
        return own, done

    def _work(self, plan: Plan, commit: Commit, shelf: str, conditions: Conditions, due: Due) -> Work:
        tasks = min(self._spark.sparkContext.defaultParallelism, commit.buckets)
        brief = Told(Brief(plan, (), (), conditions), self._spark)
        return Work(brief, self._budget, commit.buckets, tasks, Scratch(shelf), due)

    def _line(self, node: int, entry: Entry) -> Line:
        kept = self._log.kept(entry)
        place = kept.place, kept.start, kept.size, kept.crc
        return Line(entry.bucket, node, None, entry.rows, *place, measures=None)


def _note(plan: Plan, lines: Iterable[Line], found: Emitted) -> None:
    """Answers that are ready."""
    for line in lines:
        if line.answer is not None:
            found.note(plan.answers[line.answer].query.name, line.rows or 0, line.kept)


def _without(due: Mapping[str, Numbers], queries: Collection[str]) -> dict[str, Numbers]:
    return {query: numbers for query, numbers in due.items() if query not in queries}


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
        self._standings = {query: commit.queries[query] for query in due}
        self._stretches = {query: stretch_of(version.windows[query], numbers) for query, numbers in due.items()}
        self._lots: dict[tuple[int, str], list[Entry]] = {}
        for entry in commit.entries:
            self._lots.setdefault((entry.version, entry.node), []).append(entry)
        stale: set[str] = set()
        otherwise: set[str] = set()
        for (made, node), entries in self._lots.items():
            for query in due:
                if self._maker(query, made).roots[query] != node:
                    continue
                same = node == version.roots[query]
                if same and self._versions[made].deals[node] == version.deals[node]:
                    continue
                if any(self._inside(query, entry) for entry in entries):
                    (otherwise if same else stale).add(query)
        self.stale = frozenset(stale)
        """Queries that have, or had, partials of another root;"""
        self.dealt_otherwise = frozenset(otherwise)
        """those that have some of their root whose rows were dealt by other keys than now."""

    def _maker(self, query: str, made: int) -> Version:
        """The version by which a partial, made by one, is a query's."""
        return self._versions[self._standings[query].maker(made)]

    def _inside(self, query: str, entry: Entry) -> bool:
        first, end = self._stretches[query]
        return first <= self._versions[entry.version].start_of(entry.node, entry.slice) < end

    def ways(self, queries: Collection[str], into: Plan, buckets: int, log: PartialLog) -> list[_Way]:
        """The ways of all partials that count for some queries: those of one node go together."""
        together: dict[tuple[str, tuple[str, ...], int], list[Entry]] = {}
        latest: dict[tuple[str, tuple[str, ...], int], int] = {}
        for (made, node), entries in sorted(self._lots.items()):
            makers: dict[int, list[str]] = {}
            for query in queries:
                maker = self._maker(query, made)
                if maker.roots[query] == node:
                    # All versions that made rows of a node for some queries will do, to go down from it.
                    makers.setdefault(0 if maker.number == made else maker.number, []).append(query)
            for number, found in makers.items():
                lot = node, tuple(found), number
                together.setdefault(lot, []).extend(
                    entry for entry in entries if any(self._inside(query, entry) for query in found)
                )
                latest[lot] = number or made
        ways = []
        for (node, own, number), entries in together.items():
            maker = self._versions[latest[node, own, number]]
            due = Due.of(maker.plan, {maker.plan.numbers[query]: self.due[query] for query in own})
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
        times = Slices.of(window) if member.own_window is None else Windows(window)
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
        level = HighLevel(self.plan, self.buckets, conditions=self.conditions, due=self.due)
        for kept in self.kept:
            level.add(self.root, *reader.read(kept))
        cascade = Cascade(
            self.plan, self.buckets, lambda _: True, {}, measures, self.conditions, due=self.due, into=self.into
        )
        yield from cascade.run(self.root, level.take(self.root))
