"""Columns to words and back, and the order of words."""

from __future__ import annotations

import datetime
import decimal
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.algebra.words import fits_word, from_words, to_words

KINDS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.bool_(), st.booleans()),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats()),
    (pa.date32(), st.dates(datetime.date(1, 1, 1))),
    (pa.timestamp("us"), st.datetimes()),
    (pa.timestamp("us", "UTC"), st.datetimes(timezones=st.just(datetime.UTC))),
    (pa.decimal128(18, 2), st.decimals(-(10**15), 10**15, places=2)),
    (pa.decimal128(9, 0), st.integers(-(10**8), 10**8).map(decimal.Decimal)),
]


def key(value: Any) -> Any:
    """Values in Spark's order: NaN is the greatest, and the two zeros are one."""
    if isinstance(value, float):
        return (1, 0.0) if math.isnan(value) else (0, value + 0.0)
    return value


@pytest.mark.parametrize(("kind", "values"), KINDS, ids=[str(kind) for kind, _ in KINDS])
@given(data=st.data())
def test_words_come_back_and_order_as_the_values(
    kind: pa.DataType, values: st.SearchStrategy[Any], data: st.DataObject
) -> None:
    column = data.draw(st.lists(st.none() | values, max_size=20))
    start = data.draw(st.integers(0, len(column)))
    array = pa.array(column, kind)[start:]
    words, valid = to_words(array)
    back = from_words(words, valid, kind)
    assert back.type == kind
    assert [None if v is None else key(v) for v in back.to_pylist()] == [
        None if v is None else key(v) for v in array.to_pylist()
    ]
    present = [
        (key(value), word) for value, word in zip(array.to_pylist(), words, strict=True) if value is not None
    ]
    for value, word in present:
        for other, other_word in present:
            assert (value < other) == (word < other_word)
            assert (value == other) == (word == other_word)


@pytest.mark.parametrize(("kind", "_"), KINDS)
def test_all_of_these_fit(kind: pa.DataType, _: Any) -> None:
    assert fits_word(kind)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.binary(), pa.decimal128(19, 2), pa.list_(pa.int8()), pa.timestamp("ns"), pa.null()]
)
def test_what_does_not_fit(kind: pa.DataType) -> None:
    assert not fits_word(kind)


def test_nan_of_every_kind_is_one_word() -> None:
    other_nan = np.array([0xFFF8000000000001], dtype=np.uint64).view(np.float64)[0]
    words, _ = to_words(pa.array(np.array([math.nan, other_nan, math.inf])))
    assert words[0] == words[1] > words[2]
