"""What the studies found: times and counts of query sets by strategy, their ratios, and all of it as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean
from typing import Any

from headrace.bench.sharing.counts import Count

RATIOS = {
    "paired_vs_unshared": ("a", "unshared paired"),
    "paired_vs_paned": ("a", "shared paned"),
    "sdf": ("b", "unshared paired"),
    "sds_regular": ("c_regular", "unshared paired"),
    "sds_low": ("c_low", "unshared paired"),
}
"""How many times as much as shared pairs a strategy takes."""


@dataclass(frozen=True, slots=True)
class Timed:
    """A query set by one strategy: the median of the rounds, and the rows of all answers."""

    workload: str
    queries: int
    grouped: bool
    strategy: str
    seconds: float
    rows_out: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted(Count):
    """A query set's aggregate operations by one strategy."""

    workload: str
    queries: int
    grouped: bool
    strategy: str


@dataclass(frozen=True, slots=True)
class SparkTimed:
    """A query set on Spark, grouped: by `workload.run`, and query by query, of which only some were `timed`."""

    workload: str
    queries: int
    timed: int
    headrace_s: float
    spark_s: float
    """What all queries would take."""


@dataclass(frozen=True)
class Report:
    """All figures of a run or a study."""

    data: str
    rows: int
    queries: int
    rounds: int
    seed: int
    sets: int
    timed: tuple[Timed, ...] = ()
    counted: tuple[Counted, ...] = ()
    spark: SparkTimed | None = None

    def ratios(self, grouped: bool) -> dict[str, float]:
        """The ratios of times, of the sets with most queries; the others' seconds to those of shared pairs."""
        seconds = {(t.workload, t.strategy): t.seconds for t in self._most(self.timed) if t.grouped == grouped}
        found = _ratios(seconds)
        if grouped and self.spark is not None:
            found["spark"] = self.spark.spark_s / self.spark.headrace_s
        return found

    def count_ratios(self, grouped: bool, once: bool = False) -> dict[str, float]:
        """The ratios of operations, of the sets with most queries; if `once`, of what is then merged once."""
        counts = {(c.workload, c.strategy): c for c in self._most(self.counted) if c.grouped == grouped}
        if not once:
            return _ratios({place: float(c.total) for place, c in counts.items()})
        shared = {place[0] for place, c in counts.items() if c.once is not None}
        totals = {place: c.total if c.once is None else c.once for place, c in counts.items()}
        return _ratios({place: float(total) for place, total in totals.items() if place[0] in shared})

    def _most(self, found: tuple[Any, ...]) -> list[Any]:
        most: dict[str, int] = {}
        for one in found:
            most[one.workload] = max(most.get(one.workload, 0), one.queries)
        return [one for one in found if one.queries == most[one.workload]]

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        plain: dict[str, Any] = {
            name: getattr(self, name) for name in ("data", "rows", "queries", "rounds", "seed", "sets")
        }
        plain["workload"] = "sharing"
        plain["ratios"] = self.ratios(grouped=True)
        plain["ungrouped_ratios"] = self.ratios(grouped=False)
        plain["count_ratios"] = self.count_ratios(grouped=False)
        plain["once_count_ratios"] = self.count_ratios(grouped=False, once=True)
        plain["grouped_count_ratios"] = self.count_ratios(grouped=True)
        plain["timed"] = [asdict(timed) for timed in self.timed]
        plain["counted"] = [asdict(counted) for counted in self.counted]
        if self.spark is not None:
            plain["spark"] = asdict(self.spark)
        return plain


def mean(same: Sequence[Counted]) -> Counted:
    """The mean of several sets that differ by the seed alone."""

    def of(numbers: Iterable[int]) -> int:
        return round(fmean(numbers))

    direct = [each.direct for each in same if each.direct is not None]
    once = [each.once for each in same if each.once is not None]
    return replace(
        same[0],
        partial=of(each.partial for each in same),
        final=of(each.final for each in same),
        direct=of(direct) if direct else None,
        once=of(once) if once else None,
    )


def _ratios(found: dict[tuple[str, str], float]) -> dict[str, float]:
    ratios: dict[str, float] = {}
    for name, (workload, strategy) in RATIOS.items():
        other, own = found.get((workload, strategy)), found.get((workload, "shared paired"))
        if other is not None and own:
            ratios[name] = other / own
    return ratios
