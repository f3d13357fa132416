"""The seed's Example 2: queries with filters, its four strategies with their costs, and what the searches find."""

from __future__ import annotations

import pytest

from headrace.plan.search import SEARCHES, none
from headrace.plan.space import Tree
from tests.harness.seed import SeedSpace, Spot

N = 1e9
Q1, Q2, Q3 = (
    Spot(range, frozenset(keys)) for keys, range in (("ab", (0, 95)), ("ac", (50, 100)), ("ad", (200, 300)))
)
G1, G2 = Spot((0, 100), None), Spot((0, 300), None)
B1 = Spot((0, 100), frozenset("abc"))
HASH = 10.0
"""Of two keys, in units of one check of a range."""
AB, ABC = 100_000, 500_000
"""Groups of (a, b) and of (a, b, c) that pass G1, in the strategies that depend on them."""


def example(c: int) -> SeedSpace:
    """Example 2, where c has so many values: with few, grouping by (a, b, c) leaves few rows."""
    return SeedSpace(
        {"ab": (0, 95), "ac": (50, 100), "ad": (200, 300)}, N, {"a": 1000, "b": 1000, "c": c, "d": 1000}
    )


def edges(tree: Tree[Spot]) -> set[tuple[str, str]]:
    return {(str(parent) if parent else "", str(child)) for child, parent in tree.parents.items()}


def test_strategy_1_each_query_for_itself() -> None:
    space = example(c=1000)
    filtered = 3 * N + (0.095 + 0.05 + 0.1) * N * HASH
    assert none(space).cost == pytest.approx(filtered)


def test_strategy_2_a_filter_for_two_queries() -> None:
    """One check for tuples that G1 drops, three for those that it lets pass: (1 + 2 sigma) N instead of 2 N."""
    space = example(c=1000)
    checks = (1 + 2 * 0.1) * N
    filter_first = {query: space.size(None, G1.range) + space.size(None, query.range) * HASH for query in (Q1, Q2)}
    shared = N + sum(filter_first.values())
    assert shared == pytest.approx(checks + (0.095 + 0.05) * N * HASH)
    assert none(space).cost - (space.cost(None, Q3) + shared) == pytest.approx((2 - 1.2) * N)


def test_strategy_3_the_first_filter_after_grouping() -> None:
    """F1 drops 0.005 N tuples more than G1, which saves less hashing than it takes to check them."""
    space = example(c=1000)
    assert space.cost(G1, Q1) == pytest.approx(0.1 * N * HASH + AB)
    assert space.cost(G1, Q2) == pytest.approx(0.1 * N + 0.05 * N * HASH)
    tree = space.priced({G1: None, Q1: G1, Q2: G1, Q3: None})
    assert tree.cost == pytest.approx(
        N + (0.1 * N * HASH + AB) + (0.1 * N + 0.05 * N * HASH) + (N + 0.1 * N * HASH)
    )


@pytest.mark.parametrize("name", ["greedy", "randomized", "exhaustive"])
def test_where_groups_are_many_only_filters_are_shared(name: str) -> None:
    """Strategy 3, with G2 before G1 and F3, since 2 sigma is 0.6 there."""
    space = example(c=1000)
    tree = SEARCHES[name](space)
    assert edges(tree) == {
        ("", str(G2)),
        (str(G2), str(G1)),
        (str(G2), str(Q3)),
        (str(G1), str(Q1)),
        (str(G1), str(Q2)),
    }
    filters = N + 0.3 * N + (0.3 * N + 0.1 * N * HASH)
    assert tree.cost == pytest.approx(filters + (0.1 * N * HASH + AB) + (0.1 * N + 0.05 * N * HASH))


@pytest.mark.parametrize("name", ["greedy", "randomized", "exhaustive"])
def test_strategy_4_a_phantom_below_a_shared_filter(name: str) -> None:
    space = example(c=5)
    tree = SEARCHES[name](space)
    assert edges(tree) == {
        ("", str(G2)),
        (str(G2), str(B1)),
        (str(G2), str(Q3)),
        (str(B1), str(Q1)),
        (str(B1), str(Q2)),
    }
    phantom = 0.3 * N + 0.1 * N * 15.0
    below = min(ABC + 0.095 / 0.1 * ABC * HASH, ABC * HASH + AB) + min(ABC + 0.5 * ABC * HASH, ABC * HASH + 500)
    assert tree.cost == pytest.approx(N + phantom + below + (0.3 * N + 0.1 * N * HASH))
