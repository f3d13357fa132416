"""Both levels without Spark: any plan, any split of the records and any budget give the same answers."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headrace.algebra.states import Fact
from headrace.kernel import high, parent, reduce
from headrace.kernel.answer import window_edges
from headrace.kernel.evaluate import compile_expression
from headrace.kernel.high import HighLevel, homes, is_for
from headrace.kernel.low import LowLevel, Stretch, node_inputs
from headrace.kernel.narrow import array_of
from headrace.kernel.piece import Partial, Piece, Ready
from headrace.kernel.records import Inputs
from headrace.plan import plan as plan_module
from headrace.plan.build import Planner
from headrace.plan.costs import Costs
from headrace.plan.guard import guarded
from headrace.plan.plan import Plan
from headrace.plan.sizes import Sizes
from headrace.query import Expression, Query, parse_query
from headrace.runtime.source import Session, learn_filters

MINUTE = 60_000_000
HALF_MINUTES = range(0, 20 * MINUTE, MINUTE // 2)
BUCKETS = 3
TIME = Expression.parse("ts")
TYPES = {"ts": pa.timestamp("us", "UTC"), "a": pa.int32(), "b": pa.string(), "x": pa.int64(), "f": pa.bool_()}
WHERE: dict[str, Callable[[Any], bool]] = {
    "f": lambda r: bool(r["f"]),
    "a < 2": lambda r: r["a"] is not None and r["a"] < 2,
    "a <= 1": lambda r: r["a"] is not None and r["a"] <= 1,
    "a = 1": lambda r: r["a"] == 1,
    "a IS NULL": lambda r: r["a"] is None,
    "b = 'p' OR a >= 2": lambda r: r["b"] == "p" or (r["a"] is not None and r["a"] >= 2),
    "a >= 1 AND (b = 'q')": lambda r: r["a"] is not None and r["a"] >= 1 and r["b"] == "q",
    "1 = 1 AND a >= 1": lambda r: r["a"] is not None and r["a"] >= 1,
    "a < 2 AND f": lambda r: r["a"] is not None and r["a"] < 2 and bool(r["f"]),
}
"""Filters, and what they mean: some that keys decide, some that others contain, two that are the same."""
FACTS = {Expression.parse(name): Fact(kind, nullable=name != "ts") for name, kind in TYPES.items()} | {
    Expression.parse(where): Fact(pa.bool_()) for where in WHERE
}
CONDITIONS, FILTERS = learn_filters(
    map(Expression.parse, WHERE), map(Expression.parse, "ab"), FACTS, Session(TYPES, "UTC", usual=True)
)
WINDOWS = ("", "window(ts, '1 minute')", "window(ts, '2 minutes')", "window(ts, '6 minutes')")
OVERLAPPING = (
    "window(ts, '3 minutes', '1 minute')",
    "window(ts, '4 minutes', '2 minutes', '1 minute')",
    "window(ts, '5 minutes', '3 minutes')",
    "window(ts, '210 seconds', '2 minutes', '-30 seconds')",
    "window(ts, '15 minutes', '30 seconds')",
)
HOPPING = ("[RANGE '1 min' SLIDE '3 min']", "[RANGE '90 sec' SLIDE '2 min' OFFSET '30 sec']")
RECORDS = st.lists(
    st.tuples(
        st.integers(0, 20 * MINUTE),
        st.none() | st.integers(0, 3),
        st.none() | st.sampled_from("pqr"),
        st.integers(0, 9),
        st.none() | st.booleans(),
    ),
    max_size=60,
)


@st.composite
def texts(draw: st.DrawFn) -> str:
    keys = draw(st.sets(st.sampled_from("ab")))
    window = draw(st.sampled_from(WINDOWS + OVERLAPPING + HOPPING))
    measure = draw(st.sampled_from(["count(*)", "sum(x)", "max(x)", "count(DISTINCT b)"]))
    gaps = window if window.startswith("[") else ""
    group = ", ".join([*([window] if window and not gaps else []), *sorted(keys)])
    where = draw(st.sampled_from(["", "", *(f" WHERE {where}" for where in WHERE)]))
    return f"SELECT {measure} FROM t {gaps}{where}" + (f" GROUP BY {group}" if group else "")


CARRYING = {"cores": 8, "memory": 0, "costs": Costs(shipped=1e6)}
"""Hardly any node has whole slices, none has memory to gather in, and it costs much to ship rows."""


SHARING = {"cores": 2, "costs": Costs(record=1e4)}
"""A record costs much, so that it goes into few nodes."""


def plan_of(
    queries: list[str], records: list[Any], sampled: bool, carrying: bool = False, sharing: bool = False
) -> Plan:
    """A plan for what is known of the records, or for nothing: then nothing but the queries' own nodes is kept."""
    columns = table_of(records)
    blocks = [{e: column_of(e, columns) for e in FACTS}] if sampled and records else []
    sizes = Sizes(blocks, 1_000_000, 20 * MINUTE if sampled else None)
    settings: dict[str, Any] = CARRYING if carrying else SHARING if sharing else {"cores": 2}
    inner = [guarded(query, lambda _: False) for query in parsed(queries).values()]
    return Planner(FACTS, sizes, filters=FILTERS, **settings).plan(inner)


