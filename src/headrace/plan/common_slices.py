"""Which windows have their slices in common: to share, or not to share.

Windows of queries that are alike but for them can be made of the slices of all. Then a record is taken in once,
but there are more slices, and more rows that windows are made of. The seeds compare rates of records and of slices
(inequality 1 of seed 003, 3 of seed 002); here it is what the engine's own steps cost, so that keys count too.
What a window takes of its slices does not grow with their number, so that it is nearly always better to share.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from headrace.plan.costs import Costs
from headrace.plan.plan import count_keys
from headrace.plan.sizes import Sizes
from headrace.plan.slices import Slices
from headrace.query import Expression, Window


@dataclass(frozen=True, slots=True)
class About:
    """What queries have in common that differ in their windows: keys, conditions, and slots of states."""

    keys: Collection[Expression]
    any_of: Collection[Expression]
    slots: int


@dataclass(slots=True)
class _Set:
    """Windows of common slices, and what these cost."""

    slices: Slices
    cost: float
    windows: list[Window] = field(default_factory=list)


def common_slices(
    windows: Iterable[Window], about: About, sizes: Sizes, costs: Costs, paned: bool = False
) -> dict[Window, Slices]:
    """The slices that each window is made of.

    One window after the other, those of the longest slides first, joins the windows where it adds least to what
    slices cost, or keeps its own.
    """
    sets: list[_Set] = []
    for window in sorted(windows, key=lambda each: (-each.slide_us, -each.range_us, each.offset_us)):
        own = Slices.of(window, paned)
        best, more = _Set(own, _cost(own, about, sizes, costs)), None
        least = best.cost
        for other in sets:
            together = other.slices.together(own, paned)
            assert together is not None, "windows are about the same time"
            cost = other.cost if together == other.slices else _cost(together, about, sizes, costs)
            if cost - other.cost < least:
                least, more, best = cost - other.cost, other, _Set(together, cost)
        if more is None:
            more = best
            sets.append(best)
        more.slices, more.cost = best.slices, best.cost
        more.windows.append(window)
    return {window: each.slices for each in sets for window in each.windows}


def _cost(slices: Slices, about: About, sizes: Sizes, costs: Costs) -> float:
    """What it takes to make rows of slices from records, and to put them in order for windows."""
    records = sizes.records(about.any_of)
    rows = sizes.groups(about.keys, (), about.any_of, slices)
    keys = count_keys(len(about.keys), marks=0, timed=True)
    made = costs.from_records(records, rows, about.slots, keys, sizes.slices(slices))
    return made + rows * costs.ordered
