"""Constants that explain measured times, and the file that they are kept in."""

from __future__ import annotations

import dataclasses
import json
import random
from pathlib import Path

import pytest

from headrace.bench.calibrate import Point, calibrate, fit, predicted
from headrace.cli.app import main
from headrace.errors import SetupError
from headrace.plan.costs import Costs, load_costs, save_costs

KNOWN = Costs(10, 2, 5, 20, 1, 4, 30, 3, 6, 500)


def points(costs: Costs) -> list[Point]:
    """Kernels that take exactly as long as the constants say."""
    names = [field.name for field in dataclasses.fields(Costs)]
    draw = random.Random(1)
    counts = [{name: draw.uniform(1, 1000) for name in names} for _ in range(40)]
    return [Point(own, predicted(costs, Point(own, 1.0))) for own in counts]


def test_constants_are_found_again() -> None:
    found = dataclasses.asdict(fit(points(KNOWN)))
    assert found == pytest.approx(dataclasses.asdict(KNOWN), abs=0.05)


def test_no_constant_is_below_zero() -> None:
    odd = [Point({"record": 10.0, "record_key": 10.0}, 100.0), Point({"record": 10.0}, 200.0)]
    assert min(dataclasses.asdict(fit(odd)).values()) >= 0


def test_kernels_are_measured() -> None:
    found = calibrate(records=20_000)
    assert {name for point in found.points for name in point.counts} == dataclasses.asdict(Costs()).keys()
    assert found.costs.record > 0
    assert found.costs.shipped > 0
    assert len(found.errors) == len(found.points)


def test_constants_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_COSTS", str(tmp_path / "new" / "costs.json"))
    assert load_costs() == Costs()
    file = save_costs(KNOWN, {"date": "today"})
    assert load_costs() == KNOWN
    assert json.loads(file.read_text())["date"] == "today"


@pytest.mark.parametrize(
    "text", ["", "{}", '{"costs": {"speed": 1}}', '{"costs": {"record": "slow"}}', '{"costs": 3}']
)
def test_a_file_without_constants_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    file = tmp_path / "costs.json"
    file.write_text(text)
    monkeypatch.setenv("HEADRACE_COSTS", str(file))
    with pytest.raises(SetupError, match="headrace calibrate"):
        load_costs()


def test_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "costs.json"
    monkeypatch.setenv("HEADRACE_COSTS", str(file))
    with pytest.raises(SystemExit) as exit_:
        main(["calibrate"])
    assert not exit_.value.code
    assert "the fit is off by" in capsys.readouterr().out
    assert load_costs() != Costs()
