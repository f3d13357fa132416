"""Slices to windows: every way gives what the slices of a window combine to, one after the other."""

from __future__ import annotations

import itertools
import math
from types import ModuleType

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.combine import combine_one
from headrace.algebra.ops import Op, Words, slot_count
from headrace.kernel.narrow import array_of
from headrace.kernel.records import Coding
from headrace.kernel.reduce import Reducer
from headrace.kernel.rows import Rows
from headrace.kernel.windows import Lanes, difference, directly, lanes, nested, tree, two_stacks
from headrace.plan.slices import Slices, Windows
from headrace.query import Expression, Window

TIME = Expression.parse("ts")
WAYS = [directly, difference, two_stacks, tree]
WHOLE = [Op.ADD, Op.MIN, Op.MAX, Op.AND, Op.OR, Op.XOR, Op.WIDE_ADD, Op.TAKE_LEAST, Op.TAKE_GREATEST]
"""Operations that give the same bits in any order."""
CASES = [(way, op) for way in WAYS for op in WHOLE if way is not difference or op in difference.FITTING]


def states_of(op: Op, count: int, random: np.random.Generator) -> Words:
    """States that are far apart, so that sums wrap around; those that take a value have one, in an order."""
    slots = random.integers(-(2**62), 2**62, (count, slot_count(op)))
    if op in (Op.TAKE_LEAST, Op.TAKE_GREATEST):
        slots[:, 0] = 1
        slots[:, 2] = slots[:, 1]
    return slots


def one_by_one(op: Op, slots: Words, first: int, end: int) -> Words:
    out = slots[first : first + 1].copy()
    for i in range(first + 1, end):
        combine_one(op, 0, out, out.view("f8"), 0, slots, slots.view("f8"), i)
    row: Words = out[0]
    return row


@pytest.mark.parametrize(("way", "op"), CASES)
def test_ways(way: ModuleType, op: Op) -> None:
    random = np.random.default_rng(7)
    for count in (1, 2, 3, 17, 64):
        slots = states_of(op, count, random)
        firsts = np.sort(random.integers(0, count, 40))
        ends = np.maximum(np.sort(random.integers(1, count + 1, 40)), firsts + 1)
        out = np.empty((40, slots.shape[1]), dtype=np.int64)
        way.fold(op, way.prepare(op, slots, np.array([len(slots)])), firsts, ends, out)
        spans = zip(firsts.tolist(), ends.tolist(), strict=True)
        assert out.tolist() == [one_by_one(op, slots, *span).tolist() for span in spans]


FLOATING = [(way, op) for way in (directly, two_stacks, tree) for op in (Op.VARIANCE, Op.MOMENTS, Op.COMOMENTS)]


@pytest.mark.parametrize(("way", "op"), [*FLOATING, *((way, Op.FLOAT_ADD) for way in WAYS)])
def test_floating_states(way: ModuleType, op: Op) -> None:
    random = np.random.default_rng(7)
    floats = random.random((50, slot_count(op)))
    floats[:, 0] = 1.0  # how many values the others are about, or their sum
    slots = floats.view(np.int64)
    firsts, ends = np.arange(0, 40), np.arange(10, 50)
    out = np.empty((40, slots.shape[1]), dtype=np.int64)
    way.fold(op, way.prepare(op, slots, np.array([len(slots)])), firsts, ends, out)
    for first in range(40):
        expected, found = one_by_one(op, slots, first, first + 10).view("f8"), out.view("f8")[first]
        if op == Op.FLOAT_ADD:  # a sum is in two parts
            expected, found = expected.sum(), found.sum()
        np.testing.assert_allclose(found, expected, rtol=1e-12)


@given(
    st.lists(
        st.sampled_from([1e-300, 3.5, -3.5, 1e16, -1e16, 1e300, math.inf, -math.inf, math.nan, 0.1]), min_size=1
    ),
    st.data(),
)
def test_floating_differences_lose_nothing(values: list[float], data: st.DataObject) -> None:
    """Sums of windows are what they would be without all that came before, up to the last bit."""
    slots = np.array([[value, 0.0] for value in values]).view(np.int64)
    first = data.draw(st.integers(0, len(values) - 1))
    end = data.draw(st.integers(first + 1, len(values)))
    out = np.empty((1, 2), dtype=np.int64)
    table = difference.prepare(Op.FLOAT_ADD, slots, np.array([len(values)]))
    difference.fold(Op.FLOAT_ADD, table, np.array([first]), np.array([end]), out)
    found = float(out.view("f8")[0].sum())
    own = values[first:end]
    if not all(map(math.isfinite, own)):
        (apart,) = one_by_one(Op.FLOAT_ADD, slots, first, end).view("f8")[:1]
        assert found == apart or (math.isnan(found) and math.isnan(apart))
    else:
        exact = math.fsum(own)
        assert abs(found - exact) <= 1e-15 * abs(exact) + 1e-30 * max(map(abs, own))


WINDOWS = st.builds(
    lambda length, slide, offset: Window(TIME, length, slide, offset % slide),
    st.integers(1, 40),
    st.integers(1, 20),
    st.integers(0, 19),
)


def rows_of(slices: Slices, records: list[tuple[int, int, int]]) -> Rows:
    """Rows by slice and key, with a sum and the greatest of the values."""
    times, keys, values = (np.array(column, dtype=np.int64) for column in zip(*records, strict=True))
    coding, reducer = Coding(), Reducer([Op.ADD, Op.MAX])
    columns = [pa.array(slices.number_of(times)), pa.array(keys)]
    codes = [coding.encode(place, column) for place, column in enumerate(columns)]
    reducer.add((coding.coder(0), coding.coder(1)), codes, [values, values], len(records))
    return reducer.rows


