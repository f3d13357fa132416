"""Samples: blocks of neighbours, from all over the stream."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import StreamError
from headrace.sources.parquet import read_footers
from headrace.sources.sample import read_sample


def write(folder: Path, files: int, rows: int, group_rows: int) -> None:
    """Files with the records' numbers, and text of them."""
    folder.mkdir(exist_ok=True)
    for file in range(files):
        numbers = np.arange(file * rows, (file + 1) * rows)
        table = pa.table({"n": numbers, "text": [f"t{n % 10}" for n in numbers], "other": numbers})
        pq.write_table(table, folder / f"part-{file}.parquet", row_group_size=group_rows)


@pytest.mark.parametrize(
    ("files", "rows", "group_rows"),
    [(4, 1000, 250), (1, 4000, 4000), (1, 4000, 500), (40, 100, 100), (400, 10, 3), (2, 2000, 700), (1, 201, 50)],
)
def test_blocks_are_of_neighbours_and_far_from_each_other(
    tmp_path: Path, files: int, rows: int, group_rows: int
) -> None:
    write(tmp_path / "s", files, rows, group_rows)
    blocks = read_sample(read_footers(str(tmp_path / "s")), ["n"], 200)
    order = [
        n for file in sorted(str(f) for f in range(files)) for n in range(int(file) * rows, (int(file) + 1) * rows)
    ]
    places = {number: place for place, number in enumerate(order)}
    found = [[places[n] for n in block["n"].to_pylist()] for block in blocks]
    assert [len(block) for block in found] == [12] * 16
    assert all(block == list(range(block[0], block[0] + 12)) for block in found)
    assert all(before[-1] < after[0] for before, after in itertools.pairwise(found))
    if group_rows <= 500 and files * rows >= 2000:
        starts = [block[0] for block in found]
        assert all(0 <= (2 * i + 1) * files * rows // 32 - start < group_rows for i, start in enumerate(starts))


def test_only_the_columns_asked_for_in_their_order_and_text_with_a_dictionary(tmp_path: Path) -> None:
    write(tmp_path / "s", 3, 100, 40)
    for rows in (60, 10_000):
        for block in read_sample(read_footers(str(tmp_path / "s")), ["text", "n"], rows):
            assert block.schema.names == ["text", "n"]
            assert pa.types.is_dictionary(block["text"].type)
            assert block["text"].to_pylist() == [f"t{n % 10}" for n in block["n"].to_pylist()]


def test_a_small_stream_is_one_block(tmp_path: Path) -> None:
    write(tmp_path / "s", 3, 100, 30)
    (block,) = read_sample(read_footers(str(tmp_path / "s")), ["n"])
    assert block["n"].to_pylist() == list(range(300))


def test_an_empty_stream_has_no_blocks(tmp_path: Path) -> None:
    write(tmp_path / "s", 2, 0, 10)
    assert read_sample(read_footers(str(tmp_path / "s")), ["n"]) == []
    assert read_sample([], ["n"]) == []


def test_a_sample_is_the_same_each_time(tmp_path: Path) -> None:
    write(tmp_path / "s", 3, 1000, 300)
    footers = read_footers(str(tmp_path / "s"))
    assert read_sample(footers, ["n", "text"], 100) == read_sample(footers, ["n", "text"], 100)


def test_files_may_name_the_zone_of_a_time_differently(tmp_path: Path) -> None:
    for file, zone in enumerate(["UTC", "+00:00"]):
        table = pa.table({"ts": pa.array([file], pa.timestamp("us", zone))})
        pq.write_table(table, tmp_path / f"part-{file}.parquet")
    (block,) = read_sample(read_footers(str(tmp_path)), ["ts"])
    assert block["ts"].view(pa.int64()).to_pylist() == [0, 1]


def test_a_file_that_is_gone_is_an_error_of_the_stream(tmp_path: Path) -> None:
    write(tmp_path / "s", 1, 100, 50)
    footers = read_footers(str(tmp_path / "s"))
    (tmp_path / "s" / "part-0.parquet").unlink()
    with pytest.raises(StreamError, match="cannot be read as Parquet"):
        read_sample(footers, ["n"])


def test_a_file_that_is_broken_is_an_error_of_the_stream(tmp_path: Path) -> None:
    write(tmp_path / "s", 1, 5000, 5000)
    footers = read_footers(str(tmp_path / "s"))
    file = tmp_path / "s" / "part-0.parquet"
    whole = bytearray(file.read_bytes())
    whole[4:400] = bytes(396)
    file.write_bytes(whole)
    with pytest.raises(StreamError, match="cannot be read as Parquet"):
        read_sample(footers, ["n"])
