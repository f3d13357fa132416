"""Estimates against the truth, on streams whose groups can be counted."""

from __future__ import annotations

import datetime
import decimal
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest

from headrace.plan.growth import count_groups
from headrace.plan.sizes import Sizes, hash_column
from headrace.plan.slices import Slices
from headrace.query import Expression

ROWS = 1_000_000
BLOCKS = 16
BLOCK = (1 << 16) // BLOCKS
SECOND = 1_000_000
TIME = Expression.parse("ts")
Columns = Mapping[str, npt.NDArray[Any]]


def named(names: str) -> list[Expression]:
    return [Expression.parse(name) for name in names.split()]


def sizes_of(columns: Columns, span_us: int | None = 1000 * SECOND) -> Sizes:
    """The sizes of a stream, from blocks of it."""
    rows = len(next(iter(columns.values())))
    blocks = [
        {Expression.parse(name): pa.array(values[start : start + BLOCK]) for name, values in columns.items()}
        for start in range(rows // BLOCKS // 2, rows, rows // BLOCKS)
    ]
    return Sizes(blocks, rows, span_us)


def truth(columns: Columns, keys: str, chosen: npt.NDArray[np.bool_] | None = None, slices: int = 1) -> int:
    """How many groups there are, where the records are evenly spread over so many slices."""
    rows = len(next(iter(columns.values())))
    numbers = np.arange(rows) * slices // rows
    for key in keys.split():
        numbers = numbers * (int(columns[key].max()) + 1) + columns[key]
    return len(np.unique(numbers if chosen is None else numbers[chosen]))


def slices_of(count: int) -> Slices | None:
    return None if count == 1 else Slices.every(TIME, 1000 * SECOND // count)


def stream(seed: int = 7) -> dict[str, npt.NDArray[Any]]:
    random = np.random.default_rng(seed)
    few = random.integers(0, 50, ROWS)
    some = random.integers(0, 10_000, ROWS)
    return {
        "few": few,
        "some": some,
        "many": random.integers(0, 200_000, ROWS),
        "own": random.permutation(ROWS),
        "zipf": random.zipf(1.3, ROWS) % 10_000_000,
        "part_of_some": some // 40,
        "passing": np.arange(ROWS) // 1000 * 100 + random.integers(0, 100, ROWS),
        "rare": few == 3,
        "often": few < 30,
    }


STREAM = stream()
SIZES = sizes_of(STREAM)


@pytest.mark.parametrize(
    ("keys", "slices", "factor"),
    [
        ("few", 1, 1.02),
        ("few", 20, 1.02),
        ("few", 5000, 1.05),
        ("some", 1, 1.3),
        ("some", 100, 1.05),
        ("many", 1, 1.3),
        ("many", 20, 1.1),
        ("many", 1000, 1.02),
        ("own", 1, 1.001),
        ("own", 1000, 1.001),
        ("zipf", 1, 2),
        ("zipf", 10, 1.3),
        ("zipf", 300, 1.1),
        ("few some", 1, 1.3),
        ("few some", 100, 1.05),
        ("some part_of_some", 1, 1.3),
        ("few part_of_some", 1, 1.3),
        ("few zipf", 1, 2),
        ("passing", 1, 2),
        ("passing", 10, 2),
        ("passing", 700, 1.1),
        ("rare often", 100, 1.1),
    ],
)
def test_an_estimate_is_near_the_truth(keys: str, slices: int, factor: float) -> None:
    true = truth(STREAM, keys, slices=slices)
    assert true / factor <= SIZES.groups(named(keys), (), (), slices_of(slices)) <= true * factor


@pytest.mark.parametrize("keys", ["few", "some", "own", "zipf"])
@pytest.mark.parametrize(
    ("condition", "slices", "factor"),
    [
        ("often", 1, 1.5),
        ("often", 100, 1.05),
        ("rare", 1, 3),  # a block has but some 650 of these records, and the stream 30 times as many
        ("rare", 100, 1.1),
    ],
)
def test_a_condition_chooses_records(condition: str, keys: str, slices: int, factor: float) -> None:
    chosen = STREAM[condition]
    true = truth(STREAM, keys, chosen, slices)
    assert true / factor <= SIZES.groups(named(keys), (), named(condition), slices_of(slices)) <= true * factor
    assert SIZES.records(named(condition)) == pytest.approx(chosen.sum(), rel=0.1)


def test_the_groups_of_neighbours_are_fewer_than_those_of_any_records() -> None:
    # 100 values at a time, and then others: a slice of 1000 records has 100 to 200 of the 100,000.
    assert SIZES.groups(named("passing"), (), (), slices_of(1000)) < 250 * 1000


@pytest.mark.parametrize("slices", [1, 7, 300, 10_000, 100_000_000])
@pytest.mark.parametrize("condition", ["", "rare", "unheard_of", "rare unheard_of"])
@pytest.mark.parametrize("keys", ["", "few", "own", "zipf many", "own unknown", "few zipf passing"])
def test_there_are_never_more_groups_than_records(keys: str, condition: str, slices: int) -> None:
    any_of = named(condition)
    found = SIZES.groups(named(keys), named("often unseen"), any_of, slices_of(slices))
    assert 0 < found <= SIZES.records(any_of) * (1 + 1e-9)


@pytest.mark.parametrize("slices", [1, 10, 1000])
def test_more_keys_make_no_fewer_groups(slices: int) -> None:
    names = ["few", "zipf", "some", "passing", "own"]
    found = [SIZES.groups(named(" ".join(names[:count])), (), (), slices_of(slices)) for count in range(6)]
    assert all(more >= 0.8 * fewer for fewer, more in itertools.pairwise(found))


def test_no_more_groups_than_the_keys_have_apart() -> None:
    random = np.random.default_rng(1)
    columns = {name: random.zipf(1.2, ROWS) % 300 for name in ("a", "b")}
    sizes = sizes_of(columns)
    apart = [sizes.groups(named(name), (), (), None) for name in ("a", "b")]
    assert sizes.groups(named("a b"), (), (), None) <= apart[0] * apart[1]


def test_no_keys_make_one_group_in_each_slice() -> None:
    assert SIZES.groups((), (), (), None) == 1
    assert SIZES.groups((), (), (), slices_of(40)) == 40


def test_of_a_mark_only_the_truth_counts() -> None:
    mark = pa.array([True, False, None, None] * 4)
    sizes = Sizes([{Expression.parse("m"): mark}], 16, None)
    assert sizes.groups((), named("m"), (), None) == 2
    assert sizes.groups(named("m"), (), (), None) == 3
    assert sizes.records(named("m")) == 4


def test_a_stream_that_is_one_block_is_counted() -> None:
    values = np.random.default_rng(3).zipf(1.5, 5000)
    sizes = Sizes([{Expression.parse("x"): pa.array(values)}], 5000, None)
    assert sizes.groups(named("x"), (), (), None) == pytest.approx(len(np.unique(values)))


def test_a_condition_that_the_sample_has_not_met_has_few_records_and_groups() -> None:
    block = {Expression.parse("x"): pa.array(range(1000)), Expression.parse("never"): pa.array([False] * 1000)}
    sizes = Sizes([block, block], 1_000_000, None)
    assert sizes.records(named("never")) == 250
    assert 200 < sizes.groups(named("x"), (), named("never"), None) <= 250


def test_without_a_sample_there_are_rules() -> None:
    sizes = Sizes()
    x, y, condition = named("x y c")
    assert sizes.records(()) == 10_000_000
    assert sizes.records([condition]) == pytest.approx(10_000_000 / 3)
    assert sizes.groups([x], (), (), None) == 100_001
    assert sizes.groups([x], [y], (), None) == 200_002
    assert sizes.groups([x, y], (), (), None) == 10_000_000
    assert sizes.groups([x], (), [condition], None) == pytest.approx(10_000_000 / 300 + 1)
    assert sizes.groups([x], (), (), Slices.every(TIME, SECOND)) == pytest.approx(1000 * 101)
    assert Sizes([], 5000, 10 * SECOND).groups([x], (), (), Slices.every(TIME, SECOND)) == pytest.approx(10 * 6)
    assert Sizes([{}, {x: pa.array([], pa.int64())}], 0, None).groups([x], (), (), None) == 100_001


def test_what_is_not_in_the_sample_goes_by_the_rules() -> None:
    known = SIZES.groups(named("few"), (), (), None)
    assert SIZES.groups(named("few"), named("unseen"), (), None) == pytest.approx(2 * known)
    assert SIZES.groups(named("few unknown"), (), (), None) == pytest.approx(known * (ROWS / 100 + 1))
    assert SIZES.records(named("unseen")) == pytest.approx(ROWS / 3)
    third = SIZES.groups(named("own"), (), named("unseen"), None)
    assert third == pytest.approx(ROWS / 3)
    often = SIZES.records(named("often"))
    assert SIZES.groups(named("unknown"), (), named("often"), None) == pytest.approx(often / 100 + 1)


def test_any_of_some_conditions_is_true_for_no_more_records_than_all_are_together() -> None:
    rare, often = STREAM["rare"], STREAM["often"]
    assert SIZES.records(named("rare often")) == pytest.approx((rare | often).sum(), rel=0.1)
    either = SIZES.records(named("rare unseen")) / ROWS
    assert either == pytest.approx(1 - (1 - SIZES.records(named("rare")) / ROWS) * 2 / 3)


def test_a_column_that_only_some_blocks_have_is_not_known() -> None:
    x, y = named("x y")
    sizes = Sizes([{x: pa.array([1] * 100), y: pa.array([1] * 100)}, {x: pa.array([1] * 100)}], 1000, None)
    assert sizes.groups([x], (), (), None) == 1
    assert sizes.groups([y], (), (), None) == 11


NAN = float("nan")
DAY = datetime.date(2024, 3, 4)
NOON = datetime.datetime(2024, 3, 4, 12)


@pytest.mark.parametrize(
    ("values", "kind", "distinct"),
    [
        ([True, False, None, None, True], pa.bool_(), 3),
        ([1, 1, 2, None, 0], pa.int8(), 4),
        ([1, 1, 2, None, 0], pa.int64(), 4),
        ([0.0, -0.0, NAN, -NAN, None, None, 1.5], pa.float32(), 4),
        ([0.0, -0.0, NAN, -NAN, None, None, 1.5], pa.float64(), 4),
        ([decimal.Decimal("1.50"), decimal.Decimal("1.5"), None, decimal.Decimal(0)], pa.decimal128(10, 2), 3),
        (
            [decimal.Decimal("1.50"), decimal.Decimal(10) ** 25, None, decimal.Decimal("1.5")],
            pa.decimal128(38, 2),
            3,
        ),
        (["a", "b", "", None, "a", None], pa.string(), 4),
        (["a", "b", "", None, "a", None], pa.large_string(), 4),
        ([b"a", b"", b"a", None], pa.binary(), 3),
        ([DAY, DAY, None, datetime.date(1960, 1, 1)], pa.date32(), 3),
        ([NOON, NOON, None, datetime.datetime(1960, 1, 1)], pa.timestamp("us"), 3),
        ([NOON, NOON, None, datetime.datetime(1960, 1, 1)], pa.timestamp("us", "UTC"), 3),
        ([datetime.timedelta(1), datetime.timedelta(1), None], pa.duration("us"), 2),
        ([None, None], pa.null(), 1),
        ([[1, 2], [1, 2], [2, 1], None, []], pa.list_(pa.int32()), 4),
        ([{"a": 1}, {"a": 1}, {"a": None}, None], pa.struct([("a", pa.int32())]), 3),
    ],
    ids=str,
)
def test_every_type_that_can_be_a_key_has_hashes(values: Sequence[Any], kind: pa.DataType, distinct: int) -> None:
    column = pa.array(values, kind)
    assert len(np.unique(hash_column(column, 1))) == distinct
    x = Expression.parse("x")
    sizes = Sizes([{x: pa.concat_arrays([column] * 20)}], 20 * len(column), None)
    assert sizes.groups([x], (), (), None) == pytest.approx(distinct)


def test_slices_of_a_column_have_the_same_hashes() -> None:
    column = pa.array([5, 6, None, 5, 7])
    assert (hash_column(column.slice(2), 1) == hash_column(column, 1)[2:]).all()


def test_text_is_the_same_with_and_without_a_dictionary() -> None:
    values = pa.array(["a", None, "b", "a", "a", None])
    twice = pa.DictionaryArray.from_arrays(pa.array([0, None, 1, 2, 0, 3]), pa.array(["a", "b", "a", None]))
    for column in (values, values.dictionary_encode(), twice):
        hashes = hash_column(column, 1)
        assert [hashes.tolist().index(h) for h in hashes] == [0, 1, 2, 0, 0, 1]


def test_a_value_is_the_same_in_all_blocks_and_a_code_of_a_dictionary_is_not() -> None:
    x = Expression.parse("x")
    first, same, other = (
        {x: pa.array([f"{letter}{row * step % 300}" for row in range(3000)]).dictionary_encode()}
        for letter, step in (("a", 1), ("a", 7), ("b", 1))
    )
    assert Sizes([first, same], 1_000_000, None).groups([x], (), (), None) == pytest.approx(300)
    assert Sizes([first, other], 1_000_000, None).groups([x], (), (), None) > 600


def test_columns_with_equal_values_are_told_apart() -> None:
    # Sums of hashes: the hashes of (1, 2) and (2, 1) must differ.
    x, y = named("x y")
    block = {x: pa.array([1, 2] * 50), y: pa.array([2, 1] * 50)}
    assert Sizes([block], 100, None).groups([x, y], (), (), None) == 2


def test_all_stretches_are_counted() -> None:
    random = np.random.default_rng(11)
    blocks = [random.zipf(1.4, 37).astype(np.uint64), random.integers(0, 9, 20).astype(np.uint64)]
    found, met = count_groups(np.concatenate(blocks), np.cumsum([len(block) for block in blocks]))
    for own, counted in zip(blocks, found, strict=True):
        for halving in range(len(own).bit_length()):
            length = len(own) >> halving
            stretches = [len(set(own[start : start + length])) for start in range(len(own) - length + 1)]
            assert counted[halving] == pytest.approx(np.mean(stretches))
    first, second = (set(block.tolist()) for block in blocks)
    assert met.tolist() == [0, len(first ^ second), len(first & second)]


def test_estimates_do_not_depend_on_the_order_of_keys_or_on_what_was_asked_before() -> None:
    again = sizes_of(STREAM)
    assert again.groups(named("zipf few"), (), (), None) == SIZES.groups(named("few zipf"), (), (), None)
