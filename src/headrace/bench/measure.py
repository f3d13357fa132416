"""The benchmark itself: warm up, compare the answers, then round after round, each contestant in turn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from statistics import median
from typing import TYPE_CHECKING

from headrace.bench.check import Check, compare
from headrace.bench.child import Child
from headrace.bench.contest import VARIANTS, Contestant, Task, Tell, Timing
from headrace.bench.in_spark import InHeadrace, InSpark
from headrace.bench.report import Report, Run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def measure(
    workload: str, task: Task, engines: Sequence[str], *, rounds: int, spark: SparkSession | None, tell: Tell
) -> Report:
    """Run all engines in one process tree on the same files; raises `BenchError` where answers differ.

    `spark` is there if plain Spark or headrace takes part. `tell` is called with what happens next.
    """
    with _contestants(task, engines, spark) as contestants:
        rows_out = _warm_up(task, contestants, tell)
        timings: dict[tuple[str, str], list[Timing]] = {}
        for number in range(1, rounds + 1):
            for contestant in contestants:
                tell(f"round {number} of {rounds}: {contestant.label}")
                contestant.wake()
                for timing in contestant.measure():
                    timings.setdefault((contestant.engine, timing.variant), []).append(timing)
    runs = tuple(
        Run(engine, variant, median(t.seconds for t in found), rows_out, max(t.peak_mb for t in found))
        for (engine, variant), found in timings.items()
    )
    timed = len(task.timed_by_spark)
    return Report(workload, task.data.rows, len(task.questions), task.cores, runs, spark_timed=timed)


def _warm_up(task: Task, contestants: Sequence[Contestant], tell: Tell) -> int:
    """Let each answer once and compare the answers with the first one's; the rows of all answers."""
    expected: tuple[str, dict[str, Check]] | None = None
    for contestant in contestants:
        tell(f"warming up and checking: {contestant.label}")
        found = dict(contestant.warm_up())
        if expected is None:
            expected = contestant.label, found
        else:
            compare(expected[0], expected[1], contestant.label, found, task.measure_names)
    assert expected is not None, "a benchmark has at least one engine"
    return sum(check.rows for check in expected[1].values())


@contextmanager
def _contestants(task: Task, engines: Sequence[str], spark: SparkSession | None) -> Iterator[Sequence[Contestant]]:
    """All who take part, plain Spark first: its answers are the right ones."""
    contestants: list[Contestant] = []
    try:
        for engine in sorted(engines, key=list(VARIANTS).index):
            if engine in ("spark", "headrace"):
                assert spark is not None, f"{engine} needs a session"
                contestants.append(InSpark(task, spark) if engine == "spark" else InHeadrace(task, spark))
            else:
                contestants += [Child(task, engine, variant) for variant in VARIANTS[engine]]
        yield contestants
    finally:
        for contestant in contestants:
            contestant.close()
