"""Columns come back from a shelf as they were, and take fewer bytes on it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.kernel.shelf import Bytes, File, Reader, narrowed, widened

UTC = pa.timestamp("us", "UTC")


@pytest.mark.parametrize(
    ("column", "stored"),
    [
        (pa.array([1, -128, 127]), pa.int8()),
        (pa.array([1, None, 128]), pa.int16()),
        (pa.array([1, 1 << 31]), pa.int64()),
        (pa.array([-(1 << 31), 0]), pa.int32()),
        (pa.array([1, 2], pa.int16()), pa.int8()),
        (pa.array([1 << 40, 1 << 40]), pa.dictionary(pa.int8(), pa.int64())),
        (pa.array([7, 7], UTC), pa.dictionary(pa.int8(), UTC)),
        (pa.array([7, None], pa.int64()), pa.int8()),
        (pa.array([7, 8], UTC), UTC),
        (pa.array([None, None], pa.int64()), pa.int64()),
        (pa.array([], pa.int64()), pa.int64()),
        (pa.array(["a", "a"]), pa.string()),
        (pa.array([0.5, 0.5]), pa.float64()),
        (pa.array([True, True]), pa.bool_()),
    ],
)
def test_columns_are_as_narrow_as_they_may_be(column: pa.Array, stored: pa.DataType) -> None:
    assert narrowed(column).type == stored
    assert widened(narrowed(column)).cast(column.type) == column


@pytest.mark.parametrize("in_file", [True, False])
def test_what_is_kept_can_be_read(tmp_path: Path, in_file: bool) -> None:
    folder = (tmp_path / "new").as_uri() if in_file else None
    shelf = File(folder) if folder is not None else Bytes()
    columns = [pa.array([1, 2, 3]), pa.array(["x", None, "z"])]
    places = [shelf.keep(columns, 3), shelf.keep([], 5), shelf.keep([c.slice(1, 2) for c in columns], 2)]
    shelf.close()
    reader = Reader(folder)
    assert reader.read(places[2]) == ([pa.array([2, 3]), pa.array([None, "z"])], 2)
    assert reader.read(places[0]) == (columns, 3)
    assert reader.read(places[1]) == ([], 5)
    assert (places[0].place is not None) == in_file


def test_a_shelf_that_nothing_was_put_on_leaves_no_file(tmp_path: Path) -> None:
    File(tmp_path.as_uri()).close()
    assert not list(tmp_path.iterdir())
