"""How good the searches are: random instances, each tree's cost beside the cheapest there is.

    python -m benchmarks.searches --instances 200

Costs are the model's, not times. An instance is a handful of queries over a made-up stream; what is too large for
the exhaustive search is passed over, and said.
"""

from __future__ import annotations

import argparse
import statistics
import time

from rich.console import Console
from rich.progress import track
from rich.table import Table
from tests.harness.instances import random_lattice

from headrace.algebra.ops import Op
from headrace.algebra.states import Lift, State
from headrace.plan.search import DEFAULT, SEARCHES
from headrace.query import Expression

STATES = (State(Op.ADD, Lift.ONE), State(Op.ADD, Lift.WORD, (Expression.parse("x"),)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--instances", type=int, default=200, help="how many (200)")
    parser.add_argument("--seed", type=int, default=0, help="that of the first one (0)")
    parser.add_argument("--queries", type=int, default=6, help="at most so many in one (6)")
    arguments = parser.parse_args()
    ratios: dict[str, list[float]] = {name: [] for name in SEARCHES}
    seconds = dict.fromkeys(SEARCHES, 0.0)
    seed, passed_over, worse = arguments.seed, 0, 0
    console = Console()
    for _ in track(range(arguments.instances), "planning", console=Console(stderr=True)):
        while True:
            seed += 1
            count = 3 + seed % (arguments.queries - 2)
            found = {}
            try:
                for name in reversed([*SEARCHES]):
                    lattice = random_lattice(seed, count, STATES)
                    begin = time.perf_counter()
                    found[name] = SEARCHES[name](lattice).cost
                    seconds[name] += time.perf_counter() - begin
            except ValueError:
                passed_over += 1
                continue
            break
        worse += found["randomized"] > found["greedy"]
        for name, cost in found.items():
            ratios[name].append(cost / found["exhaustive"])
    table = Table(
        title=f"{arguments.instances} instances, seeds {arguments.seed + 1} to {seed}", title_justify="left"
    )
    for heading in ("search", "mean", "95%", "worst", "optimal", "ms each"):
        table.add_column(heading, justify="left" if heading == "search" else "right")
    for name, own in ratios.items():
        best = sum(ratio < 1 + 1e-9 for ratio in own)
        spread = (statistics.fmean(own), statistics.quantiles(own, n=20)[-1], max(own))
        each = f"{seconds[name] / arguments.instances * 1000:.1f}"
        label = f"{name} (default)" if name == DEFAULT else name
        table.add_row(label, *(f"{ratio:.3f}" for ratio in spread), f"{best} of {len(own)}", each)
    console.print(table)
    console.print(f"randomized is worse than greedy in {worse} of {arguments.instances} instances")
    console.print(f"{passed_over} instances had too many phantoms for the exhaustive search and were passed over")


if __name__ == "__main__":
    main()
