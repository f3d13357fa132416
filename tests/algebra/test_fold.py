"""Folding whole columns gives what the kernel's tables give row by row."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.algebra.fold import fold
from headrace.algebra.ops import Op, Words, identity_row, slot_count
from headrace.kernel.table import Table

INTEGERS = [Op.ADD, Op.MIN, Op.MAX, Op.AND, Op.OR, Op.XOR, Op.WIDE_ADD]
FLOATS = [Op.FLOAT_ADD, Op.VARIANCE, Op.MOMENTS, Op.COMOMENTS]


def random_slots(op: Op, rows: int) -> list[Words]:
    """Slots of single records, some of which do not count."""
    draw = np.random.default_rng(rows)
    values = draw.integers(-(2**62), 2**62, rows)
    slots = [values, values >> 63][: slot_count(op)]
    if op in FLOATS:
        x, y, zero = draw.normal(3, 2, rows), draw.normal(-1, 9, rows), np.zeros(rows)
        records = {Op.FLOAT_ADD: [x * 10.0 ** draw.integers(0, 30, rows), zero]}
        records[Op.VARIANCE] = [zero + 1, x, zero]
        records[Op.MOMENTS] = [zero + 1, x, zero, zero, zero]
        records[Op.COMOMENTS] = [zero + 1, x, y, zero, zero, zero]
        slots = [slot.view(np.int64) for slot in records[op]]
    counts = draw.random(rows) > 0.3
    return [np.where(counts, slot, rest) for slot, rest in zip(slots, identity_row((op,)), strict=True)]


@pytest.mark.parametrize("op", [*INTEGERS, *FLOATS], ids=lambda op: op.name)
@pytest.mark.parametrize("rows", [0, 1, 7, 500])
def test_columns_fold_as_rows_do(op: Op, rows: int) -> None:
    slots = random_slots(op, rows)
    groups = np.random.default_rng(1).integers(0, 9, rows) * 2
    folded = np.stack(fold(op, slots, groups, 20), axis=1)
    table = Table(1, (op,))
    table.add(np.stack([groups, *slots], axis=1))
    expected = np.tile(identity_row((op,)), (20, 1))
    expected[table.rows[:, 0]] = table.rows[:, 1:]
    if op in INTEGERS:
        np.testing.assert_array_equal(folded, expected)
        return
    one, two = folded.view(np.float64), expected.view(np.float64)
    if op is Op.FLOAT_ADD:
        one, two = one.sum(axis=1), two.sum(axis=1)
    np.testing.assert_allclose(one, two, rtol=1e-9, atol=1e-9)
