"""Rows become columns: whatever the numbers are, in whatever order, and in as few bytes as they need."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.ops import Op
from headrace.kernel.narrow import Narrow, array_of
from headrace.kernel.records import Coding
from headrace.kernel.reduce import Coded, as_rows
from headrace.kernel.rows import Rows

KINDS = (pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.date32(), pa.timestamp("us", "Europe/Paris"))


@st.composite
def numbers(draw: st.DrawFn, bits: int = 64, rows: int | None = None) -> npt.NDArray[np.int64]:
    """Numbers most of which are equal, and some that are near these, or far, in any of several blocks."""
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    usual = draw(st.integers(low, high) | st.sampled_from([low, -1, 0, 1, high]))
    found = np.full(draw(st.integers(1, 1500)) if rows is None else rows, usual, dtype=np.int64)
    for _ in range(draw(st.integers(0, 6))):
        far = draw(st.sampled_from([1, 127, 128, 255, 256, 32_767, 65_535, 65_536, 1 << 31, 1 << 33, high]))
        value = min(high, max(low, usual + draw(st.sampled_from([-1, 1])) * far))
        found[draw(st.integers(0, len(found) - 1))] = value
    return found


def rows_of(key: pa.Array, slots: list[npt.NDArray[np.int64]]) -> Rows:
    coding = Coding()
    codes = coding.encode("key", key)
    return as_rows([Op.ADD] * len(slots), (coding.coder("key"),), [Coded([codes], slots, len(key))])


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_keys_come_out_as_they_went_in(kind: pa.DataType, data: st.DataObject) -> None:
    words = data.draw(numbers(kind.bit_width))
    nulls = data.draw(st.sets(st.integers(0, len(words) - 1), max_size=3))
    mask = np.isin(np.arange(len(words)), sorted(nulls))
    column = pa.array(words.astype(f"i{kind.bit_width // 8}"), mask=mask).view(kind)
    rows = rows_of(column, [words])
    (same,), _ = rows.columns([0], [])
    assert array_of(same) == column
    order = data.draw(st.lists(st.integers(0, len(words) - 1), min_size=1).map(np.array))
    (some,), ((slot,),) = rows.columns([0], [0], order)
    assert array_of(some) == column.take(pa.array(order))
    assert slot.words().tolist() == words[order].tolist()


@given(st.integers(1, 1200).flatmap(lambda rows: st.lists(numbers(rows=rows), min_size=1, max_size=3)))
def test_slots_take_as_few_bytes_as_their_extent_needs(slots: list[npt.NDArray[np.int64]]) -> None:
    rows = rows_of(pa.array(np.arange(len(slots[0]))), slots)
    _, columns = rows.columns([], range(len(slots)))
    for (column,), words in zip(columns, slots, strict=True):
        assert column.words().tolist() == words.tolist()
        assert (column.least, column.most) == (words.min(), words.max())
        assert column.nbytes == (0 if column.least == column.most else _bytes(column) * len(words))


def _bytes(column: Narrow) -> int:
    return next((size for size in (1, 2, 4) if column.most - column.least < 1 << 8 * size), 8)


def test_numbers_that_reach_further_with_each_block_are_written_anew_each_time() -> None:
    words = np.zeros(6 * 256, dtype=np.int64)
    for block, number in enumerate([100, -100, 40_000, -40_000, 1 << 40, -(1 << 63)]):
        words[256 * block] = number
    _, ((column,),) = rows_of(pa.array(np.arange(len(words))), [words]).columns([], [0])
    assert column.words().tolist() == words.tolist()


def test_no_rows_have_columns_of_nothing() -> None:
    keys, ((slot,),) = rows_of(pa.array([], pa.int32()), [np.empty(0, np.int64)]).columns([0], [0])
    assert [len(array_of(key)) for key in keys] == [0]
    assert len(slot) == 0


def test_functions_of_a_key_are_asked_once_for_each_value_or_each_row() -> None:
    seen: list[int] = []

    def doubled(column: pa.Array) -> npt.NDArray[Any]:
        seen.append(len(column))
        return np.asarray(column.fill_null(-1)) * 2

    few = rows_of(pa.array([3, None, 5, 3] * 100), [])
    assert few.mapped(0, doubled).tolist() == [6, -2, 10, 6] * 100
    far = rows_of(pa.array([0, 1 << 30]), [])
    assert far.mapped(0, doubled).tolist() == [0, 1 << 31]
    by_value, by_row = seen
    assert by_value < 10, "null, 3, 4 and 5, and what the coder has room for, but not 400 rows"
    assert by_row == 2
