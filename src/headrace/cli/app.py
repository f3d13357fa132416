"""The entry point: all commands, and what happens when one of them fails."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from headrace import __version__
from headrace.cli.bench import bench
from headrace.cli.calibrate import calibrate
from headrace.cli.console import Debug, exit_code, report
from headrace.cli.generate import generate
from headrace.cli.live import ctl, log, stream, top
from headrace.cli.plan import plan
from headrace.cli.run import run
from headrace.errors import HeadraceError

app = typer.Typer(
    help="One pass over a stream, hundreds of aggregates: plain Spark SQL queries, run together on Spark.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
app.command()(run)
app.command()(plan)
app.command()(stream)
app.command()(top)
app.command()(bench)
app.command()(calibrate)
app.add_typer(generate, name="generate")
app.add_typer(ctl, name="ctl")
app.add_typer(log, name="log")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"headrace {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Options that all commands have."""


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit with one of `Exit`'s codes."""
    try:
        app(arguments)
    except HeadraceError as error:
        report(error)
        sys.exit(exit_code(error))
