"""Kill a run in every way and compare its answers with an undisturbed one's: `python -m tools.crash`.

At every named point between two writes, at random moments, in its workers, and with a full disk; queries come and
go meanwhile. Every other run has queries with the same windows, of which most are answered at once.
"""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from tests.harness.crash import (
    FULL_DISK,
    GUESTS,
    QUERIES,
    SAME,
    Rows,
    answers,
    guests_windows,
    kill_later,
    kill_workers_later,
    make_files,
    run_once,
    until_done,
)

from headrace.runtime.live.points import POINTS

console = Console(soft_wrap=True, highlight=False)
_RUN_S = 8.0
"""About how long an undisturbed run works."""


def main(
    kills: Annotated[int, typer.Option(min=0, help="random moments at which the driver is killed")] = 50,
    seed: Annotated[int, typer.Option(help="of the random moments")] = 1,
) -> None:
    """Crash, start again, compare."""
    with tempfile.TemporaryDirectory(prefix="headrace-crash-") as place:
        folder = Path(place)
        make_files(folder / "files")
        calm = {alike: _undisturbed(folder, alike) for alike in (False, True)}
        wrong = windows = 0
        for number, (name, disturb) in enumerate(_disturbances(kills, random.Random(seed))):
            alike = number % 2 == 1
            expected, place = calm[alike], _ended(folder, disturb, alike)
            same = answers(place) == {query: expected[query] for query in QUERIES}
            own = guests_windows(place, expected)
            wrong += not same
            windows += own
            console.print(
                f"{name}{', same windows' if alike else ''}: "
                f"{'the same answers' if same else 'DIFFERENT ANSWERS'}, {own} windows of guests"
            )
    console.print(f"{wrong} of the disturbed runs gave other answers; {windows} windows of guests were all right")
    if wrong:
        raise typer.Exit(1)


def _undisturbed(folder: Path, alike: bool) -> dict[str, Rows]:
    found = answers(_ended(folder, partial(run_once, guests="all along"), alike), QUERIES | GUESTS)
    console.print(f"undisturbed: {', '.join(f'{name} {len(rows)} rows' for name, rows in found.items())}")
    return found


def _ended(folder: Path, disturb: Callable[[Path], object], alike: bool) -> Path:
    """The folder of a run that was disturbed and came to its end; queries may have windows `alike`."""
    place = folder / "case"
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    shutil.copytree(folder / "files", place / "in")
    if alike:
        (place / SAME).touch()
    disturb(place)
    until_done(place)
    return place


def _disturbances(kills: int, rng: random.Random) -> Iterator[tuple[str, Callable[[Path], object]]]:
    for point in POINTS:
        for count in (1, 3):
            yield f"at '{point}', time {count}", partial(run_once, point=f"{point}:{count}")
    for _ in range(kills):
        seconds = rng.random() * _RUN_S
        yield f"after {seconds:.2f} s", _killed(partial(kill_later, seconds=seconds))
    for _ in range(max(1, kills // 10)):
        seconds = rng.random() * _RUN_S
        yield f"workers after {seconds:.2f} s", _killed(partial(kill_workers_later, seconds=seconds))
    yield "with a full disk", _full_disk


def _killed(disturb: Callable[[int], None]) -> Callable[[Path], None]:
    def run(place: Path) -> None:
        run_once(place, disturb=disturb)

    return run


def _full_disk(place: Path) -> None:
    os.environ[FULL_DISK] = "1"
    try:
        ended = run_once(place)
    finally:
        del os.environ[FULL_DISK]
    if ended.code == 0:
        raise AssertionError("the disk was not full")


if __name__ == "__main__":
    typer.run(main)
