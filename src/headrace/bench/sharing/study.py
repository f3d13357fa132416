"""The studies themselves: query sets drawn, counted, and timed strategy by strategy."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from headrace.bench.contest import Tell
from headrace.bench.sharing.counts import Count, Tally
from headrace.bench.sharing.report import Counted, Timed
from headrace.bench.sharing.subject import Records, Subject, read_records, subject_of
from headrace.bench.sharing.timing import Strategy, compare, prepare
from headrace.bench.sharing.workloads import SETS, Constants, QuerySet, draw, find_constants

UNSHARED, SHARED = Strategy(shared=False), Strategy(shared=True)
UNSHARED_PANED, SHARED_PANED = Strategy(shared=False, paned=True), Strategy(shared=True, paned=True)

SIZES = (16, 32, 64, 128, 256)
SQUARES = (16, 36, 64, 144, 256)
FIGURE8_SIZES = (2, 4, 8, 16, 32)
FIGURE8_ROWS, FIGURE8_HOURS = 523_761, 7.0
"""The paper's trace has so many records in a day; a day of trading has seven hours."""


@dataclass(frozen=True)
class Field:
    """A stream with what query sets are drawn from."""

    path: Path
    subject: Subject
    records: Records
    constants: Constants

    @staticmethod
    def of(path: Path) -> Field:
        """Read a stream of trades or flights."""
        subject = subject_of(path)
        records = read_records(subject, path)
        return Field(path, subject, records, find_constants(subject, records.columns))

    def draw(self, name: str, queries: int, seed: int) -> QuerySet:
        """A query set; a regular one has as many queries as the nearest square."""
        size = math.isqrt(queries) ** 2 if name == "c_regular" else queries
        return draw(name, self.subject, self.constants, size, seed)


def draw_point(field: Field, queries: int, seed: int) -> list[QuerySet]:
    """All sets with so many queries."""
    return [field.draw(name, queries, seed) for name in SETS]


def draw_study(field: Field, most: int, seed: int) -> Iterator[QuerySet]:
    """All sets with 16 queries, and more up to the most."""
    for name in SETS:
        for size in SQUARES if name == "c_regular" else SIZES:
            if size <= most:
                yield field.draw(name, size, seed)


def draw_figure8(field: Field, most: int, seed: int) -> Iterator[QuerySet]:
    """The sets of the earlier paper, up to the most queries."""
    for size in FIGURE8_SIZES:
        if size <= most:
            yield field.draw("figure8", size, seed)


def strategies(queries: QuerySet) -> tuple[Strategy, ...]:
    """What the papers compare: panes only where windows overlap and nothing else differs."""
    if queries.name in ("a", "figure8"):
        return (UNSHARED, SHARED_PANED, SHARED)
    return (UNSHARED, SHARED)


def count(field: Field, queries: QuerySet) -> list[Counted]:
    """The operations of all strategies, ungrouped and grouped."""
    tally = Tally.of(field.records, queries.queries)
    found = []
    for grouped, each in ((False, tally.ungrouped), (True, tally)):
        for strategy in (*strategies(queries), *([UNSHARED_PANED] if SHARED_PANED in strategies(queries) else [])):
            own = _count(each, strategy)
            found.append(
                Counted(
                    **asdict(own),
                    workload=queries.name,
                    queries=len(queries),
                    grouped=grouped,
                    strategy=strategy.name,
                )
            )
    return found


def _count(tally: Tally, strategy: Strategy) -> Count:
    return tally.shared(strategy.paned) if strategy.shared else tally.unshared(strategy.paned)


def measure(field: Field, queries: QuerySet, grouped: bool, rounds: int, tell: Tell) -> list[Timed]:
    """The time of each strategy: the median of some rounds, after one in which answers are compared."""
    chosen = strategies(queries)
    label = f"{queries.name}, {len(queries)} queries, {'grouped' if grouped else 'ungrouped'}"
    ready = {}
    for strategy in chosen:
        tell(f"planning {label}: {strategy.name}")
        ready[strategy] = prepare(queries, grouped, field.path, strategy)
    checks = {}
    for strategy, prepared in ready.items():
        tell(f"checking {label}: {strategy.name}")
        checks[strategy] = prepared.checks()
        compare(chosen[0].name, checks[chosen[0]], strategy.name, checks[strategy])
    seconds: dict[Strategy, list[float]] = {strategy: [] for strategy in chosen}
    for number in range(1, rounds + 1):
        for strategy, prepared in ready.items():
            tell(f"round {number} of {rounds}, {label}: {strategy.name}")
            seconds[strategy].append(prepared.seconds())
    rows = sum(check.values for check in checks[chosen[0]].values())
    labels = queries.name, len(queries), grouped
    return [Timed(*labels, strategy.name, median(seconds[strategy]), rows) for strategy in chosen]
