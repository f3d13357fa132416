"""Small workloads in, readable plans out."""

from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pyarrow as pa
import pytest

from headrace import Workload
from headrace.algebra.states import Fact
from headrace.plan.build import Planner
from headrace.plan.guard import guarded
from headrace.plan.member import Facts
from headrace.plan.plan import Plan
from headrace.plan.shapes import Filters
from headrace.plan.sizes import Sizes
from headrace.plan.slices import Pair, Slices
from headrace.query import Expression

TIME, MINUTE = Expression.parse("ts"), 60_000_000
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
        "port > 0": pa.bool_(),
        "port < 9": pa.bool_(),
    }.items()
}


def plan_of(sizes: Sizes | None = None, /, **queries: str) -> Plan:
    return plan_with(FACTS, sizes, queries)


def plan_with(
    facts: Facts,
    sizes: Sizes | None,
    queries: dict[str, str],
    cores: int = 1,
    memory: int = 1 << 30,
    filters: Filters | None = None,
) -> Plan:
    inner = [guarded(query, lambda _: False) for query in Workload(queries).values()]
    planner = Planner(facts, sizes or Sizes(), cores, memory=memory, filters=filters)
    return planner.plan(inner)


def sizes_of(records: int = 1_000_000, **values: int) -> Sizes:
    """A sample of an hour in which columns have so many different values, each independent of the others."""
    random = np.random.default_rng(1)
    block = {
        Expression.parse(name): pa.array(random.integers(count, size=10_000)) for name, count in values.items()
    }
    block[Expression.parse("port = 443")] = pa.array(random.random(10_000) < 0.1)
    block[Expression.parse("port > 0")] = block[Expression.parse("port < 9")] = pa.array([True] * 10_000)
    return Sizes([block], records, 3_600_000_000)


WINDOWED = {
    "by_src": "SELECT window.start, src, sum(bytes) FROM t GROUP BY window(ts, '5 minutes'), src",
    "by_dst": "SELECT window.start, dst, avg(bytes) FROM t GROUP BY window(ts, '5 minutes'), dst",
    "total": "SELECT window.end, count(*) FROM t GROUP BY window(ts, '300 seconds')",
}


def test_queries_share_a_phantom_that_is_small() -> None:
    assert plan_of(sizes_of(src=10, dst=20), **WINDOWED).explain() == (
        "3 queries from 1 root\n"
        "- (src, dst) per 5 minutes: phantom [low level, 3 states, dealt by 5 minutes]\n"
        "  - (src) per 5 minutes: by_src [low level, 3 states]\n"
        "    - (no keys) per 5 minutes: total [low level, 1 states]\n"
        "  - (dst) per 5 minutes: by_dst [low level, 2 states]"
    )


def test_a_phantom_as_large_as_the_stream_is_not_kept() -> None:
    plan = plan_of(sizes_of(src=100_000, dst=100_000), **WINDOWED)
    assert {("by_src",), ("by_dst",)} <= {plan.names(root) for root in plan.roots}
    assert all(plan.names(node) for node in range(len(plan.nodes)))


def test_longer_windows_come_from_shorter_ones() -> None:
    plan = plan_of(
        sizes_of(src=1000),
        minute="SELECT src, count(*) FROM t GROUP BY window(ts, '1 minute'), src",
        hour="SELECT src, count(*) FROM t GROUP BY window(ts, '1 hour'), src",
        quarter="SELECT src, count(*) FROM t GROUP BY window(ts, '15 minutes'), src",
        sliding="SELECT src, count(*) FROM t GROUP BY window(ts, '15 minutes', '5 minutes', '2 minutes'), src",
    )
    assert plan.explain() == (
        "4 queries from 1 root\n"
        "- (src) per 1 minute: minute [low level, 1 states, dealt by 15 minutes]\n"
        "  - (src) per slice of 2 windows (3.75 minutes on average): phantom [low level, 1 states]\n"
        "    - (src) per 15 minutes: quarter [low level, 1 states]\n"
        "      - (src) per 1 hour: hour [low level, 1 states]\n"
        "    - (src) per 5 minutes: slices [low level, 1 states]\n"
        "      - (src) per 15 minutes every 5 minutes: sliding [low level, 1 states]"
    )
    assert [plan.nodes[node].slices for node in plan.split_nodes] == [
        Slices.every(TIME, 5 * MINUTE, 2 * MINUTE),
        Slices.every(TIME, 60 * MINUTE),
    ]


