"""Documents do not drift: links lead somewhere, and the README's blocks run."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace import Stream, Workload
from headrace.errors import WorkloadError
from headrace.query import Source

ROOT = Path(__file__).parents[1]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("examples/*/*.md")])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)\)", document.read_text())
    missing = [
        link
        for link in links
        if not link.startswith("https://") and not (document.parent / link).resolve().exists()
    ]
    assert not missing


def test_the_first_screen_has_the_two_commands() -> None:
    first_screen = "\n".join((ROOT / "README.md").read_text().splitlines()[:25])
    block = re.search(r"```console\n(.*?)```", first_screen, re.DOTALL)
    assert block is not None
    assert [line.split("#")[0].strip() for line in block[1].splitlines()] == ["make demo", "make test"]


def blocks(language: str, document: str = "README.md") -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / document).read_text(), re.DOTALL)


def headrace(line: str) -> str:
    """What a command of a document prints."""
    words = shlex.split(line)
    assert words[0] == "headrace"
    program = "from headrace.cli.app import main; main()"
    run = subprocess.run([sys.executable, "-c", program, *words[1:]], capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_documented_shapes_are_those_that_the_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands, shapes = blocks("console", "docs/generators.md"), blocks("text", "docs/generators.md")
    assert len(commands) == len(shapes) == 3
    for command, shape in zip(commands, shapes, strict=True):
        assert headrace(command) == shape


@pytest.mark.spark
def test_the_readmes_blocks_run(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The commands as written, in an empty folder, and then the Python on the stream that they made."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    commands = [line for block in blocks("console")[1:] for line in block.splitlines()]
    assert [shlex.split(line)[:2] for line in commands] == [
        ["headrace", "generate"],
        ["headrace", "plan"],
        ["headrace", "run"],
        ["headrace", "stream"],
        ["headrace", "top"],
    ]
    for line in commands:
        headrace(line)
    assert len(list((tmp_path / "answers").iterdir())) == 22
    assert (tmp_path / "run" / "commits").is_dir()
    names: dict[str, Any] = {"__name__": "readme"}
    for python in blocks("python"):
        exec(compile(python, "README.md", "exec"), names)
    printed = capsys.readouterr().out
    assert "octets_per_packet" in printed
    assert sorted(names["live"].queries) == ["all", "by_src"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["by_src", "web"]


def test_the_errors_that_the_readme_shows_are_those_that_users_see(tmp_path: Path) -> None:
    columns = {"ts": pa.array([], pa.timestamp("us")), "srcaddr": pa.array([], pa.string()), "octets": [1][:0]}
    pq.write_table(pa.table(columns), tmp_path / "flows.parquet")
    queries = {
        "web": Source("-- web traffic\nSELECT sum(octetts) FROM flows", "queries/web.sql"),
        "top": Source(
            "SELECT srcaddr, count(*) FROM flows GROUP BY window(ts, '5 mins'), srcaddr", "queries/top.sql"
        ),
    }
    with pytest.raises(WorkloadError) as caught:
        Workload(queries, Stream.parquet(str(tmp_path / "flows.parquet"), name="flows", time="ts"))
    (text,) = blocks("text")
    assert text == f"error: {caught.value}\n"
