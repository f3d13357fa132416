"""Which partials meet at once, and which wait for rows that others bring."""

from __future__ import annotations

from headrace.kernel.high import Lot
from headrace.plan.plan import Plan
from headrace.runtime.meeting import Line, brought_rows
from tests.plan.test_build import FACTS, plan_with, sizes_of

SIZES = sizes_of(src=150, dst=150)
QUERIES = {
    "of_5": "SELECT src, dst, count(*) FROM t GROUP BY window(ts, '5 minutes'), src, dst",
    "of_7": "SELECT src, count(*) FROM t GROUP BY window(ts, '7 minutes'), src",
}


def plan_of() -> Plan:
    """A root whose rows are dealt by time, with windows below it that cross the edges."""
    extra = {"of_1": "SELECT src, dst, count(*) FROM t GROUP BY window(ts, '1 minute'), src, dst"}
    return plan_with(FACTS, SIZES, QUERIES | extra)


def lots(plan: Plan, *nodes: int) -> dict[Lot, list[Line]]:
    """A partial of each of some nodes."""
    lines = {node: Line(0, node, None, 1, "file", 0, 1, None, None) for node in nodes}
    return {Lot.of(plan, node, 0): [line] for node, line in lines.items()}


def test_a_node_that_is_split_waits_for_what_its_root_brings() -> None:
    plan = plan_of()
    (split,) = plan.split_nodes
    root = plan.root_of(split)
    assert plan.names(split), "a query has such windows"
    assert brought_rows(plan, lots(plan, root)) == {split}
    assert brought_rows(plan, lots(plan, root, split)) == {split}


def test_it_waits_for_nobody_where_all_its_rows_come_from_the_tasks() -> None:
    plan = plan_of()
    (split,) = plan.split_nodes
    assert brought_rows(plan, lots(plan, split)) == set()
    assert brought_rows(plan, {}) == set()
    others = [node for node in range(len(plan.nodes)) if node not in (split, plan.root_of(split))]
    assert brought_rows(plan, lots(plan, split, *others)) == set(), "no window is made of another's rows"
