"""Small workloads in, readable plans out."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from headrace import Workload
from headrace.algebra.states import Fact
from headrace.plan.build import make_plan
from headrace.plan.guard import guarded
from headrace.plan.plan import Plan
from headrace.query import Expression

FACTS = {
    Expression.parse(name): Fact(kind)
    for name, kind in {
        "ts": pa.timestamp("us", "UTC"),
        "src": pa.string(),
        "dst": pa.string(),
        "port": pa.int32(),
        "bytes": pa.int64(),
        "tags": pa.list_(pa.string()),
        "port = 443": pa.bool_(),
    }.items()
}


def plan_of(**queries: str) -> Plan:
    return make_plan([guarded(query, lambda _: False) for query in Workload(queries).values()], FACTS)


def test_queries_of_one_window_share_a_phantom() -> None:
    plan = plan_of(
        by_src="SELECT window.start, src, sum(bytes) FROM t GROUP BY window(ts, '5 minutes'), src",
        by_dst="SELECT window.start, dst, avg(bytes) FROM t GROUP BY window(ts, '5 minutes'), dst",
        total="SELECT window.end, count(*) FROM t GROUP BY window(ts, '300 seconds')",
    )
    assert plan.explain() == (
        "3 queries from 1 passes over the records\n"
        "- (src, dst) per 5 minutes: phantom [low level, 3 states, dealt by 5 minutes and src]\n"
        "  - (src) per 5 minutes: by_src [high level, 3 states]\n"
        "    - (no keys) per 5 minutes: total [high level, 1 states]\n"
        "  - (dst) per 5 minutes: by_dst [high level, 3 states]"
    )


def test_filters_and_windows_have_branches_of_their_own() -> None:
    plan = plan_of(
        web="SELECT src, count(*) FROM t WHERE port = 443 GROUP BY src",
        all="SELECT src, count(*) FROM t GROUP BY src",
        sliding="SELECT src, count(*) FROM t GROUP BY window(ts, '15 minutes', '10 minutes', '2 minutes'), src",
    )
    assert plan.explain() == (
        "3 queries from 3 passes over the records\n"
        "- (src) where port = 443: web [low level, 1 states, dealt by src]\n"
        "- (src): all [low level, 1 states, dealt by src]\n"
        "- (src) per 5 minutes: sliding [low level, 1 states, dealt by src]"
    )
    slices = plan.nodes[2].slices
    assert slices is not None
    assert slices.offset_us == 120_000_000


def test_the_same_query_under_two_names_is_one_node() -> None:
    text = "SELECT src, count(*) FROM t GROUP BY src"
    plan = plan_of(a=text, b=text)
    assert len(plan.nodes) == 1
    assert plan.names(0) == ("a", "b")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            "SELECT src, first(bytes) FROM t GROUP BY src",
            "first(bytes): no state is known for it; first(bytes): no bag is known for it",
        ),
        (
            "SELECT max(tags) FROM t",
            "max(tags): no word for list<item: string>; max(tags): no order is known for list<item: string>",
        ),
        ("SELECT tags, count(*) FROM t GROUP BY tags", "the key tags is list<item: string>"),
        ("SELECT rank() OVER (ORDER BY src) FROM t GROUP BY src", "a window function (OVER)"),
        ("SELECT count(*) FROM t GROUP BY window(src, '1 hour')", "the time src is string"),
    ],
)
def test_what_plain_spark_runs_beside_the_plan(text: str, reason: str) -> None:
    plan = plan_of(q=text)
    assert plan.beside == (("q", reason),)
    assert plan.nodes == ()
    assert reason in plan.explain()


def test_bags_come_from_finer_nodes() -> None:
    plan = plan_of(
        pairs="SELECT src, count(DISTINCT dst) FROM t GROUP BY src",
        by_dst="SELECT dst, sum(bytes) FROM t GROUP BY dst",
        sizes="SELECT src, median(bytes), count(*) FROM t GROUP BY src",
    )
    assert plan.explain() == (
        "3 queries from 2 passes over the records\n"
        "- (src, dst): pairs [low level, 3 states, dealt by src]\n"
        "  - (dst): by_dst [high level, 2 states]\n"
        "- (src, bytes): sizes [low level, 1 states, dealt by src]"
    )
    assert plan.split_nodes == (1,)
    assert "<summary>(src, dst): pairs" in plan._repr_html_()


def test_what_lies_below_a_split_node_is_not_split_again() -> None:
    plan = plan_of(
        top="SELECT src, port, count(DISTINCT dst) FROM t GROUP BY src, port",
        dsts="SELECT dst, count(*) FROM t GROUP BY dst",
        dsts_again="SELECT dst, max(port) FROM t GROUP BY dst",
        total="SELECT count(*) FROM t",
    )
    assert str(plan.deals[0]) == "dst"
    assert plan.names(0) == ("top",)
    assert plan.split_nodes == (0,)


def test_json_and_identity() -> None:
    text = "SELECT src, count(*) FROM t GROUP BY src"
    one, other = plan_of(a=text), plan_of(b=text.lower())
    assert one.nodes[0].id == other.nodes[0].id
    assert one.nodes[0].id != plan_of(a=text.replace("src", "dst")).nodes[0].id
    (node,) = json.loads(one.to_json())["nodes"]
    assert (node["keys"], node["level"], node["answers"]) == (["src"], "low", ["a"])
