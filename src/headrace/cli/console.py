"""What the commands share: where they print, how they start, show that something is going on, and fail."""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from enum import IntEnum
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from headrace.errors import HeadraceError, QueryError, SetupError, StreamError, WorkloadError, did_you_mean
from headrace.kernel.compiled import load_kernels
from headrace.runtime.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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


def check_known(word: str, known: Collection[str], option: str | None = None) -> None:
    """Raise for a word that is none of those known."""
    if word not in known:
        near = did_you_mean(word, [*known])
        message = f"'{word}' is none of {', '.join(known)}" + (f"; {near}" if near else "")
        raise typer.BadParameter(message, param_hint=option)


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
        _say(text)
        yield


@contextmanager
def spark_session(cores: int | None = None, time_zone: str = "UTC") -> Iterator[SparkSession]:
    """A session, for which one has to wait, and which is stopped at the end of the block."""
    with ExitStack() as stack:
        with waiting("starting Spark (about 10 s) ..."):
            spark = stack.enter_context(open_session(cores=cores, time_zone=time_zone))
        yield spark


def wait_for_kernels() -> None:
    """Load the compiled functions."""
    with waiting("loading the kernels (on a new machine they are compiled first, about 20 s) ..."):
        compiled = load_kernels()
    if compiled:
        err.print("compiled the kernels; the next run finds them ready")


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
        yield _say


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
