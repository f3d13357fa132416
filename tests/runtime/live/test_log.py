"""The partial log: commits come back as they were, what is damaged is found, and nothing is left behind."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.errors import LogError
from headrace.kernel.shelf import Files
from headrace.runtime.live.files import Folder
from headrace.runtime.live.log import FORMAT, Commit, Counts, Entry, Given, PartialLog, Standing


def commit_of(batch: int, *entries: Entry) -> Commit:
    return Commit(
        "run",
        batch,
        version=2,
        buckets=8,
        latest_us=123,
        watermark_us=100,
        queries={"q": Standing(-(2**62), 100, 1)},
        whole_from={"ab": 7},
        entries=entries,
        given=(Given("q", "q.parquet", 3, 0, 60),),
        counts=Counts(10, 1, 2, {"q": 3}),
    )


def put_partial(log: PartialLog, values: list[int]) -> Entry:
    shelf = Files(log.partials.make().uri, checked=True)
    (kept,) = shelf.keep([pa.array(values)], [(0, len(values))])
    shelf.close()
    assert kept.place is not None
    assert kept.crc is not None
    return Entry(1, "ab", 5, 0, len(values), Path(kept.place).name, kept.start, kept.size, kept.crc)


@pytest.fixture
def log(tmp_path: Path) -> PartialLog:
    return PartialLog(Folder(str(tmp_path)))


def test_a_commit_comes_back_as_it_was(log: PartialLog) -> None:
    assert log.latest() is None
    for batch in range(12):
        log.commit(commit_of(batch, put_partial(log, [1, 2])))
    found = log.latest()
    assert found is not None
    assert found.batch == 11
    assert found == commit_of(11, *found.entries)


def test_a_commit_whose_writer_ended_does_not_count(log: PartialLog, tmp_path: Path) -> None:
    log.commit(commit_of(3))
    (tmp_path / "commits" / ".000000000004.json").write_bytes(b"{half")
    found = log.recover()
    assert found is not None
    assert found.batch == 3
    assert [file.name for file in (tmp_path / "commits").iterdir()] == ["000000000003.json"]


def test_partials_without_a_commit_are_removed(log: PartialLog, tmp_path: Path) -> None:
    kept, orphan = put_partial(log, [1]), put_partial(log, [2])
    log.commit(commit_of(0, kept))
    log.recover()
    assert [file.name for file in (tmp_path / "partials").iterdir()] == [kept.file]
    assert orphan.file != kept.file


def test_files_that_no_commit_needs_are_removed(log: PartialLog, tmp_path: Path) -> None:
    old, new = put_partial(log, [1]), put_partial(log, [2])
    for batch in range(9):
        log.commit(commit_of(batch, old))
    after = commit_of(9, new)
    log.commit(after)
    log.tidy(after, {old.file, new.file})
    assert [file.name for file in (tmp_path / "partials").iterdir()] == [new.file]
    assert len(list((tmp_path / "commits").iterdir())) < 9


def test_damage_is_found(log: PartialLog, tmp_path: Path) -> None:
    entry = put_partial(log, [1, 2, 3])
    log.commit(commit_of(0, entry))
    assert list(log.verify()) == []
    file = tmp_path / "partials" / entry.file
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(bytes(data))
    (problem,) = log.verify()
    assert "checksum" in problem
    file.unlink()
    (problem,) = log.verify()
    assert entry.file in problem


def test_a_damaged_commit_is_an_error(log: PartialLog, tmp_path: Path) -> None:
    log.commit(commit_of(0))
    file = tmp_path / "commits" / "000000000000.json"
    file.write_bytes(file.read_bytes().replace(b"123", b"124"))
    with pytest.raises(LogError, match="checksum"):
        log.latest()
    file.write_bytes(b"nothing")
    with pytest.raises(LogError, match="damaged"):
        log.latest()


def test_another_format_is_refused(log: PartialLog, tmp_path: Path) -> None:
    log.commit(commit_of(0))
    file = tmp_path / "commits" / "000000000000.json"
    file.write_bytes(file.read_bytes().replace(b'"format": %d' % FORMAT, b'"format": %d' % (FORMAT + 1)))
    with pytest.raises(LogError, match=f"has format {FORMAT + 1}.* reads format {FORMAT}"):
        log.latest()


def test_a_file_that_is_put_again_replaces_itself(tmp_path: Path) -> None:
    source, target = Folder(str(tmp_path / "a")), Folder(str(tmp_path / "b"))
    source.put("x", b"1")
    for _ in range(2):
        target.copy(source, "x", "y")
    assert target.names() == ["y"]
    assert [file.name for file in (tmp_path / "b").iterdir()] == ["y"]
    assert target.read("y") == b"1"
