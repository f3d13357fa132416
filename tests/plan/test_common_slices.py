"""To share slices and fragments, or not to share them: by what they cost."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa
import pytest

from headrace.algebra.states import Fact
from headrace.plan.build import Planner
from headrace.plan.common_slices import About, common_slices
from headrace.plan.costs import Costs
from headrace.plan.guard import guarded
from headrace.plan.member import Facts
from headrace.plan.plan import Plan
from headrace.plan.search import DEFAULT
from headrace.plan.sizes import Sizes
from headrace.plan.slices import Slices, Times, Windows
from headrace.query import Expression, parse_query
from tests.plan.test_build import FACTS, MINUTE, TIME, sizes_of
from tests.plan.test_slices import together, window_of

HOUR = 60 * MINUTE
ALIKE = [
    window_of(15 * MINUTE, 5 * MINUTE),
    window_of(12 * MINUTE, 5 * MINUTE),
    window_of(30 * MINUTE, 10 * MINUTE),
]
RARE = window_of(2_000, 1_700)
"""Its slices are shorter than the time from record to record."""
ABOUT = About([Expression.parse("src")], (), 1)


def test_windows_share_slices() -> None:
    found = common_slices(ALIKE, ABOUT, sizes_of(10_000_000, src=10), Costs())
    assert set(found.values()) == {together(ALIKE)}


def test_windows_share_those_of_one_with_many_slices_too() -> None:
    """Its rows have to be made and ordered anyway, and what others take of them does not grow with slices."""
    found = common_slices([*ALIKE, RARE], ABOUT, sizes_of(10_000_000, src=10), Costs())
    assert set(found.values()) == {together([*ALIKE, RARE])}


def test_slices_that_cost_more_together_stay_apart() -> None:
    """As where rows are dear and records are not: edges of both would cut each other's slices."""

    class Dear(Sizes):
        def groups(
            self,
            keys: Collection[Expression],
            marks: Collection[Expression],
            any_of: Collection[Expression],
            slices: Times | None,
        ) -> float:
            return 1e6 if isinstance(slices, Slices) and len(slices.pairs) > 1 else 1.0

    windows = [window_of(7 * MINUTE, 5 * MINUTE), window_of(9 * MINUTE, 8 * MINUTE)]
    found = common_slices(windows, ABOUT, Dear([], 1000, HOUR), Costs())
    assert found == {window: Slices.of(window) for window in windows}


def plan_of(texts: dict[str, str], facts: Facts, sizes: Sizes, search: str = DEFAULT, paned: bool = False) -> Plan:
    queries = [parse_query(name, text, time="ts") for name, text in texts.items()]
    inner = [guarded(query, lambda _: False) for query in queries]
    return Planner(facts, sizes, cores=2, paned=paned).plan(inner, search)


def windows(count: int) -> dict[str, str]:
    return {
        f"q{n}": f"SELECT src, sum(bytes) FROM t [RANGE '{600 + 7 * n} s' SLIDE '{300 + 11 * n} s'] GROUP BY src"
        for n in range(count)
    }


def test_queries_that_differ_in_windows_come_from_common_slices() -> None:
    plan = plan_of(windows(20), FACTS, sizes_of(10_000_000, src=10))
    (root,) = plan.roots
    assert plan.names(root) == ()
    below = [plan.nodes[child].slices for child in plan.children(root)]
    assert len(below) == 20
    assert all(isinstance(slices, Windows) for slices in below)
    assert "its slices make 20 kinds of windows" in plan.explain(plan.reasons())
    assert plan.estimate is not None
    assert plan.estimate.tree < plan.estimate.unshared / 5


def test_without_a_search_each_has_slices_of_its_own() -> None:
    plan = plan_of(windows(5), FACTS, sizes_of(10_000_000, src=10), search="none")
    assert len(plan.roots) == 5


def wheres(count: int) -> list[str]:
    return [f"bytes > {n}" for n in range(count)]


def filters(count: int) -> tuple[dict[str, str], Facts]:
    facts = {**FACTS, **{Expression.parse(where): Fact(pa.bool_()) for where in wheres(count)}}
    texts = {
        f"q{n}": f"SELECT src, sum(bytes) FROM t WHERE {where} GROUP BY src"
        for n, where in enumerate(wheres(count))
    }
    return texts, facts


@pytest.mark.parametrize("count", [3, 100])
def test_queries_that_differ_in_filters_come_from_fragments(count: int) -> None:
    texts, facts = filters(count)
    values = np.random.default_rng(1).integers(0, 100, 10_000)
    block = {Expression.parse(where): pa.array(values > n) for n, where in enumerate(wheres(count))}
    block[Expression.parse("src")] = pa.array(values % 10)
    plan = plan_of(texts, facts, Sizes([block], 10_000_000, HOUR))
    assert len(plan.roots) == 1
    (root,) = plan.roots
    assert len(plan.nodes[root].marks) >= count - 1
    if count > 4:
        assert f"fragments of {len(plan.nodes[root].marks)} filters" in plan.explain()


def test_fragments_of_as_many_rows_as_records_are_not_made_for_few() -> None:
    texts, facts = filters(12)
    texts = {name: text.replace("GROUP BY src", "GROUP BY src, dst") for name, text in texts.items()}
    plan = plan_of(texts, facts, Sizes([], 1000, HOUR))
    assert len(plan.roots) == 12
    assert not any(node.marks for node in plan.nodes)


def test_panes_are_as_long_as_the_greatest_common_divisor() -> None:
    plan = plan_of(windows(2), FACTS, sizes_of(src=10), paned=True)
    (root,) = plan.roots
    assert plan.nodes[root].slices == Slices.every(TIME, 1_000_000)
