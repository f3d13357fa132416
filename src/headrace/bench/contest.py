"""What takes part in a benchmark, and how each is timed: all answers of all questions, to the last row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Protocol

from headrace.bench.check import Check
from headrace.bench.question import Data, Question, all_keys, all_measures
from headrace.errors import SetupError

VARIANTS: Mapping[str, tuple[str, ...]] = {
    "spark": ("queries",),
    "headrace": ("anew", "run", "read"),
    "polars": ("queries", "collect_all", "queries_streaming", "collect_all_streaming"),
    "duckdb": ("queries", "grouping_sets"),
    "chdb": ("queries", "grouping_sets"),
}
"""In how many ways an engine is asked: query by query, and sharing what it can share by itself.

headrace is asked in one way and timed thrice. With a plan that is made anew, until its answers are computed; with
the plan of the run before, as queries that stand are run; and then also until Spark has read all answers.
"""
ENGINES = tuple(VARIANTS)
STREAM_ENGINES = ("headrace", "spark", "foreach_batch", "flink")
"""What takes part in `headrace bench stream`."""
MOST_BY_SPARK = 100
"""Of more questions, plain Spark is timed on every third."""
PACKAGES = ("polars", "duckdb", "chdb")
"""The engines that are a package beyond headrace itself."""

Tell = Callable[[str], None]
"""Is told what happens next."""


@dataclass(frozen=True, slots=True)
class Timing:
    """One variant in one round."""

    variant: str
    seconds: float
    peak_mb: float
    largest_worker_mb: float = 0.0


class Contestant(Protocol):
    """An engine that answers all questions, as often as it is asked."""

    @property
    def engine(self) -> str:
        """Its name."""

    @property
    def label(self) -> str:
        """What progress is reported for."""

    def warm_up(self) -> Mapping[str, Check]:
        """Answer everything once, untimed, and give the checks of the answers."""

    def wake(self) -> None:
        """Answer one question, untimed: what the system took away while others had their turns comes back."""

    def measure(self) -> Sequence[Timing]:
        """Answer everything once, timed."""

    def close(self) -> None:
        """Give back what it holds."""


class Asked(Protocol):
    """An engine's side of a contestant in a process of its own."""

    def run(self, first: int | None = None) -> None:
        """Compute all answers, or those of the first groups of questions that it answers at a time."""

    def check(self) -> dict[str, Check]:
        """The checks of all answers."""

    def clear(self) -> None:
        """Forget all answers."""


@dataclass(frozen=True)
class Task:
    """What all contestants are given."""

    data: Data
    questions: tuple[Question, ...]
    cores: int

    @property
    def columns(self) -> list[str]:
        """The columns that questions have as keys and measures, and the time."""
        values = {measure.value for measure in all_measures(self.questions)} & self.data.kinds.keys()
        return sorted({*all_keys(self.questions), *values, self.data.time})

    @property
    def measure_names(self) -> dict[str, list[str]]:
        """Of each question, what its measures are called."""
        return {question.name: [measure.name for measure in question.measures] for question in self.questions}

    @property
    def timed_by_spark(self) -> tuple[Question, ...]:
        """The questions that plain Spark is timed on: of very many only a part, which stands for all."""
        return self.questions[:: 1 if len(self.questions) <= MOST_BY_SPARK else 3]


def check_installed(engines: Sequence[str], *, plot: bool) -> None:
    """Raise `SetupError` if a package that the benchmark needs is missing."""
    needed = ["psutil", *(engine for engine in engines if engine in PACKAGES), *["matplotlib"] * plot]
    missing = [package for package in needed if find_spec(package) is None]
    if missing:
        raise SetupError(f"the benchmark needs {', '.join(missing)}; get it with: pip install 'headrace[bench]'")
