"""`headrace calibrate`: what the engine's steps cost on this machine, for the planner."""

from __future__ import annotations

import dataclasses
import statistics

from rich.table import Table

from headrace.cli.console import Debug, out, waiting
from headrace.plan.costs import Costs, save_costs


def calibrate(debug: Debug = False) -> None:
    """Measure what the engine's steps cost on this machine; plans are made by these figures from then on.

    Example: headrace calibrate
    """
    from headrace.bench.calibrate import calibrate as measure  # loads the compiled kernels

    with waiting("measuring (some 10 s) ..."):
        found = measure()
    table = Table("step", title="nanoseconds of one core", title_justify="left")
    table.add_column("here", justify="right")
    table.add_column("default", justify="right")
    for name, default in dataclasses.asdict(Costs()).items():
        table.add_row(name, f"{getattr(found.costs, name):.1f}", f"{default:.1f}")
    out.print(table)
    errors = found.errors
    median, worst = statistics.median(errors), max(errors)
    out.print(f"{len(errors)} kernels: the fit is off by {median:.0%} in the median, {worst:.0%} at worst")
    out.print(f"written to {save_costs(found.costs, found.notes())}")
