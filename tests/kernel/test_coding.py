"""Codes: values come back, equal values have equal codes, null is 0, and what outgrows its bits says so."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernel.coding import (
    Coder,
    HashCoder,
    Outgrown,
    RangeCoder,
    UnknownType,
    ValueCoder,
    make_coder,
)
from headrace.kernel.layout import Layout
from headrace.kernel.narrow import Narrow, array_of
from headrace.kernel.records import Coding
from headrace.kernel.rows import Rows
from headrace.kernel.strided import Codes, Strided
from tests.algebra.test_words import KINDS, key

ALL_KINDS = [*KINDS, (pa.string(), st.text(max_size=3)), (pa.binary(), st.binary(max_size=3))]


def encode(coder: Coder, array: pa.Array) -> tuple[Coder, np.ndarray[Any, Any]]:
    """The codes, by a coder with enough bits: what a caller does who meets `Outgrown`."""
    try:
        return coder, coder.encode(array).plain()
    except Outgrown:
        wider = make_coder(array)
        return wider, wider.encode(array).plain()


@pytest.mark.parametrize(("kind", "values"), ALL_KINDS, ids=[str(kind) for kind, _ in ALL_KINDS])
@given(data=st.data())
def test_codes(kind: pa.DataType, values: st.SearchStrategy[Any], data: st.DataObject) -> None:
    columns = st.lists(st.none() | values, max_size=20)
    coder = make_coder(pa.array(data.draw(columns), kind))
    for column in data.draw(st.lists(columns, min_size=1, max_size=3)):
        array = pa.array(column, kind)
        coder, codes = encode(coder, array)
        assert coder.bits <= 64
        assert all(0 <= code < 1 << coder.bits for code in codes.tolist())
        decoded = coder.decode(codes)
        assert decoded.type == kind
        plain = [None if value is None else key(value) for value in column]
        assert [None if value is None else key(value) for value in decoded.to_pylist()] == plain
        assert [code == 0 for code in codes] == [value is None for value in column]
        for value, code in zip(plain, codes, strict=True):
            assert [other == value for other in plain] == (codes == code).tolist()


def test_each_kind_of_column_has_its_coder() -> None:
    assert isinstance(make_coder(pa.array([1, 1000])), RangeCoder)
    assert isinstance(make_coder(pa.array([1, 2**40])), HashCoder)
    assert isinstance(make_coder(pa.array([1.0, 2.0])), HashCoder)
    assert isinstance(make_coder(pa.array(["a"])), ValueCoder)
    with pytest.raises(UnknownType, match="cannot group by list"):
        make_coder(pa.array([[1]]))


@given(st.data(), st.sampled_from([pa.string(), pa.int64(), pa.int8()]))
def test_encoded_columns_have_the_codes_of_their_values(data: st.DataObject, kind: pa.DataType) -> None:
    """Dictionaries that are the last one, go on from it, or are others: values keep their codes."""
    some = st.integers(-100, 100).map(lambda n: str(n) if kind == pa.string() else n)
    coding, known = Coding(), [data.draw(st.lists(some, unique=True, max_size=5))]
    found: dict[Any, int] = {}
    for _ in range(data.draw(st.integers(1, 4))):
        values = known[-1] + data.draw(
            st.lists(some.filter(lambda v: v not in known[-1]), unique=True, max_size=5)
        )
        values = data.draw(st.sampled_from([values, values[::-1], known[-1]]))
        known.append(values)
        places = data.draw(st.lists(st.none() | st.integers(0, len(values) - 1) if values else st.none()))
        column = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(values, kind))
        before = coding.coder("c") if found else None
        codes = coding.encode("c", column).plain()
        if before is not None and not coding.coder("c").numbers_as(before):
            found = {}
        for value, code in zip(column.to_pylist(), codes.tolist(), strict=True):
            assert (value is None) == (code == 0)
            assert found.setdefault(value, code) == code
        assert coding.coder("c").decode(codes).to_pylist() == column.to_pylist()
    assert len(set(found.values())) == len(found)


@pytest.mark.parametrize(
    ("coder", "values"),
    [
        (RangeCoder(pa.int64(), 0, 100), [-1]),
        (RangeCoder(pa.int64(), 0, 100), [200]),
        (RangeCoder(pa.int64(), -(2**63), -(2**63) + 5), [2**63 - 1]),
        (HashCoder(pa.int64(), 2), [1, 2, 3, 4]),
        (ValueCoder(pa.string(), 2), ["a", "b", "c", "d"]),
    ],
)
def test_what_outgrows_its_bits(coder: Coder, values: list[Any]) -> None:
    with pytest.raises(Outgrown):
        coder.encode(pa.array(values, coder.kind))


def test_the_least_of_all_integers() -> None:
    coder = RangeCoder(pa.int64(), -(2**63), -(2**63) + 5)
    codes = coder.encode(pa.array([None, -(2**63), -(2**63) + 5])).plain()
    assert codes.tolist() == [0, 1, 6]
    assert coder.decode(codes).to_pylist() == [None, -(2**63), -(2**63) + 5]


def test_codes_stay_the_same_from_batch_to_batch() -> None:
    coder = ValueCoder(pa.string(), 8)
    first = coder.encode(pa.array(["x", None, "y"])).plain()
    second = coder.encode(pa.array(["y", "z", "x"]).dictionary_encode()).plain()
    assert first.tolist() == [1, 0, 2]
    assert second.tolist() == [2, 3, 1]
    assert coder.decode(np.array([3, 0, 1])).to_pylist() == ["z", None, "x"]


@given(st.lists(st.integers(1, 64), max_size=12), st.data())
def test_packed_codes_come_back(bits: list[int], data: st.DataObject) -> None:
    layout = Layout.of(bits)
    rows = data.draw(st.integers(0, 5))
    columns = [
        np.array(
            data.draw(st.lists(st.integers(0, 2**b - 1), min_size=rows, max_size=rows)), dtype=np.uint64
        ).view(np.int64)
        for b in bits
    ]
    slot = np.full(rows, -1, dtype=np.int64)
    packed = Strided.of(rows, layout.words, layout.coded([Codes(column) for column in columns]), [slot]).pack()
    there = Rows(packed, (), layout, ())
    assert [there.codes(key).tolist() for key in range(len(bits))] == [column.tolist() for column in columns]
    assert (packed[:, -1] == -1).all()


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(
    "column",
    [
        pa.array([-128, 127, 0], pa.int8()),
        pa.array([-(2**15), 2**15 - 1, 5], pa.int16()),
        pa.array([-(2**31), 2**31 - 1, 5], pa.int32()),
        pa.array([-(2**63), -(2**63) + 9, -(2**63) + 1], pa.int64()),
        pa.array([2**63 - 1, 2**63 - 9, 2**63 - 2], pa.int64()),
        pa.array([-1, 0, 20_000], pa.date32()),
        pa.array([-1, 0, 2**33], pa.timestamp("us", "UTC")),
        pa.array([True, False, True]),
        pa.array([Decimal("-1.5"), Decimal("9.9"), Decimal("0.0")], pa.decimal128(9, 1)),
        pa.array([1.5, -0.5, float("inf")]),
        pa.array(["x", "", "y"]),
    ],
)
def test_rows_give_keys_back(column: pa.Array, nulls: bool) -> None:
    if nulls:
        column = pa.concat_arrays([column, pa.nulls(1, column.type)])
    coder = make_coder(column)
    layout = Layout.of([coder.bits])
    packed = Strided.of(len(column), layout.words, layout.coded([coder.encode(column)]), []).pack()
    (found,), _ = Rows(packed, (coder,), layout, ()).columns([0], [])
    assert array_of(found).type == column.type
    assert array_of(found).to_pylist() == column.to_pylist()


def test_a_layout_takes_no_more_words_than_it_must() -> None:
    assert Layout.of([32, 32, 16, 16, 8, 8, 8, 8]).words == 2
    assert Layout.of([]).words == 1
    assert Layout.of([64, 64]).words == 2


@given(st.lists(st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=5), min_size=1, max_size=4), st.data())
def test_stretches_of_a_column_are_coded_alike(stretches: list[list[int]], data: st.DataObject) -> None:
    """However they come, and whatever was coded before: equal values have equal codes, which give them back."""
    coding = Coding()
    if data.draw(st.booleans()):
        coding.encode("x", pa.array(data.draw(st.lists(st.integers(-5, 5), min_size=1))))
    as_arrays = data.draw(st.sets(st.integers(0, 3)))
    columns = [
        pa.array(own) if place in as_arrays else Narrow.of(pa.array(own)) for place, own in enumerate(stretches)
    ]
    codes = coding.encode_all("x", columns)
    found = [coding.coder("x").decode(own.plain()).to_pylist() for own in codes]
    assert found == stretches
