"""Columns come back from a shelf as they were."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.kernel.narrow import array_of
from headrace.kernel.shelf import Bytes, Files, Kept, Reader


def read(reader: Reader, place: Kept) -> tuple[list[pa.Array], int]:
    """The columns as Arrow has them, and the number of rows."""
    columns, rows = reader.read(place)
    return list(map(array_of, columns)), rows


@pytest.mark.parametrize("in_file", [True, False])
def test_what_is_kept_can_be_read(tmp_path: Path, in_file: bool) -> None:
    folder = (tmp_path / "new").as_uri() if in_file else None
    shelf = Files(folder) if folder is not None else Bytes()
    columns = [pa.array([1, 2, 3]), pa.array(["x", None, "z"])]
    sliced = [column.slice(1, 2) for column in columns]
    places = [*shelf.keep(columns, [(0, 3)]), *shelf.keep([], [(0, 5)]), *shelf.keep(sliced, [(0, 2)])]
    shelf.close()
    reader = Reader(folder)
    assert read(reader, places[2]) == ([pa.array([2, 3]), pa.array([None, "z"])], 2)
    assert read(reader, places[0]) == (columns, 3)
    assert read(reader, places[1]) == ([], 5)
    assert (places[0].place is not None) == in_file


@pytest.mark.parametrize("in_file", [True, False])
def test_each_part_can_be_read_by_itself(tmp_path: Path, in_file: bool) -> None:
    folder = tmp_path.as_uri() if in_file else None
    shelf = Files(folder) if folder is not None else Bytes()
    columns = [pa.array([1000, 1003, None, 1001]), pa.array(["x", None, "z", "z"]), pa.array([7, 7, 7, 7])]
    parts = [(0, 1), (1, 4), (4, 4)]
    places = shelf.keep(columns, parts)
    shelf.close()
    for (first, end), place in zip(parts, places, strict=True):
        own = [column.slice(first, end - first) for column in columns]
        assert read(Reader(folder), place) == (own, end - first)


def test_a_shelf_that_nothing_was_put_on_leaves_no_file(tmp_path: Path) -> None:
    Files(tmp_path.as_uri()).close()
    assert not list(tmp_path.iterdir())
