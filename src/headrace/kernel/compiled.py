"""All compiled functions, those of the plan too, loaded ahead: on a new machine that takes a while, once."""

from __future__ import annotations

import functools

import numpy as np
import pyarrow as pa

from headrace.algebra import combine
from headrace.algebra.ops import Op, slot_count
from headrace.kernel import decode, fragments, matrix, parent, strided, sure, table
from headrace.kernel.evaluate import cuts
from headrace.kernel.records import Coding
from headrace.kernel.reduce import Reducer, reduce
from headrace.kernel.windows import Lanes, difference, directly, lanes, nested, tree, two_stacks
from headrace.plan import alike, growth
from headrace.plan import slices as plan_slices
from headrace.plan.search import steiner
from headrace.plan.slices import Slices, Windows
from headrace.query import Expression, Window

_WAYS = (directly, difference, two_stacks, tree)
_FUNCTIONS = [
    function
    for module in (
        *_WAYS,
        cuts,
        combine,
        decode,
        fragments,
        lanes,
        matrix,
        nested,
        parent,
        strided,
        sure,
        table,
        alike,
        growth,
        plan_slices,
        steiner,
    )
    for function in vars(module).values()
    if hasattr(function, "stats") and hasattr(function, "nopython_signatures")
]


@functools.cache
def load_kernels() -> bool:
    """Load every compiled function, as workers will call them; says whether some had to be compiled first.

    Compiled code is kept beside the source files, or in the user's cache where these cannot be written.
    """
    before = _compilations()
    ops = list(Op)
    rows = 3000  # more than a table has room for at first
    for writable in (True, False):
        slots = [np.ones(rows, dtype=np.int64) for op in ops for _ in range(slot_count(op))]
        for slot in slots:
            slot.flags.writeable = writable
        integers = [pa.array(np.arange(rows) % 100, kind) for kind in (pa.int8(), pa.int16(), pa.int32())]
        coding, reducer = Coding(), Reducer(ops)
        columns = [pa.array(np.arange(rows)), pa.array(["a"] * rows), *integers]
        codes = [coding.encode(name, column) for name, column in enumerate(columns)]
        for chosen in (None, np.arange(rows)):
            reducer.add(tuple(map(coding.coder, range(len(columns)))), codes, slots, rows, chosen)
        reduce(reducer.rows, [1], [0])[0].columns([0], [0])
        sure.decides(reducer.rows.matrix, reducer.rows.layout.bits([0]), reducer.rows.layout.bits([1]))
        _load_windows(reducer)
    for held in (np.int32, np.int64, np.float64):
        cuts.classify(np.ones(2, held), np.ones(2, np.bool_), np.ones(2, held), np.ones(2, np.int64))
    combine.fold(Op.ADD, [np.ones(2, dtype=np.int64)], np.zeros(2, dtype=np.int64), 1)
    decode.list_pages(0, 0, np.empty((1, decode.PAGE), dtype=np.int64))
    for held in (np.int32, np.int64):
        none = np.empty((0, 6), dtype=np.int64)
        decode.decode_pages(none, True, np.frombuffer(b"", held), np.empty(0, held))
    fragments.sign(np.ones((2, 2), dtype=np.bool_))
    ones = np.ones(2)
    cuts.classify_scaled(ones, ones, np.ones(2, np.bool_), ones, 2.0, np.ones(2, np.int64))
    parent.number_anew(np.arange(2), 2)
    alike.first_alike(np.arange(8, dtype=np.uint64))
    for writable in (True, False):
        times = np.zeros(2, dtype=np.int64)
        times.flags.writeable = writable
        plan_slices.look_up(times, np.arange(2), np.zeros(1, np.int64), np.zeros(2, np.int64))
    growth.count_groups(np.arange(8, dtype=np.uint64), np.array([4, 8]))
    steiner.ascend(np.array([[np.inf, 1.0], [np.inf, np.inf]]), np.array([1]))
    return _compilations() > before


def _load_windows(reducer: Reducer) -> None:
    """All ways from slices to windows, of rows whose first key is a slice."""
    time = Expression.parse("time")
    slices, rows, windows = Slices.every(time, 10), reducer.rows, Windows(Window(time, 20, 10))
    own, _ = Lanes.of(slices, rows, range(1, len(rows.coders)))
    own = own.only(np.zeros(len(rows), dtype=np.int32), np.ones(1, dtype=np.bool_))
    states = range(len(rows.ops))
    own.sifted(np.zeros(len(rows), dtype=np.int32), np.ones(1, dtype=np.int16), 1, slices, states)
    (groups,) = own.windows([windows], states)
    own.rows_of(groups, windows, rows.ops, Coding())
    spans = np.zeros(2, dtype=np.int64), np.ones(2, dtype=np.int64)
    for way in _WAYS:
        slots = np.ones((2, 1), dtype=np.int64)
        way.fold(Op.ADD, way.prepare(Op.ADD, slots, np.array([2])), *spans, slots)


def _compilations() -> int:
    return sum(sum(function.stats.cache_misses.values()) for function in _FUNCTIONS)
