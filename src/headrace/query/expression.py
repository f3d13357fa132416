"""An expression of a query: the user's own text, on one line, equal to others that read the same.

Spark, and nothing else, decides what an expression means, so the text is kept token by token. Two expressions
are equal when they differ only in white space, comments, letter case of names, backquotes around names that need
none and the stream's name before a column. That is enough to find the same work in different queries, and never
takes two things for one.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from headrace.query.dialect import SPAN, SyntaxFault, parse_statement, span_of, tokenize
from headrace.query.functions import spark_functions
from headrace.query.source import Source

STRINGS = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.HEX_STRING})


def make_qualifiers(stream: str, columns: Collection[str]) -> frozenset[str]:
    """What `t.` looks like where it is the stream's name before a column; all in lower case.

    That is `t`. If a column is named so too, Spark takes `t.x` for the stream's column x, and for the field x of
    column t only where the stream has no x: then it is `t.x`, for each column x.

    >>> sorted(make_qualifiers("t", ["x"])), sorted(make_qualifiers("t", ["t", "x"]))
    (['t'], ['t.*', 't.t', 't.x'])
    """
    if stream not in columns:
        return frozenset({stream})
    return frozenset(f"{stream}.{column}" for column in (*columns, "*"))


def _is_qualified(first: str, second: str, qualifiers: frozenset[str]) -> bool:
    return first.lower() in qualifiers or f"{first}.{second}".lower() in qualifiers


def column_parts(column: exp.Column, qualifiers: frozenset[str] = frozenset()) -> list[str]:
    """The parts of a dotted name, from left to right, without the stream's name."""
    parts = [part.name for part in column.parts]
    return parts[1:] if len(parts) > 1 and _is_qualified(parts[0], parts[1], qualifiers) else parts


@dataclass(frozen=True, slots=True)
class Expression:
    """SQL text of an expression; equality and hash go by its canonical form."""

    sql: str = field(compare=False)
    canonical: str = field(repr=False)

    @staticmethod
    def of(source: Source, node: exp.Expr, qualifiers: frozenset[str] = frozenset()) -> Expression:
        """The expression that a node of a parsed query stands for, without the stream's name before columns."""
        span = span_of(node)
        if span is None:
            raise SyntaxFault(f"cannot place {node.sql()} in the text", 0, len(source.text))
        return Expression.parse(source.cut(span), qualifiers)

    @staticmethod
    @functools.lru_cache(maxsize=1 << 14)
    def parse(text: str, qualifiers: frozenset[str] = frozenset()) -> Expression:
        """The expression of a text on its own.

        >>> Expression.parse("SUM( f.Bytes )", frozenset({"f"})) == Expression.parse("sum(bytes)")
        True
        """
        shown: list[str] = []
        canonical: list[str] = []
        for token, spaced in _without_qualifiers(as_written(text), qualifiers):
            raw = text[token.start : token.end + 1]
            shown.append(f" {raw}" if spaced and shown else raw)
            canonical.append(_canonical(token, raw))
        return Expression("".join(shown), " ".join(canonical))

    @property
    def tree(self) -> exp.Expr:
        """The syntax tree; its spans are offsets in `sql`. Shared, so not to be changed."""
        return _tree(self.sql)

    @property
    def column(self) -> str | None:
        """The name, where the expression is nothing but a column's name."""
        tree = self.tree
        return tree.name if isinstance(tree, exp.Column) and len(tree.parts) == 1 else None

    def __str__(self) -> str:
        return self.sql


@functools.lru_cache(maxsize=4096)
def _tree(sql: str) -> exp.Expr:
    prefix = "SELECT "
    statement = parse_statement(prefix + sql)
    node: exp.Expr = statement.expressions[0]
    for part in node.walk():
        for key, shift in ((SPAN, None), ("start", int), ("end", int)):
            if key in part.meta:
                value = part.meta[key]
                part.meta[key] = value - len(prefix) if shift else (value[0] - len(prefix), value[1] - len(prefix))
    return node


def as_written(text: str) -> list[Token]:
    """The tokens of a text, each in a place of its own."""
    # sqlglot makes three tokens of 10L (10 :: BIGINT), all in the same place.
    tokens = tokenize(text)
    return [token for index, token in enumerate(tokens) if not index or token.start > tokens[index - 1].start]


def _without_qualifiers(tokens: list[Token], qualifiers: frozenset[str]) -> Iterator[tuple[Token, bool]]:
    """The tokens, without `f.` of `f.bytes` where f is the stream's name, and whether a space goes before each."""
    spaced = False
    end = 0
    before: TokenType | None = None
    for token, after, second in itertools.zip_longest(tokens, tokens[1:], tokens[2:]):
        spaced = spaced or token.start > end
        end = token.end + 1
        dotted = second is not None and after.token_type is TokenType.DOT and before is not TokenType.DOT
        if dotted and _is_qualified(token.text, second.text, qualifiers):
            before = None  # the dot that follows belongs to the qualifier
        elif not (before is None and token.token_type is TokenType.DOT):
            yield token, spaced
            spaced = False
            before = token.token_type


def _canonical(token: Token, raw: str) -> str:
    if token.token_type in STRINGS:
        return raw
    if token.token_type is TokenType.IDENTIFIER:
        # `x` is x, unless the bare word would mean something else (`current_date`, `null`).
        bare = token.text.lower()
        plain = bare.isidentifier() and bare not in spark_functions()
        return bare if plain and tokenize(bare)[0].token_type is TokenType.VAR else f"`{bare}`"
    return raw.lower()
