"""Spark SQL as sqlglot parses it, with the place of every expression kept.

sqlglot gives the structure of a query; what an expression *means* is left to Spark, which gets the user's own
text. So this dialect differs from sqlglot's Spark in two ways: every expression remembers the span of text that
it came from, and functions stay calls by name (sqlglot would turn `percentile_cont` into `percentile_approx`
and `x::int` into a cast that never fails, and print them so).
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel, ParseError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

SPAN = "span"
"""The meta key under which an expression keeps its (start, end) offsets, end exclusive."""

# Functions with a syntax of their own inside the parentheses; all others parse as plain calls.
_SPECIAL_SYNTAX = frozenset({"CAST", "TRY_CAST", "EXTRACT", "OVERLAY", "POSITION", "SUBSTRING", "SUBSTR", "TRIM"})


Node = TypeVar("Node", bound=exp.Expr)

_TYPES_OR_FUNCTIONS = (TokenType.ARRAY, TokenType.MAP, TokenType.STRUCT)
CLAUSES = frozenset({TokenType.WHERE, TokenType.GROUP_BY, TokenType.HAVING, TokenType.ORDER_BY})
"""What begins the next clause wherever it stands; LIMIT may be a column's name."""
_AFTER_NO_COMMA = CLAUSES | {TokenType.COMMA, TokenType.R_PAREN, TokenType.FROM}


class SyntaxFault(ParseError):
    """A parse error with the offsets of the token that it is about."""

    def __init__(self, message: str, start: int, end: int) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = end


def _spanned(method: Callable[..., Node | None]) -> Callable[..., Node | None]:
    """Wrap a parser's method so that what it returns knows the tokens it was made from."""

    @functools.wraps(method)
    def parse(self: QueryParser, *args: Any, **kwargs: Any) -> Node | None:
        # Some methods go on from an operand that is parsed already, and is their first argument.
        operand = span_of(args[0]) if args and isinstance(args[0], exp.Expr) else None
        start = operand[0] if operand else self._curr.start
        index = self._index
        found = method(self, *args, **kwargs)
        if isinstance(found, exp.Expr) and self._index > index:
            found.meta[SPAN] = (start, self._prev.end + 1)
        return found

    return parse


class QueryParser(SparkParser):
    """Spark's parser as sqlglot has it, plus spans, minus the rewriting of functions."""

    FUNCTIONS: ClassVar[dict[str, Any]] = {}
    FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
        name: parser for name, parser in SparkParser.FUNCTION_PARSERS.items() if name in _SPECIAL_SYNTAX
    }
    NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {"CASE": SparkParser.NO_PAREN_FUNCTION_PARSERS["CASE"]}

    _parse_expression = _spanned(SparkParser._parse_expression)
    _parse_disjunction = _spanned(SparkParser._parse_disjunction)
    _parse_lambda = _spanned(SparkParser._parse_lambda)
    _parse_function = _spanned(SparkParser._parse_function)
    _parse_column = _spanned(SparkParser._parse_column)
    _parse_ordered = _spanned(SparkParser._parse_ordered)
    # One for each level of precedence, so that each operand of an operator has its place.
    _parse_conjunction = _spanned(SparkParser._parse_conjunction)
    _parse_equality = _spanned(SparkParser._parse_equality)
    _parse_comparison = _spanned(SparkParser._parse_comparison)
    _parse_range = _spanned(SparkParser._parse_range)
    _parse_bitwise = _spanned(SparkParser._parse_bitwise)
    _parse_term = _spanned(SparkParser._parse_term)
    _parse_factor = _spanned(SparkParser._parse_factor)
    _parse_unary = _spanned(SparkParser._parse_unary)
    _parse_type = _spanned(SparkParser._parse_type)

    def raise_error(self, message: str, token: Token | None = None) -> None:
        """Fail at once, at the token itself (sqlglot would only give the line and the token's last column)."""
        at = token or self._curr or self._prev
        raise SyntaxFault(message, at.start, at.end + 1)


class QueryDialect(Spark):
    """The dialect that `parse_statement` uses."""

    Parser = QueryParser


