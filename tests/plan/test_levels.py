"""Which nodes are carried above the shuffle, and that a plan says so."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from headrace import Workload
from headrace.plan.build import Planner
from headrace.plan.guard import guarded
from headrace.plan.levels import travelling
from headrace.plan.plan import Deal, Plan
from headrace.plan.shapes import Filters
from headrace.plan.sizes import Sizes
from headrace.query import Expression
from tests.plan.test_build import FACTS, plan_with, sizes_of

HOUR_US = 3_600_000_000
SIZES = sizes_of(src=150, dst=150)


def windows(*minutes: int) -> dict[str, str]:
    return {
        f"of_{m}": f"SELECT src, dst, count(*) FROM t GROUP BY window(ts, '{m} minutes'), src, dst"
        for m in minutes
    }


def carried(plan: Plan) -> list[int]:
    return [node for node in range(len(plan.nodes)) if plan.carried(node)]


def test_one_node_is_carried_for_many_windows_that_no_task_has_whole() -> None:
    plan = plan_with(FACTS, SIZES, windows(1, 7, 15), cores=30)
    (node,) = carried(plan)
    parent = plan.parents[node]
    assert parent is not None
    assert plan.nodes[node] == plan.nodes[parent]
    assert plan.names(parent) == ("of_1",)
    assert plan.names(node) == ()
    assert plan.deals[node] == Deal(key=Expression.parse("src"))
    below = {name for other in range(len(plan.nodes)) if node in plan.above(other) for name in plan.names(other)}
    assert below == {"of_7", "of_15"}
    assert all(plan.rises(other) == (node in (other, *plan.above(other))) for other in range(len(plan.nodes)))
    assert plan.carries(parent)
    assert "(src, dst) per 1 minute: carried [high level, 1 states, dealt by src]" in plan.explain()


@pytest.mark.parametrize(
    ("queries", "cores"), [(windows(1, 15, 20, 50), 1), (windows(1, 2, 3), 8), (windows(1, 50), 8)]
)
def test_nothing_is_carried_where_windows_are_whole_or_few(queries: dict[str, str], cores: int) -> None:
    assert not carried(plan_with(FACTS, SIZES, queries, cores=cores))


@pytest.mark.parametrize(("end", "low"), [(True, {"of_1", "of_2"}), (False, {"of_1"})])
def test_a_plan_says_what_tasks_have_whole(end: bool, low: set[str]) -> None:
    """Each of eight tasks has 7.5 minutes of an hour; where records never end, roots alone are low."""
    queries = [guarded(query, lambda _: False) for query in Workload(windows(1, 2, 50)).values()]
    plan = Planner(FACTS, SIZES, cores=8, end=end).plan(queries)
    nodes = json.loads(plan.to_json())["nodes"]
    assert {name for node in nodes for name in node["answers"] if node["level"] == "low"} == low


def test_what_memory_has_no_room_for_rises() -> None:
    assert carried(plan_with(FACTS, SIZES, windows(1, 2, 3, 5), cores=2, memory=1 << 20))


def test_what_has_no_key_in_common_stays_while_others_make_room() -> None:
    """By `src` and by `dst` all of five minutes would travel apart; those of fewer records go together."""
    by_one = {
        key: f"SELECT {key}, count(*) FROM t GROUP BY window(ts, '5 minutes'), {key}" for key in ("src", "dst")
    }
    some = {
        f"some_{m}": f"SELECT src, count(*) FROM t WHERE port = 443 GROUP BY window(ts, '{m} minutes'), src, dst"
        for m in (6, 8, 10, 12)
    }
    queries = windows(1, 5) | by_one | some
    sizes = sizes_of(10_000_000, src=400, dst=400)
    assert not carried(plan_with(FACTS, sizes, queries, cores=2))
    tight = plan_with(FACTS, sizes, queries, cores=2, memory=16 << 20)
    assert tight.parents[node_of(tight, "src")] == tight.parents[node_of(tight, "dst")] == node_of(tight, "of_5")
    assert {name for name in queries if tight.rises(node_of(tight, name))} == some.keys()
    assert len(carried(tight)) == 1


def node_of(plan: Plan, name: str) -> int:
    return next(answer.node for answer in plan.answers if answer.query.name == name)


def test_small_windows_travel_by_themselves() -> None:
    totals = {f"of_{m}": f"SELECT count(*) FROM t GROUP BY window(ts, '{m} minutes')" for m in (15, 20, 50)}
    assert not carried(plan_with(FACTS, SIZES, windows(1) | totals, cores=8))


def test_what_travels_is_estimated() -> None:
    plan = plan_with(FACTS, SIZES, windows(1), cores=4)
    assert travelling(plan, None, 4) == plan.rows[0]
    assert travelling(plan, HOUR_US, 4) == pytest.approx(plan.rows[0] * 3 / 60)
    assert travelling(plan, HOUR_US, 1) == 0


def test_buckets_are_for_the_node_of_which_most_rows_travel() -> None:
    others = {"ports": "SELECT port, count(*) FROM t GROUP BY window(ts, '7 minutes'), port"}
    plan = plan_with(FACTS, sizes_of(src=150, dst=150, port=5000), windows(5) | others, cores=4)
    assert len(plan.roots) == 2
    assert travelling(plan, None, 4) == max(plan.rows[root] for root in plan.roots)


WEB = Expression.parse("port = 443")
FILTERS = Filters({WEB: [Expression.parse("port")]})


def of_ports(*minutes: int) -> dict[str, str]:
    """By all three keys, and longer windows without `dst`: one by source and port, others of a port alone."""
    keys = {"all": "src, dst, port", "some": "src, port"}
    texts = {
        f"{name}_{m}": f"SELECT {own}, count(*), sum(bytes) FROM t GROUP BY window(ts, '{m} minutes'), {own}"
        for name, own in keys.items()
        for m in (minutes[:1] if name == "all" else minutes[1:])
    }
    return texts | {
        f"web_{m}": f"SELECT src, count(*) FROM t WHERE {WEB} GROUP BY window(ts, '{m} minutes'), src"
        for m in minutes[1:]
    }


def test_what_is_carried_has_the_keys_and_states_that_others_need() -> None:
    sizes = sizes_of(src=150, dst=2, port=150)
    plan = plan_with(FACTS, sizes, of_ports(1, 3, 7, 15), cores=30, filters=FILTERS)
    (node,) = carried(plan)
    parent = plan.parents[node]
    assert parent is not None
    whole, slim = plan.nodes[parent], plan.nodes[node]
    assert [key.sql for key in whole.keys] == ["src", "dst", "port"]
    assert [key.sql for key in slim.keys] == ["src", "port"], "the filter is about ports"
    counts = {state for child in plan.children(node) for state in plan.nodes[child].states}
    assert slim.states == tuple(state for state in whole.states if state in counts)
    assert (slim.slices, slim.any_of) == (whole.slices, whole.any_of)


def test_rows_are_not_dealt_by_a_key_that_most_have_in_common() -> None:
    """Nearly all of them are of one port, and would meet in one task."""
    random = np.random.default_rng(1)
    ports = np.where(random.random(10_000) < 0.9, 443, random.integers(1000, size=10_000))
    sample = {"port": ports, "src": random.integers(150, size=10_000), "dst": random.integers(150, size=10_000)}
    block = {Expression.parse(name): pa.array(values) for name, values in sample.items()}
    queries = {
        f"of_{m}": f"SELECT port, src, dst, count(*) FROM t GROUP BY window(ts, '{m} minutes'), port, src, dst"
        for m in (1, 7, 15)
    }
    sizes = Sizes([block], 1_000_000, HOUR_US)
    assert sizes.commonest(Expression.parse("port")) == pytest.approx(0.9, abs=0.02)
    assert sizes.commonest(Expression.parse("bytes")) == 0, "the sample does not know it"
    plan = plan_with(FACTS, sizes, queries, cores=30)
    (node,) = carried(plan)
    deal = plan.deals[node]
    assert deal is not None
    assert deal.key in {Expression.parse("src"), Expression.parse("dst")}


def test_a_plan_knows_the_tree_that_levels_were_put_into() -> None:
    """Queries that come and go change the tree; what is carried is found anew."""
    sizes, queries = sizes_of(src=150, dst=2, port=150), of_ports(1, 3, 7, 15)
    plan = plan_with(FACTS, sizes, queries, cores=30, filters=FILTERS)
    assert carried(plan)
    assert plan.tree is not None
    assert not carried(plan.tree)
    assert plan.tree.names(0) == plan.names(0)
    planner = Planner(FACTS, sizes, cores=30, memory=1 << 30, filters=FILTERS)
    less = plan.without_query("web_15", planner).plan
    again = guarded(Workload({"web_15": queries["web_15"]})["web_15"], lambda _: False)
    assert set(less.with_query(again, planner).plan.nodes) == set(plan.nodes)
