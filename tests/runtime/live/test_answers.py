"""Files of answers: what comes out is what went in, window by window."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from headrace.query import Expression, Window
from headrace.runtime.live.answers import AnswerFile, by_window, file_name, mark_of, read_windows
from headrace.runtime.live.finisher import Finisher

WINDOW = Window(Expression.parse("t"), 60, 60)
EDGE = pa.timestamp("us", "UTC")
SCHEMA = pa.schema(
    [("window", pa.struct([("start", EDGE), ("end", EDGE)])), ("k", pa.string()), ("n", pa.int64())]
)


@given(st.lists(st.lists(st.tuples(st.integers(0, 80), st.integers()), min_size=1, max_size=200), max_size=4))
def test_rows_of_several_parts_by_window(parts: list[list[tuple[int, int]]]) -> None:
    columns = [
        (pa.array([w for w, _ in part]), pa.array(["a"] * len(part)), pa.array([v % 2**63 for _, v in part]))
        for part in parts
    ]
    found = {number: batch["n"].to_pylist() for number, batch in by_window(columns, SCHEMA, WINDOW)}
    expected: dict[int, list[int]] = {}
    for part in parts:
        for number, value in part:
            expected.setdefault(number, []).append(value % 2**63)
    assert found == expected
    assert list(found) == sorted(found)


def test_a_file_has_its_windows(tmp_path: Path) -> None:
    columns = [
        (pa.array([3, 3, 4]), pa.array(["a", None, "b"]), pa.array([1, None, -(2**63)])),
        (pa.array([4, 5]), pa.array(["c", "a"]), pa.array([2**63 - 1, 0])),
    ]
    finisher = Finisher(("window", "k", "n"), None, SCHEMA)
    file = AnswerFile("q.1", file_name("q.1", 7), tmp_path.as_uri(), WINDOW, finisher)
    for number, groups in by_window(columns, SCHEMA, WINDOW):
        file.add(number, groups)
    given_ = file.close()
    assert given_ is not None
    assert (given_.rows, given_.start_us, given_.end_us) == (5, 180, 360)
    assert mark_of(given_) == "7"
    path = str(tmp_path / given_.file)
    windows = list(read_windows(path, 0))
    assert [start for start, _ in windows] == [180, 240, 300]
    assert [table["n"].to_pylist() for _, table in windows] == [[1, None], [-(2**63), 2**63 - 1], [0]]
    assert all(table.schema.equals(SCHEMA, check_metadata=True) for _, table in windows)
    kinds = {pq.ParquetFile(path).metadata.row_group(0).column(n).encodings[-1] for n in (0, 1, 3)}
    assert kinds == {"DELTA_BINARY_PACKED"}


def test_there_is_no_file_without_rows(tmp_path: Path) -> None:
    file = AnswerFile("q", "0.q.parquet", tmp_path.as_uri(), WINDOW, Finisher(("window", "k", "n"), None, SCHEMA))
    assert file.close() is None
    assert list(tmp_path.iterdir()) == []
