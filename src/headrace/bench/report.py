"""What a benchmark found: figures, ratios, and both as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

from headrace.bench.contest import PACKAGES, VARIANTS


@dataclass(frozen=True, slots=True)
class Run:
    """One variant of one engine: the median of its rounds, the rows of all answers, the highest peak."""

    engine: str
    variant: str
    seconds: float
    rows_out: int
    peak_rss_mb: float


@dataclass(frozen=True, slots=True)
class RowGrowth:
    """headrace on so many records; `peak_worker_mb` is the largest Python worker's peak."""

    rows: int
    seconds: float
    peak_worker_mb: float


@dataclass(frozen=True, slots=True)
class QueryGrowth:
    """headrace with so many queries."""

    queries: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Growth:
    """How headrace's time grows with the records and with the queries.

    `queries` are the first ones, `spread` as many that are spread evenly over the most of these: kinds of queries
    come one after the other (in netflow, 22 schemes before all others), and cost differently.
    """

    rows: tuple[RowGrowth, ...]
    queries: tuple[QueryGrowth, ...]
    spread: tuple[QueryGrowth, ...]


@dataclass(frozen=True)
class Report:
    """All figures of one benchmark."""

    workload: str
    rows: int
    queries: int
    cores: int
    runs: tuple[Run, ...] = ()
    growth: Growth | None = None
    profile: str = ""
    spark_timed: int = 0
    """On how many queries plain Spark was timed; its seconds are those that all would take."""

    @property
    def title(self) -> str:
        """What the figures are of."""
        workload = f"{self.workload} {self.profile}".strip()
        return f"{workload}: {self.rows:,} records, {self.queries} queries, {self.cores} cores"

    def run_of(self, engine: str, variant: str) -> Run | None:
        """The run of one variant, if it took part."""
        return next((run for run in self.runs if (run.engine, run.variant) == (engine, variant)), None)

    @property
    def best_peer(self) -> Run | None:
        """The fastest variant of the fastest engine that is neither Spark nor headrace."""
        return min((run for run in self.runs if run.engine in PACKAGES), key=lambda run: run.seconds, default=None)

    @property
    def ratios(self) -> dict[str, float]:
        """How many times as long as headrace the others take; only of those that took part."""
        spark, peer = self.run_of("spark", "queries"), self.best_peer
        anew, run, read = (self.run_of("headrace", variant) for variant in VARIANTS["headrace"])
        pairs = {
            "spark": (spark, run),
            "spark_anew": (spark, anew),
            "spark_read": (spark, read),
            "best_peer": (peer, run),
        }
        return {name: other.seconds / own.seconds for name, (other, own) in pairs.items() if other and own}

    def to_json(self) -> dict[str, Any]:
        """The report as plain values."""
        plain: dict[str, Any] = {name: getattr(self, name) for name in ("workload", "rows", "queries", "cores")}
        plain["runs"] = [asdict(run) for run in self.runs]
        plain["ratios"] = self.ratios
        if self.growth is not None:
            plain["growth"] = asdict(self.growth)
        if self.run_of("spark", "queries"):
            plain["spark_timed"] = self.spark_timed
        if self.profile:
            plain["profile"] = self.profile
        return plain


class Figures(Protocol):
    """What any benchmark found."""

    def to_json(self) -> dict[str, Any]:
        """The figures as plain values."""


def write_json(report: Figures, file: Path) -> None:
    """Write a report, and the folders above it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(report.to_json(), indent=2) + "\n")
