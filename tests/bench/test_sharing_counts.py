"""Counts of the studies: the papers' worked numbers, and brute force on few records."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.bench.sharing.counts import Count, Fragments, Span, Tally
from headrace.bench.sharing.subject import Member, Records, Value
from headrace.bench.sharing.workloads import Asked, Predicate, Window

Record = tuple[int, int, int, bool]
"""Time, group, and what predicates are about."""
X = Value("x", "x {op} {constant}", "x", whole=True)
M = Member("m", "m", "NOT m")
PREDICATES = [
    Predicate(M, inside, X, above, c) for inside in (True, False) for above in (True, False) for c in (2, 5)
]


def lengths(starts: Sequence[int], end: int) -> list[int]:
    return [b - a for a, b in itertools.pairwise([*starts, end])]


def slices(windows: Iterable[Window], period: int, paned: bool = False) -> list[int]:
    """A period as the papers write it: their windows end where Spark's begin, so time is mirrored."""
    flags = Span(0, period).composed(windows, paned)
    return lengths(np.flatnonzero(flags).tolist(), period)[::-1]


def test_the_papers_slices() -> None:
    assert slices([Window(18, 15)], 15, paned=True) == [3, 3, 3, 3, 3]
    assert slices([Window(18, 15)], 15) == [12, 3]
    assert slices([Window(12, 9)], 9) == [6, 3]
    assert slices([Window(18, 15), Window(12, 9)], 45) == [6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3]


def test_the_papers_costs_of_a_period() -> None:
    """Tables 2 and 3: in each period panes take r/g final operations, pairs 3 here (2r/s, rounded up)."""
    units = np.arange(30 * 45)
    records = Records(units, np.zeros(len(units), dtype=np.int32), {})
    tally = Tally.of(records, [Asked(Window(18, 15))])
    assert tally.unshared() == Count(1350, 3 * 90)
    assert tally.unshared(paned=True) == Count(1350, 18 // 3 * 90)
    # Of the slices 6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3 the first query's windows have five each, and the other's
    # in turn 3, 4, 3, 4, 3. One more of each has begun before.
    both = Tally.of(records, [Asked(Window(18, 15)), Asked(Window(12, 9))])
    assert both.shared() == Count(1350, 30 * (3 * 5 + 17), once=1350 + 30 * 12 + 91 + 151)
    assert both.unshared() == Count(2700, 3 * 90 + 3 * 150)


def test_the_papers_fragments() -> None:
    """Table 5: unshared, one for each record and query; shared, one for each record, each fragment and query."""
    records = Records(
        np.zeros(5, dtype=np.int64),
        np.zeros(5, dtype=np.int32),
        {"x": np.array([1, 1, 3, 9, 3]), "m": np.array([True] * 5)},
    )
    predicates = [
        Predicate(M, True, Value("x", "", "x"), True, 2),
        Predicate(M, True, Value("x", "", "x"), False, 4),
    ]
    fragments = Fragments.of(predicates, records.columns, 5)
    assert [tuple(row) for row in fragments.truths[fragments.of_records].astype(int).tolist()] == [
        (0, 1), (0, 1), (1, 1), (1, 0), (1, 1),
    ]  # fmt: skip
    tally = Tally.of(records, [Asked(Window(600, 600), predicate) for predicate in predicates])
    assert tally.unshared() == Count(0, 7)
    assert tally.shared() == Count(5, 1 + 2 + 1)


@st.composite
def windows(draw: st.DrawFn) -> Window:
    slide = draw(st.integers(1, 6))
    return Window(draw(st.integers(slide, 12)), slide)


RECORDS = st.lists(
    st.tuples(st.integers(100, 130), st.integers(0, 2), st.integers(0, 7), st.booleans()), min_size=1, max_size=40
)


@given(
    records=RECORDS,
    asked=st.lists(st.tuples(windows(), st.none() | st.sampled_from(PREDICATES)), min_size=1, max_size=5),
    paned=st.booleans(),
)
def test_brute_force(records: list[Record], asked: list[tuple[Window, Predicate | None]], paned: bool) -> None:
    queries = [Asked(*pair) for pair in asked]
    units, groups, values, members = (np.array(column) for column in zip(*records, strict=True))
    tally = Tally.of(Records(units, groups.astype(np.int32), {"x": values, "m": members}), queries)
    if tally.one_window:
        return
    assert tally.unshared(paned) == unshared(records, queries, paned)
    assert tally.shared(paned) == shared(records, queries, paned)
    alone = [(unit, 0, x, m) for unit, _, x, m in records]
    assert tally.ungrouped.unshared(paned) == unshared(alone, queries, paned)
    assert tally.ungrouped.shared(paned) == shared(alone, queries, paned)


def holds(query: Asked, record: Record) -> bool:
    p = query.predicate
    return p is None or (record[3] == p.inside and (record[2] > p.constant if p.above else record[2] < p.constant))


def edge_times(window: Window, paned: bool) -> set[int]:
    if paned:
        size = int(np.gcd(window.range, window.slide))
        return {time for time in range(0, 200) if time % size == 0}
    starts = range(0, 200, window.slide)
    return {*starts, *(start + window.range for start in range(-200 * window.slide, 200, window.slide))}


def slice_of(unit: int, edges: set[int]) -> int:
    return max(edge for edge in edges if edge <= unit)


def covering(window: Window, unit: int) -> int:
    starts = range(-20 * window.slide, 200, window.slide)
    return sum(start <= unit < start + window.range for start in starts)


def unshared(records: list[Record], queries: list[Asked], paned: bool) -> Count:
    partial = final = 0
    for query in queries:
        own = [record for record in records if holds(query, record)]
        edges = edge_times(query.window, paned)
        rows = {(slice_of(unit, edges), group) for unit, group, *_ in own}
        first = {row: min(r[0] for r in own if (slice_of(r[0], edges), r[1]) == row) for row in rows}
        partial += len(own)
        final += sum(covering(query.window, first[row]) for row in rows)
    return Count(partial, final)


def shared(records: list[Record], queries: list[Asked], paned: bool) -> Count:
    edges = set().union(*(edge_times(query.window, paned) for query in queries))
    wanted = [record for record in records if any(holds(query, record) for query in queries)]
    shards: dict[tuple[int, int, tuple[bool, ...]], int] = {}
    for record in wanted:
        signature = tuple(holds(query, record) for query in queries)
        shards[slice_of(record[0], edges), record[1], signature] = record[0]
    to_queries = to_windows = direct = once = 0
    merged: set[Predicate | None] = set()
    plain = all(query.predicate is None for query in queries)
    for number, query in enumerate(queries):
        own = {shard: unit for shard, unit in shards.items() if shard[2][number]}
        rows = {shard[:2]: unit for shard, unit in own.items()}
        to_queries += len(own)
        to_windows += sum(covering(query.window, unit) for unit in rows.values())
        direct += sum(covering(query.window, unit) for unit in own.values())
        if query.predicate not in merged:
            once += len(rows) + (0 if plain else len(own))
            merged.add(query.predicate)
        starts = range(-20 * query.window.slide, 200, query.window.slide)
        times = [(row[1], unit) for row, unit in rows.items()]
        once += len({(g, s) for g, unit in times for s in starts if s <= unit < s + query.window.range})
    if plain:
        return Count(len(wanted), to_windows, once=len(wanted) + once)
    return Count(len(wanted), to_queries + to_windows, len(wanted) + direct, len(wanted) + once)
