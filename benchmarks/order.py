"""Whether what is predicted to be cheaper is faster: random workloads, each run with the plan of every search.

    python benchmarks/order.py --workloads 20

A workload is some of the benchmark's queries over flows or trades that are made for it. The plans of all searches
take turns, and the best of some rounds counts for each. A plan that several searches find has one time: the best
of all its rounds.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from rich.console import Console
from rich.table import Table

from headrace import Stream, Workload
from headrace.bench.in_spark import stream_of, workload_of
from headrace.bench.question import Measure, Question, read_data
from headrace.bench.workloads import TOPICS
from headrace.generate import FlowOptions, TradeOptions, generate_flows, generate_trades
from headrace.plan.plan import Plan
from headrace.plan.search import DEFAULT, SEARCHES
from headrace.runtime.known import forget
from headrace.runtime.session import start_session

NAMES = [name for name in SEARCHES if name != "exhaustive"]
NEAR = 1.1
"""A plan that takes no more than this times the fastest is as good as it."""
DISJOINT = (("srcaddr", "srcport"), ("dstaddr", "dstport"), ("first",), ("octets", "active"))
"""Keys with about as many groups as there are records: nothing is gained by a phantom for two of them."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workloads", type=int, default=20, help="how many (20)")
    parser.add_argument("--rows", type=int, default=3_000_000, help="records of each stream (3,000,000)")
    parser.add_argument("--rounds", type=int, default=3, help="the best of so many counts (3)")
    parser.add_argument("--seed", type=int, default=0, help="of the workloads (0)")
    arguments = parser.parse_args()
    console, near = Console(), 0
    table = Table(title=f"seconds, best of {arguments.rounds}; by estimate in brackets", title_justify="left")
    for heading in ("workload", "queries", *NAMES, "default / fastest"):
        table.add_column(heading, justify="left" if heading == "workload" else "right")
    with tempfile.TemporaryDirectory(prefix="headrace-order-") as folder:
        streams = _streams(Path(folder), arguments.rows)
        spark = start_session("headrace-order")
        for number in range(arguments.seed, arguments.seed + arguments.workloads):
            kind = list(streams)[number % len(streams)]
            topic, path = streams[kind]
            draw = random.Random(number)
            questions = draw.sample(TOPICS[topic].take(200), draw.choice((3, 6, 12, 24, 48)))
            contest = Contest.of(path, topic, questions, spark)
            best = contest.of_plans(contest.run(arguments.rounds, draw))
            ratio = best[DEFAULT] / min(best.values())
            near += ratio <= NEAR
            figures = [f"{best[name]:.2f} ({contest.expected(name):.2f})" for name in NAMES]
            table.add_row(f"{kind} {number}", str(len(questions)), *figures, f"{ratio:.2f}")
            console.print(f"{kind} {number}: {ratio:.2f}", highlight=False)
        flows = tuple(Question(f"q{n}", keys, (Measure("count", "", "n"),)) for n, keys in enumerate(DISJOINT))
        disjoint = Contest.of(streams["backbone"][1], "netflow", flows, spark)
        best = disjoint.run(2 * arguments.rounds, random.Random(0), anew=True)
        apart = len(disjoint.plans[DEFAULT].roots)
        spark.stop()
    console.print(table)
    console.print(
        f"the default's plan is within {NEAR - 1:.0%} of the fastest in {near} of {arguments.workloads} workloads"
    )
    console.print(
        f"where sharing does not pay: {apart} passes for {len(DISJOINT)} queries, "
        f"{best[DEFAULT] / best['none']:.3f} times as long as without sharing, planning included"
    )


@dataclass(frozen=True)
class Contest:
    """One workload, and the plan of each search for it."""

    workload: Workload
    stream: Stream
    spark: SparkSession
    plans: Mapping[str, Plan]

    @staticmethod
    def of(path: Path, topic: str, questions: Sequence[Question], spark: SparkSession) -> Contest:
        """Questions of a topic over its files."""
        data = read_data(path, TOPICS[topic].stream, TOPICS[topic].time)
        stream = stream_of(data)
        workload = workload_of(questions, data, stream)
        plans = {name: workload.plan(stream, spark=spark, search=name) for name in NAMES}
        return Contest(workload, stream, spark, plans)

    def expected(self, name: str) -> float:
        """The seconds that a search's plan takes, by estimate."""
        estimate = self.plans[name].estimate
        assert estimate is not None, "every plan is made by estimates"
        return estimate.tree

    def run(self, rounds: int, draw: random.Random, anew: bool = False) -> dict[str, float]:
        """The seconds of each search's plan: the best of some rounds, after one that warms up.

        Plans are those of the run before, or made `anew` each time.
        """
        best = dict.fromkeys(NAMES, float("inf"))
        for turn in range(rounds + 1):
            for name in draw.sample(NAMES, len(NAMES)):
                if anew:
                    forget()
                begin = time.perf_counter()
                self.workload.run(self.stream, spark=self.spark, search=name).release()
                if turn:
                    best[name] = min(best[name], time.perf_counter() - begin)
        return best

    def of_plans(self, best: Mapping[str, float]) -> dict[str, float]:
        """The best time of each search's plan, whichever search found it."""
        trees = {name: (plan.nodes, plan.parents, plan.deals) for name, plan in self.plans.items()}
        return {
            name: min(best[other] for other, tree in trees.items() if tree == trees[name]) for name in self.plans
        }


def _streams(folder: Path, rows: int) -> dict[str, tuple[str, Path]]:
    """By name: the topic of a stream, and its files."""
    generate_flows(FlowOptions(rows, profile="backbone"), folder / "backbone")
    generate_flows(FlowOptions(rows, profile="enterprise"), folder / "enterprise")
    generate_trades(TradeOptions(rows), folder / "trades")
    return {
        "backbone": ("netflow", folder / "backbone"),
        "enterprise": ("netflow", folder / "enterprise"),
        "trades": ("trades", folder / "trades"),
    }


if __name__ == "__main__":
    main()
