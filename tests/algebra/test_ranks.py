"""Integers that order as values do, and rows sorted by them."""

from __future__ import annotations

import decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from headrace.algebra.ranks import has_order, identify, rank, sort_rows

INT_MIN, INT_MAX = -(2**63), 2**63 - 1

COLUMNS = [
    (pa.string(), ["z", "", "a", "é", "z\U0001f600", "z\uffff", "A", "a"], lambda value: value.encode()),
    (pa.large_string(), ["b", "a", "b"], lambda value: value),
    (pa.binary(), [b"\xff", b"\x00", b"", b"\x7f", b"\x80", b"\xff"], lambda value: value),
    (
        pa.decimal128(38, 2),
        [
            decimal.Decimal(value).scaleb(-2)
            for value in (0, 2**63, -(2**63), 2**64, -(2**64), -1, 1, 2**90, -(2**90))
        ],
        lambda value: value,
    ),
    (pa.int32(), [3, -1, 3, 0], lambda value: value),
]


@pytest.mark.parametrize(("kind", "values", "key"), COLUMNS, ids=[str(kind) for kind, _, _ in COLUMNS])
def test_ranks_order_as_values_do(kind: pa.DataType, values: list[Any], key: Any) -> None:
    assert has_order(kind)
    ranks = rank(pa.array([*values, None], kind))
    assert len(ranks) == len(values) + 1
    codes, _ = identify(pa.array([None, *values], kind).slice(1))
    for one, first in enumerate(values):
        for two, second in enumerate(values):
            assert (ranks[one] < ranks[two]) == (key(first) < key(second))
            assert (ranks[one] == ranks[two]) == (codes[one] == codes[two]) == (first == second)


def test_columns_without_values_have_ranks() -> None:
    for kind, _, _ in COLUMNS:
        assert len(rank(pa.array([], kind))) == 0
        assert len(set(rank(pa.array([None, None], kind)).tolist())) == 1


@pytest.mark.parametrize(
    "columns",
    [
        [[2, 1, 1, 2, 0], [-5, 7, -7, -6, 0]],
        [[2, 1, 1, 2, 1], [INT_MIN, INT_MAX, INT_MIN, INT_MAX, 0]],
        [[INT_MAX, INT_MIN, 0, INT_MAX, INT_MIN], [1, 0, 0, 0, 1]],
        [[INT_MAX, INT_MIN, 0]],
        [[], []],
    ],
)
def test_rows_are_sorted_by_one_column_after_the_other(columns: list[list[int]]) -> None:
    order = sort_rows([np.array(column, dtype=np.int64) for column in columns])
    rows = list(zip(*columns, strict=True))
    assert [rows[place] for place in order] == sorted(rows)


def test_rows_that_no_64_bits_hold_are_sorted() -> None:
    draw = np.random.default_rng(5)
    columns = [draw.permutation(70_000) // 7 * 10**15 for _ in range(5)]
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    assert [rows[place] for place in sort_rows(columns)] == sorted(rows)
