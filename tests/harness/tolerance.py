"""How far two right answers may lie apart: the tolerance of floating sums, and the modes of comparison.

Everything is compared exactly, except what adds up rounded numbers: there the answer depends on the order
of the rows, in Spark too, so that two runs of plain Spark over the same rows in other partitions differ.
The tolerance is the most that this order can do, not a round figure like 1e-6. With u = 2**-53 (half the
distance of 1.0 to the next double), n rows in a group and |x| <= M:

* SUM. Adding n numbers in any order errs by at most (n - 1) u sum|x| (Higham, Accuracy and Stability of
  Numerical Algorithms, 4.2), so that two orders differ by at most 2 n u sum|x| <= 2 n u n M. The bound is
  absolute: when large numbers cancel, the sum may be near zero and every digit of it may be rounding, and a
  tolerance relative to the result would refuse right answers. So the bound on the data, M, is part of the
  tolerance: data.py keeps every column inside the magnitude that its schema states (at most 1e15), and most
  columns state 1000.
* MEAN. The same, divided by the number of rows, and one more rounding: 2 (n + 1) u M.
* DEVIATION (stddev). The distances to the mean are known to about n u M each (the error of the mean plus
  one subtraction), and a root of a mean of squares moves by no more than they do: t = 8 n u M. The 8 covers
  both sides, the n - 1 of the sample versions, and the updating formulas of Spark (Chan, Golub, LeVeque),
  which round a few times for each row.
* VARIANCE. The square of a deviation that is known to t: 2 sqrt(v) t + t**2. It shrinks with the variance
  itself: a group of equal values has the variance 0.0 in Spark, and sums of squares (whose error is n u
  M**2) do not pass.
* COVARIANCE. As the variance, but nothing is known of the two deviations: 8 n u Mx My.
* SHAPE (skewness, kurtosis, corr) divides moments by powers of the deviation, so that the error of the
  distances to the mean, n u M, counts relative to the deviation. The deviation cannot be arbitrarily small:
  values of a column are equal or at least `gap` apart, so that the sum of squares of a group is 0 or at
  least gap**2 / 2. That gives a few times n**1.5 u M / gap, times at most sqrt(n) for the largest of the
  derivatives, times the result itself for the part that is relative: 8 n**2 u (M / gap) (1 + |result|).
  Where the sum of squares is 0 Spark answers NULL, in every order, and NULL only equals NULL.

Infinities and NaN spread through a sum in the same way in every order, so they must be equal. The one
exception is the covariance: Spark's update multiplies inf by a distance that may be 0, so that its answer
is NaN or an infinity by the order of the rows; there all that is not finite is taken as equal.

A sum of numbers that are multiples of a power of two (`Spread.dyadic`) and small enough is never rounded,
in any order. Such sums are exact, and are compared exactly: `Spread.sums_exactly`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import Enum

UNIT_ROUNDOFF = 2.0**-53
# More rows than data.py makes: a sum of dyadic numbers is called exact only where this many rows cannot round it.
EXACT_ROWS = 1000
# Above this ratio of magnitude to gap the shape of a distribution says nothing that survives rounding.
WORST_CONDITION = 1e7


@dataclass(frozen=True)
class Spread:
    """Where numbers lie: |x| <= magnitude, different ones at least `gap` apart (0: unknown).

    Values are multiples of the gap, exactly if `dyadic` (the gap is then a power of two times an integer),
    else to within a rounding. That makes sums and products predictable.
    """

    magnitude: float
    gap: float = 0.0
    dyadic: bool = False

    def plus(self, other: Spread) -> Spread:
        return Spread(self.magnitude + other.magnitude, min(self.gap, other.gap), self.dyadic and other.dyadic)

    def times(self, other: Spread) -> Spread:
        return Spread(self.magnitude * other.magnitude, self.gap * other.gap, self.dyadic and other.dyadic)

    @property
    def condition(self) -> float:
        return self.magnitude / self.gap if self.gap else math.inf

    @property
    def has_shape(self) -> bool:
        return self.condition <= WORST_CONDITION

    @property
    def sums_exactly(self) -> bool:
        return self.dyadic and EXACT_ROWS * self.condition < 2.0**53


class Moment(Enum):
    """What kind of floating sum a result is; the module's docstring has the bound of each."""

    SUM = "sum"
    MEAN = "mean"
    DEVIATION = "deviation"
    VARIANCE = "variance"
    COVARIANCE = "covariance"
    SHAPE = "shape"


@dataclass(frozen=True)
class Tolerance:
    """The tolerance class of one output column: the kind of sum, and the numbers that went into it."""

    moment: Moment
    magnitude: float
    condition: float = math.inf
    # round(x, 2) can turn the smallest difference into a step of 0.01.
    rounding_step: float = 0.0

    def allowed(self, value: float, rows: int) -> float:
        """How far a result may be from `value`, over groups of at most `rows` rows."""
        n, u = max(rows, 1), UNIT_ROUNDOFF
        deviation = 8 * n * u * self.magnitude
        match self.moment:
            case Moment.SUM:
                bound = 2 * n * u * n * self.magnitude
            case Moment.MEAN:
                bound = 2 * (n + 1) * u * self.magnitude
            case Moment.DEVIATION | Moment.COVARIANCE:
                bound = deviation
            case Moment.VARIANCE:
                bound = 2 * math.sqrt(abs(value)) * deviation + deviation**2
            case Moment.SHAPE:
                bound = 8 * n**2 * u * self.condition * (1 + abs(value))
        # The step itself is not exact in binary, hence the hair on top of it.
        return bound + self.rounding_step * (1 + 1e-9)

    def accepts(self, expected: float, actual: float, rows: int) -> bool:
        if math.isfinite(expected) and math.isfinite(actual):
            return abs(expected - actual) <= self.allowed(expected, rows)
        if self.moment is Moment.COVARIANCE:
            return not math.isfinite(expected) and not math.isfinite(actual)
        return expected == actual or (math.isnan(expected) and math.isnan(actual))

    def plus(self, other: Tolerance) -> Tolerance:
        """Of the sum or difference of two sums."""
        return replace(self, moment=Moment.SUM, magnitude=self.magnitude + other.magnitude)

    def times(self, factor: float) -> Tolerance:
        """Of a sum or mean times a constant."""
        return replace(self, magnitude=self.magnitude * factor)

    def rounded(self, digits: int) -> Tolerance:
        return replace(self, rounding_step=10.0**-digits)


class Mode(Enum):
    """How the values of an output column are compared."""

    EXACT = "exact"
    NEAR = "near"  # a floating sum: within its tolerance
    MULTISET = "multiset"  # an array whose order is Spark's own business: collect_list, collect_set
    ONE_OF = (
        "one of"  # any row of the group may answer (first, last, any_value): one of those that the witness lists
    )
    COMMONEST = "commonest"  # the same for mode: one of the commonest of those that the witness lists
    EXCLUDED = "excluded"  # only name and type count


@dataclass(frozen=True)
class Comparison:
    """The mode of one output column, with its tolerance if it has one."""

    mode: Mode
    tolerance: Tolerance | None = None


EXACT = Comparison(Mode.EXACT)
MULTISET = Comparison(Mode.MULTISET)
ONE_OF = Comparison(Mode.ONE_OF)
COMMONEST = Comparison(Mode.COMMONEST)
EXCLUDED = Comparison(Mode.EXCLUDED)


def near(tolerance: Tolerance) -> Comparison:
    return Comparison(Mode.NEAR, tolerance)
