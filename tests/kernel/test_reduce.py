"""Reducers: any split, any budget and any number of partials give the same groups."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.ops import Op
from headrace.kernel.narrow import array_of
from headrace.kernel.records import Coding
from headrace.kernel.reduce import Reducer, reduce
from headrace.kernel.rows import Rows

KEYS = st.tuples(
    st.none() | st.integers(-(2**63), 2**63 - 1) | st.integers(0, 3),
    st.none() | st.text(max_size=2),
    st.none() | st.sampled_from([0.0, 1.5, float("inf")]),
)
KINDS = [pa.int64(), pa.string(), pa.float64()]
ROWS = st.lists(st.tuples(KEYS, st.integers(-100, 100)), max_size=30)


def columns(rows: list[Any]) -> list[pa.Array]:
    return [pa.array([key[index] for key, _ in rows], kind) for index, kind in enumerate(KINDS)]


class Node:
    """A reducer with the coders of its keys."""

    def __init__(self, *ops: Op) -> None:
        self.reducer = Reducer(ops)
        self.coding = Coding()

    def add(self, keys: list[pa.Array], slots: list[Any], chosen: Any = None) -> None:
        codes = [self.coding.encode(name, key) for name, key in enumerate(keys)]
        coders = tuple(self.coding.coder(name) for name in range(len(keys)))
        self.reducer.add(coders, codes, slots, len(slots[0]) if chosen is None else len(chosen), chosen)


def add(node: Node, rows: list[Any], chosen: Any = None) -> None:
    values = np.array([value for _, value in rows], dtype=np.int64)
    node.add(columns(rows), [np.ones(len(rows), dtype=np.int64), values], chosen)


def columns_of(rows: Rows) -> tuple[list[pa.Array], list[Any]]:
    keys, states = rows.columns(range(len(rows.coders)), range(len(rows.ops)))
    return list(map(array_of, keys)), [slot.words() for slots in states for slot in slots]


def merge(parts: list[Rows]) -> Rows:
    """What the high level does with the partials of a low level."""
    whole = Node(Op.ADD, Op.MAX)
    for part in parts:
        if len(part):
            whole.add(*columns_of(part))
    return whole.reducer.rows


def groups(rows: Rows) -> dict[Any, tuple[int, ...]]:
    keys, slots = columns_of(rows)
    found = zip(*(key.to_pylist() for key in keys), strict=True)
    return dict(zip(found, zip(*(slot.tolist() for slot in slots), strict=True), strict=True)) if len(rows) else {}


@given(st.lists(ROWS, min_size=1, max_size=4), st.booleans())
def test_pieces(pieces: list[list[Any]], leave_early: bool) -> None:
    low, left = Node(Op.ADD, Op.MAX), []
    for piece in pieces:
        add(low, piece)
        if leave_early:
            left.append(low.reducer.take())
    counts: Counter[Any] = Counter()
    most: dict[Any, int] = defaultdict(lambda: -(2**63))
    for key, value in (row for piece in pieces for row in piece):
        counts[key] += 1
        most[key] = max(most[key], value)
    assert groups(merge([merge([*left, low.reducer.take()])])) == {key: (counts[key], most[key]) for key in counts}


@given(ROWS)
def test_a_child_has_the_sums_of_its_parent(rows: list[Any]) -> None:
    node = Node(Op.ADD, Op.MAX)
    add(node, rows)
    parent = node.reducer
    child, into = reduce(parent.rows, [1], [0])
    assert groups(child) == {(key,): (n,) for key, n in Counter(key[1] for key, _ in rows).items()}
    if rows:
        names, _ = columns_of(child)
        parents, _ = columns_of(parent.rows)
        assert names[0].take(pa.array(into)).to_pylist() == parents[1].to_pylist()
    nothing, _ = reduce(parent.rows, [], [0])
    assert columns_of(nothing)[1][0].tolist() == ([len(rows)] if rows else [])


def test_what_leaves_can_come_back() -> None:
    node = Node(Op.ADD)
    node.add([pa.array([1, 2, 3])], [np.ones(3, dtype=np.int64)])
    rows = node.reducer.take()
    assert len(node.reducer) == 0
    node.reducer.put_back(rows.where(np.array([True, False, True])))
    node.add([pa.array([3])], [np.ones(1, dtype=np.int64)])
    assert groups(node.reducer.rows) == {(1,): (1,), (3,): (2,)}


@given(ROWS, st.data())
def test_chosen_rows(rows: list[Any], data: st.DataObject) -> None:
    chosen = data.draw(st.lists(st.sampled_from(range(len(rows))), unique=True)) if rows else []
    some, picked = Node(Op.ADD, Op.MAX), Node(Op.ADD, Op.MAX)
    add(some, rows, np.array(chosen, dtype=np.int64))
    add(picked, [rows[number] for number in chosen])
    assert groups(some.reducer.rows) == groups(picked.reducer.rows)


def test_no_keys() -> None:
    node = Node(Op.ADD)
    node.add([], [np.arange(5, dtype=np.int64)])
    keys, slots = columns_of(node.reducer.rows)
    assert keys == []
    assert slots[0].tolist() == [10]
