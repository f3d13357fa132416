"""Columns are kept in few bytes, and come back as they were."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernel.narrow import narrowed, widened

PARIS = pa.timestamp("us", "Europe/Paris")


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        (pa.array([1, -128, 127]), pa.uint8()),
        (pa.array([1, None, 256]), pa.uint8()),
        (pa.array([1, None, 257]), pa.uint16()),
        (pa.array([1 << 40, (1 << 40) + (1 << 32) - 1]), pa.uint32()),
        (pa.array([1, 1 + (1 << 32)]), pa.int64()),
        (pa.array([-(1 << 63), (1 << 63) - 1]), pa.int64()),
        (pa.array([1, 2], pa.int16()), pa.uint8()),
        (pa.array([0, 300], pa.int16()), pa.int16()),
        (pa.array([1 << 40, 1 << 40]), pa.null()),
        (pa.array([7, 7], PARIS), pa.null()),
        (pa.array([7, None], pa.int64()), pa.uint8()),
        (pa.array([7, 70_000], PARIS), pa.uint32()),
        (pa.array([None, None], pa.int64()), pa.int64()),
        (pa.array([], pa.int64()), pa.int64()),
        (pa.array(["a", "a"]), pa.string()),
        (pa.array([0.5, 0.5]), pa.float64()),
        (pa.array([True, True]), pa.bool_()),
    ],
)
def test_columns_are_as_narrow_as_they_may_be(column: pa.Array, stored: pa.DataType) -> None:
    field, kept = narrowed("c", column)
    assert field.type == kept.type == stored
    assert widened(field, kept) == column


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
    assert widened(*narrowed("c", column)) == column
