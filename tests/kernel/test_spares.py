"""Files that are written over: by one at a time, and never under the eyes of readers."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from headrace.kernel.shelf import Files, Kept, Reader
from headrace.kernel.spares import Spares, open_shared
from tests.kernel.test_shelf import read

pytestmark = pytest.mark.skipif(not Spares.possible(), reason="files cannot be locked on this system")

SOME = [pa.array(range(1000))]
OTHERS = [pa.array(["x", None, "z"])]


@pytest.fixture
def spares(tmp_path: Path) -> str:
    return str(tmp_path / "spares")


def kept(folder: Path, spares: str, columns: list[pa.Array]) -> Kept:
    shelf = Files(folder.as_uri(), spares=spares)
    (place,) = shelf.keep(columns, [(0, len(columns[0]))])
    shelf.close()
    return place


def let_go(place: Kept, spares: str, most_bytes: int = 1 << 30) -> Path:
    """Have a file be a spare; gives its path until then."""
    assert place.place is not None
    Spares(spares).put([place.place], most_bytes)
    return Path(place.place)


def files_in(folder: str) -> list[Path]:
    return sorted(Path(folder).iterdir())


def test_a_spare_is_written_over(tmp_path: Path, spares: str) -> None:
    before = kept(tmp_path / "run", spares, SOME)
    inode = Path(before.place or "").stat().st_ino
    assert not let_go(before, spares).exists()
    place = kept(tmp_path / "next", spares, OTHERS)
    assert Path(place.place or "").stat().st_ino == inode
    assert read(Reader((tmp_path / "next").as_uri(), spares=True), place) == (OTHERS, 3)
    assert not files_in(spares)


def test_what_is_released_cannot_be_read(tmp_path: Path, spares: str) -> None:
    place = kept(tmp_path, spares, SOME)
    let_go(place, spares)
    with pytest.raises(FileNotFoundError):
        Reader(tmp_path.as_uri(), spares=True).read(place)


def test_a_file_that_is_being_read_is_no_spare_yet(tmp_path: Path, spares: str) -> None:
    place = kept(tmp_path / "run", spares, SOME)
    reader = Reader((tmp_path / "run").as_uri(), spares=True)
    columns, _ = read(reader, place)
    let_go(place, spares)
    for number in range(2):
        kept(tmp_path / f"next-{number}", spares, OTHERS)
    assert columns == SOME
    assert not files_in(spares)


def test_a_spare_that_is_being_written_cannot_be_read(tmp_path: Path, spares: str) -> None:
    let_go(kept(tmp_path, spares, SOME), spares)
    path = str(tmp_path / "taken")
    file = Spares(spares).take(path)
    assert file is not None
    with pytest.raises(FileNotFoundError, match="released"):
        open_shared(path)
    file.close()
    open_shared(path).close()


def test_no_two_take_the_same_spare(tmp_path: Path, spares: str) -> None:
    let_go(kept(tmp_path, spares, SOME), spares)
    taken = [Spares(spares).take(str(tmp_path / name)) for name in ("a", "b")]
    assert [file is not None for file in taken] == [True, False]
    for file in filter(None, taken):
        file.close()


def test_spares_are_not_too_large_together(tmp_path: Path, spares: str) -> None:
    places = [kept(tmp_path / str(number), spares, SOME) for number in range(3)]
    size = Path(places[0].place or "").stat().st_size
    for place in places:
        let_go(place, spares, most_bytes=2 * size)
    assert len(files_in(spares)) == 2


def test_what_has_been_let_go_is_let_go_once(tmp_path: Path, spares: str) -> None:
    place = kept(tmp_path, spares, SOME)
    for _ in range(2):
        let_go(place, spares)
    assert len(files_in(spares)) == 1


def test_a_large_file_is_followed_by_another(tmp_path: Path, spares: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.kernel.shelf._FILE_BYTES", 1000)
    shelf = Files(tmp_path.as_uri(), spares=spares)
    places = [place for _ in range(3) for place in shelf.keep(SOME, [(0, 1000)])]
    shelf.close()
    assert len({place.place for place in places}) == 3
    reader = Reader(tmp_path.as_uri(), spares=True)
    assert all(read(reader, place) == (SOME, 1000) for place in places)
