"""Aggregate calls, and what kind of work each function of Spark's is.

The kinds are Gray's: a distributive aggregate's state is its value, an algebraic one has a small fixed state,
a holistic one needs all values (or a sketch of them, or a finer node), and an order-dependent one has an answer
that plain Spark itself does not fix.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from sqlglot import exp

from headrace.query.expression import Expression
from headrace.query.functions import is_aggregate_name
from headrace.query.ordering import Ordering
from headrace.query.source import Source


class Kind(enum.Enum):
    """How an aggregate's answer comes from answers over parts."""

    DISTRIBUTIVE = "distributive"
    ALGEBRAIC = "algebraic"
    HOLISTIC = "holistic"
    ORDER_DEPENDENT = "order-dependent"


@dataclass(frozen=True, slots=True)
class AggregateFunction:
    """An aggregate function that headrace knows: Spark's name, its kind and how many arguments it takes."""

    name: str
    kind: Kind
    least: int = 1
    most: int = 1


def _functions() -> Iterator[AggregateFunction]:
    yield AggregateFunction("count", Kind.DISTRIBUTIVE, 1, 64)
    for name in ("count_if", "sum", "min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "bit_xor"):
        yield AggregateFunction(name, Kind.DISTRIBUTIVE)
    for name in ("min_by", "max_by"):
        yield AggregateFunction(name, Kind.DISTRIBUTIVE, 2, 2)
    for name in ("avg", "var_samp", "var_pop", "stddev_samp", "stddev_pop", "skewness", "kurtosis"):
        yield AggregateFunction(name, Kind.ALGEBRAIC)
    for name in ("covar_samp", "covar_pop", "corr"):
        yield AggregateFunction(name, Kind.ALGEBRAIC, 2, 2)
    yield AggregateFunction("approx_count_distinct", Kind.HOLISTIC, 1, 2)
    yield AggregateFunction("percentile_approx", Kind.HOLISTIC, 2, 3)
    yield AggregateFunction("percentile", Kind.HOLISTIC, 1, 3)
    yield AggregateFunction("percentile_disc", Kind.HOLISTIC)
    yield AggregateFunction("median", Kind.HOLISTIC)
    yield AggregateFunction("mode", Kind.HOLISTIC, 0, 2)
    yield AggregateFunction("approx_top_k", Kind.HOLISTIC, 1, 3)
    yield AggregateFunction("collect_set", Kind.HOLISTIC)
    yield AggregateFunction("collect_list", Kind.ORDER_DEPENDENT)
    for name in ("any_value", "first", "last"):
        yield AggregateFunction(name, Kind.ORDER_DEPENDENT, 1, 2)


FUNCTIONS: Mapping[str, AggregateFunction] = {function.name: function for function in _functions()}
"""The aggregate functions that headrace knows, by Spark's first name for each."""

SYNONYMS: Mapping[str, str] = {
    "mean": "avg",
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
    "std": "stddev_samp",
    "stddev": "stddev_samp",
    "variance": "var_samp",
    "approx_percentile": "percentile_approx",
    "percentile_cont": "percentile",
    "array_agg": "collect_list",
    "first_value": "first",
    "last_value": "last",
}


_BLIND_TO_REPEATS = frozenset({"min", "max", "bool_and", "bool_or", "bit_and", "bit_or", "any_value"})
"""The functions to which it does not matter how often a value comes: DISTINCT says nothing to them."""


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate call; equal calls of different queries are equal values."""

    function: AggregateFunction
    arguments: tuple[Expression, ...]
    distinct: bool = False
    ignore_nulls: bool = False
    within: tuple[Ordering, ...] = ()
    filter: Expression | None = None
    sql: str = field(compare=False, default="")

    @property
    def kind(self) -> Kind:
        """The kind of work; DISTINCT makes any aggregate whose value depends on repeats a holistic one."""
        return max(self.function.kind, Kind.HOLISTIC, key=list(Kind).index) if self.once else self.function.kind

    @property
    def once(self) -> bool:
        """Whether equal arguments count once, and that matters."""
        return self.distinct and self.function.name not in _BLIND_TO_REPEATS


def after_grouping(select: exp.Expr) -> list[exp.Expr]:
    """The parts of a query that may have aggregates in them: its outputs, HAVING and ORDER BY."""
    clauses = (*select.expressions, select.args.get("having"), select.args.get("order"))
    return [clause for clause in clauses if clause is not None]


def peel(node: exp.Expr) -> tuple[exp.Anonymous | None, exp.Filter | None, exp.WithinGroup | None, bool]:
    """A call without what may follow it: (call, FILTER, WITHIN GROUP, whether IGNORE NULLS stands there)."""
    where: exp.Filter | None = None
    within: exp.WithinGroup | None = None
    ignore_nulls = False
    while not isinstance(node, exp.Anonymous):
        if isinstance(node, exp.Filter):
            where = node
        elif isinstance(node, exp.WithinGroup):
            within = node
        elif isinstance(node, exp.IgnoreNulls):
            ignore_nulls = True
        elif not isinstance(node, exp.RespectNulls):
            return None, None, None, False
        node = node.this
    return node, where, within, ignore_nulls


def is_aggregate_call(node: exp.Expr) -> bool:
    """Whether a node is a call of one of Spark's aggregates, with its FILTER and the like where it has one."""
    call = peel(node)[0]
    return call is not None and is_aggregate_name(call.name)


def find_aggregates(node: exp.Expr) -> Iterator[exp.Expr]:
    """The outermost aggregate calls below a node, from left to right."""
    if is_aggregate_call(node):
        yield node
        return
    for part in node.iter_expressions():
        yield from find_aggregates(part)


def parse_aggregate(node: exp.Expr, source: Source, qualifiers: frozenset[str] = frozenset()) -> Aggregate | None:
    """The value of an aggregate call, or None where headrace does not know the function in this form."""
    call, where, within, ignore_nulls = peel(node)
    if call is None:
        return None
    function = FUNCTIONS.get(SYNONYMS.get(call.name.lower(), call.name.lower()))
    arguments, distinct = call.expressions, False
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        arguments, distinct = arguments[0].expressions, True
    if function is None or not function.least <= len(arguments) <= function.most:
        return None
    ordered = within.expression.expressions if within is not None else []
    return Aggregate(
        function=function,
        arguments=tuple(Expression.of(source, argument, qualifiers) for argument in arguments),
        distinct=distinct,
        ignore_nulls=ignore_nulls,
        within=tuple(Ordering.of(source, item, qualifiers) for item in ordered),
        filter=Expression.of(source, where.expression.this, qualifiers) if where is not None else None,
        sql=Expression.of(source, node, qualifiers).sql,
    )
