"""How fast the generators are: records per second from nothing to Parquet on disk, for each kind of stream.

    python benchmarks/generators.py --rows 10_000_000 --workers 2

The files go to a temporary folder and are removed.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.table import Table

from headrace.generate import FlowOptions, Generated, TradeOptions, generate_flows, generate_trades
from headrace.machine import core_count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000, help="records of each stream (10,000,000)")
    parser.add_argument("--workers", type=int, default=core_count(), help="threads (one per core)")
    parser.add_argument(
        "--folder", type=Path, help="where the temporary folder goes (the system's place for them)"
    )
    arguments = parser.parse_args()
    table = Table(title=f"{arguments.rows:,} records each, {arguments.workers} workers")
    table.add_column("stream")
    for name in ("seconds", "records/s", "bytes/record", "MB/s", "files"):
        table.add_column(name, justify="right")
    for stream, generate in _streams(arguments.rows, arguments.workers).items():
        with tempfile.TemporaryDirectory(dir=arguments.folder) as folder:
            table.add_row(stream, *_figures(generate(Path(folder))))
    Console().print(table)


def _streams(rows: int, workers: int) -> dict[str, Callable[[Path], Generated]]:
    def flows(options: FlowOptions) -> Callable[[Path], Generated]:
        return lambda folder: generate_flows(options, folder, workers=workers)

    return {
        "flows backbone": flows(FlowOptions(rows, profile="backbone")),
        "flows backbone, text": flows(FlowOptions(rows, profile="backbone", text_addresses=True)),
        "flows enterprise": flows(FlowOptions(rows, profile="enterprise")),
        "flows enterprise, text": flows(FlowOptions(rows, profile="enterprise", text_addresses=True)),
        "trades": lambda folder: generate_trades(TradeOptions(rows), folder, workers=workers),
    }


def _figures(made: Generated) -> tuple[str, ...]:
    return (
        f"{made.seconds:.2f}",
        f"{made.rows / made.seconds:,.0f}",
        f"{made.bytes / made.rows:.1f}",
        f"{made.bytes / made.seconds / 1e6:,.0f}",
        str(made.files),
    )


if __name__ == "__main__":
    main()
