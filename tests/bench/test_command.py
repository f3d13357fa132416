"""`headrace bench` as a script sees it: what it refuses, and a whole small run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from headrace.bench import contest
from headrace.cli.app import main


def bench(*words: str) -> int:
    with pytest.raises(SystemExit) as done:
        main(["bench", *words])
    assert isinstance(done.value.code, int)
    return done.value.code


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["netflw"], "did you mean 'netflow'?"),
        (["netflow", "--engines", "duckdb,pandas"], "'pandas' is none of"),
        (["strem"], "did you mean 'stream'?"),
        (["netflow", "--engines", ","], "at least one engine"),
        (["stream", "--engines", "headrace, pandas"], "'pandas' is none of headrace, spark"),
        (["stream", "--engines", ","], "at least one engine"),
        (["trades", "--profile", "backbone"], "only netflow has profiles"),
        (["netflow", "--data", "x", "--rows", "5"], "taken whole"),
        (["netflow", "--data", "no/such/folder"], "there are no Parquet files"),
        (["flights"], "give their Parquet with --data"),
    ],
)
def test_wrong_words(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert bench(*words) == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


def test_missing_extra(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(contest, "find_spec", lambda name: None if name in ("duckdb", "matplotlib") else name)
    assert bench("netflow", "--plot", "x.png") == 3
    shown = capsys.readouterr().err
    assert "the benchmark needs duckdb, matplotlib; get it with: pip install 'headrace[bench]'" in shown


@pytest.mark.parametrize("workload", ["netflow", "stream", "sharing"])
def test_all_kinds_need_the_extra(
    workload: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(contest, "find_spec", lambda name: None if name == "psutil" else name)
    assert bench(workload) == 3
    assert "the benchmark needs psutil" in capsys.readouterr().err


def test_engines_without_spark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "bench.json"
    words = "--rows 2000 --queries 23 --rounds 1 --engines polars,duckdb --profile enterprise".split()
    assert bench("netflow", *words, "--json", str(file)) == 0
    shown = capsys.readouterr()
    assert "netflow enterprise: 2,000 records, 23 queries" in shown.out
    assert "round 1 of 1: duckdb (grouping_sets)" in shown.err
    found = json.loads(file.read_text())
    assert (found["workload"], found["profile"], found["ratios"]) == ("netflow", "enterprise", {})
