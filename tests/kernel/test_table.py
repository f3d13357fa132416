"""The hash table and its operations, against plain Python."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.ops import INT_MAX, INT_MIN, Op, Words, identity_row, slot_count
from headrace.kernel.table import Table

INTS = st.integers(INT_MIN, INT_MAX)
FLOATS = st.floats(-1e6, 1e6)


def bits(value: float) -> int:
    return int(np.float64(value).view(np.int64))


def wrap(value: int) -> int:
    return (value + 2**63) % 2**64 - 2**63


# For each operation: a strategy for values, how a value becomes slots, and what plain Python makes of many values.
LIFTS: dict[Op, tuple[st.SearchStrategy[Any], Callable[[Any], list[int]]]] = {
    Op.ADD: (INTS, lambda x: [x]),
    Op.MIN: (INTS, lambda x: [x]),
    Op.MAX: (INTS, lambda x: [x]),
    Op.AND: (INTS, lambda x: [x]),
    Op.OR: (INTS, lambda x: [x]),
    Op.XOR: (INTS, lambda x: [x]),
    Op.WIDE_ADD: (INTS, lambda x: [x, -1 if x < 0 else 0]),
    Op.FLOAT_ADD: (FLOATS, lambda x: [bits(x), 0]),
    Op.VARIANCE: (FLOATS, lambda x: [bits(1.0), bits(x), 0]),
    Op.MOMENTS: (FLOATS, lambda x: [bits(1.0), bits(x), 0, 0, 0]),
    Op.COMOMENTS: (
        st.tuples(FLOATS, FLOATS),
        lambda xy: [bits(1.0), bits(xy[0]), bits(xy[1]), 0, 0, 0],
    ),
    Op.TAKE: (INTS, lambda x: [1, x]),
    Op.TAKE_LEAST: (st.tuples(INTS, INTS), lambda xy: [1, *xy]),
    Op.TAKE_GREATEST: (st.tuples(INTS, INTS), lambda xy: [1, *xy]),
}


def floats(slots: Words) -> list[float]:
    return [float(value) for value in slots.view(np.float64)]


def check(op: Op, values: list[Any], slots: Words) -> None:
    """Whether slots are what plain Python makes of the values."""
    first = int(slots[0])
    if op is Op.ADD:
        assert first == wrap(sum(values))
    elif op in (Op.MIN, Op.MAX):
        assert first == (min(values) if op is Op.MIN else max(values))
    elif op in (Op.AND, Op.OR, Op.XOR):
        expected = -1 if op is Op.AND else 0
        for value in values:
            expected = expected & value if op is Op.AND else expected | value if op is Op.OR else expected ^ value
        assert first == expected
    elif op is Op.WIDE_ADD:
        assert int(slots[1]) * 2**64 + first % 2**64 == sum(values)
    elif op is Op.FLOAT_ADD:
        total, lost = floats(slots)
        # Compensated: as good as if the sum had been rounded once or twice, whatever cancels.
        assert total + lost == pytest.approx(math.fsum(values), rel=1e-15, abs=1e-22 * len(values))
    elif op in (Op.VARIANCE, Op.MOMENTS):
        check_moments(values, floats(slots))
    elif op is Op.COMOMENTS:
        check_comoments(values, floats(slots))
    elif op is Op.TAKE:
        assert first == 1
        assert int(slots[1]) in values
    else:
        best = min(order for order, _ in values) if op is Op.TAKE_LEAST else max(order for order, _ in values)
        assert (first, int(slots[1])) == (1, best)
        assert (best, int(slots[2])) in values


def check_moments(values: list[float], slots: list[float]) -> None:
    n, mean, *sums = slots
    center = statistics.fmean(values)
    spread = max(abs(value) for value in values) + 1.0
    assert n == len(values)
    assert mean == pytest.approx(center, abs=1e-12 * spread * n)
    for power, found in enumerate(sums, start=2):
        expected = math.fsum((value - center) ** power for value in values)
        assert found == pytest.approx(expected, rel=1e-9, abs=1e-9 * spread**power * n)


def check_comoments(values: list[tuple[float, float]], slots: list[float]) -> None:
    n, _, _, products, squares_x, squares_y = slots
    mean_x, mean_y = (statistics.fmean(side) for side in zip(*values, strict=True))
    spread = max(abs(side) for pair in values for side in pair) + 1.0
    assert n == len(values)
    expected = [
        math.fsum((x - mean_x) * (y - mean_y) for x, y in values),
        math.fsum((x - mean_x) ** 2 for x, _ in values),
        math.fsum((y - mean_y) ** 2 for _, y in values),
    ]
    assert [products, squares_x, squares_y] == pytest.approx(
        expected, rel=1e-9, abs=1e-9 * spread**2 * len(values)
    )


def rows_of(op: Op, pairs: list[tuple[tuple[int, ...], Any]]) -> Words:
    lift = LIFTS[op][1]
    width = len(pairs[0][0]) + slot_count(op) if pairs else 1 + slot_count(op)
    return np.array([[*key, *lift(value)] for key, value in pairs], dtype=np.int64).reshape(len(pairs), width)


@pytest.mark.parametrize("op", list(Op))
@pytest.mark.parametrize("words", [1, 2, 3])
@given(data=st.data())
def test_groups_and_any_split_of_the_rows(op: Op, words: int, data: st.DataObject) -> None:
    """Rows go in in pieces, by way of several tables, and come out as plain Python groups them."""
    key = st.tuples(*[st.sampled_from([0, 1, -1, INT_MIN, INT_MAX])] * words)
    pairs = data.draw(st.lists(st.tuples(key, LIFTS[op][0]), min_size=1, max_size=40))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(pairs)), max_size=3)))
    whole = Table(words, (op,))
    for low, high in zip([0, *cuts], [*cuts, len(pairs)], strict=True):
        part = Table(words, (op,))
        part.add(rows_of(op, pairs[low:high]).reshape(high - low, words + slot_count(op)))
        whole.add(part.rows)
    expected = defaultdict(list)
    for group, value in pairs:
        expected[group].append(value)
    assert [tuple(row[:words].tolist()) for row in whole.rows] == list(expected)
    for row, values in zip(whole.rows, expected.values(), strict=True):
        check(op, values, row[words:])


@pytest.mark.parametrize("op", list(Op))
@given(data=st.data())
def test_the_identity_changes_nothing(op: Op, data: st.DataObject) -> None:
    value = data.draw(LIFTS[op][0])
    row = rows_of(op, [((7,), value)])
    nothing = np.concatenate([[7], identity_row((op,))]).astype(np.int64).reshape(1, -1)
    for order in ([row, nothing], [nothing, row], [nothing, row, nothing]):
        table = Table(1, (op,))
        for piece in order:
            table.add(piece)
        if op is Op.FLOAT_ADD:  # -0.0 becomes 0.0, as in Spark's own sum
            assert floats(table.rows[0, 1:]) == floats(row[0, 1:])
        else:
            assert table.rows.tolist() == row.tolist()


@given(parts=st.lists(st.lists(FLOATS, max_size=20), min_size=1, max_size=4))
def test_a_variance_is_the_beginning_of_the_moments(parts: list[list[float]]) -> None:
    """To the last bit: which of the two states a node keeps does not change an answer."""
    narrow, wide = Table(1, (Op.VARIANCE,)), Table(1, (Op.MOMENTS,))
    for whole, op in ((narrow, Op.VARIANCE), (wide, Op.MOMENTS)):
        for values in parts:
            part = Table(1, (op,))
            part.add(rows_of(op, [((0,), value) for value in values]))
            whole.add(part.rows)
    assert narrow.rows.tolist() == wide.rows[:, : narrow.width].tolist()


def test_many_groups_and_several_states_in_one_pass() -> None:
    random = np.random.default_rng(5)
    keys, values = random.integers(0, 50_000, 300_000), random.integers(-1000, 1000, 300_000)
    table = Table(2, (Op.ADD, Op.MIN, Op.MAX, Op.ADD))
    batch = np.stack([keys, keys * -7919, values, values, values, np.ones_like(values)], axis=1)
    into = np.concatenate([table.add(piece) for piece in np.array_split(batch, 7)])
    assert np.array_equal(table.rows[into, 0], keys)
    groups = len(np.unique(keys))
    assert len(table) == groups
    sums = np.bincount(keys, weights=values, minlength=50_000)
    assert np.array_equal(table.rows[:, 2], sums[table.rows[:, 0]].astype(np.int64))
    assert table.rows[:, 5].sum() == 300_000
    lows = np.full(50_000, INT_MAX)
    np.minimum.at(lows, keys, values)
    assert np.array_equal(table.rows[:, 3], lows[table.rows[:, 0]])


@pytest.mark.parametrize("each", [40, 700, 9000])
def test_settled_rows_stay_and_are_not_looked_for(each: int) -> None:
    """Keys of a stretch of time come while it is open, those of the one before too; then no more."""
    random, stretches = np.random.default_rng(each), 12
    table, sums = Table(1, (Op.ADD,)), np.zeros((stretches + 1) * each, dtype=np.int64)
    for stretch in range(stretches):
        keys = random.integers(stretch * each, (stretch + 2) * each, 5 * each)
        values = random.integers(-9, 9, len(keys))
        np.add.at(sums, keys, values)
        table.add(np.stack([keys, values], axis=1))
        numbers = table.unsettled
        table.settle(numbers[table.rows[numbers, 0] >= (stretch + 1) * each])
        assert table.indexed <= each
    assert np.array_equal(np.sort(table.rows[:, 0]), np.unique(table.rows[:, 0]))
    assert np.array_equal(table.rows[:, 1], sums[table.rows[:, 0]])
    assert len(table) >= 0.9 * len(sums)
    first = int(table.rows[0, 0])
    table.add(np.array([[first, 1]], dtype=np.int64))
    assert table.rows[:, 0].tolist().count(first) == 2, "whoever breaks the promise gets a row of their own"


def test_keys_that_differ_in_one_bit_are_different_groups() -> None:
    keys = np.array([[1 << bit, 0] for bit in range(63)] + [[0, 1 << bit] for bit in range(63)] + [[0, 0]])
    table = Table(2, ())
    table.add(keys.astype(np.int64))
    assert len(table) == 127


def test_no_rows_and_no_states() -> None:
    table = Table(1, ())
    assert len(table.add(np.empty((0, 1), dtype=np.int64))) == 0
    assert len(table) == 0
    assert table.rows.shape == (0, 1)


@pytest.mark.parametrize("values", [[math.inf, 1.0], [math.inf, -math.inf], [math.nan, 1.0], [1e308, 1e308]])
def test_sums_that_are_not_finite(values: list[float]) -> None:
    table = Table(1, (Op.FLOAT_ADD,))
    table.add(np.array([[0, bits(value), 0] for value in values], dtype=np.int64))
    total, lost = floats(table.rows[0, 1:])
    assert np.array_equal([total + lost], [sum(values)], equal_nan=True)


def test_a_sum_that_naive_addition_loses() -> None:
    table = Table(1, (Op.FLOAT_ADD,))
    table.add(np.array([[0, bits(value), 0] for value in (1.0, 1e100, 1.0, -1e100)], dtype=np.int64))
    total, lost = floats(table.rows[0, 1:])
    assert total + lost == 2.0
