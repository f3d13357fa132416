"""The constants of `Costs`, measured: kernels of varying size, and the least squares that explain their times."""

from __future__ import annotations

import dataclasses
import itertools
import platform
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.algebra.ops import Op
from headrace.algebra.words import truth
from headrace.kernel.compiled import load_kernels
from headrace.kernel.evaluate import compile_expression
from headrace.kernel.narrow import slot_of
from headrace.kernel.piece import pack
from headrace.kernel.records import Coding
from headrace.kernel.reduce import Reducer
from headrace.kernel.rows import Rows
from headrace.kernel.shelf import Files, Reader
from headrace.kernel.windows import Kinds, Lanes
from headrace.kernel.windows.nested import Ranks
from headrace.plan.costs import Costs, depth
from headrace.query import Expression

RECORDS = 400_000
GROUPS = (64, 8_000, 60_000, 250_000)
KEYS = (1, 3, 6)
SLOTS = (1, 4)
SHARES = (0.0625, 0.25, 0.75)
"""Of the rows in order, those that a filter is true for,"""
_KINDS = 64
"""which has so many kinds of rows to choose from."""
_SIZES = (250_000, 62_500, 6_250, 50, 25, 5, 5, 5, 5)
"""How many values columns have beside the first one: each of them is decided by those before it."""
_REPEATS = 3


