"""A plan with one query more or less: what changes is said, and nothing else changes."""

from __future__ import annotations

import pytest

from headrace.errors import WorkloadError
from headrace.plan.build import Planner
from headrace.plan.guard import Guarded, guarded
from headrace.plan.plan import Plan
from headrace.plan.slices import Windows
from headrace.query import parse_query
from tests.plan.test_build import FACTS, sizes_of

PLANNER = Planner(FACTS, sizes_of(10_000_000, src=100, dst=100, port=50), cores=2)


def query(name: str, text: str) -> Guarded:
    return guarded(parse_query(name, text, time="ts"), lambda _: False)


BOTH = query("both", "SELECT src, dst, sum(bytes) FROM t GROUP BY window(ts, '5 minutes'), src, dst")
SOURCES = query("sources", "SELECT src, sum(bytes) FROM t GROUP BY window(ts, '15 minutes'), src")
PORTS = query("ports", "SELECT port, count(*) FROM t GROUP BY window(ts, '5 minutes'), port")
SLIDING = query("sliding", "SELECT src, sum(bytes) FROM t GROUP BY window(ts, '15 minutes', '10 minutes'), src")
AGAIN = query("again", "SELECT src, sum(bytes) FROM t GROUP BY window(ts, '25 minutes', '10 minutes'), src")
LISTS = query("lists", "SELECT tags, count(*) FROM t GROUP BY tags")


def plan_of(*queries: Guarded) -> Plan:
    return PLANNER.plan(queries)


def test_a_query_that_comes_is_made_from_what_is_there() -> None:
    plan = plan_of(BOTH)
    change = plan.with_query(SOURCES, PLANNER)
    assert change.kept == plan.nodes
    assert change.gone == ()
    (added,) = change.added
    assert [key.sql for key in added.keys] == ["src"]
    assert len(change.plan.roots) == 1
    assert str(change) == "+ (src) per 15 minutes: sources [low level, 2 states]\n1 node stays as it is"


def test_one_that_nothing_can_make_has_a_node_of_its_own() -> None:
    planner = Planner(FACTS, sizes_of(10_000_000, src=100_000, port=100_000))
    plan = planner.plan([SOURCES])
    change = plan.with_query(PORTS, planner)
    assert len(change.plan.roots) == 2
    assert change.kept == plan.nodes


def test_a_window_joins_the_slices_of_others() -> None:
    plan = plan_of(SLIDING)
    change = plan.with_query(AGAIN, PLANNER)
    (root,) = change.plan.roots
    below = [change.plan.nodes[child].slices for child in change.plan.children(root)]
    assert [type(slices) for slices in below] == [Windows, Windows]
    assert len(change.added) == 1, "both windows have the same edges"


def test_what_came_can_go() -> None:
    plan = plan_of(BOTH, PORTS)
    back = plan.with_query(SOURCES, PLANNER).plan.without_query("sources", PLANNER)
    assert set(back.plan.nodes) == set(plan.nodes)
    assert [node.keys for node in back.gone] == [SOURCES.keys]
    assert plan.estimate is not None
    assert back.plan.estimate is not None
    assert back.plan.estimate.unshared == pytest.approx(plan.estimate.unshared)


def test_queries_beside_come_and_go_too() -> None:
    plan = plan_of(BOTH)
    change = plan.with_query(LISTS, PLANNER)
    assert [name for name, _ in change.plan.beside] == ["lists"]
    assert change.plan.without_query("lists", PLANNER).plan == plan


def test_names() -> None:
    plan = plan_of(BOTH)
    with pytest.raises(WorkloadError, match="there is a query named 'both' already"):
        plan.with_query(BOTH, PLANNER)
    with pytest.raises(WorkloadError, match="there is no query named 'ports'"):
        plan.without_query("ports", PLANNER)
