"""Fragments and cells: the seed's example, signatures of any length, and conditions computed together."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.words import truth
from headrace.kernel.evaluate import Evaluator, cells, compile_expression
from headrace.kernel.evaluate.cells import Cells, Sorter
from headrace.kernel.fragments import read_signatures, sign, some_of
from headrace.query import Expression

TYPES = {
    "i": pa.int8(),
    "n": pa.int64(),
    "d": pa.float64(),
    "e": pa.float64(),
    "f": pa.float32(),
    "s": pa.string(),
    "b": pa.bool_(),
    "t": pa.timestamp("us", "UTC"),
}


def test_the_seeds_eight_fragments() -> None:
    """Three predicates cut records into eight fragments; each query has the four whose signature has its bit."""
    truths = np.array(list(itertools.product([False, True], repeat=3)))
    fragments = sign(truths)
    assert sorted(fragments.to_pylist()) == list(range(8))
    own = read_signatures(fragments, 3)
    for query in range(3):
        assert {n for n in range(8) if own[n, query]} == {n for n, row in enumerate(truths) if row[query]}
        assert own[:, query].sum() == 4


@given(st.integers(1, 200), st.integers(0, 2**32))
def test_signatures_are_read_as_they_were_signed(count: int, seed: int) -> None:
    truths = np.random.default_rng(seed).random((5, count)) < 0.5
    signatures = sign(truths)
    assert (read_signatures(signatures, count) == truths).all()
    assert (read_signatures(signatures.slice(2, 2), count) == truths[2:4]).all()
    for places in ([0], [count - 1], [*range(0, count, 3)]):
        assert (some_of(signatures, count, places) == truths[:, places].any(axis=1)).all()
    distinct = len({row.tobytes() for row in truths})
    assert len(set(signatures.to_pylist())) == distinct


def compiled(sql: str) -> Evaluator:
    evaluator = compile_expression(Expression.parse(sql), TYPES, pa.bool_(), "UTC")
    assert evaluator is not None, sql
    return evaluator


NUMBERS = {
    "i": ("-128", "-1", "0", "5", "127"),
    "n": ("-3", "0", "1", "9223372036854775807"),
    "d": ("-1.5D", "0.0D", "-0.0D", "1e300D", "double('Infinity')", "double('NaN')"),
    "e": ("-2 * d", "-0.5D * d", "0 * d", "d * 1.5D", "2.5D * d", "1e200D * d"),
    "f": ("float(0.1)", "float(-2)"),
    "t": ("timestamp'1970-01-01 00:00:05 UTC'", "timestamp'1969-12-31 23:59:59 UTC'"),
}


@st.composite
def conditions(draw: st.DrawFn, depth: int = 2) -> str:
    if depth and draw(st.booleans()):
        one, other = draw(conditions(depth - 1)), draw(conditions(depth - 1))
        return draw(st.sampled_from([f"({one}) AND ({other})", f"({one}) OR ({other})", f"NOT ({one})"]))
    if draw(st.booleans()):
        return draw(st.sampled_from(["b", "s LIKE 'a%'", "s = 'b'", "i IN (1, 5)", "n IS NULL", "n > i", "NOT b"]))
    column = draw(st.sampled_from(sorted(NUMBERS)))
    number, sign = draw(st.sampled_from(NUMBERS[column])), draw(st.sampled_from(["<", "<=", "=", "<>", ">", ">="]))
    return draw(st.sampled_from([f"{column} {sign} {number}", f"{number} {sign} {column}"]))


VALUES: dict[str, Any] = {
    "i": st.sampled_from([-128, -127, -2, -1, 0, 1, 4, 5, 6, 126, 127]),
    "n": st.sampled_from([-(2**63), -4, -3, -2, 0, 1, 2, 2**63 - 2, 2**63 - 1]),
    "d": st.sampled_from([-math.inf, -1.5, -1.0, -0.0, 0.0, 5e-324, 1.0, 1.5, 1e300, math.inf, math.nan]),
    "e": st.sampled_from([-math.inf, -3.0, -2.25, -1.5, 0.0, 0.75, 2.25, 3.0, 1.5e300, math.inf, math.nan]),
    "f": st.sampled_from([-2.0, float(np.float32(0.1)), 0.1, math.nan, math.inf]),
    "s": st.sampled_from(["a", "ab", "b", ""]),
    "b": st.booleans(),
    "t": st.sampled_from([-1_000_000, 0, 4_999_999, 5_000_000, 5_000_001]),
}


def known(sql: str) -> bool:
    return compile_expression(Expression.parse(sql), TYPES, pa.bool_(), "UTC") is not None


@given(
    texts=st.lists(conditions().filter(known), min_size=1, max_size=8),
    batches=st.lists(
        st.lists(st.fixed_dictionaries({name: st.none() | VALUES[name] for name in TYPES}), min_size=1),
        min_size=1,
        max_size=3,
    ),
    few=st.booleans(),
)
def test_conditions_together_are_what_they_are_apart(
    texts: list[str], batches: list[list[dict[str, Any]]], few: bool
) -> None:
    apart = [compiled(text) for text in texts]
    with pytest.MonkeyPatch.context() as patch:
        if few:  # so that cells are numbered again and again on the way, and forgotten between
            patch.setattr(cells, "_MOST", 100)
            patch.setattr(cells, "_MOST_CELLS", 10)
            patch.setattr(cells, "_MOST_TRUTHS", 5)
        sorter = Sorter(Cells(tuple(apart)))
        for batch in batches:
            columns = {name: pa.array([row[name] for row in batch], kind) for name, kind in TYPES.items()}
            found = sorter.sort(columns, len(batch))
            truths = read_signatures(found.dictionary, len(apart))[found.indices.to_numpy()]
            for place, own in enumerate(apart):
                assert truths[:, place].tolist() == truth(own(columns)).tolist(), texts[place]


def test_together_pays_where_conditions_are_many() -> None:
    many = [compiled(f"n > {n} AND b") for n in range(100)]
    assert Cells(tuple(many)).pays
    cuts, others = Cells(tuple(many)).parts
    assert [len(own.constants) for own in cuts] == [100]
    assert len(others) == 1
    assert not Cells((compiled("n > 5"), compiled("b"))).pays
