"""`headrace generate flows|trades`: streams to try things on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from headrace.cli.console import Debug, counting, err, out
from headrace.generate import (
    FlowOptions,
    Generated,
    TradeOptions,
    generate_flows,
    generate_trades,
    measure_flows,
    measure_trades,
)

generate = typer.Typer(help="Make a stream of flows or trades.", no_args_is_help=True, rich_markup_mode=None)

Rows = Annotated[int, typer.Option("--rows", min=1, help="How many records.")]
Out = Annotated[Path, typer.Option("--out", help="The folder to write to.")]
Seed = Annotated[int, typer.Option("--seed", help="The same seed and options give the same records.")]
Rate = Annotated[
    float | None, typer.Option("--rate", help="Records per second of stream time. [default: the profile's own]")
]
Late = Annotated[float, typer.Option("--late", help="Share of records that come late.")]
LateBy = Annotated[float, typer.Option("--late-by", help="How late at most, in seconds.")]
Disorder = Annotated[float, typer.Option("--disorder", help="Records come out of order by up to so many seconds.")]
Nulls = Annotated[float, typer.Option("--nulls", help="Share of nulls in every column but the time.")]
Duplicates = Annotated[float, typer.Option("--duplicates", help="Share of records that repeat the one before.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is in the folder.")]
Shape = Annotated[bool, typer.Option("--shape", help="Measure the made stream and print its shape.")]


@generate.command()
def flows(
    rows: Rows = 1_000_000,
    out_folder: Out = Path("data/flows"),
    profile: Annotated[
        str, typer.Option("--profile", help="backbone (many hosts) or enterprise (few hosts, long flows).")
    ] = "backbone",
    seed: Seed = 1,
    rate: Rate = None,
    text_addresses: Annotated[
        bool, typer.Option("--text-addresses", help="Addresses as '10.1.2.3' instead of integers.")
    ] = False,
    late: Late = 0.0,
    late_by: LateBy = 600.0,
    disorder: Disorder = 0.0,
    nulls: Nulls = 0.0,
    duplicates: Duplicates = 0.0,
    overwrite: Overwrite = False,
    shape: Shape = False,
    debug: Debug = False,
) -> None:
    """NetFlow records with all that the 22 classic aggregation schemes need.

    Example: headrace generate flows --rows 1000000 --profile enterprise --out data/flows
    """
    options = FlowOptions(
        rows,
        profile=profile,  # type: ignore[arg-type]  # checked, with a message, by the options themselves
        seed=seed,
        rate=rate,
        text_addresses=text_addresses,
        late=late,
        late_by_s=late_by,
        disorder_s=disorder,
        nulls=nulls,
        duplicates=duplicates,
    )
    _make(rows, lambda progress: generate_flows(options, out_folder, overwrite=overwrite, progress=progress))
    if shape:
        _print_shape(measure_flows(out_folder))


@generate.command()
def trades(
    rows: Rows = 1_000_000,
    out_folder: Out = Path("data/trades"),
    symbols: Annotated[int, typer.Option("--symbols", help="How many symbols are traded.")] = 8000,
    seed: Seed = 1,
    rate: Rate = None,
    late: Late = 0.0,
    late_by: LateBy = 600.0,
    disorder: Disorder = 0.0,
    nulls: Nulls = 0.0,
    duplicates: Duplicates = 0.0,
    overwrite: Overwrite = False,
    shape: Shape = False,
    debug: Debug = False,
) -> None:
    """Stock trades, with the static tables close and index in the folder's _static.

    Example: headrace generate trades --rows 1000000 --out data/trades
    """
    options = TradeOptions(
        rows,
        symbols=symbols,
        seed=seed,
        rate=rate,
        late=late,
        late_by_s=late_by,
        disorder_s=disorder,
        nulls=nulls,
        duplicates=duplicates,
    )
    _make(rows, lambda progress: generate_trades(options, out_folder, overwrite=overwrite, progress=progress))
    if shape:
        _print_shape(measure_trades(out_folder))


def _make(rows: int, make: Callable[[Callable[[int], None]], Generated]) -> None:
    with counting("records", rows) as done:
        made = make(done)
    megabytes = made.bytes / 1e6
    err.print(
        f"{made.rows:,} records in {made.files} files ({megabytes:,.0f} MB) in {made.folder}, "
        f"{made.seconds:.1f} s, {made.rows / made.seconds / 1e6:.1f} million a second"
    )


def _print_shape(shape: Any) -> None:
    heading, *rows = shape.rows()
    table = Table(*(str(cell) for cell in heading))
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    out.print(table)