def parsed(texts: list[str]) -> dict[str, Query]:
    return {f"q{n}": parse_query(f"q{n}", text, columns=list(TYPES), time="ts") for n, text in enumerate(texts)}


@pytest.fixture(autouse=True, scope="module")
def small() -> Iterator[None]:
    """What is done for many rows is done for a few here."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reduce, "_MANY", 2)
        patch.setattr(parent, "MOST_FOUND", 30)
        yield


def planner_of(records: list[Any], carrying: bool) -> Planner:
    blocks = [{e: column_of(e, table_of(records)) for e in FACTS}] if records else []
    settings: dict[str, Any] = CARRYING if carrying else {"cores": 2}
    return Planner(FACTS, Sizes(blocks, 1_000_000, 20 * MINUTE), filters=FILTERS, **settings)


def table_of(records: list[Any]) -> dict[str, pa.Array]:
    return {name: pa.array([r[i] for r in records], kind) for i, (name, kind) in enumerate(TYPES.items())}


def column_of(expression: Expression, columns: dict[str, pa.Array]) -> pa.Array:
    if expression.sql in columns:
        return columns[expression.sql]
    evaluator = compile_expression(expression, TYPES, pa.bool_(), "UTC")
    assert evaluator is not None
    return evaluator(columns)


def low_pieces(plan: Plan, tasks: list[list[Any]], edges: list[int] | None, budget: int) -> Iterator[Piece]:
    """The pieces of tasks; those with `edges` have a stretch of time each, and read it in order."""
    # A batch without columns would have no rows.
    inputs = tuple(dict.fromkeys([TIME, *(e for root in plan.roots for e in node_inputs(plan.nodes[root]))]))
    for number, task in enumerate(tasks):
        own = None
        if edges is not None:
            bounds = [None, *edges, None]
            own = Stretch(TIME, bounds[number], bounds[number + 1])
        level = LowLevel(plan, Inputs(inputs), budget, BUCKETS, own, CONDITIONS)
        records = sorted(task, key=lambda record: record[0]) if edges is not None else task
        for start in range(0, len(records), 7):
            columns = table_of(records[start : start + 7])
            batch = pa.record_batch([column_of(e, columns) for e in inputs], [e.sql for e in inputs])
            yield from level.add(batch)
            if edges is not None and records[start + 7 :]:
                yield from level.close(records[start + 7][0])
        yield from level.finish()


def answers_of(plan: Plan, pieces: list[Piece]) -> dict[str, list[tuple[Any, ...]]]:
    """The rows of all queries, after both times that partials meet."""
    for last in (False, True):
        own = [[home for home in homes(plan, BUCKETS, last) if home.bucket == bucket] for bucket in range(BUCKETS)]
        levels = [HighLevel(plan, BUCKETS, last, conditions=CONDITIONS, homes=some) for some in own]
        kept: list[Piece] = []
        for piece in pieces:
            if isinstance(piece, Partial) and is_for(plan, piece.node, last):
                for bucket, first, end, _ in piece.parts:
                    columns = [column.slice(first, end - first) for column in piece.columns]
                    levels[bucket].add(piece.node, columns, end - first)
            else:
                kept.append(piece)
        pieces = kept + [piece for level in levels for piece in level.finish()]
    found: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
    for piece in pieces:
        assert isinstance(piece, Ready)
        query = plan.answers[piece.answer].query
        arrays = list(map(array_of, piece.columns))
        if query.window is not None:
            arrays[:1] = map(pa.array, window_edges(query.window, np.asarray(arrays[0])))
        found[query.name] += zip(*(array.to_pylist() for array in arrays), strict=True)
    return found


def plain(query: Query, records: list[Any]) -> list[tuple[Any, ...]]:
    """What a query means, one record at a time."""
    groups: dict[Any, list[Any]] = defaultdict(list)
    if not query.keys and query.window is None:
        groups[()] = []
    for record in records:
        named = dict(zip(TYPES, record, strict=True))
        if query.where is not None and not WHERE[query.where.sql](named):
            continue
        key = tuple(named[k.sql] for k in query.keys)
        if query.window is None:
            groups[key].append(named)
            continue
        window = query.window
        first = (named["ts"] - window.offset_us) // window.slide_us * window.slide_us + window.offset_us
        start = first
        while start + window.range_us > named["ts"]:
            groups[start, start + window.range_us, *key].append(named)
            start -= window.slide_us
    return [(*key, measure(query.aggregates[0].sql, members)) for key, members in groups.items()]


def measure(sql: str, members: list[Any]) -> Any:
    if sql == "count(*)":
        return len(members)
    if sql == "sum(x)":
        return sum(member["x"] for member in members) if members else None
    if sql == "max(x)":
        return max(member["x"] for member in members) if members else None
    return len({member["b"] for member in members} - {None})


DECIDED = [(n * MINUTE // 50, n % 3, "pqr"[n % 3], n % 7, True) for n in range(1000)]
"""Records in which a decides b, and b decides a. As a sample they promise what others need not keep."""


WINDOWS_OF_A_CARRIED_NODE = [
    "SELECT sum(x) FROM t WHERE a = 1 GROUP BY window(ts, '4 minutes', '2 minutes', '1 minute'), a",
    "SELECT count(DISTINCT b) FROM t WHERE a < 2 AND f GROUP BY window(ts, '15 minutes', '30 seconds'), a, b",
    "SELECT count(DISTINCT b) FROM t GROUP BY window(ts, '210 seconds', '2 minutes', '-30 seconds'), a",
    "SELECT count(DISTINCT b) FROM t WHERE a IS NULL GROUP BY window(ts, '6 minutes'), a, b",
    "SELECT sum(x) FROM t WHERE a <= 1 GROUP BY window(ts, '15 minutes', '30 seconds'), a",
    "SELECT count(*) FROM t WHERE b = 'p' OR a >= 2 GROUP BY window(ts, '3 minutes', '2 minutes')",
]
"""Windows are made of slices of their own, which are made again of a node that is carried."""


@example(WINDOWS_OF_A_CARRIED_NODE, [(32, 0, None, 7, False)], [MINUTE, 5 * MINUTE], 4096, "decided", False)
@given(
    queries=st.lists(texts(), min_size=1, max_size=6),
    records=RECORDS,
    edges=st.none()
    | st.lists(st.integers(0, 20).map(lambda n: n * MINUTE // 2), unique=True, max_size=3).map(sorted),
    budget=st.sampled_from([1, 4096, 1 << 30]),
    sampled=st.sampled_from([None, "records", "decided"]),
    carrying=st.booleans(),
)
def test_levels(
    queries: list[str],
    records: list[Any],
    edges: list[int] | None,
    budget: int,
    sampled: str | None,
    carrying: bool,
) -> None:
    plan = plan_of(queries, DECIDED if sampled == "decided" else records, sampled is not None, carrying)
    if edges is None:
        tasks = [records[0::2], records[1::2]]
    else:
        bounds = [-1, *edges, 10**12]
        tasks = [[r for r in records if low <= r[0] < high] for low, high in itertools.pairwise(bounds)]
    found = answers_of(plan, list(low_pieces(plan, tasks, edges, budget)))
    assert not plan.beside
    for answer in plan.answers:
        expected = plain(answer.query, records)
        assert Counter(found[answer.query.name]) == Counter(expected), f"{answer.query.sql}\n{plan.explain()}"


@st.composite
def alike(draw: st.DrawFn) -> list[str]:
    """Queries of the same keys, which differ in filters and windows."""
    keys = draw(st.sampled_from([("a",), ("b",), ("a", "b"), ()]))
    asked = st.tuples(st.sampled_from(list(WHERE)), st.sampled_from(WINDOWS + OVERLAPPING))
    measures = st.sampled_from(["count(*)", "sum(x)", "max(x)"])
    texts = []
    for where, window in draw(st.lists(asked, min_size=2, max_size=10)):
        group = ", ".join([window, *keys] if window else keys)
        text = f"SELECT {draw(measures)} FROM t WHERE {where}"
        texts.append(text + (f" GROUP BY {group}" if group else ""))
    return texts


@given(
    queries=alike(),
    records=RECORDS,
    edges=st.none() | st.just([4 * MINUTE]) | st.just([7 * MINUTE // 2, 12 * MINUTE]),
    budget=st.sampled_from([4096, 1 << 30]),
    marks=st.sampled_from([1, 3]),
    data=st.data(),
)
def test_filters_and_windows_from_rows_in_order(
    queries: list[str], records: list[Any], edges: list[int] | None, budget: int, marks: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(plan_module, "_MANY_MARKS", marks)
        plan = plan_of(queries, records, sampled=True, sharing=True)
        bounds = [-1, *(edges or []), 10**12]
        tasks = [[r for r in records if low <= r[0] < high] for low, high in itertools.pairwise(bounds)]
        for step in range(2):
            found = answers_of(plan, list(low_pieces(plan, tasks, edges, budget)))
            for answer in plan.answers:
                expected = plain(answer.query, records)
                assert Counter(found[answer.query.name]) == Counter(expected), (
                    f"{answer.query.sql}\n{plan.explain()}"
                )
            if step == 0:
                gone = data.draw(st.sampled_from([answer.query.name for answer in plan.answers]))
                plan = plan.without_query(gone, planner_of(records, carrying=False)).plan


def test_windows_that_differ_in_filters_come_from_one_node() -> None:
    """As their rows are in order, nothing is made between them and the windows."""
    wheres = [f"x > {number}" for number in range(12)]
    queries = [
        f"SELECT sum(x) FROM t WHERE {where} GROUP BY window(ts, '{5 + number} minutes', '2 minutes'), a"
        for number, where in enumerate(wheres)
    ]
    facts = FACTS | {Expression.parse(where): Fact(pa.bool_()) for where in wheres}
    records = [(n * MINUTE // 50, n % 3, "pqr"[n % 3], n % 7, True) for n in range(1000)]
    blocks = [{e: column_of(e, table_of(records)) for e in facts}]
    inner = [guarded(query, lambda _: False) for query in parsed(queries).values()]
    plan = Planner(facts, Sizes(blocks, 1_000_000, 20 * MINUTE)).plan(inner)
    assert plan.roots == (0,)
    assert plan.nodes[0].ordered
    assert plan.parents == (None, *[0] * 12)
    assert [node.any_of for node in plan.nodes[1:]] == [(Expression.parse(where),) for where in wheres]


@given(
    queries=st.lists(texts(), min_size=1, max_size=8),
    begin=st.integers(0, 4),
    going=st.lists(st.integers(0, 7), max_size=6),
    records=RECORDS,
    edges=st.none() | st.just([4 * MINUTE]) | st.just([7 * MINUTE // 2, 12 * MINUTE]),
    carrying=st.booleans(),
)
def test_queries_come_and_go(
    queries: list[str],
    begin: int,
    going: list[int],
    records: list[Any],
    edges: list[int] | None,
    carrying: bool,
) -> None:
    """Whatever came and went before, answers are the plain ones; what is kept is kept as it was."""
    all_of = {name: guarded(query, lambda _: False) for name, query in parsed(queries).items()}
    planner = planner_of(records, carrying)
    there = list(all_of)[:begin]
    plan = planner.plan([all_of[name] for name in there])
    steps = [*list(all_of)[begin:], *(f"q{number}" for number in going if number < len(queries))]
    for name in steps:
        there = [other for other in there if other != name] if name in there else [*there, name]
        coming = name in there
        change = plan.with_query(all_of[name], planner) if coming else plan.without_query(name, planner)
        assert set(change.kept) == set(plan.nodes) & set(change.plan.nodes)
        plan = change.plan
        assert sorted(answer.query.name for answer in plan.answers) == sorted(there)
    bounds = [-1, *(edges or []), 10**12]
    tasks = [[r for r in records if low <= r[0] < high] for low, high in itertools.pairwise(bounds)]
    found = answers_of(plan, list(low_pieces(plan, tasks, edges, 1 << 30)))
    for answer in plan.answers:
        expected = plain(answer.query, records)
        assert Counter(found[answer.query.name]) == Counter(expected), f"{answer.query.sql}\n{plan.explain()}"


@pytest.mark.parametrize("broken", [False, True])
@pytest.mark.parametrize("edges", [None, [4 * MINUTE]])
def test_queries_of_the_same_groups_share_a_node(broken: bool, edges: list[int] | None) -> None:
    groups = ("a", "b", "a, b")
    queries = [f"SELECT count(*), sum(x) FROM t GROUP BY window(ts, '2 minutes'), {keys}" for keys in groups]
    plan = plan_of(queries, DECIDED, sampled=True)
    assert [plan.names(node) for node in range(len(plan.nodes))] == [("q0", "q1", "q2")]
    assert [", ".join(map(str, answer.assumed)) for answer in plan.answers] == ["a decides b", "b decides a", ""]
    records = [(time, a, "q" if broken and x == 5 else b, x, f) for time, a, b, x, f in DECIDED]
    tasks = [[r for r in records if r[0] < 4 * MINUTE], [r for r in records if r[0] >= 4 * MINUTE]]
    found = answers_of(plan, [*low_pieces(plan, tasks, edges, 1 << 30)])
    for answer in plan.answers:
        expected = {(*key[:-1],): key[-1] for key in plain(answer.query, records)}
        assert {row[:-2]: row[-2] for row in found[answer.query.name]} == expected
        assert len(found[answer.query.name]) == len(expected)


@pytest.mark.parametrize("records", [[], [(0, 1, "p", 1, True)]])
def test_one_answer_without_keys_beside_groups_that_meet_twice(records: list[Any]) -> None:
    queries = [
        "SELECT count(*) FROM t",
        "SELECT a, count(DISTINCT b) FROM t GROUP BY a",
        "SELECT sum(x) FROM t WHERE f",
    ]
    plan = plan_of(queries, records, sampled=False)
    found = answers_of(plan, list(low_pieces(plan, [records], None, 1 << 30)))
    assert found["q0"] == [(len(records),)]
    assert found["q2"] == [(1 if records else None,)]


def test_windows_of_records_that_no_filter_chooses() -> None:
    """The node that has their slices is made of another, and has no rows."""
    queries = [
        "SELECT count(*) FROM t WHERE a <= 1 GROUP BY window(ts, '210 seconds', '2 minutes', '-30 seconds'), a",
        "SELECT sum(x) FROM t WHERE a = 1 GROUP BY window(ts, '15 minutes', '30 seconds'), a, b",
        "SELECT sum(x) FROM t WHERE a = 1 GROUP BY window(ts, '15 minutes', '30 seconds'), a",
    ]
    records = [(117, 0, "q", 0, None), (28, None, "p", 6, False)]
    plan = plan_of(queries, records, sampled=False)
    found = answers_of(plan, list(low_pieces(plan, [records], [], 1 << 30)))
    for answer in plan.answers:
        assert Counter(found[answer.query.name]) == Counter(plain(answer.query, records))


def test_what_is_assumed_of_no_rows_is_true() -> None:
    """Hopping windows leave the only record out; what a shared node assumes of keys is asked all the same."""
    windows = "FROM t [RANGE '90 sec' SLIDE '2 min' OFFSET '30 sec']"
    queries = [
        "SELECT count(DISTINCT b) FROM t  WHERE a <= 1 GROUP BY window(ts, '3 minutes', '1 minute'), a, b",
        f"SELECT max(x) {windows} WHERE a < 2 GROUP BY a, b",
        f"SELECT max(x) {windows} WHERE b = 'p' OR a >= 2 GROUP BY b",
        f"SELECT max(x) {windows} WHERE b = 'p' OR a >= 2 GROUP BY a, b",
    ]
    plan = plan_of(queries, DECIDED, sampled=True, carrying=True)
    assert any(answer.assumed for answer in plan.answers)
    found = answers_of(plan, list(low_pieces(plan, [[(685457, None, "r", 0, False)]], [], 4096)))
    assert not any(found.values())


@pytest.mark.parametrize("most_apart", [1, 50, 1 << 19])
def test_carried_rows_stay_apart_as_long_as_they_are_few(monkeypatch: pytest.MonkeyPatch, most_apart: int) -> None:
    monkeypatch.setattr(high, "_TOGETHER", 5)
    monkeypatch.setattr(high, "_MOST_APART", most_apart)
    windows = ("1 minute", "2 minutes", "3 minutes", "5 minutes", "7 minutes")
    queries = [f"SELECT sum(x) FROM t GROUP BY window(ts, '{length}'), a, b" for length in windows]
    records = [(m * MINUTE // 4, n, b, m % 7, True) for m in range(72) for n in range(4) for b in "pqr"]
    plan = plan_of(queries, records, sampled=True, carrying=True)
    assert any(map(plan.carried, range(len(plan.nodes))))
    found = answers_of(
        plan, [*low_pieces(plan, [records[:400], records[400:]], [400 // 12 * MINUTE // 4], 1 << 30)]
    )
    for answer in plan.answers:
        assert Counter(found[answer.query.name]) == Counter(plain(answer.query, records))


def test_rows_that_least_hangs_on_leave_first() -> None:
    queries = [
        f"SELECT count(*) FROM t GROUP BY window(ts, '{length}'), a, b"
        for length in ("1 minute", "2 minutes", "6 minutes")
    ]
    records = [(m * MINUTE // 4, n, b, 1, True) for m in range(72) for n in range(4) for b in "pqr"]
    plan = plan_of(queries, records, sampled=True)
    pieces = [*low_pieces(plan, [records], [], budget=1 << 16)]
    left = {piece.node for piece in pieces if isinstance(piece, Partial)}
    assert left, "there was memory for all"
    assert left.isdisjoint(plan.roots)
    assert {name: len(rows) for name, rows in answers_of(plan, pieces).items()} == {
        "q0": 18 * 12,
        "q1": 9 * 12,
        "q2": 3 * 12,
    }
