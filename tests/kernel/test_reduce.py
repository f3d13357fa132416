"""Reducers: any split, any budget and any number of partials give the same groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.ops import Op
from headrace.kernel.reduce import Reducer

KEYS = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3),
    st.none() | st.text(max_size=2),
    st.none() | st.sampled_from([0.0, 1.5, float("inf")]),
)
KINDS = [pa.int64(), pa.string(), pa.float64()]
ROWS = st.lists(st.tuples(KEYS, st.integers(-100, 100)), max_size=30)


def columns(rows: list[Any]) -> list[pa.Array]:
    return [pa.array([key[index] for key, _ in rows], kind) for index, kind in enumerate(KINDS)]


def add(reducer: Reducer, rows: list[Any]) -> None:
    values = np.array([value for _, value in rows], dtype=np.int64)
    reducer.add(columns(rows), [np.ones(len(rows), dtype=np.int64), values], len(rows))


def merge(reducer: Reducer) -> Reducer:
    """What the high level does with the partials of a low level."""
    reducer.flush()
    whole = Reducer(len(KINDS), reducer.ops)
    for keys, slots in reducer.partials:
        whole.add(keys, slots, len(slots[0]))
    return whole


def groups(reducer: Reducer) -> dict[Any, tuple[int, ...]]:
    assert not reducer.partials
    found = zip(*(key.to_pylist() for key in reducer.key_columns()), strict=True)
    slots = zip(*(slot.tolist() for slot in reducer.slots()), strict=True)
    return dict(zip(found, slots, strict=True)) if len(reducer) else {}


@given(st.lists(ROWS, min_size=1, max_size=4), st.sampled_from([None, 1, 200_000]))
def test_pieces_and_budgets(pieces: list[list[Any]], budget: int | None) -> None:
    low = Reducer(len(KINDS), [Op.ADD, Op.MAX], budget)
    for piece in pieces:
        add(low, piece)
    counts: Counter[Any] = Counter()
    most: dict[Any, int] = defaultdict(lambda: -(2**63))
    for key, value in (row for piece in pieces for row in piece):
        counts[key] += 1
        most[key] = max(most[key], value)
    assert groups(merge(merge(low))) == {key: (counts[key], most[key]) for key in counts}


@given(ROWS)
def test_a_child_has_the_sums_of_its_parent(rows: list[Any]) -> None:
    parent = Reducer(len(KINDS), [Op.ADD, Op.MAX])
    add(parent, rows)
    child = parent.child([1], [0])
    assert groups(child) == {(key,): (n,) for key, n in Counter(key[1] for key, _ in rows).items()}
    nothing = parent.child([], [0])
    assert [slot.tolist() for slot in nothing.slots()] == ([[len(rows)]] if rows else [[]])


def test_a_budget_lets_partials_leave() -> None:
    reducer = Reducer(1, [Op.ADD], budget=1)
    for _ in range(3):
        reducer.add([pa.array([1, 2])], [np.ones(2, dtype=np.int64)], 2)
    assert len(reducer.partials) == 3
    assert len(reducer) == 0


def test_no_keys() -> None:
    reducer = Reducer(0, [Op.ADD])
    reducer.add([], [np.arange(5, dtype=np.int64)], 5)
    assert reducer.key_columns() == []
    assert reducer.slots()[0].tolist() == [10]
