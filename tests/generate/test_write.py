"""The folder: the same files whoever writes them, no half files, nothing removed that is not ours."""

import itertools
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headrace.errors import GenerateError
from headrace.generate import (
    FlowOptions,
    TradeOptions,
    chunks,
    flow_chunks,
    generate_flows,
    generate_trades,
    measure_flows,
    trade_chunks,
)
from headrace.generate.write import CHUNKS_PER_FILE, Layout, Task, write_stream

SCHEMA = pa.schema({"n": pa.int64()})
LAYOUT = Layout(SCHEMA, delta=("n",))


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHUNK_ROWS", 2000)


def counting_tasks(count: int) -> Iterator[Task]:
    return (lambda n=n: pa.table({"n": [n]}, schema=SCHEMA) for n in range(count))  # type: ignore[misc]


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("kind", ["backbone", "enterprise", "trades"])
def test_the_number_of_workers_changes_nothing(tmp_path: Path, kind: str) -> None:
    for workers in (1, 3):
        folder = tmp_path / str(workers)
        if kind == "trades":
            made = generate_trades(TradeOptions(25_500, nulls=0.1, duplicates=0.1), folder, workers=workers)
        else:
            options = FlowOptions(25_500, profile=kind, late=0.1, text_addresses=True)  # type: ignore[arg-type]
            made = generate_flows(options, folder, workers=workers)
        assert (made.rows, made.files) == (25_500, 4)
    assert contents(tmp_path / "1") == contents(tmp_path / "3")


@pytest.mark.usefixtures("small_chunks")
def test_files_hold_the_chunks_in_order_with_time_statistics(tmp_path: Path) -> None:
    options = FlowOptions(25_500)
    made = generate_flows(options, tmp_path / "new" / "folder", workers=2)
    paths = sorted(made.folder.iterdir())
    assert [path.name for path in paths] == [f"part-{n:05d}.parquet" for n in range(4)]
    assert made.bytes == sum(path.stat().st_size for path in paths)
    assert pq.read_table(made.folder).equals(pa.concat_tables(flow_chunks(options)))
    footers = [pq.ParquetFile(path).metadata for path in paths]
    groups = [footer.row_group(n) for footer in footers for n in range(footer.num_row_groups)]
    assert [group.num_rows for group in groups] == [2000] * 12 + [1500]
    spans = [group.column(0).statistics for group in groups]
    assert all(one.max <= other.min for one, other in itertools.pairwise(spans))


@pytest.mark.usefixtures("small_chunks")
def test_text_reads_back_as_text(tmp_path: Path) -> None:
    options = TradeOptions(5000)
    generate_trades(options, tmp_path)
    read = pq.read_table(tmp_path)
    made = pa.concat_tables(trade_chunks(options))
    assert read.schema.field("symbol").type == pa.string()
    assert read.equals(made.cast(read.schema))


def test_progress_is_told_in_the_callers_thread(tmp_path: Path) -> None:
    told: list[int] = []
    threads: set[int] = set()

    def progress(rows: int) -> None:
        told.append(rows)
        threads.add(threading.get_ident())

    write_stream(counting_tasks(11), LAYOUT, tmp_path, workers=2, progress=progress)
    assert told == [1] * 11
    assert threads == {threading.get_ident()}


def test_only_a_few_chunks_are_under_way_at_a_time(tmp_path: Path) -> None:
    taken = told = most = 0

    def tasks() -> Iterator[Task]:
        nonlocal taken
        for task in counting_tasks(400):
            taken += 1
            yield task

    def progress(rows: int) -> None:
        nonlocal told, most
        told += rows
        most = max(most, taken - told)

    write_stream(tasks(), LAYOUT, tmp_path, workers=2, progress=progress)
    assert told == 400
    assert most <= 2 * 2 * CHUNKS_PER_FILE


def test_a_failure_leaves_nothing_behind(tmp_path: Path) -> None:
    def fail() -> pa.Table:
        raise RuntimeError("disk on fire")

    def tasks() -> Iterator[Task]:
        yield from counting_tasks(2 * CHUNKS_PER_FILE + 1)
        yield fail
        yield from counting_tasks(100)

    static = {"table": pa.table({"n": [1]})}
    with pytest.raises(RuntimeError, match="disk on fire"):
        write_stream(tasks(), LAYOUT, tmp_path, static=static, workers=2)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupt_stops_the_workers_and_leaves_nothing(tmp_path: Path) -> None:
    made = 0

    def make() -> pa.Table:
        nonlocal made
        made += 1
        time.sleep(0.05)
        return pa.table({"n": [made]}, schema=SCHEMA)

    def progress(_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_stream(iter([make] * 100), LAYOUT, tmp_path, workers=2, progress=progress)
    assert made < 2 * 2 * CHUNKS_PER_FILE  # which is what was handed out
    assert list(tmp_path.iterdir()) == []
    assert not [thread for thread in threading.enumerate() if "ThreadPool" in thread.name]


def test_a_folder_in_use_is_refused_unless_told_otherwise(tmp_path: Path) -> None:
    generate_trades(TradeOptions(5000), tmp_path)
    before = contents(tmp_path)
    with pytest.raises(GenerateError, match="is not empty; give a new folder, or overwrite=True"):
        generate_flows(FlowOptions(10), tmp_path)
    assert contents(tmp_path) == before
    generate_flows(FlowOptions(10), tmp_path, overwrite=True)
    assert list(contents(tmp_path)) == ["part-00000.parquet"]
    assert not (tmp_path / "_static").exists()


@pytest.mark.parametrize("name", ["notes.txt", "part-00000-4f1c.snappy.parquet", "_static/mine.csv"])
def test_overwrite_removes_no_file_of_others(tmp_path: Path, name: str) -> None:
    generate_flows(FlowOptions(10), tmp_path)
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine")
    before = contents(tmp_path)
    with pytest.raises(GenerateError, match=f"holds '{Path(name).name}', which no generator wrote"):
        generate_flows(FlowOptions(10), tmp_path, overwrite=True)
    assert contents(tmp_path) == before


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "flows").write_text("")
    with pytest.raises(GenerateError, match="is a file; give a folder"):
        generate_flows(FlowOptions(10), tmp_path / "flows")


def test_workers_must_be_some(tmp_path: Path) -> None:
    with pytest.raises(GenerateError, match="workers must be a whole number from 1 up, not 0"):
        generate_flows(FlowOptions(10), tmp_path, workers=0)


def test_an_empty_folder_has_no_shape(tmp_path: Path) -> None:
    with pytest.raises(GenerateError, match="holds no part-"):
        measure_flows(tmp_path)
