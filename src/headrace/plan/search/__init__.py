"""Searches for a cheap tree, one file each; all take a space and give a tree."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from headrace.plan.search.exhaustive import exhaustive
from headrace.plan.search.greedy import greedy
from headrace.plan.search.none import none
from headrace.plan.search.one import one
from headrace.plan.search.randomized import randomized
from headrace.plan.space import Space, Tree

SEARCHES: Mapping[str, Callable[[Space[Any]], Tree[Any]]] = {
    "none": none,
    "one": one,
    "greedy": greedy,
    "randomized": randomized,
    "exhaustive": exhaustive,
}
DEFAULT = "randomized"

__all__ = ["DEFAULT", "SEARCHES", "exhaustive", "greedy", "none", "one", "randomized"]