_QUOTED_OR_COMMENT = re.compile(
    r"""(?<!\w)[rR]'[^']*' | (?<!\w)[rR]"[^"]*" | '(?:\\.|[^'\\])*' | "(?:\\.|[^"\\])*" | `[^`]*`
        | --(?:\\\n|[^\n])* | /\*""",
    re.VERBOSE | re.DOTALL,
)
_COMMENT_EDGE = re.compile(r"/\*|\*/")


def blank_comments(text: str) -> str:
    """The text with spaces in place of comments (and hints, which mean nothing for the answer).

    Offsets and lines stay as they are. sqlglot knows comments too, but not between GROUP and BY.

    >>> blank_comments("a /* b /* c */ 's */ + '--d' --e")
    "a                    + '--d'    "
    """
    parts, position = [], 0
    while found := _QUOTED_OR_COMMENT.search(text, position):
        end = _comment_end(text, found.end()) if found[0] == "/*" else found.end()
        comment = found[0] == "/*" or found[0].startswith("--")
        piece = text[found.start() : end]
        parts += [text[position : found.start()], blank(piece) if comment else piece]
        position = end
    return "".join(parts) + text[position:]


def _comment_end(text: str, position: int) -> int:
    """Where a bracketed comment ends whose opening is behind `position`; comments nest."""
    depth = 1
    while depth:
        edge = _COMMENT_EDGE.search(text, position)
        if edge is None:
            return len(text)
        depth += 1 if edge[0] == "/*" else -1
        position = edge.end()
    return position


def blank(text: str) -> str:
    """Spaces in place of a text, line by line."""
    return re.sub(r"[^\n]", " ", text)


def tokenize(text: str) -> list[Token]:
    """The tokens of a text; `window` is a name unless it opens a WINDOW clause, and `array(` calls a function.

    sqlglot would try to read `array(NULL) < x` as a type, which in Spark has no parentheses.
    """
    tokens = QueryDialect().tokenize(blank_comments(text))
    for index, (token, after) in enumerate(itertools.zip_longest(tokens, tokens[1:])):
        called = after is not None and after.token_type is TokenType.L_PAREN
        if token.token_type is TokenType.WINDOW:
            named = not _opens_window_clause(tokens, index)
        else:
            named = token.token_type in _TYPES_OR_FUNCTIONS and called
        if named:
            token.token_type = TokenType.VAR
    return tokens


def _opens_window_clause(tokens: list[Token], index: int) -> bool:
    # sqlglot takes `GROUP BY window(ts, ...)` for an empty GROUP BY and a clause `WINDOW name AS (...)`.
    after = tokens[index + 1 : index + 4]
    return len(after) == 3 and after[1].token_type is TokenType.ALIAS and after[2].token_type is TokenType.L_PAREN


def _refuse_dangling_commas(tokens: list[Token]) -> None:
    """sqlglot reads `a,, b` and `a, FROM t` without a word; Spark does not."""
    for comma, after in itertools.zip_longest(tokens, tokens[1:]):
        if comma.token_type is TokenType.COMMA and (after is None or after.token_type in _AFTER_NO_COMMA):
            raise SyntaxFault("nothing follows this comma", comma.start, comma.end + 1)


def parse_statement(text: str) -> exp.Expr:
    """The syntax tree of one statement; raises `SyntaxFault`."""
    tokens = tokenize(text)
    _refuse_dangling_commas(tokens)
    parser = QueryParser(dialect=QueryDialect(), error_level=ErrorLevel.IMMEDIATE)
    statements = [statement for statement in parser.parse(tokens, text) if statement is not None]
    if len(statements) != 1:
        at = tokens[-1] if tokens else None
        start, end = (at.start, at.end + 1) if at else (0, 0)
        raise SyntaxFault(f"expected one statement, found {len(statements)}", start, end)
    return statements[0]


def span_of(node: exp.Expr) -> tuple[int, int] | None:
    """The offsets of a node: its own, or those that its parts cover."""
    own = node.meta.get(SPAN)
    if own is not None:
        return (own[0], own[1])
    if "start" in node.meta and "end" in node.meta:
        return (node.meta["start"], node.meta["end"] + 1)
    spans = [span for span in map(span_of, node.iter_expressions()) if span is not None]
    return (min(s for s, _ in spans), max(e for _, e in spans)) if spans else None
