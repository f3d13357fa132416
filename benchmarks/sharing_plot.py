"""Draw what `headrace bench sharing` wrote, beside what the papers measured.

    headrace bench sharing --study --json sharing.json
    python benchmarks/sharing_plot.py sharing.json --out plots

One PNG for each workload: seconds and aggregate operations by the number of queries, ungrouped above and grouped
below. Crosses are the papers' values, where their text has them.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from headrace.bench.sharing import papers

TITLES = {
    "a": "A: same predicates, different windows",
    "b": "B: different predicates, same windows",
    "c_regular": "C, regular: predicates times windows",
    "c_low": "C, low sharing: all predicates and windows different",
    "figure8": "Figure 8: one slide, different ranges",
}
COLOURS = {
    "unshared paired": "#b8c4cc",
    "unshared paned": "#8a9aa5",
    "shared paned": "#d98e48",
    "shared paired": "#1f6f8b",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, help="the JSON of a run or a study")
    parser.add_argument("--out", type=Path, default=Path(), help="the folder for the pictures (here)")
    arguments = parser.parse_args()
    found = json.loads(arguments.file.read_text())
    arguments.out.mkdir(parents=True, exist_ok=True)
    for workload in dict.fromkeys(point["workload"] for point in found["counted"]):
        file = arguments.out / f"sharing_{workload}.png"
        draw(found, workload).savefig(file, dpi=150)
        print(file)


def draw(found: dict[str, Any], workload: str) -> Figure:
    """The picture of one workload."""
    figure = Figure(figsize=(10, 7), layout="constrained")
    axes = figure.subplots(2, 2)
    for row, grouped in zip(axes, (False, True), strict=True):
        own = [p for p in found["timed"] if (p["workload"], p["grouped"]) == (workload, grouped)]
        _lines(row[0], own, lambda point: float(point["seconds"]))
        _cross(row[0], published_seconds(workload, grouped))
        own = [p for p in found["counted"] if (p["workload"], p["grouped"]) == (workload, grouped)]
        _lines(row[1], own, lambda point: float(point["partial"] + point["final"]))
        if not grouped:
            places = {s: (papers.QUERIES, c.total) for (w, s), c in papers.COUNTS.items() if w == workload}
            _cross(row[1], {strategy: [place] for strategy, place in places.items()})
        for axis, what in zip(row, ("seconds", "operations"), strict=True):
            axis.set(xlabel="queries", ylabel=f"{what}, {'grouped' if grouped else 'ungrouped'}", yscale="log")
            axis.spines[["top", "right"]].set_visible(False)
    axes[0][0].legend(frameon=False)
    figure.suptitle(f"{TITLES[workload]} ({found['rows']:,} {found['data']}; crosses: the papers)", fontsize=11)
    return figure


def published_seconds(workload: str, grouped: bool) -> dict[str, list[tuple[int, float]]]:
    """The papers' seconds by strategy, with the number of queries."""
    places: dict[str, list[tuple[int, float]]] = {}
    if workload == "figure8":
        for (queries, own, strategy), seconds in papers.FIGURE8.items():
            if own == grouped:
                places.setdefault(strategy, []).append((queries, seconds))
    elif not grouped:
        for (own_workload, strategy), seconds in papers.SECONDS.items():
            if own_workload == workload:
                places.setdefault(strategy, []).append((papers.QUERIES, seconds))
    return places


def _lines(axes: Axes, points: list[dict[str, Any]], height: Any) -> None:
    for strategy, colour in COLOURS.items():
        own = sorted((p["queries"], height(p)) for p in points if p["strategy"] == strategy)
        if own:
            axes.plot([x for x, _ in own], [y for _, y in own], "o-", color=colour, label=strategy)


def _cross(axes: Axes, places: dict[str, list[tuple[int, float]]]) -> None:
    for strategy, own in places.items():
        axes.plot([x for x, _ in own], [y for _, y in own], "x", color=COLOURS[strategy], markersize=9)


if __name__ == "__main__":
    main()
