"""A run that is killed goes on as if nothing had happened; `python -m tools.crash` does it at every point."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.harness.crash import GUESTS, QUERIES, SAME, answers, guests_windows, make_files, run_once, until_done

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("same_windows", [False, True])
def test_answers_after_crashes(tmp_path: Path, same_windows: bool) -> None:
    """Killed after partials were written, after the commit, after the delivery and after a query came, in turn."""
    make_files(tmp_path / "files")
    calm, crashed = tmp_path / "calm", tmp_path / "crashed"
    for place in (calm, crashed):
        place.mkdir()
        shutil.copytree(tmp_path / "files", place / "in")
        if same_windows:
            (place / SAME).touch()
    ended = run_once(calm, guests="all along")
    assert ended.code == 0, ended.said[-2000:]
    if same_windows:
        assert int(ended.said.rpartition("rows given at once:")[2]) > 100
    expected = answers(calm, QUERIES | GUESTS)
    assert all(expected.values())
    for point in ("partials written:2", "version written:1", "committed:1", "delivered:2"):
        ended = run_once(crashed, point)
        assert ended.code == -9, ended.said[-2000:]
    until_done(crashed)
    assert answers(crashed) == {query: expected[query] for query in QUERIES}
    assert guests_windows(crashed, expected)