def test_windows_that_do_not_fit_share_shorter_slices() -> None:
    plan = plan_of(
        sizes_of(src=10),
        four="SELECT src, count(*) FROM t GROUP BY window(ts, '4 minutes'), src",
        six="SELECT src, count(*) FROM t GROUP BY window(ts, '6 minutes'), src",
    )
    assert plan.names(0) == ()
    assert plan.nodes[0].slices is not None
    assert plan.nodes[0].slices == Slices(TIME, (Pair(4 * MINUTE, 0, 4 * MINUTE), Pair(6 * MINUTE, 0, 6 * MINUTE)))


FILTERED = {
    "web": "SELECT src, count(*) FROM t WHERE port = 443 GROUP BY src",
    "all": "SELECT src, count(*) FROM t GROUP BY src",
}


def test_a_filter_can_be_a_key_of_a_phantom() -> None:
    plan = plan_of(sizes_of(src=1000, dst=10), **FILTERED)
    assert plan.explain() == (
        "2 queries from 1 root\n"
        "- (src, whether port = 443): phantom [low level, 1 states, dealt by src]\n"
        "  - (src) where port = 443: web [high level, 1 states]\n"
        "  - (src): all [high level, 1 states]"
    )
    assert plan.nodes[0].any_of == ()


def test_records_that_no_query_wants_are_dropped() -> None:
    plan = plan_of(
        sizes_of(src=10),
        one="SELECT src, count(*) FROM t WHERE port > 0 GROUP BY src",
        other="SELECT src, count(*) FROM t WHERE port < 9 GROUP BY src",
    )
    assert plan.nodes[0].marks == (Expression.parse("port > 0"), Expression.parse("port < 9"))
    assert plan.nodes[0].any_of == plan.nodes[0].marks


WEB, OPEN, LOW, PORT = map(Expression.parse, ("port = 443", "port > 0", "port < 9", "port"))


def test_a_filter_that_keys_decide_needs_no_mark() -> None:
    queries = {**FILTERED, "ports": "SELECT src, port, count(*) FROM t GROUP BY src, port"}
    plan = plan_with(FACTS, sizes_of(src=100, port=50), queries, filters=Filters({WEB: [PORT]}))
    assert plan.explain() == (
        "3 queries from 1 root\n"
        "- (src, port): ports [low level, 1 states, dealt by src]\n"
        "  - (src) where port = 443: web [high level, 1 states]\n"
        "  - (src): all [high level, 1 states]"
    )


def test_filters_that_are_true_for_the_same_records_are_one() -> None:
    queries = {
        name: f"SELECT src, count(*) FROM t WHERE {e} GROUP BY src" for name, e in (("a", OPEN), ("b", LOW))
    }
    plan = plan_with(FACTS, sizes_of(src=10), queries, filters=Filters(wider={OPEN: [LOW], LOW: [OPEN]}))
    assert [plan.names(node) for node in range(len(plan.nodes))] == [("a", "b")]


