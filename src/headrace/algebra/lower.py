"""States to answers, of the type and with the nulls that Spark gives."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.lift import HAS_VALUE
from headrace.algebra.ops import Floats, Words
from headrace.algebra.states import MORE_DIGITS, MOST_RECORDS, Recipe
from headrace.algebra.words import MOST_DECIMAL_DIGITS, Valid, decimals, from_words, integers_of

Slots = Sequence[Words]
"""The slots of all states of a recipe, one array each."""

_DECIMAL_END = 10**MOST_DECIMAL_DIGITS


class Overflow(ArithmeticError):
    """An answer that its type cannot hold, or that has a zero to divide by: Spark raises an error too."""


def lower(recipe: Recipe, slots: Slots) -> pa.Array:
    """The answers, one for each row of the slots; raises `Overflow`."""
    return _LOWER[recipe.lower](slots, recipe.type)


def is_slot(recipe: Recipe, extents: Sequence[tuple[int, int]]) -> bool:
    """Whether the first slot of a recipe is the answer: every group has a record, and nothing is too large.

    `extents` are the least and the greatest number in each slot.
    """
    if recipe.lower == "count":
        return True
    if recipe.lower not in ("integer_sum", "word") or integers_of(recipe.type) is None:
        return False
    *_, (fewest, most) = extents
    if recipe.lower == "integer_sum":
        # The high word of a sum that is not negative, and fits, is 0.
        fits = most < MOST_RECORDS if len(extents) == 2 else extents[0][0] >= 0 and extents[1] == (0, 0)
        return fewest > 0 and fits
    return fewest > 0


def _count(slots: Slots, _: pa.DataType) -> pa.Array:
    return pa.array(slots[0], pa.int64())


def _float_sum(slots: Slots, _: pa.DataType) -> pa.Array:
    total, lost, count = slots
    return with_nulls(total.view(np.float64) + lost.view(np.float64), count > 0)


def _float_average(slots: Slots, _: pa.DataType) -> pa.Array:
    total, lost, count = slots
    return with_nulls((total.view(np.float64) + lost.view(np.float64)) / np.maximum(count, 1), count > 0)


def _total(slots: Slots) -> tuple[Words, Words, Words]:
    """Low and high word of sums, and the counts; a sum of one word has none of the second."""
    if len(slots) == 3:
        return slots[0], slots[1], slots[2]
    total, count = slots
    if (count >= MOST_RECORDS).any():
        raise Overflow(f"the sum of more than {MOST_RECORDS} records in a group")
    return total, total >> 63, count


def _integer_sum(slots: Slots, kind: pa.DataType) -> pa.Array:
    low, high, count = _total(slots)
    if (high != low >> 63).any():
        raise Overflow("the sum of integers exceeds 64 bits")
    return from_words(low, count > 0, kind)


def _integer_average(slots: Slots, _: pa.DataType) -> pa.Array:
    low, high, count = _total(slots)
    return with_nulls(_as_floats(low, high) / np.maximum(count, 1), count > 0)


def _as_floats(low: Words, high: Words) -> Floats:
    """128-bit integers as float64: the nearest, or within two roundings where they exceed 64 bits."""
    narrow = high == low >> 63
    wide = high.astype(np.float64) * 2.0**64 + low.view(np.uint64).astype(np.float64)
    return np.where(narrow, low.astype(np.float64), wide)


def _decimal_sum(slots: Slots, kind: pa.DataType) -> pa.Array:
    low, high, count = _total(slots)
    # 18 digits and ten more for the number of records: 64 bits of records cannot exceed 128 bits.
    return _checked(low, high, count > 0, kind)


def _decimal_average(slots: Slots, kind: pa.DataType) -> pa.Array:
    # No decimal that has a state is so long that its average would not get all of the four digits.
    return divide_decimals(*_total(slots), MORE_DIGITS["average"][1], kind)


def divide_decimals(low: Words, high: Words, count: Words, more: int, kind: pa.DataType) -> pa.Array:
    """Averages from the two words of sums: Spark divides with so many more digits, rounds half away from zero."""
    averages, power = [], 10**more
    for part, rest, number in zip(low.tolist(), high.tolist(), count.tolist(), strict=True):
        if number == 0:
            averages.append(0)
            continue
        total = rest * 2**64 + part % 2**64
        size = (2 * abs(total) * power + number) // (2 * number)
        if abs(total) >= _DECIMAL_END or size >= 10**kind.precision:
            raise Overflow(f"an average of decimals, or the sum that it is made of, exceeds {kind}")
        averages.append(-size if total < 0 else size)
    lows = np.array([average % 2**64 for average in averages], dtype=np.uint64).view(np.int64)
    highs = np.array([average >> 64 for average in averages], dtype=np.int64)
    return decimals(lows, highs, count > 0, kind)


def _checked(low: Words, high: Words, valid: Valid, kind: pa.DataType) -> pa.Array:
    """Decimals that their type can hold."""
    array = decimals(low, high, valid if len(valid) else None, kind)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise Overflow(f"a sum of decimals exceeds {kind}") from error
    return array


def _word(slots: Slots, kind: pa.DataType) -> pa.Array:
    word, count = slots
    return from_words(np.where(count > 0, word, 0), count > 0, kind)


Moments = Callable[[Floats, Floats, Floats, Floats], Floats]


def _variance(of: Callable[[Floats, Floats], Floats], least: int) -> Lower:
    """An answer from n and the sum of squares; null with fewer than `least` records."""

    def answer(slots: Slots, _: pa.DataType) -> pa.Array:
        n, _mean, m2 = (slot.view(np.float64) for slot in slots)
        with np.errstate(all="ignore"):
            return with_nulls(of(n, m2), n >= least)

    return answer


def _moments(dividend: Moments, divisor: Moments, less: float) -> Lower:
    """A quotient from n and the sums of powers, less a number; null where there is no record, or all are equal."""

    def answer(slots: Slots, _: pa.DataType) -> pa.Array:
        n, _mean, m2, m3, m4 = (slot.view(np.float64) for slot in slots)
        valid = (n >= 1) & (m2 != 0.0)
        with np.errstate(all="ignore"):
            quotient = _quotient(dividend(n, m2, m3, m4), divisor(n, m2, m3, m4), valid)
            return with_nulls(quotient - less, valid)

    return answer


def _covariance(of: Callable[[Floats, Floats], Floats], least: int) -> Lower:
    """An answer from n and the sum of products; null with fewer than `least` records."""

    def answer(slots: Slots, _: pa.DataType) -> pa.Array:
        n, _x, _y, products, *_squares = (slot.view(np.float64) for slot in slots)
        with np.errstate(all="ignore"):
            return with_nulls(of(n, products), n >= least)

    return answer


def _correlation(slots: Slots, _: pa.DataType) -> pa.Array:
    """Null for a single record, whatever it is, and where all values of a side are equal."""
    n, _x, _y, products, squares_x, squares_y = (slot.view(np.float64) for slot in slots)
    valid = (n >= 2) & (squares_x != 0.0) & (squares_y != 0.0)
    with np.errstate(all="ignore"):
        return with_nulls(_quotient(products, np.sqrt(squares_x * squares_y), valid), valid)


def _quotient(dividend: Floats, divisor: Floats, valid: Valid) -> Floats:
    """Spark divides with an error for zero, which a product of small numbers can be."""
    if (valid & (divisor == 0.0)).any():
        raise Overflow("division by zero: the values are too near each other")
    return dividend / divisor


def _taken(slots: Slots, kind: pa.DataType) -> pa.Array:
    return from_words(np.where(slots[0] == HAS_VALUE, slots[-1], 0), slots[0] == HAS_VALUE, kind)


def with_nulls(values: Floats, valid: Valid) -> pa.Array:
    """Answers of float64, null where they are not valid."""
    return pa.array(values, pa.float64(), mask=None if valid.all() else ~valid)


Lower = Callable[[Slots, pa.DataType], pa.Array]

_LOWER: Mapping[str, Lower] = {
    "count": _count,
    "float_sum": _float_sum,
    "float_average": _float_average,
    "integer_sum": _integer_sum,
    "integer_average": _integer_average,
    "decimal_sum": _decimal_sum,
    "decimal_average": _decimal_average,
    "word": _word,
    "variance": _variance(lambda n, m2: m2 / n, least=1),
    "sample_variance": _variance(lambda n, m2: m2 / (n - 1), least=2),
    "deviation": _variance(lambda n, m2: np.sqrt(m2 / n), least=1),
    "sample_deviation": _variance(lambda n, m2: np.sqrt(m2 / (n - 1)), least=2),
    "skewness": _moments(lambda n, m2, m3, m4: np.sqrt(n) * m3, lambda n, m2, m3, m4: np.sqrt(m2 * m2 * m2), 0.0),
    "kurtosis": _moments(lambda n, m2, m3, m4: n * m4, lambda n, m2, m3, m4: m2 * m2, 3.0),
    "covariance": _covariance(lambda n, products: products / n, least=1),
    "sample_covariance": _covariance(lambda n, products: products / (n - 1), least=2),
    "correlation": _correlation,
    "taken": _taken,
}
