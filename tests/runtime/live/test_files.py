"""Folders of a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from headrace.runtime.live.files import Folder


@pytest.mark.parametrize("form", ["{}", "file:{}", "file://{}"])
def test_a_folder_is_the_same_however_it_is_written(tmp_path: Path, form: str) -> None:
    folder = Folder(form.format(tmp_path)) / "run"
    folder.put("a", b"x")
    assert (tmp_path / "run" / "a").read_bytes() == b"x"
    assert folder.local == tmp_path / "run"
    assert folder.name == "run"
