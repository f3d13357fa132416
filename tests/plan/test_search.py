"""The searches: the seed's examples with its costs, and random instances beside the best tree there is."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from headrace.algebra.ops import Op
from headrace.algebra.states import Lift, State
from headrace.plan.costs import Costs
from headrace.plan.lattice import Lattice
from headrace.plan.search import SEARCHES, exhaustive, greedy, none, one, randomized
from headrace.plan.shapes import Shape, Shapes
from headrace.plan.sizes import Sizes
from headrace.plan.slices import Times
from headrace.plan.space import Tree, edge_costs, gain
from headrace.query import Expression
from tests.harness.instances import random_lattice

N = 1_000_000
COUNT = (State(Op.ADD, Lift.ONE),)
TWO = (*COUNT, State(Op.ADD, Lift.WORD, (Expression.parse("x"),)))
HASHING = Costs(0, 1, 0, 0, 1, 0, 0, 0)
"""What the seed counts in its first example: a record or row costs as much as the node has keys."""


class Known(Sizes):
    """Sizes that an example gives: keys as letters, or as many rows as there are records."""

    def __init__(self, rows: Mapping[str, float]) -> None:
        super().__init__([], N, None)
        self._given = rows

    def groups(
        self,
        keys: Collection[Expression],
        marks: Collection[Expression],
        any_of: Collection[Expression],
        slices: Times | None,
    ) -> float:
        return self._given.get("".join(sorted(key.sql for key in keys)), N)


class Example:
    """Queries by letters, each a key, over a stream of a million records."""

    def __init__(self, *queries: str, **rows: float) -> None:
        self.shapes = Shapes()
        wanted = {self.shape(query): COUNT for query in queries}
        self.space = Lattice(wanted, self.shapes, Known(rows), HASHING)

    def shape(self, letters: str) -> Shape:
        return self.shapes.shape(map(Expression.parse, letters), None, None)

    def edges(self, tree: Tree[Shape]) -> set[tuple[str, str]]:
        def letters(shape: Shape | None) -> str:
            return "".join(key.sql for key in self.shapes.keys(shape)) if shape else ""

        return {(letters(parent), letters(child)) for child, parent in tree.parents.items()}


SMALL = {"ab": 1000.0, "ac": 1000.0, "cd": 1000.0}


def test_example_1_naive_and_one_phantom() -> None:
    example = Example("ab", "ac", "cd", **SMALL, abc=10_000)
    assert none(example.space).cost == 6 * N
    assert example.edges(none(example.space)) == {("", "ab"), ("", "ac"), ("", "cd")}
    assert one(example.space).cost == 4 * N + N * 6  # sz(B1) is N
    assert example.edges(one(example.space)) == {("", "abcd"), ("abcd", "ab"), ("abcd", "ac"), ("abcd", "cd")}


@pytest.mark.parametrize("name", ["greedy", "randomized", "exhaustive"])
def test_example_1_the_third_strategy(name: str) -> None:
    example = Example("ab", "ac", "cd", **SMALL, abc=10_000, acd=20_000)
    tree = SEARCHES[name](example.space)
    assert example.edges(tree) == {("", "abc"), ("", "cd"), ("abc", "ab"), ("abc", "ac")}
    assert tree.cost == 3 * N + 2 * N + 10_000 * 2 + 10_000 * 2


@pytest.mark.parametrize("name", ["greedy", "randomized", "exhaustive"])
def test_example_1_a_phantom_from_a_phantom(name: str) -> None:
    example = Example("ab", "ac", "cd", **SMALL, abc=10_000, acd=90_000, abcd=100_000)
    tree = SEARCHES[name](example.space)
    assert example.edges(tree) == {("", "abcd"), ("abcd", "abc"), ("abcd", "cd"), ("abc", "ab"), ("abc", "ac")}
    assert tree.cost == 4 * N + 100_000 * (3 + 2) + 10_000 * (2 + 2)


def test_the_benefit_test() -> None:
    for rows, pays in ((249_999.0, True), (250_001.0, False)):
        example = Example("ab", "bc", ab=10, bc=10, abc=rows)
        assert (
            gain(example.space, edge_costs(example.space, none(example.space)), example.shape("abc")) > 0
        ) == pays


@pytest.mark.parametrize("seed", range(40))
def test_no_search_is_worse_than_one_that_it_builds_on(seed: int) -> None:
    found = {search: search(random_lattice(seed, 3 + seed % 3, TWO)).cost for search in (none, greedy, randomized)}
    assert found[randomized] <= min(found[none], found[greedy])


@pytest.mark.parametrize("seed", range(40))
def test_the_default_is_near_the_best_tree(seed: int) -> None:
    def cost(search: str) -> float:
        return SEARCHES[search](random_lattice(seed, 3, TWO)).cost

    assert cost("exhaustive") <= cost("randomized") <= 1.25 * cost("exhaustive")


def test_the_same_seed_gives_the_same_tree() -> None:
    one_time, another = (randomized(random_lattice(7, 6, TWO), seed=3) for _ in range(2))
    assert dict(one_time.parents) == dict(another.parents)


def test_too_much_for_the_exhaustive_search_is_refused() -> None:
    with pytest.raises(ValueError, match="too many"):
        exhaustive(random_lattice(5, 9, TWO))


def test_sharing_that_does_not_pay_is_not_done() -> None:
    example = Example("ab", "cd", "ef")  # every union, and every query, has a row for each record
    assert example.edges(randomized(example.space)) == {("", "ab"), ("", "cd"), ("", "ef")}
