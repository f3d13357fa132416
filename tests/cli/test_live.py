"""`headrace stream` and what one does with its run, as a user types it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from headrace.cli.app import main
from headrace.runtime.live.files import Folder
from headrace.runtime.live.log import Commit, PartialLog

QUERY = "SELECT window.start AS at, protocol, count(*) AS n FROM flows GROUP BY window(ts, '1 second'), protocol"


def headrace(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "headrace", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)


@pytest.mark.spark
def test_a_stream_from_the_command_line(tmp_path: Path) -> None:
    feed, queries, run = (tmp_path / name for name in ("feed", "queries", "run"))
    queries.mkdir()
    (queries / "protocols.sql").write_text(QUERY)
    made = headrace("generate", "flows", "--rows", "60000", "--profile", "enterprise", "--out", str(feed))
    assert made.returncode == 0, made.stderr
    options = ["--stream", str(feed), "--time", "ts", "--checkpoint", str(run), "--out", str(tmp_path / "windows")]
    streamed = headrace("stream", str(queries), *options, "--trigger", "available now", "--retain", "1 day")
    assert streamed.returncode == 0, streamed.stderr
    assert "60,000 records in 1 micro-batches" in streamed.stderr
    rows = pq.read_table(tmp_path / "windows" / "protocols").to_pylist()
    records = pq.read_table(feed, columns=["ts"])["ts"].to_pylist()
    latest = max(records).replace(microsecond=0)
    assert sum(row["n"] for row in rows) == sum(moment < latest for moment in records)
    verified = headrace("log", "verify", str(run))
    assert verified.returncode == 0, verified.stderr
    assert "all as they were written" in verified.stderr
    shown = headrace("top", str(run), "--once")
    assert "60,000 records" in shown.stdout
    assert "protocols" in shown.stdout
    listed = headrace("ctl", "list", str(run))
    assert listed.stdout.startswith("protocols\tSELECT window.start")
    inspected = headrace("log", "inspect", str(run), "--json")
    assert json.loads(inspected.stdout)["counts"]["records"] == 60_000
    assert "60,000 records" in headrace("log", "inspect", str(run)).stdout
    partial = next((run / "partials").iterdir())
    os.truncate(partial, 10)
    damaged = headrace("log", "verify", str(run))
    assert damaged.returncode == 1
    assert partial.name in damaged.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["top", "nowhere"], "there is no folder 'nowhere'"),
        (["ctl", "remove", "nowhere", "q"], "there is no folder 'nowhere'"),
        (["log", "inspect", "."], "has no commit yet"),
        (["ctl", "add", ".", "q", "SELECT 1"], "there is no run with the checkpoint"),
        (["top", "."], "has not finished a micro-batch yet"),
    ],
)
def test_what_is_not_there(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 1
    assert message in capsys.readouterr().err


def test_verify_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    PartialLog(Folder(str(tmp_path))).commit(Commit("run", 3))
    file = tmp_path / "commits" / "000000000003.json"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(SystemExit) as ended:
        main(["log", "verify", str(tmp_path)])
    assert ended.value.code == 1
    assert "is damaged" in capsys.readouterr().err