@given(
    windows=st.lists(WINDOWS, min_size=1, max_size=3),
    records=st.lists(st.tuples(st.integers(-60, 60), st.integers(0, 2), st.integers(-9, 9)), min_size=1),
    few=st.sampled_from([0, 4]),
    at_a_time=st.sampled_from([1, 7, 1 << 20]),
)
def test_windows(windows: list[Window], records: list[tuple[int, int, int]], few: int, at_a_time: int) -> None:
    """Windows of any kind, from their own slices and from those of all."""
    common = Slices.of(windows[0])
    for window in windows[1:]:
        together = common.together(Slices.of(window))
        assert together is not None
        common = together
    inside = [record for record in records if common.covers(np.array([record[0]]))[0]]
    made = {}
    if inside:
        rows = rows_of(common, inside)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(lanes, "_FEW", few)
            patch.setattr(lanes, "_LEAST_ROWS", at_a_time)
            patch.setattr(lanes, "_ROWS_AND_KINDS", at_a_time)
            patch.setattr(lanes, "MOST_FOUND", 8 * at_a_time)
            own, _ = Lanes.of(common, rows, [1])
            kinds = [Windows(window) for window in windows]
            for kind, groups in zip(kinds, own.windows(kinds, [0, 1]), strict=True):
                made[kind.window] = own.rows_of(groups, kind, rows.ops, Coding())
    for window in windows:
        expected: dict[tuple[int, int], list[int]] = {}
        for time, key, value in records:
            for number in range(-120, 121):
                start = number * window.slide_us + window.offset_us
                if start <= time < start + window.range_us:
                    expected.setdefault((number, key), []).append(value)
        if not inside:
            assert not expected
            continue
        assert read(made[window]) == sorted((*key, sum(own), max(own)) for key, own in expected.items())


def read(rows: Rows) -> list[tuple[int, ...]]:
    """Window or slice, if there is one, key, sum and greatest value of all rows."""
    columns, ((sums,), (greatest,)) = rows.columns([*range(len(rows.coders))], [0, 1])
    slots = [slot.array().to_pylist() for slot in (sums, greatest)]
    found = zip(*(array_of(column).to_pylist() for column in columns), *slots, strict=True)
    return sorted(found)


LONGER = [
    None,
    Slices.every(TIME, 10),
    Slices.every(TIME, 30, 10),
    Slices.of(Window(TIME, 30, 20)),
    Slices.of(Window(TIME, 20, 50, 10)),  # with gaps
]


@given(
    records=st.lists(st.tuples(st.integers(-60, 60), st.integers(0, 2), st.integers(-9, 9)), min_size=1),
    longer=st.sampled_from(LONGER),
    data=st.data(),
)
def test_rows_of_filters_that_contain_each_other(
    records: list[tuple[int, int, int]], longer: Slices | None, data: st.DataObject
) -> None:
    """What each filter of a chain has of rows in order is what its rows alone would be; so are longer slices."""
    slices = Slices.every(TIME, 10)
    most = data.draw(st.integers(1, 3))
    ranks = np.array(data.draw(st.lists(st.integers(0, most), min_size=3, max_size=3)), dtype=np.int16)
    kinds = data.draw(st.lists(st.integers(0, 2), min_size=len(records), max_size=len(records)))
    coding, columns = Coding(), [np.array(column) for column in zip(*records, strict=True)]
    keys = [pa.array(slices.number_of(columns[0])), pa.array(columns[1]), pa.array(kinds)]
    codes = [coding.encode(place, column) for place, column in enumerate(keys)]
    reducer = Reducer([Op.ADD, Op.MAX])
    reducer.add(tuple(map(coding.coder, range(3))), codes, [columns[2], columns[2]], len(records))
    own, order = Lanes.of(slices, reducer.rows, [1])
    (_, _, kind), _ = reducer.rows.columns([0, 1, 2], [])
    of_rows = np.asarray(array_of(kind)).astype(np.int32)[order]
    found = own.sifted(of_rows, ranks, most, longer, [0, 1])
    assert len(found) == most
    for rank, groups in enumerate(found, 1):
        expected: dict[tuple[int, ...], list[int]] = {}
        for (time, key, value), which in zip(records, kinds, strict=True):
            times = np.array([time])
            if ranks[which] >= rank and (longer is None or longer.covers(times).all()):
                timed = () if longer is None else (int(longer.number_of(times)[0]),)
                expected.setdefault((*timed, key), []).append(value)
        rows = own.rows_of(groups, longer, reducer.ops, Coding())
        assert read(rows) == sorted((*key, sum(values), max(values)) for key, values in expected.items())


@given(st.integers(0, 2**32), st.integers(1, 12), st.integers(1, 200), st.integers(1, 3000))
def test_chains_are_of_filters_that_contain_each_other(seed: int, count: int, kinds: int, most: int) -> None:
    chance = np.random.default_rng(seed)
    level, share = chance.integers(3, size=kinds), chance.random(count)
    wanted = np.array([chance.random(kinds) < part if part < 0.3 else level >= 3 * part for part in share])
    rows = wanted @ chance.integers(1, 20, size=kinds)
    packed = np.packbits(np.pad(wanted, [(0, 0), (0, -kinds % 64)]), axis=1).view(np.uint64)
    found = nested.chains(packed, rows, most)
    assert sorted(number for chain in found for number in chain) == list(range(count))
    for chain in found:
        assert len(chain) == 1 or rows[chain].sum() <= most
        for wider, narrower in itertools.pairwise(chain):
            assert not (wanted[narrower] & ~wanted[wider]).any()
    pairs = [(one, other) for one in wanted for other in wanted]
    if rows.sum() <= most and all((one <= other).all() or (other <= one).all() for one, other in pairs):
        assert len(found) == 1, "filters that all contain each other are one chain"