def test_a_filter_within_another_comes_from_its_records() -> None:
    queries = {
        "wide": "SELECT src, port, count(*) FROM t WHERE port > 0 GROUP BY src, port",
        "narrow": "SELECT src, count(*) FROM t WHERE port = 443 GROUP BY src",
    }
    sizes = sizes_of(src=10, port=20)
    plan = plan_with(FACTS, sizes, queries, filters=Filters({WEB: [PORT]}, {WEB: [OPEN]}))
    assert plan.explain() == (
        "2 queries from 1 root\n"
        "- (src, port) where port > 0: wide [low level, 1 states, dealt by src]\n"
        "  - (src) where port = 443: narrow [high level, 1 states]"
    )
    apart = plan_with(FACTS, sizes, queries, filters=Filters({WEB: [PORT]}))
    assert apart.names(0) == ()


def test_every_node_says_what_it_takes_and_every_phantom_why_it_is_there() -> None:
    plan = plan_of(sizes_of(src=10, dst=20), **WINDOWED)
    reasons = plan.reasons()
    assert reasons.keys() == set(range(4))
    assert reasons[0].startswith("about 2,400 rows in ")
    assert "; 2 nodes made from these instead of the records save " in reasons[0]
    assert all("instead of" not in reasons[node] for node in range(1, 4))
    assert plan.expected[0].saved > 0
    assert plan.estimate is not None
    assert sum(own.seconds for own in plan.expected) == pytest.approx(plan.estimate.tree)


def test_the_picture_is_well_formed_and_has_every_node() -> None:
    plan = plan_of(
        sizes_of(src=10, dst=20), **WINDOWED, odd="SELECT src, first(bytes) FROM t WHERE src < dst GROUP BY 1"
    )
    picture = ElementTree.fromstring(plan.picture())
    texts = [element.text or "" for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    for expected in (
        "(src, dst) per 5 minutes: phantom",
        "(src) per 5 minutes: by_src",
        "(dst) per 5 minutes: by_dst",
    ):
        assert expected in texts
    assert any(text.startswith("beside, by plain Spark: odd") for text in texts)
    assert plan._repr_html_() == plan.picture()


def test_time_that_may_be_null_is_no_way_to_all_records() -> None:
    queries = {
        "minute": "SELECT src, count(*) FROM t GROUP BY window(ts, '1 minute'), src",
        "all": "SELECT src, count(*) FROM t GROUP BY src",
    }
    assert len(plan_of(sizes_of(src=10), **queries).roots) == 2
    timed = {**FACTS, Expression.parse("ts"): Fact(pa.timestamp("us", "UTC"), nullable=False)}
    plan = plan_with(timed, sizes_of(src=10), queries)
    assert len(plan.roots) == 1
    assert plan.split_nodes == (1,)


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
        (
            "SELECT count(DISTINCT *) FROM t GROUP BY src",
            "count(DISTINCT *): DISTINCT needs a finer node; count(DISTINCT *): no bag holds whole records",
        ),
    ],
)
def test_what_plain_spark_runs_beside_the_plan(text: str, reason: str) -> None:
    plan = plan_of(q=text)
    assert plan.beside == (("q", reason),)
    assert plan.nodes == ()
    assert reason in plan.explain()


def test_bags_come_from_finer_nodes() -> None:
    plan = plan_of(
        sizes_of(src=100, dst=100, bytes=1_000_000),
        pairs="SELECT src, count(DISTINCT dst) FROM t GROUP BY src",
        by_dst="SELECT dst, sum(bytes) FROM t GROUP BY dst",
        sizes="SELECT src, median(bytes), count(*) FROM t GROUP BY src",
    )
    assert plan.explain() == (
        "3 queries from 2 roots\n"
        "- (src, dst): pairs [low level, 3 states, dealt by src]\n"
        "  - (dst): by_dst [high level, 2 states]\n"
        "- (src, bytes): sizes [low level, 1 states, dealt by src]"
    )
    assert plan.split_nodes == (2,)
    assert ">(src, dst): pairs</text>" in plan.picture()


def test_what_lies_below_a_split_node_is_not_split_again() -> None:
    plan = plan_of(
        sizes_of(src=10, dst=10, port=10),
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
