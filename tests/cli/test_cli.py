"""The command line as a script sees it: output, messages, exit codes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from headrace.cli.app import app, main

RIGHT = "SELECT protocol, sum(octets) AS octets FROM flows GROUP BY protocol ORDER BY protocol"


def headrace(*words: str, code: int = 0) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from headrace.cli.app import main; main()", *words]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert run.returncode == code, run.stderr
    return run


def test_commands_do_without_the_extra_for_benchmarks() -> None:
    program = "import sys; sys.modules['psutil'] = None; from headrace.cli.app import main; main(['--help'])"
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True)


@pytest.fixture(scope="module")
def flows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / "flows"
    with pytest.raises(SystemExit) as done:
        main(["generate", "flows", "--rows", "5000", "--profile", "enterprise", "--out", str(folder)])
    assert done.value.code == 0
    return folder


@pytest.fixture
def queries(tmp_path: Path) -> Path:
    folder = tmp_path / "queries"
    folder.mkdir()
    (folder / "by_protocol.sql").write_text(RIGHT)
    (folder / "ranked.sql").write_text("SELECT protocol, rank() OVER (ORDER BY octets) AS r FROM flows LIMIT 3")
    return folder


@pytest.mark.parametrize(
    "command",
    [[], ["run"], ["plan"], ["bench"], ["calibrate"], ["generate"], ["generate", "flows"], ["generate", "trades"]],
)
def test_help_has_an_example(command: list[str]) -> None:
    shown = CliRunner().invoke(app, [*command, "--help"])
    assert shown.exit_code == 0
    if command not in ([], ["generate"]):
        assert "Example: headrace " + " ".join(command) in " ".join(shown.output.split())


def test_plan_shows_what_can_be_shared(queries: Path, flows: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["plan", str(queries), "--stream", str(flows), "--time", "ts"])
    assert done.value.code == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "1 of 2 queries can be shared" in shown
    assert "window function" in shown


@pytest.mark.spark
def test_searches_side_by_side(queries: Path, flows: Path) -> None:
    shown = headrace("plan", str(queries), "--stream", str(flows), "--time", "ts", "--compare").stdout
    assert all(search in shown for search in ("none", "one", "greedy", "randomized (default)"))
    assert "at least: a group for every record" in shown


@pytest.mark.spark
def test_the_tree_of_a_search(queries: Path, flows: Path, tmp_path: Path) -> None:
    words = ["plan", str(queries), "--stream", str(flows), "--time", "ts", "--tree", "--search", "none"]
    shown = headrace(*words).stdout
    assert "s without sharing" in shown
    assert "rows in" in shown
    picture = tmp_path / "plan.svg"
    estimate = json.loads(headrace(*words, "--json", "--picture", str(picture)).stdout)["estimate"]
    assert picture.read_text().startswith("<svg")
    assert estimate["tree"] == estimate["unshared"] >= estimate["least"] > 0


def test_an_unknown_search_is_refused(queries: Path) -> None:
    assert "did you mean 'greedy'" in headrace("plan", str(queries), "--search", "gredy", code=2).stderr


def test_a_comparison_needs_a_stream(queries: Path) -> None:
    assert "add --stream" in headrace("plan", str(queries), "--compare", code=2).stderr


def test_plan_as_json_needs_no_stream(queries: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["plan", str(queries), "--json"])
    by_protocol, ranked = json.loads(capsys.readouterr().out)
    assert by_protocol["keys"] == ["protocol"]
    assert by_protocol["aggregates"] == [{"sql": "sum(octets)", "kind": "distributive"}]
    assert "a window function (OVER)" in ranked["obstacles"]


def test_wrong_queries_exit_with_2_and_without_a_traceback(queries: Path, flows: Path) -> None:
    (queries / "wrong.sql").write_text("SELECT sum(octetts) FROM flows")
    (queries / "worse.sql").write_text("SELECT sum(octets FROM flows")
    run = headrace("run", str(queries), "--stream", str(flows), "--time", "ts", code=2)
    assert "2 problems in the workload" in run.stderr
    assert "wrong.sql:1:12: unknown column 'octetts'" in run.stderr
    assert "did you mean 'octets'?" in run.stderr
    assert "Traceback" not in run.stderr
    run = headrace("run", str(queries), "--stream", str(flows), "--time", "ts", "--debug", code=2)
    assert "Traceback" in run.stderr


def test_a_time_that_is_not_clear_is_asked_for(queries: Path, flows: Path) -> None:
    run = headrace("plan", str(queries), "--stream", str(flows), code=2)
    assert "with --time; timestamp columns are: ts, first, last" in " ".join(run.stderr.split())


def test_wrong_options_exit_with_2(queries: Path, flows: Path, tmp_path: Path) -> None:
    headrace("run", str(queries), code=2)
    run = headrace("run", str(queries), "--stream", str(flows), "--time", "ts", "--format", "xml", code=2)
    assert "none of parquet, csv, json" in run.stderr
    run = headrace("generate", "flows", "--profile", "backbon", "--out", str(tmp_path / "x"), code=1)
    assert "did you mean 'backbone'" in run.stderr


@pytest.mark.spark
def test_run_shows_and_writes_answers(queries: Path, flows: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["run", str(queries), "--stream", str(flows), "--time", "ts", "--show", "2", "--out", str(out)]
    run = headrace(*words)
    assert "by_protocol" in run.stdout
    assert "octets" in run.stdout
    assert "queries by one shared pass and 1 by plain Spark beside it" in run.stderr
    protocols = pq.read_table(out / "by_protocol")["protocol"].to_pylist()
    assert protocols == sorted(protocols)
    assert pq.read_table(out / "ranked").num_rows == 3
    assert "is there already" in headrace(*words, code=1).stderr
    headrace(*words, "--overwrite", "--format", "csv", "--show", "0")
    (csv,) = (out / "by_protocol").glob("*.csv")
    assert csv.read_text().startswith("protocol,octets\n")


@pytest.mark.spark
def test_a_query_that_fails_exits_with_1(queries: Path, flows: Path, tmp_path: Path) -> None:
    (queries / "fails.sql").write_text("SELECT sum(octets / (packets - packets)) AS x FROM flows")
    out = tmp_path / "out"
    run = headrace("run", str(queries), "--stream", str(flows), "--time", "ts", "--out", str(out), code=1)
    assert "query 'fails' failed" in run.stderr
    assert "Traceback" not in run.stderr
    assert not out.exists()
