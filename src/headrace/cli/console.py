"""What the commands share: where they print, how they show that something is going on, how they fail."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import IntEnum
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from headrace.errors import HeadraceError, QueryError, SetupError, StreamError, WorkloadError

# Where there is no terminal, rich would take it for one of 80 columns.
out = Console(highlight=False, width=None if sys.stdout.isatty() else 160)
"""Answers go to standard output ..."""
err = Console(stderr=True, highlight=False, soft_wrap=True)
"""... and everything that is said about them to standard error."""


_SECONDS_BETWEEN_LINES = 5


class Exit(IntEnum):
    """Exit codes that scripts can rely on (0 is success; typer itself exits with 2 on wrong options)."""

    FAILED = 1
    WRONG_INPUT = 2
    SETUP = 3


def _set_debug(value: bool) -> bool:
    if value:
        os.environ["HEADRACE_DEBUG"] = "1"
    return value


Debug = Annotated[
    bool,
    typer.Option("--debug", callback=_set_debug, help="Show the traceback when something fails.", is_eager=True),
]


def exit_code(error: HeadraceError) -> Exit:
    """The code of a failure: scripts can tell wrong input from a run that failed."""
    if isinstance(error, (QueryError, WorkloadError, StreamError)):
        return Exit.WRONG_INPUT
    return Exit.SETUP if isinstance(error, SetupError) else Exit.FAILED


def report(error: HeadraceError) -> None:
    """Say what went wrong; with --debug, where in the code too."""
    if os.environ.get("HEADRACE_DEBUG"):
        traceback.print_exception(error)
    err.print("[red]error:[/red]", end=" ")
    err.print(str(error), markup=False)


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """A spinner while something takes its time; a plain line where there is no terminal."""
    if err.is_terminal:
        with err.status(text):
            yield
    else:
        print(text, file=sys.stderr, flush=True)
        yield


@contextmanager
def counting(text: str, total: int) -> Iterator[Callable[[int], None]]:
    """A progress bar; call what it gives with the number of things done since the last call.

    Where there is no terminal, a line every few seconds says how far it is.
    """
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    done, told = 0, time.monotonic()
    with Progress(*columns, console=err, transient=True, disable=not err.is_terminal) as bar:
        task = bar.add_task(text, total=total)

        def advance(count: int) -> None:
            nonlocal done, told
            done += count
            bar.advance(task, count)
            if not err.is_terminal and time.monotonic() - told > _SECONDS_BETWEEN_LINES:
                told = time.monotonic()
                err.print(f"{done:,} of {total:,} {text} ...")

        yield advance


@contextmanager
def telling() -> Iterator[Callable[[str], None]]:
    """A line that says what is going on; where there is no terminal, a line each."""
    if err.is_terminal:
        with err.status("starting ...") as status:
            yield status.update
    else:
        yield lambda text: print(text, file=sys.stderr, flush=True)
