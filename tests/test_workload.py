"""Workloads from a dict, a folder and a file, and all their mistakes in one report."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace import Stream, Workload
from headrace.errors import StreamError, WorkloadError

COUNT = "SELECT count(*) AS n FROM flows"


@pytest.fixture
def flows(tmp_path: Path) -> Stream:
    folder = tmp_path / "flows"
    folder.mkdir()
    table = pa.table(
        {
            "ts": pa.array([0], pa.timestamp("us", tz="UTC")),
            "seen": pa.array([0], pa.timestamp("us")),
            "srcaddr": ["a"],
            "bytes": [1],
        }
    )
    pq.write_table(table, folder / "part-0.parquet")
    return Stream.parquet(str(folder), name="flows", time="ts")


def test_from_a_dict() -> None:
    workload = Workload({"total": COUNT, "by_src": "SELECT srcaddr, sum(bytes) FROM flows GROUP BY srcaddr"})
    assert list(workload) == ["total", "by_src"]
    assert workload.stream_names == ("flows",)


def test_from_a_folder(tmp_path: Path) -> None:
    (tmp_path / "b.sql").write_text(COUNT)
    (tmp_path / "a.sql").write_text(f"-- what it is for\n{COUNT};\n")
    (tmp_path / "notes.txt").write_text("not a query")
    assert list(Workload.load(tmp_path)) == ["a", "b"]


def test_from_one_file_with_several_queries(tmp_path: Path, flows: Stream) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(
        f"-- my queries\n-- name: first\n{COUNT};\n\n--name: second\n-- why\nSELECT max(byts)\nFROM flows;\n"
    )
    workload = Workload.load(file)
    assert list(workload) == ["first", "second"]
    with pytest.raises(WorkloadError) as caught:
        workload.bind(flows)
    (problem,) = caught.value.problems
    assert (problem.line, problem.source_line) == (7, "SELECT max(byts)")


def test_five_mistakes_in_five_files_give_one_report(tmp_path: Path, flows: Stream) -> None:
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "a_column.sql").write_text("SELECT sum(byts) FROM flows")
    (folder / "b_function.sql").write_text("SELECT\n  summ(bytes)\nFROM flows")
    (folder / "c_stream.sql").write_text("SELECT count(*) FROM flowz")
    (folder / "d_window.sql").write_text("SELECT count(*) FROM flows GROUP BY window(ts, '5 mins')")
    (folder / "e_syntax.sql").write_text("SELECT count(*)\nFORM flows")
    (folder / "f_right.sql").write_text(COUNT)
    with pytest.raises(WorkloadError) as caught:
        Workload.load(folder, flows)
    found = [(Path(problem.origin).name, problem.line, problem.column) for problem in caught.value.problems]
    assert found == [
        ("a_column.sql", 1, 12),
        ("b_function.sql", 2, 3),
        ("c_stream.sql", 1, 22),
        ("d_window.sql", 1, 48),
        ("e_syntax.sql", 2, 1),
    ]
    assert str(caught.value).startswith("5 problems in the workload")


def test_an_empty_workload_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="no queries"):
        Workload({})
    with pytest.raises(WorkloadError, match=r"no \*\.sql files"):
        Workload.load(tmp_path)
    with pytest.raises(WorkloadError, match="no file or folder"):
        Workload.load(tmp_path / "missing")


def test_duplicate_and_impossible_names_are_errors(tmp_path: Path) -> None:
    file = tmp_path / "queries.sql"
    file.write_text(f"-- name: a\n{COUNT};\n-- name: A\n{COUNT};\n-- name: a b\n{COUNT};\n-- name:\n{COUNT};")
    with pytest.raises(WorkloadError) as caught:
        Workload.load(file)
    messages = [problem.message for problem in caught.value.problems]
    assert messages == [
        "there are two queries named 'A'",
        "'a b' cannot be a query's name",
        "'' cannot be a query's name",
    ]
    with pytest.raises(WorkloadError, match="cannot be a query's name"):
        Workload({"_hidden": COUNT})


def test_an_empty_query_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "nothing.sql").write_text("\n-- todo\n")
    with pytest.raises(WorkloadError, match="query 'nothing' is empty"):
        Workload.load(tmp_path)


def test_a_file_that_is_no_text_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "binary.sql").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(WorkloadError, match="not UTF-8"):
        Workload.load(tmp_path)


def test_a_stream_without_its_time_column_is_an_error(flows: Stream) -> None:
    path = str(flows.data)
    with pytest.raises(StreamError, match=r"no column 'tss'; did you mean 'ts'"):
        Stream.parquet(path, name="flows", time="tss")
    with pytest.raises(StreamError, match=r"no column 'zzz'; columns with a timestamp are: ts, seen"):
        Stream.parquet(path, name="flows", time="zzz")
    with pytest.raises(StreamError, match=r"'bytes' of stream 'flows' is int64, not a timestamp"):
        Stream.parquet(path, name="flows", time="bytes")


def test_wrong_streams_are_errors(flows: Stream, tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="a stream needs a name"):
        Stream.parquet(str(flows.data), name=" ", time="ts")
    with pytest.raises(StreamError, match="unknown unit 'secs'"):
        Stream.parquet(str(flows.data), name="flows", time="ts", lateness="30 secs")
    with pytest.raises(StreamError, match="no file or folder"):
        Stream.parquet(str(tmp_path / "missing"), name="flows", time="ts")
    (tmp_path / "none").mkdir()
    with pytest.raises(StreamError, match="no Parquet files"):
        Stream.parquet(str(tmp_path / "none"), name="flows", time="ts")
    (tmp_path / "broken.parquet").write_text("not parquet")
    with pytest.raises(StreamError, match="cannot be read as Parquet"):
        Stream.parquet(str(tmp_path / "broken.parquet"), name="flows", time="ts")
