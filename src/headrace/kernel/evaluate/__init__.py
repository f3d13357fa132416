"""Expressions over Arrow columns, computed exactly as Spark computes them, or not at all.

What workers can compute for themselves need not go through Spark. The kernel knows the common operators and
functions. For anything else, and wherever it could not be exact, `compile_expression` gives None: Spark does it.
Spark's ANSI mode is taken for granted, and that no function of the session hides a built-in one.

| file | what it has |
| --- | --- |
| nodes.py | what an expression is compiled to: frozen nodes that travel, and compute |
| types.py | the types that Spark gives, decimals above all |
| operators.py, functions.py | which node an operator or a function of SQL becomes |
| numbers.py, text.py, time.py | what Spark computes otherwise than Arrow: overflow, NaN, LIKE, time zones |
| cuts.py, cells.py | many conditions at a time |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from headrace.kernel.evaluate import operators as operators
from headrace.kernel.evaluate import text as text
from headrace.kernel.evaluate import time as time
from headrace.kernel.evaluate.functions import CASTS, function
from headrace.kernel.evaluate.nodes import (
    UNZONED,
    ZONED,
    Batch,
    Node,
    Unknown,
    apply,
    choose,
    constant,
    plain_type,
    read,
    spread,
)
from headrace.kernel.evaluate.numbers import call
from headrace.kernel.evaluate.types import common, number
from headrace.query.dialect import SPAN, span_of, tokenize
from headrace.query.expression import Expression


@dataclass(frozen=True)
class Evaluator:
    """A compiled expression: call it with the columns of `names`, as the stream spells them."""

    names: tuple[str, ...]
    node: Node
    result: pa.DataType

    @property
    def tells(self) -> bool:
        """Whether it reads columns, and raises for no record: as a condition, it tells records apart."""
        return bool(self.names) and not self.node.raises

    def __call__(self, columns: Mapping[str, pa.Array]) -> pa.Array:
        """The values, of just the type `result`; an expression without columns gives as many as any column has.

        Raises ArithmeticError where Spark in ANSI mode would raise: overflow, division by zero.
        """
        sizes = {len(column) for column in columns.values()}
        if len(sizes) != 1:
            raise ValueError(f"an expression needs columns of one length, got {sorted(sizes)}")
        length = sizes.pop()
        value = self.node.compute(Batch({name: columns[name] for name in self.names}, length))
        found = spread(value, length)
        return found if found.type == self.result else found.view(self.result)


def compile_expression(
    expression: Expression, columns: Mapping[str, pa.DataType], result: pa.DataType, time_zone: str
) -> Evaluator | None:
    """An expression over columns of these types, made ready for workers.

    `result` is the type that Spark gives the expression. None where the kernel does not know the expression, or
    arrives at another type: Spark then computes it.
    """
    node = _compile(expression, columns, time_zone)
    if node is None or not columns or node.type != plain_type(result):
        return None
    evaluator = Evaluator(tuple(name for name in columns if name in node.names), node, result)
    return evaluator if _runs(evaluator, columns) else None


def never_raises(expression: Expression, columns: Mapping[str, pa.DataType], time_zone: str) -> bool:
    """Whether an expression has a value, or null, for any record; False too where the kernel does not know it."""
    node = _compile(expression, columns, time_zone)
    return node is not None and not node.raises


def _compile(expression: Expression, columns: Mapping[str, pa.DataType], time_zone: str) -> Node | None:
    try:
        return _Compiler(expression.sql, columns, time_zone).compile(expression.tree)
    except Unknown:
        return None


def _runs(evaluator: Evaluator, columns: Mapping[str, pa.DataType]) -> bool:
    """Whether Arrow has all functions for the types in question: it says so on columns without rows."""
    try:
        found = evaluator({name: pa.nulls(0, kind) for name, kind in columns.items()})
    except pa.ArrowNotImplementedError:
        return False
    return bool(found.type == evaluator.result)


_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "equal",
    exp.NEQ: "not_equal",
    exp.LT: "less",
    exp.LTE: "less_equal",
    exp.GT: "greater",
    exp.GTE: "greater_equal",
    exp.NullSafeEQ: "same",
}
_ARITHMETIC: dict[type[exp.Expr], str] = {exp.Add: "add", exp.Sub: "subtract", exp.Mul: "multiply"}
_BITWISE: dict[type[exp.Expr], str] = {
    exp.BitwiseAnd: "bit_wise_and",
    exp.BitwiseOr: "bit_wise_or",
    exp.BitwiseXor: "bit_wise_xor",
}
_TYPES = {
    **{exp.DataType.build(name, dialect="spark").this: kind for name, kind in CASTS.items()},
    exp.DType.TIMESTAMPTZ: ZONED,
    exp.DType.TIMESTAMPLTZ: ZONED,
    exp.DType.TIMESTAMPNTZ: UNZONED,
}
# sqlglot and Spark bind these differently beside each other, so parentheses have to say what is meant.
_TESTS = (
    *_COMPARISONS,
    exp.In,
    exp.Is,
    exp.Like,
    exp.ILike,
    exp.Between,
    exp.Not,
    exp.And,
    exp.Or,
    exp.NullSafeNEQ,
)
_LOOSE = (*_TESTS, exp.DPipe, *_BITWISE)
# What else sqlglot notes in a node without a meaning for us.
_NOTES = frozenset({"typed", "safe", "coalesce", "_type", "nested", "negate"})
_QUOTED = re.compile(r"'((?:[^'\\]|''|\\\\)*)'|\"([^\"\\]*)\"")


class _Compiler:
    """Nodes from the syntax trees of one text."""

    def __init__(self, sql: str, columns: Mapping[str, pa.DataType], zone: str) -> None:
        # sqlglot reads .5 as 5; and a dot between names means a part of a column.
        if any(token.token_type is TokenType.DOT for token in tokenize(sql)):
            raise Unknown("a dot")
        self._sql = sql
        self._columns = columns
        self._zone = zone

    def compile(self, tree: exp.Expr) -> Node:
        """The node of a tree; raises `Unknown`."""
        kind = type(tree)
        if kind in _COMPARISONS:
            left, right = self._sides(tree, _TESTS)
            return operators.compare(_COMPARISONS[kind], left, right, self._zone)
        if kind in (exp.And, exp.Or):
            _only(tree, "this", "expression")
            sides = (self.compile(tree.this), self.compile(tree.expression))
            return operators.logic("and_kleene" if kind is exp.And else "or_kleene", *sides)
        if kind in _ARITHMETIC:
            return operators.arithmetic(_ARITHMETIC[kind], *self._sides(tree, _LOOSE))
        if kind in _BITWISE:
            same = tuple(other for other in _BITWISE if other is not kind)
            return operators.bitwise(_BITWISE[kind], *self._sides(tree, (*_TESTS, exp.DPipe, *same)))
        match tree:
            case exp.Div():
                return operators.division(*self._sides(tree, _LOOSE))
            case exp.Mod():
                return operators.remainder(*self._sides(tree, _LOOSE))
            case exp.IntDiv():
                return operators.integral_division(*self._sides(tree, _LOOSE))
            case exp.DPipe():
                return text.concat(self._sides(tree, (*_TESTS, *_BITWISE, *_ARITHMETIC)))
            case exp.Neg():
                return self._negated(tree)
            case exp.NullSafeNEQ():
                return operators.negation(operators.compare("same", *self._sides(tree, _TESTS), self._zone))
            case exp.Not():
                _only(tree, "this")
                return operators.negation(self.compile(tree.this))
            case exp.In() | exp.Between() | exp.Is() | exp.Like():
                return self._test(tree)
            case exp.Anonymous():
                return self._function(tree)
            case exp.Case():
                return self._case(tree)
            case exp.Cast() | exp.TryCast():
                return self._cast(tree)
            case exp.Substring() | exp.Trim() | exp.Extract():
                return self._special(tree)
            case _:
                return self._leaf(tree)

    def _leaf(self, tree: exp.Expr) -> Node:
        match tree:
            case exp.Column():
                _only(tree, "this")
                return self._column(tree.this)
            case exp.Paren():
                _only(tree, "this")
                self._check_parentheses(tree)
                return self.compile(tree.this)
            case exp.Literal() if not tree.is_string:
                return number(tree.name)
            case exp.Literal() | exp.Concat():
                return constant(self._text(tree), pa.string())
            case exp.HexString() if re.fullmatch(r"[xX]'(?:[0-9a-fA-F]{2})*'", self._source(tree)):
                return constant(bytes.fromhex(tree.name), pa.binary())
            case exp.Boolean():
                return constant(bool(tree.this), pa.bool_())
            case exp.Null():
                return constant(None, pa.null())
        raise Unknown(type(tree).__name__)

    def _column(self, name: exp.Expr) -> Node:
        if not isinstance(name, exp.Identifier):
            raise Unknown("not a plain name")
        found = [own for own in self._columns if own.lower() == name.name.lower()]
        if len(found) != 1 or not (found[0] == name.name or found[0].isascii()):
            raise Unknown(f"column {name.name}")
        return read(found[0], plain_type(self._columns[found[0]]))

    def _sides(self, tree: exp.Expr, loose: tuple[type[exp.Expr], ...]) -> tuple[Node, Node]:
        """Both operands, neither of which may be one of these operators without parentheses."""
        _only(tree, "this", "expression")
        for side in (tree.this, tree.expression):
            _refuse(side, loose)
        return self.compile(tree.this), self.compile(tree.expression)

    def _negated(self, tree: exp.Expr) -> Node:
        _only(tree, "this")
        _refuse(tree.this, _LOOSE)
        node = self.compile(tree.this)
        # The smallest integer is a literal of its own, or the negation of one that is too large.
        if isinstance(tree.this, exp.Literal) and tree.this.name in (str(2**31), str(2**63)):
            raise Unknown("the smallest integer")
        return operators.unary("negate", node)

    def _test(self, tree: exp.Expr) -> Node:
        _refuse(tree.this, _TESTS)
        value = self.compile(tree.this)
        match tree:
            case exp.In():
                _only(tree, "this", "expressions")
                items = tuple(self.compile(item) for item in tree.expressions)
                found = operators.contains(value, items, self._zone)
            case exp.Between():
                _only(tree, "this", "low", "high")
                ends = [tree.args["low"], tree.args["high"]]
                for end in ends:
                    _refuse(end, _TESTS)
                low, high = (self.compile(end) for end in ends)
                found = self._between(value, low, high)
            case exp.Is():
                _only(tree, "this", "expression")
                found = self._is(value, tree.expression)
            case _:
                _only(tree, "this", "expression")
                found = text.like(value, self._text(tree.expression))
        return operators.negation(found) if tree.args.get("negate") else found

    def _between(self, value: Node, low: Node, high: Node) -> Node:
        over = operators.compare("greater_equal", value, low, self._zone)
        under = operators.compare("less_equal", value, high, self._zone)
        if low.raises or high.raises or not value.raises:
            return operators.logic("and_kleene", over, under)
        # The value is computed first in any case, so that it raises in any case.
        return apply(call, (over, under), pa.bool_(), "and_kleene")

    def _is(self, value: Node, what: exp.Expr) -> Node:
        if isinstance(what, exp.Null):
            return apply(call, (value,), pa.bool_(), "is_null")
        if isinstance(what, exp.Boolean):
            wanted = constant(bool(what.this), pa.bool_())
            return operators.compare("same", operators.truth(value), wanted, self._zone)
        raise Unknown("IS")

    def _case(self, tree: exp.Expr) -> Node:
        _only(tree, "this", "ifs", "default")
        conditions, branches = [], []
        for pair in tree.args["ifs"]:
            _only(pair, "this", "true")
            condition = self.compile(pair.this)
            if tree.this:
                condition = operators.compare("equal", self.compile(tree.this), condition, self._zone)
            conditions.append(operators.truth(condition))
            branches.append(self.compile(pair.args["true"]))
        default = tree.args.get("default")
        branches.append(self.compile(default) if default else constant(None, pa.null()))
        return choose(tuple(conditions), common(tuple(branches)))

    def _cast(self, tree: exp.Expr) -> Node:
        if tree.args.get("safe") or not isinstance(tree.args["to"], exp.DataType):
            raise Unknown("a cast that never fails")
        _only(tree, "this", "to")
        _only(tree.args["to"], "this")
        kind = _TYPES.get(tree.args["to"].this)
        # sqlglot forgets the length of a VARCHAR.
        if kind is None or (kind == pa.string() and re.search("char", self._sql, re.IGNORECASE)):
            raise Unknown("a cast to a type")
        return operators.cast(self.compile(tree.this), kind, self._zone)

    def _special(self, tree: exp.Expr) -> Node:
        match tree:
            case exp.Substring():
                _only(tree, "this", "start", "length")
                size = tree.args.get("length")
                start = self.compile(tree.args["start"])
                return text.substring(self.compile(tree.this), start, self.compile(size) if size else None)
            case exp.Trim():
                _only(tree, "this")
                return text.trim(self.compile(tree.this), "trim")
            case _:
                _only(tree, "this", "expression")
                name = tree.this.name.lower()
                if name not in ("year", "quarter", "month", "day", "hour", "minute"):
                    raise Unknown(f"EXTRACT {name}")
                return time.part(name, self.compile(tree.expression), self._zone)

    def _function(self, tree: exp.Expr) -> Node:
        _only(tree, "this", "expressions")
        if not isinstance(tree.this, str):
            raise Unknown("a name in quotes")
        nodes = tuple(self.compile(argument) for argument in tree.expressions)
        return function(tree.this.lower(), nodes, self._zone)

    def _text(self, tree: exp.Expr) -> str:
        """A constant text, as Spark reads it."""
        found = _QUOTED.fullmatch(self._source(tree))
        if not isinstance(tree, exp.Literal | exp.Concat) or not found:
            raise Unknown("not a plain text")
        return str(found[2]) if found[1] is None else found[1].replace("''", "'").replace("\\\\", "\\")

    def _source(self, tree: exp.Expr) -> str:
        start, end = span_of(tree) or (0, 0)
        return self._sql[start:end]

    def _check_parentheses(self, tree: exp.Expr) -> None:
        # sqlglot adds some that are not in the text.
        source = self._source(tree)
        if SPAN not in tree.meta or not source.startswith("(") or not source.endswith(")"):
            raise Unknown("parentheses that are not in the text")


def _only(tree: exp.Expr, *known: str) -> None:
    """Refuse a tree that has more parts than these."""
    if any(value for key, value in tree.args.items() if key not in known and key not in _NOTES):
        raise Unknown(f"parts of {type(tree).__name__}")


def _refuse(tree: exp.Expr, loose: tuple[type[exp.Expr], ...]) -> None:
    if isinstance(tree, loose):
        raise Unknown("operators side by side that need parentheses")