@dataclass(frozen=True, slots=True)
class Point:
    """One kernel: how often each constant counts in it, and how long it took."""

    counts: Mapping[str, float]
    ns: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """Constants, and how well they explain what was measured."""

    costs: Costs
    points: tuple[Point, ...]

    @property
    def errors(self) -> list[float]:
        """For each point, by how much of its time the constants are wrong."""
        return [abs(predicted(self.costs, point) / point.ns - 1) for point in self.points]

    def notes(self) -> dict[str, object]:
        """What is kept beside the constants."""
        machine = f"{platform.node()}, {platform.machine()}, {platform.system()} {platform.release()}"
        error = {"median": round(statistics.median(self.errors), 3), "worst": round(max(self.errors), 3)}
        return {"date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine, "error": error}


def calibrate(records: int = RECORDS) -> Calibration:
    """Measure all kernels and fit the constants; a matter of seconds."""
    load_kernels()
    points = tuple(_points(records))
    return Calibration(fit(points), points)


def fit(points: Sequence[Point]) -> Costs:
    """The constants, none below zero, whose relative errors have the least squares."""
    names = [field.name for field in dataclasses.fields(Costs)]
    matrix = np.array([[point.counts.get(name, 0.0) / point.ns for name in names] for point in points])
    used = [column for column in range(len(names)) if matrix[:, column].any()]
    while True:
        found, *_ = np.linalg.lstsq(matrix[:, used], np.ones(len(points)), rcond=None)
        if (found >= 0).all():
            break
        used = [column for column, value in zip(used, found, strict=True) if value >= 0]
    values = dict.fromkeys(names, 0.0) | {names[column]: float(v) for column, v in zip(used, found, strict=True)}
    return Costs(**{name: round(value, 2) for name, value in values.items()})


def predicted(costs: Costs, point: Point) -> float:
    """How long a kernel should take."""
    constants = dataclasses.asdict(costs)
    return float(sum(constants[name] * count for name, count in point.counts.items()))


def _points(records: int) -> Iterator[Point]:
    for groups, keys, slots in itertools.product(GROUPS, KEYS, SLOTS):
        reducer, ns = _from_records(records, groups, keys, slots)
        yield Point(_counts("record", records, len(reducer), keys, slots), ns)
    parent, _ = _from_records(records, records, 1 + len(_SIZES), max(SLOTS))
    for groups, keys, slots in itertools.product(GROUPS, KEYS, SLOTS):
        child, ns = _from_rows(parent.rows, groups, keys, slots)
        yield Point(_counts("row", len(parent), len(child), keys, slots), ns)
    yield from _in_order(parent.rows)
    yield Point({"condition": records}, _condition(records))
    yield Point({"shipped": len(parent)}, _best(lambda: _ship(parent.rows)))


def _counts(kind: str, rows: float, groups: float, keys: int, slots: int) -> dict[str, float]:
    each = {kind: rows, f"{kind}_key": rows * keys, f"{kind}_slot": rows * slots}
    return each | {"group": groups, "group_slot": groups * slots, "miss": rows * depth(groups)}


def _from_records(records: int, groups: int, keys: int, slots: int) -> tuple[Reducer, float]:
    """Records of a column of so many values, and others that it decides, into a table."""
    numbers = np.random.default_rng(groups).integers(groups, size=records)
    columns = [pa.array(numbers), *(pa.array(numbers % size) for size in _SIZES[: keys - 1])]
    coding = Coding()
    codes = [coding.encode(name, column) for name, column in enumerate(columns)]
    values = [np.arange(records) for _ in range(slots)]
    reducer = Reducer([])

    def run() -> None:
        nonlocal reducer
        reducer = Reducer([Op.ADD] * slots)
        reducer.add(tuple(map(coding.coder, range(keys))), codes, values, records)

    ns = _best(run)
    return reducer, ns


def _from_rows(rows: Rows, groups: int, keys: int, slots: int) -> tuple[Reducer, float]:
    """The rows of a parent by a key with about so many values, and others that it decides."""
    first = 1 + min(range(len(GROUPS)), key=lambda place: abs(_SIZES[place] - groups))
    chosen = range(first, first + keys)
    reducer = Reducer([])

    def run() -> None:
        nonlocal reducer
        reducer = Reducer([Op.ADD] * slots, expect=len(rows))
        reducer.pour(rows, chosen, range(slots))

    ns = _best(run)
    return reducer, ns


def _in_order(rows: Rows) -> Iterator[Point]:
    """Rows into order, and what is made of those that filters choose."""
    keys = [2, 3]
    yield Point({"ordered": len(rows)}, _best(lambda: Lanes.of(None, rows, keys)))
    lanes, order = Lanes.of(None, rows, keys)
    kinds = (order % _KINDS).astype(np.int32)
    for share in SHARES:
        ranks = (np.arange(_KINDS) < share * _KINDS).astype(np.int16)
        (groups,) = lanes.sifted(kinds, ranks, 1, None, [0])
        made = len(groups.lanes)
        counts = {"sifted": len(rows), "taken": share * len(rows), "group": made, "group_slot": made}
        yield Point(counts, _best(partial(_sift, lanes, kinds, ranks)))


def _sift(lanes: Lanes, kinds: Kinds, ranks: Ranks) -> None:
    (groups,) = lanes.sifted(kinds, ranks, 1, None, [0])
    lanes.rows_of(groups, None, [Op.ADD], Coding())


def _condition(records: int) -> float:
    """A range of a column's values."""
    column = pa.array(np.random.default_rng(1).integers(100, size=records))
    range_ = Expression.parse("x BETWEEN 20 AND 60")
    condition = compile_expression(range_, {"x": column.type}, pa.bool_(), "UTC")
    assert condition is not None, "the kernel knows ranges"
    return _best(lambda: truth(condition({"x": column})))


def _ship(rows: Rows) -> None:
    """Rows as partials onto a shelf, from there, and into a table."""
    keys = len(rows.coders)
    with tempfile.TemporaryDirectory(prefix="headrace-") as folder:
        shelf = Files(Path(folder).as_uri())
        places = [shelf.keep(columns, [(0, size)])[0] for size, columns in pack(rows)]
        shelf.close()
        reader, coding, reducer = Reader(Path(folder).as_uri()), Coding(), Reducer(rows.ops)
        for place in places:
            found, size = reader.read(place)
            codes = [coding.encode(number, key) for number, key in enumerate(found[:keys])]
            reducer.add(tuple(map(coding.coder, range(keys))), codes, list(map(slot_of, found[keys:])), size)


def _best(run: Callable[[], object]) -> float:
    """The nanoseconds of the fastest of some runs: what slows one down is not the kernel."""
    times = []
    for _ in range(_REPEATS):
        begin = time.perf_counter_ns()
        run()
        times.append(time.perf_counter_ns() - begin)
    return float(min(times))
