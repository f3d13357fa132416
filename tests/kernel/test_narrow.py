"""Columns are kept in few bytes, and come back as they were."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernel.narrow import Narrow, array_of, joined, restored, slot_of, stored
from headrace.kernel.strided import Codes

PARIS = pa.timestamp("us", "Europe/Paris")


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        (pa.array([1, -128, 127]), pa.int8()),
        (pa.array([1, None, 256]), pa.int8()),
        (pa.array([1, None, 257]), pa.int16()),
        (pa.array([1 << 40, (1 << 40) + (1 << 32) - 1]), pa.int32()),
        (pa.array([1, 1 + (1 << 32)]), pa.int64()),
        (pa.array([-(1 << 63), (1 << 63) - 1]), pa.int64()),
        (pa.array([1, 2], pa.int16()), pa.int8()),
        (pa.array([0, 300], pa.int16()), pa.int16()),
        (pa.array([1 << 40, 1 << 40]), pa.null()),
        (pa.array([7, 7], PARIS), pa.null()),
        (pa.array([7, None], pa.int64()), pa.int8()),
        (pa.array([7, 70_000], PARIS), pa.int32()),
        (pa.array([None, None], pa.int64()), pa.int64()),
        (pa.array([], pa.int64()), pa.int64()),
        (pa.array(["a", "a"]), pa.string()),
        (pa.array([0.5, 0.5]), pa.float64()),
        (pa.array([True, True]), pa.bool_()),
    ],
)
def test_columns_are_as_narrow_as_they_may_be(column: pa.Array, kind: pa.DataType) -> None:
    field, kept = stored("c", column)
    assert field.type == kept.type == kind
    assert array_of(restored(field, kept)) == column


@pytest.mark.parametrize(
    "kind", [pa.int8(), pa.int16(), pa.int32(), pa.int64(), PARIS, pa.timestamp("ns"), pa.date32()]
)
@given(data=st.data())
def test_columns_come_back_as_they_were(kind: pa.DataType, data: st.DataObject) -> None:
    high = (1 << kind.bit_width - 1) - 1
    near = data.draw(st.integers(-high - 1, high))
    far = data.draw(st.sampled_from([0, 200, 300, 70_000, 1 << 40]))
    values = st.integers(max(-high - 1, near - far), min(high, near + far))
    column = pa.array(data.draw(st.lists(st.none() | values)), kind)
    skipped = data.draw(st.integers(0, len(column)))
    column = column.slice(skipped)
    assert array_of(restored(*stored("c", column))) == column


@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1), st.sampled_from([1, 300, 70_000, 1 << 33]))
def test_integers_are_the_same_however_they_are_asked_for(values: list[int], factor: int) -> None:
    expected = [value // factor for value in values]
    column = Narrow.of(pa.array(expected))
    assert column is not None
    assert (column.least, column.most, len(column)) == (min(expected), max(expected), len(expected))
    assert column.words().tolist() == column.codes.plain().tolist() == expected
    assert column.array().to_pylist() == expected
    low = len(expected) // 2
    assert column.slice(low, 3).words().tolist() == expected[low : low + 3]
    slot = slot_of(column)
    assert isinstance(slot, Codes)
    assert slot.plain().tolist() == expected
    assert column.nbytes <= 8 * len(expected)
    assert (column.nbytes == 0) == (len(set(expected)) == 1)


@pytest.mark.parametrize("kind", [pa.int16(), pa.int32(), pa.int64(), pa.date32(), PARIS])
@pytest.mark.parametrize("values", [[5], [-3, 100], [-300, 300], [-(2**15), 2**15 - 1]])
def test_integers_are_viewed_as_another_type(kind: pa.DataType, values: list[int]) -> None:
    column = Narrow.of(pa.array(values, pa.int64()))
    assert column is not None
    found = column.viewed(kind).array()
    assert found.type == kind
    assert found.view(pa.int64() if kind == PARIS else f"int{kind.bit_width}").to_pylist() == values


def test_columns_of_several_kinds_are_joined() -> None:
    near, far = pa.array([1, 2]), pa.array([1 << 40, None])
    assert joined([Narrow.of(near), far, near]) == pa.array([1, 2, 1 << 40, None, 1, 2])


def test_what_spans_columns_has_their_extent() -> None:
    columns = [Narrow.of(pa.array(values)) for values in ([4, 9], [-7], [1000, 8])]
    spanning = Narrow.spanning([column for column in columns if column is not None])
    assert (spanning.least, spanning.most, len(spanning)) == (-7, 1000, 5)
