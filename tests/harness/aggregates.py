"""Random aggregate calls, each with the way in which its answer may be compared.

Some aggregates answer with any of several values, by the order of the rows: first, last, any_value, mode,
and min_by or max_by with ties. Where it can be done they are made certain: over a key of the group
(constant in it), with a unique column to decide ties, or with the value itself as the last thing to
compare. Otherwise a witness lists what they may answer. Lists and sets are compared as multisets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.harness.expressions import Scope, Value, number
from tests.harness.keys import Key
from tests.harness.predicates import predicate
from tests.harness.schemas import NUMBERS, Kind, Role
from tests.harness.tolerance import (
    COMMONEST,
    EXACT,
    MULTISET,
    ONE_OF,
    Comparison,
    Moment,
    Spread,
    Tolerance,
    near,
)

_UNIT = Spread(1.0, 1.0, dyadic=True)

AVERAGES = ("avg", "mean")
VARIANCES = ("var_pop", "var_samp", "variance")
DEVIATIONS = ("stddev", "std", "stddev_pop", "stddev_samp")
SHAPES = ("skewness", "kurtosis")
BITS = ("bit_and", "bit_or", "bit_xor")
BOOLEANS = ("bool_and", "bool_or", "every", "any", "some")
ANY_ROW = ("first", "last", "any_value")

# In a witness: where the FILTER of the aggregate goes. A comment, so that it may as well stay.
_WHERE = "/* filter */"

HASHABLE = frozenset(Kind) - {Kind.STRUCT, Kind.ARRAY}
ORDERED_NUMERICALLY = NUMBERS | {Kind.DATE, Kind.TIMESTAMP, Kind.NTZ}


@dataclass(frozen=True)
class Aggregate:
    """A call of an aggregate function."""

    sql: str
    kind: Kind
    comparison: Comparison = EXACT
    spread: Spread | None = None  # of the result, if it is a number that arithmetics may go on with
    may_fail: bool = False
    witness: str | None = None  # an expression for the values of which any is right; see compare.py


@dataclass(frozen=True)
class _Group:
    """Where an aggregate is written: the scope, and the keys, which are constant in a group."""

    scope: Scope
    keys: Sequence[Key]

    def column(self, kinds: frozenset[Kind] = frozenset(Kind)) -> Value:
        """A column of one of the kinds; every schema has a timestamp, a string and an int."""
        return self.scope.value(self.scope.choices.pick(self.scope.schema.of(*kinds)))


def aggregate(scope: Scope, keys: Sequence[Key]) -> Aggregate:
    """A random aggregate, with FILTER or without."""
    choices, group = scope.choices, _Group(scope, keys)
    make = choices.weighted(_SIMPLE if scope.theme and scope.theme.simple else _MAKERS)
    made = make(group) or _count(group)
    if choices.chance(18):
        where = f" FILTER (WHERE {predicate(scope, 1)})"
        witness = made.witness.replace(_WHERE, where) if made.witness else None
        return replace(made, sql=made.sql + where, witness=witness)
    return made


def _distinct(group: _Group) -> str:
    return "DISTINCT " if group.scope.choices.chance(15) else ""


def _count(group: _Group) -> Aggregate:
    choices = group.scope.choices
    one, two = group.column(), group.column()
    arguments = (
        "*",
        one.sql,
        f"DISTINCT {one.sql}",
        f"DISTINCT {one.sql}, {two.sql}",
        "1",
        f"{one.sql}, {two.sql}",
    )
    return Aggregate(f"count({choices.pick(arguments)})", Kind.INT, spread=Spread(1e3, 1.0, dyadic=True))


def _count_if(group: _Group) -> Aggregate:
    sql = f"count_if({predicate(group.scope, 1)})"
    return Aggregate(sql, Kind.INT, spread=Spread(1e3, 1.0, dyadic=True))


def _sum(group: _Group) -> Aggregate:
    value, distinct = _summand(group), _distinct(group)
    spread = value.spread or _UNIT
    total = spread.times(Spread(1e3, 1.0, dyadic=True))
    comparison = EXACT
    if value.kind is Kind.FLOAT and not spread.sums_exactly:
        comparison = near(Tolerance(Moment.SUM, spread.magnitude))
    # A sum of doubles cannot overflow here; one of bigint or wide decimals can, depending on the order of rows.
    wide = value.kind is Kind.DECIMAL or (value.kind is Kind.INT and total.magnitude > 2.0**63)
    may_fail = value.extreme and wide
    return Aggregate(f"sum({distinct}{value.sql})", value.kind, comparison, total, may_fail)


def _summand(group: _Group) -> Value:
    """Bounded numbers as a rule: now and then one whose sum may overflow."""
    extremes = [c for c in group.scope.schema.of(*NUMBERS) if c.role is Role.EXTREME]
    if extremes and group.scope.choices.chance(12):
        return group.scope.value(group.scope.choices.pick(extremes))
    return number(group.scope)


def _average(group: _Group) -> Aggregate:
    value, distinct = _summand(group), _distinct(group)
    sql = f"{group.scope.choices.pick(AVERAGES)}({distinct}{value.sql})"
    spread = value.spread or _UNIT
    if value.kind is Kind.DECIMAL:
        return Aggregate(sql, Kind.DECIMAL, spread=Spread(spread.magnitude), may_fail=value.extreme)
    # Spark adds integers up as doubles for their mean, so that large ones are rounded as well.
    comparison = EXACT if spread.sums_exactly else near(Tolerance(Moment.MEAN, spread.magnitude))
    return Aggregate(sql, Kind.FLOAT, comparison, Spread(spread.magnitude))


def _variance(group: _Group) -> Aggregate:
    choices, value = group.scope.choices, _summand(group)
    name = choices.pick((*VARIANCES, *DEVIATIONS))
    moment = Moment.VARIANCE if name in VARIANCES else Moment.DEVIATION
    tolerance = Tolerance(moment, (value.spread or _UNIT).magnitude)
    return Aggregate(f"{name}({_distinct(group)}{value.sql})", Kind.FLOAT, near(tolerance))


def _shape(group: _Group) -> Aggregate | None:
    value = number(group.scope)
    spread = value.spread or _UNIT
    if not spread.has_shape:
        return None
    name = group.scope.choices.pick(SHAPES)
    return Aggregate(f"{name}({value.sql})", Kind.FLOAT, near(_shape_tolerance(spread)))


def _shape_tolerance(*spreads: Spread) -> Tolerance:
    return Tolerance(Moment.SHAPE, 1.0, max(spread.condition for spread in spreads))


def _pair(group: _Group) -> Aggregate | None:
    one, two = number(group.scope), number(group.scope)
    first, second = one.spread or _UNIT, two.spread or _UNIT
    name = group.scope.choices.pick(("corr", "covar_pop", "covar_samp"))
    tolerance = Tolerance(Moment.COVARIANCE, first.magnitude * second.magnitude)
    if name == "corr":
        if not (first.has_shape and second.has_shape):
            return None
        tolerance = _shape_tolerance(first, second)
    return Aggregate(f"{name}({one.sql}, {two.sql})", Kind.FLOAT, near(tolerance))


def _extremum(group: _Group) -> Aggregate:
    choices = group.scope.choices
    computed = choices.chance(30)
    value = number(group.scope) if computed else group.column()
    # The result keeps the type: two products of tinyint fit, the difference of two such products may not.
    spread = None if value.extreme or (computed and value.kind is Kind.INT) else value.spread
    return Aggregate(f"{choices.pick(('max', 'min'))}({value.sql})", value.kind, spread=spread)


def _boolean(group: _Group) -> Aggregate:
    choices = group.scope.choices
    flags = group.scope.schema.of(Kind.BOOL)
    if flags and choices.chance(50):
        condition = group.scope.reference(choices.pick(flags))
    else:
        condition = predicate(group.scope, 1)
    return Aggregate(f"{choices.pick(BOOLEANS)}({condition})", Kind.BOOL)


def _bits(group: _Group) -> Aggregate:
    value = group.column(frozenset({Kind.INT}))
    return Aggregate(f"{group.scope.choices.pick(BITS)}({value.sql})", Kind.INT)


def _by(group: _Group) -> Aggregate:
    """min_by and max_by: certain if no two rows tie, or if those that tie have the same value."""
    choices, schema = group.scope.choices, group.scope.schema
    name = choices.pick(("max_by", "min_by"))
    value, order = group.column(), group.column()
    unique = [column for column in schema.columns if column.role is Role.UNIQUE]
    if unique and choices.chance(60):
        return Aggregate(f"{name}({value.sql}, {group.scope.reference(unique[0])})", value.kind)
    if choices.chance(70):
        return Aggregate(f"{name}({value.sql}, struct({order.sql}, {value.sql}))", value.kind)
    rows = f"collect_list(struct({order.sql} AS o, {value.sql} AS v)){_WHERE}"
    ends = f"{name[:3]}({order.sql}){_WHERE}"
    witness = f"transform(filter({rows}, row -> row.o = {ends}), row -> struct(row.v))"
    return Aggregate(f"{name}({value.sql}, {order.sql})", value.kind, ONE_OF, witness=witness)


def _any_row(group: _Group) -> Aggregate:
    choices = group.scope.choices
    name = choices.pick(ANY_ROW)
    ignore = choices.pick(("", "", ", true"))
    # A window has no name inside an aggregate.
    constant = [key for key in group.keys if "window(" not in key.sql]
    if constant and choices.chance(75):
        key = choices.pick(constant)
        return Aggregate(f"{name}({key.sql}{ignore})", key.kind)
    value = group.column()
    one = f"CASE WHEN {value.sql} IS NOT NULL THEN struct({value.sql}) END" if ignore else f"struct({value.sql})"
    witness = f"collect_list({one}){_WHERE}"
    return Aggregate(f"{name}({value.sql}{ignore})", value.kind, ONE_OF, witness=witness)


def _mode(group: _Group) -> Aggregate:
    choices, value = group.scope.choices, group.column(HASHABLE)
    order = f"WITHIN GROUP (ORDER BY {value.sql}{choices.pick(('', ' DESC'))})"
    sql, comparison = choices.pick(
        (
            (f"mode({value.sql}, true)", EXACT),  # the least of the most frequent ones
            (f"mode() {order}", EXACT),
            (f"mode({value.sql})", COMMONEST),
        )
    )
    witness = f"collect_list({value.sql}){_WHERE}" if comparison is COMMONEST else None
    return Aggregate(sql, value.kind, comparison, witness=witness)


def _collection(group: _Group) -> Aggregate:
    value = group.column()
    name = group.scope.choices.pick(("collect_list", "collect_set"))
    return Aggregate(f"{name}({value.sql})", Kind.ARRAY, MULTISET)


def _approximate_count(group: _Group) -> Aggregate:
    value = group.column(HASHABLE)
    precision = group.scope.choices.pick(("", "", ", 0.1"))
    return Aggregate(f"approx_count_distinct({value.sql}{precision})", Kind.INT)


def _percentile(group: _Group) -> Aggregate:
    choices = group.scope.choices
    at = choices.pick(("0.5", "0.25", "0.9", "0", "1", "array(0.1, 0.5, 1.0)"))
    many = at.startswith("array")
    match choices.pick(("median", "percentile", "approx_percentile")):
        case "median":
            return Aggregate(f"median({number(group.scope).sql})", Kind.FLOAT)
        case "percentile":
            value = number(group.scope)
            return Aggregate(f"percentile({value.sql}, {at})", Kind.ARRAY if many else Kind.FLOAT)
        case _:
            column = group.column(ORDERED_NUMERICALLY)
            # With NaN, Spark's own answer depends on where partitions end: see test_strategies.py.
            value_sql = f"nanvl({column.sql}, 0D)" if column.kind is Kind.FLOAT else column.sql
            return Aggregate(f"approx_percentile({value_sql}, {at})", Kind.ARRAY if many else column.kind)


_SIMPLE = (
    (5, _count),
    (6, _sum),
    (3, _average),
    (5, _extremum),
    (2, _variance),
    (1, _boolean),
)
_MAKERS = (
    (14, _count),
    (3, _count_if),
    (16, _sum),
    (10, _average),
    (14, _extremum),
    (8, _variance),
    (5, _shape),
    (6, _pair),
    (5, _boolean),
    (4, _bits),
    (5, _by),
    (5, _any_row),
    (4, _mode),
    (5, _collection),
    (3, _approximate_count),
    (6, _percentile),
)
