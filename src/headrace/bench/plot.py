"""A report as a picture."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headrace.bench.report import Growth, Report

_OWN, _OTHER = "#1f6f8b", "#b8c4cc"


def write_plot(report: Report, file: Path) -> None:
    """Seconds as bars, headrace's in colour; or the two curves of its growth."""
    growth = report.growth
    figure = Figure(figsize=(9, 4), layout="constrained")
    if growth is not None:
        left, right = figure.subplots(1, 2)
        _draw_growth(growth, left, right)
    else:
        _draw_runs(report, figure.subplots())
    figure.suptitle(report.title, fontsize=11)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=150)


def _draw_runs(report: Report, axes: Axes) -> None:
    runs = sorted(report.runs, key=lambda run: run.seconds, reverse=True)
    labels = [f"{run.engine} ({run.variant})" for run in runs]
    colours = [_OWN if run.engine == "headrace" else _OTHER for run in runs]
    bars = axes.barh(labels, [run.seconds for run in runs], color=colours)
    axes.bar_label(bars, fmt="%.2f", padding=3)
    axes.set_xlabel("seconds for all answers (median)")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_growth(growth: Growth, left: Axes, right: Axes) -> None:
    left.plot([point.rows for point in growth.rows], [point.seconds for point in growth.rows], "o-", color=_OWN)
    left.set_xlabel("records")
    for points, style, label in ((growth.queries, "o-", "the first"), (growth.spread, "s--", "evenly spread")):
        right.plot([p.queries for p in points], [p.seconds for p in points], style, color=_OWN, label=label)
    right.set_xlabel("queries")
    right.legend(frameon=False)
    for axes in (left, right):
        axes.set_ylabel("seconds (median)")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.spines[["top", "right"]].set_visible(False)
