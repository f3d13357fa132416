"""The comparer can fail: one test for each kind of difference, and the few things that are no difference."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.cases import check
from tests.harness.compare import ResultsDiffer, compare, with_witness
from tests.harness.queries import GeneratedQuery
from tests.harness.result import Failure, Result
from tests.harness.tolerance import (
    COMMONEST,
    EXACT,
    EXCLUDED,
    MULTISET,
    ONE_OF,
    Comparison,
    Moment,
    Spread,
    Tolerance,
    near,
)

SUM = near(Tolerance(Moment.SUM, magnitude=1000.0))
ROWS = 60


def one_column(kind: str, *values: Any, name: str = "v") -> Result:
    return Result(((name, kind),), tuple((value,) for value in values))


def keyed(*rows: tuple[Any, Any], kind: str = "bigint") -> Result:
    return Result((("k", "string"), ("v", kind)), rows)


def assert_differ(
    expected: Result,
    actual: Result,
    says: str,
    *comparisons: Comparison,
    ordered: bool = False,
    rows: int = ROWS,
) -> None:
    """Both directions: what is missing on one side is too much on the other."""
    with pytest.raises(ResultsDiffer, match=says):
        compare(expected, actual, comparisons or None, ordered=ordered, rows=rows)
    with pytest.raises(ResultsDiffer):
        compare(actual, expected, comparisons or None, ordered=ordered, rows=rows)


# Columns


def test_a_name() -> None:
    assert_differ(one_column("int", 1, name="a"), one_column("int", 1, name="b"), "expected 'a' int, got 'b' int")


def test_the_case_of_a_name() -> None:
    assert_differ(one_column("int", 1, name="sum(A)"), one_column("int", 1, name="sum(a)"), r"'sum\(A\)' int")


def test_the_order_of_columns() -> None:
    swapped = Result((("v", "bigint"), ("k", "string")), ((1, "a"),))
    assert_differ(keyed(("a", 1)), swapped, "column 1: expected 'k' string, got 'v' bigint")


def test_a_column_too_many() -> None:
    assert_differ(one_column("string", "a", name="k"), keyed(("a", 1)), "column 2: expected nothing")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("int", "bigint"),
        ("float", "double"),
        ("decimal(10,2)", "decimal(11,2)"),
        ("decimal(10,2)", "decimal(10,3)"),
        ("timestamp", "timestamp_ntz"),
        ("struct<start:timestamp,end:timestamp>", "struct<start:timestamp,End:timestamp>"),
        ("array<int>", "array<bigint>"),
    ],
)
def test_a_type(one: str, other: str) -> None:
    # Also without a row: an empty answer has types too.
    assert_differ(one_column(one), one_column(other), "the columns differ")


# Rows


def test_a_missing_row() -> None:
    with pytest.raises(ResultsDiffer, match="expected 2 rows, got 1\na row is missing: k='b', v=2"):
        compare(keyed(("a", 1), ("b", 2)), keyed(("a", 1)))


def test_an_extra_row() -> None:
    with pytest.raises(ResultsDiffer, match="expected 1 rows, got 2\na row is too many: k='b', v=2"):
        compare(keyed(("a", 1)), keyed(("a", 1), ("b", 2)))


def test_no_rows_at_all() -> None:
    assert_differ(keyed(("a", 1)), keyed(), "expected 1 rows, got 0")


def test_how_often_a_row_occurs() -> None:
    one = keyed(("a", 1), ("a", 1), ("b", 2))
    other = keyed(("a", 1), ("b", 2), ("b", 2))
    assert_differ(one, other, "a row is missing: k='a', v=1\na row is too many: k='b', v=2")


def test_how_often_a_row_of_floating_sums_occurs() -> None:
    one, other = one_column("double", 1.5, 1.5, 2.5), one_column("double", 1.5, 2.5, 2.5)
    assert_differ(one, other, "column 'v'", SUM)


def test_values_that_changed_places() -> None:
    assert_differ(keyed(("a", 1), ("b", 2)), keyed(("a", 2), ("b", 1)), "column 'v'")


def test_floating_sums_that_changed_places_between_rows_of_a_key() -> None:
    columns = (("k", "string"), ("x", "double"), ("y", "double"))
    one = Result(columns, (("a", 1.0, 2.0), ("a", 3.0, 4.0)))
    other = Result(columns, (("a", 1.0, 4.0), ("a", 3.0, 2.0)))
    assert_differ(one, other, "column 'y'", EXACT, SUM, SUM)


def test_the_order_of_rows_where_it_counts() -> None:
    one, other = keyed(("a", 1), ("b", 2)), keyed(("b", 2), ("a", 1))
    assert_differ(one, other, "their order differs", ordered=True)
    compare(one, other)


def test_a_missing_row_where_the_order_counts() -> None:
    assert_differ(keyed(("a", 1), ("b", 2)), keyed(("a", 1)), "expected 2 rows, got 1", ordered=True)


# Values


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("bigint", 9_007_199_254_740_993, 9_007_199_254_740_992),  # equal as doubles
        ("bigint", 0, None),
        ("string", "", None),
        ("string", "a", "a "),
        ("string", "\u00e9", "e\u0301"),  # look the same
        ("boolean", False, None),
        ("double", math.nan, None),
        ("double", math.nan, math.inf),
        ("double", math.inf, -math.inf),
        ("double", 0.3, math.nextafter(0.3, 1.0)),
        ("double", 0.0, 5e-324),
        ("decimal(38,2)", Decimal("0.01"), Decimal("0.02")),
        ("binary", b"\x00", b"\x00\x00"),
        ("date", dt.date(1969, 12, 31), dt.date(1970, 1, 1)),
        ("timestamp_ntz", dt.datetime(1969, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1)),
        ("struct<p:int,q:int>", {"p": 1, "q": 2}, {"p": 2, "q": 1}),
        ("struct<p:int>", {"p": None}, None),
        ("array<int>", [1, 2], [2, 1]),
        ("array<int>", [], None),
        ("array<int>", [None], []),
        ("map<string,int>", [("a", 1)], [("a", 2)]),
    ],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_a_value(kind: str, one: Any, other: Any, ordered: bool) -> None:
    assert_differ(one_column(kind, one), one_column(kind, other), "column 'v'", ordered=ordered)


def test_a_list_with_other_counts() -> None:
    assert_differ(one_column("array<int>", [1, 1, 2]), one_column("array<int>", [1, 2, 2]), "'v'", MULTISET)


# Floating sums


def test_a_sum_beyond_its_tolerance() -> None:
    allowed = 2 * ROWS * 2.0**-53 * ROWS * 1000.0
    assert_differ(
        keyed(("a", 10.0), kind="double"),
        keyed(("a", 10.0 + 1.01 * allowed), kind="double"),
        "8.0[0-9]e-10 apart where 7.99e-10 is allowed",
        EXACT,
        SUM,
    )
    compare(
        keyed(("a", 10.0), kind="double"),
        keyed(("a", 10.0 + 0.99 * allowed), kind="double"),
        [EXACT, SUM],
        rows=ROWS,
    )


def test_the_tolerance_is_absolute_after_cancellation() -> None:
    compare(one_column("double", 0.0), one_column("double", 5e-11), [SUM], rows=ROWS)
    assert_differ(one_column("double", 0.0), one_column("double", 5e-9), "apart", SUM)


def test_the_tolerance_grows_with_the_rows() -> None:
    one, other = one_column("double", 10.0), one_column("double", 10.0 + 5e-10)
    compare(one, other, [SUM], rows=ROWS)
    assert_differ(one, other, "apart", SUM, rows=10)


@pytest.mark.parametrize(("one", "other"), [(1.0, None), (math.nan, None), (math.nan, 1.0), (math.inf, math.nan)])
def test_no_tolerance_for_null_nan_and_infinity(one: float, other: float | None) -> None:
    assert_differ(one_column("double", one), one_column("double", other), "column 'v'", SUM)


def test_an_infinite_covariance_may_be_nan_but_not_a_number() -> None:
    covariance = near(Tolerance(Moment.COVARIANCE, magnitude=1.0))
    compare(one_column("double", math.inf), one_column("double", math.nan), [covariance], rows=ROWS)
    assert_differ(one_column("double", math.inf), one_column("double", 1.0), "'v'", covariance)


def test_a_variance_of_zero_is_zero_but_for_a_hair() -> None:
    """Sums of squares cancel to about 1e-10 here: that is not what Spark answers."""
    variance = near(Tolerance(Moment.VARIANCE, magnitude=1000.0))
    assert_differ(one_column("double", 0.0), one_column("double", 1e-10), "apart", variance)
    compare(one_column("double", 250.0), one_column("double", 250.0 + 1e-10), [variance], rows=ROWS)


def test_a_rounded_sum_may_take_one_step_not_two() -> None:
    rounded = near(Tolerance(Moment.MEAN, magnitude=1.0).rounded(2))
    compare(one_column("double", 0.12), one_column("double", 0.13), [rounded], rows=ROWS)
    assert_differ(one_column("double", 0.12), one_column("double", 0.14), "apart", rounded)


def test_rows_near_two_others_are_matched_as_a_whole() -> None:
    """2.0 fits 1.0 and 3.0, 3.0 fits 2.0 only: the first that fits is not always the right one."""
    wide = near(Tolerance(Moment.MEAN, magnitude=1.1 / (2 * 2 * 2.0**-53)))
    compare(one_column("double", 2.0, 1.0), one_column("double", 1.0, 3.0), [wide], rows=1)
    assert_differ(one_column("double", 2.0, 1.0), one_column("double", 3.0, 3.0), "apart", wide, rows=1)


def test_dyadic_numbers_add_up_exactly_and_others_do_not() -> None:
    assert Spread(1000.0, 0.25, dyadic=True).sums_exactly
    assert not Spread(1000.0, 0.001).sums_exactly
    assert not Spread(2.0**53, 1.0, dyadic=True).sums_exactly


# What is equal


def test_rows_in_another_order() -> None:
    compare(keyed(("a", 1), ("b", 2), (None, 3)), keyed((None, 3), ("b", 2), ("a", 1)))


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        ("double", -0.0, 0.0),
        ("double", math.nan, float("nan")),
        ("bigint", None, None),
        ("array<double>", [math.nan, -0.0], [math.nan, 0.0]),
        ("struct<p:double>", {"p": -0.0}, {"p": 0.0}),
        ("map<string,int>", [("a", 1), ("b", 2)], [("b", 2), ("a", 1)]),
    ],
)
@pytest.mark.parametrize("ordered", [False, True])
def test_equal_values(kind: str, one: Any, other: Any, ordered: bool) -> None:
    compare(one_column(kind, one), one_column(kind, other), ordered=ordered)
    compare(keyed(("a", one), kind=kind), keyed(("a", other), kind=kind), ordered=ordered)


def test_a_list_in_another_order() -> None:
    compare(one_column("array<int>", [1, 2, 1]), one_column("array<int>", [2, 1, 1]), [MULTISET])


def test_an_excluded_column() -> None:
    compare(keyed(("a", 1)), keyed(("a", None)), [EXACT, EXCLUDED])
    assert_differ(keyed(("a", 1)), keyed(("b", 1)), "column 'k'", EXACT, EXCLUDED)


def witnessed(comparison: Comparison, *listed: Any) -> Result:
    """The expected answer of groups a, b, c: Spark chose 0 for each of those that the witness lists."""
    groups = "abc"[: len(listed)]
    chosen = keyed(*((group, 0) for group in groups))
    witness = keyed(*zip(groups, listed, strict=True), kind="array<int>")
    return with_witness(chosen, witness, [EXACT, comparison])


def test_any_of_those_that_a_witness_lists() -> None:
    expected = witnessed(ONE_OF, [{"v": 1}, {"v": 2}], [{"v": None}], [])
    for value in (1, 2):
        compare(expected, keyed(("a", value), ("b", None), ("c", None)), [EXACT, ONE_OF])
    for wrong in (("a", 0), ("a", None)):
        with pytest.raises(ResultsDiffer, match="column 'v'"):
            compare(expected, keyed(wrong, ("b", None), ("c", None)), [EXACT, ONE_OF])
    with pytest.raises(ResultsDiffer, match="column 'v'"):
        compare(expected, keyed(("a", 1), ("b", None), ("c", 1)), [EXACT, ONE_OF])
    with pytest.raises(ResultsDiffer, match="expected 3 rows, got 2"):
        compare(expected, keyed(("a", 1), ("b", None)), [EXACT, ONE_OF])


def test_any_of_the_commonest_that_a_witness_lists() -> None:
    expected = witnessed(COMMONEST, [1, 2, 2, 1, 3], [])
    for value in (1, 2):
        compare(expected, keyed(("a", value), ("b", None)), [EXACT, COMMONEST])
    for wrong in (3, None):
        with pytest.raises(ResultsDiffer, match="column 'v'"):
            compare(expected, keyed(("a", wrong), ("b", None)), [EXACT, COMMONEST])


def test_answers_without_columns() -> None:
    compare(Result((), ((), ())), Result((), ((), ())))
    assert_differ(Result((), ((),)), Result((), ()), "expected 1 rows, got 0")


# The form that is compared, and outcomes


def test_an_hour_that_comes_twice() -> None:
    """At the end of summer time two moments have the same wall clock; they are compared as moments."""
    moments = [dt.datetime(2024, 10, 27, hour, 30, tzinfo=dt.UTC) for hour in (0, 1)]
    columns = (("ts", "timestamp"), ("w", "struct<start:timestamp>"))
    results = []
    for moment in moments:
        table = pa.table({"ts": pa.array([moment]), "w": pa.array([{"start": moment}])})
        zoned = pa.timestamp("us", "Europe/Berlin")
        target = pa.schema([("ts", zoned), ("w", pa.struct([("start", zoned)]))])
        results.append(Result.of_arrow(columns, table.cast(target)))
    assert_differ(results[0], results[1], "a row is missing: ts=2024-10-27 00:30:00")
    assert results[0].rows == ((moments[0], {"start": moments[0]}),)


def test_comparisons_that_do_not_fit_the_columns() -> None:
    with pytest.raises(ValueError, match="1 comparisons for 2 columns"):
        compare(keyed(("a", 1)), keyed(("a", 1)), [EXACT])


@pytest.mark.parametrize("may_fail", [False, True])
def test_failures(may_fail: bool) -> None:
    query = GeneratedQuery("SELECT ...", (EXACT,), ordered=False, may_fail=may_fail)
    failure, answer = Failure(ArithmeticError("overflow\nat line 1")), one_column("int", 1)
    check(query, failure, Failure(RuntimeError("other words")), ROWS)
    for expected, actual in ((failure, answer), (answer, failure)):
        if may_fail:
            check(query, expected, actual, ROWS)
        else:
            with pytest.raises(ResultsDiffer, match="ArithmeticError: overflow"):
                check(query, expected, actual, ROWS)
    with pytest.raises(ResultsDiffer, match=r"SELECT \.\.\."):
        check(query, answer, one_column("int", 2), ROWS)
