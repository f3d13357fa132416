"""What windows cost: edges of a thousand, windows of many slices beside those of few, queries that come and go.

python benchmarks/windows.py
"""

from __future__ import annotations

import random
import statistics
import sys
import time
import tracemalloc

import numpy as np
import pyarrow as pa

from headrace import Workload
from headrace.algebra.ops import Op
from headrace.algebra.states import Fact
from headrace.kernel.compiled import load_kernels
from headrace.kernel.records import Coding
from headrace.kernel.reduce import Reducer
from headrace.kernel.windows import Lanes
from headrace.plan.build import Planner
from headrace.plan.guard import guarded
from headrace.plan.sizes import Sizes
from headrace.plan.slice_manager import SliceManager
from headrace.plan.slices import Slices, Windows
from headrace.query import Expression, Window

SECOND, DAY = 1_000_000, 86_400_000_000
TIME = Expression.parse("ts")
SLICES, KEYS = 20_000, 20
OPS = {"count": Op.ADD, "float sum": Op.FLOAT_ADD, "maximum": Op.MAX, "variance": Op.VARIANCE}


def edges(count: int = 1000) -> tuple[float, float, int]:
    """Seconds, megabytes and edges of a day, for windows of random range and slide."""
    draw = random.Random(0)
    windows = [
        Window(TIME, draw.randint(60, 7200) * SECOND, draw.randint(60, 3600) * SECOND) for _ in range(count)
    ]
    tracemalloc.start()
    manager = SliceManager(0)
    for window in windows:
        manager.add(window)
    told = sum(1 for _ in manager.until(DAY))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    again = SliceManager(0)
    begin = time.perf_counter()
    for window in windows:
        again.add(window)
    for _ in again.until(DAY):
        pass
    return time.perf_counter() - begin, most / 1e6, told


def final_step(op: Op, ratio: int) -> float:
    """Nanoseconds for each emitted window, from slices as long as the slide."""
    slices = Slices.every(TIME, SECOND)
    coding, reducer = Coding(), Reducer([op])
    numbers, keys = np.repeat(np.arange(SLICES), KEYS), np.tile(np.arange(KEYS), SLICES)
    codes = [coding.encode(place, pa.array(column)) for place, column in enumerate((numbers, keys))]
    width = {Op.ADD: 1, Op.MAX: 1, Op.FLOAT_ADD: 2, Op.VARIANCE: 3}[op]
    slots = [np.random.default_rng(0).random(len(numbers)).view(np.int64) for _ in range(width)]
    reducer.add((coding.coder(0), coding.coder(1)), codes, slots, len(numbers))
    windows = Windows(Window(TIME, ratio * SECOND, SECOND))

    def run() -> float:
        begin = time.perf_counter()
        lanes, _ = Lanes.of(slices, reducer.rows, [1])
        (groups,) = lanes.windows([windows], [0])
        return (time.perf_counter() - begin) / len(groups.lanes) * 1e9

    return statistics.median(run() for _ in range(5))


def changes(count: int = 256) -> tuple[float, float]:
    """Milliseconds for a query to come, and for one to go, among so many."""
    kinds = {"ts": pa.timestamp("us", "UTC"), "a": pa.int64(), "b": pa.int64(), "c": pa.int64(), "x": pa.int64()}
    wheres = [f"x > {number}" for number in range(40)]
    facts = {Expression.parse(name): Fact(kind) for name, kind in kinds.items()}
    facts |= {Expression.parse(where): Fact(pa.bool_()) for where in wheres}
    draw = random.Random(0)

    def text() -> str:
        keys = ", ".join(draw.sample("abc", draw.randint(1, 3)))
        span = f"window(ts, '{draw.randint(600, 900)} seconds', '{draw.randint(300, 600)} seconds')"
        where = f" WHERE {draw.choice(wheres)}" if draw.random() < 0.5 else ""
        return f"SELECT {keys}, count(*), sum(x) FROM t{where} GROUP BY {span}, {keys}"

    workload = Workload({f"q{number}": text() for number in range(count + 20)})
    queries = [guarded(query, lambda _: False) for query in workload.values()]
    planner = Planner(facts, _sizes(), cores=2)
    plan = planner.plan(queries[:count])
    coming, going = [], []
    for number, query in enumerate(queries[count:]):
        begin = time.perf_counter()
        plan = plan.with_query(query, planner).plan
        middle = time.perf_counter()
        plan = plan.without_query(f"q{number}", planner).plan
        coming.append((middle - begin) * 1e3)
        going.append((time.perf_counter() - middle) * 1e3)
    return statistics.median(coming), statistics.median(going)


def _sizes() -> Sizes:
    random_ = np.random.default_rng(0)
    columns = {"a": 50, "b": 500, "c": 5000, "x": 100}
    blocks = [
        {Expression.parse(name): pa.array(random_.integers(0, most, 2000)) for name, most in columns.items()}
        for _ in range(8)
    ]
    return Sizes(blocks, 10_000_000, 3600 * SECOND)


def main() -> int:
    """Print all, and say whether they are what they are meant to be."""
    load_kernels()
    seconds, megabytes, told = edges()
    print(f"edges of 1,000 windows over a day: {told:,} in {seconds:.2f} s and {megabytes:.1f} MB (1 s, 50 MB)")
    right = seconds < 1 and megabytes < 50
    print("final step, ns for an emitted window of 2 and of 1,000 slices (at most 3 times as much):")
    for name, op in OPS.items():
        few, many = final_step(op, 2), final_step(op, 1000)
        right &= many <= 3 * few
        print(f"  {name:10} {few:6.1f} {many:6.1f}  {many / few:.2f}")
    coming, going = changes()
    print(f"a query comes to 256 others in {coming:.0f} ms, and goes in {going:.0f} ms")
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
