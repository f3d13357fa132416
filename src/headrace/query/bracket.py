"""Windows as the papers spell them: `FROM trades [RANGE '18 min' SLIDE '15 min' OFFSET '1 min']`.

Spark knows no such brackets. They are cut out of the text before it is parsed, with blanks in their place: the
rest is plain Spark SQL, and all places in it are those of the user's text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import Token, TokenType

from headrace.errors import did_you_mean
from headrace.query.dialect import CLAUSES
from headrace.query.expression import STRINGS, Expression, as_written
from headrace.query.source import Source
from headrace.query.window import Duration, Window, WindowFault, make_window, read_length_us

PARTS = ("RANGE", "SLIDE", "OFFSET")
_FORM = "write [RANGE '18 min' SLIDE '15 min' OFFSET '1 min']; SLIDE and OFFSET may be left out"

# What a table's name and its alias are made of.
_NAMES = SparkParser.TABLE_ALIAS_TOKENS | {TokenType.DOT, TokenType.ALIAS}
# Where a bracket ends, or where one that was never closed is known for it.
_ENDS = CLAUSES | {TokenType.R_BRACKET, TokenType.L_BRACKET, TokenType.R_PAREN, TokenType.LIMIT}


@dataclass(frozen=True, slots=True)
class Bracket:
    """A window in brackets and its place in the text."""

    window: Window
    span: tuple[int, int]


def cut_bracket(source: Source, time: Expression) -> tuple[Source, Bracket | None]:
    """The text without windows in brackets, and the first of them; raises `WindowFault`.

    A text with several has several FROM clauses, and the parser finds what is wrong with that.
    """
    if "[" not in source.text:
        return source, None
    tokens = as_written(source.text)
    openings = list(_openings(tokens))
    _refuse_strays(tokens, openings)
    brackets = [_read(tokens, opening, source, time) for opening in openings]
    if not brackets:
        return source, None
    return source.without(bracket.span for bracket in brackets), brackets[0]


def _openings(tokens: Sequence[Token]) -> Iterator[int]:
    """Where a bracket opens right behind the table of a FROM clause.

    Other words FROM are those of `extract(hour FROM a[0])`, known by parentheses without a SELECT, and of
    `IS DISTINCT FROM a[0]`.
    """
    selects = [True]
    for index, token in enumerate(tokens):
        if token.token_type is TokenType.L_PAREN:
            selects.append(False)
        elif token.token_type is TokenType.R_PAREN and len(selects) > 1:
            selects.pop()
        elif token.token_type is TokenType.SELECT:
            selects[-1] = True
        elif token.token_type is TokenType.FROM and selects[-1]:
            behind = _behind_table(tokens, index)
            distinct = tokens[index - 1].token_type is TokenType.DISTINCT
            if not distinct and behind < len(tokens) and tokens[behind].token_type is TokenType.L_BRACKET:
                yield behind


def _behind_table(tokens: Sequence[Token], origin: int) -> int:
    return next(
        (index for index in range(origin + 1, len(tokens)) if tokens[index].token_type not in _NAMES), len(tokens)
    )


def _refuse_strays(tokens: Sequence[Token], openings: Sequence[int]) -> None:
    for index, (token, word, value) in enumerate(zip(tokens, tokens[1:], tokens[2:], strict=False)):
        opens = token.token_type is TokenType.L_BRACKET and index not in openings
        if opens and word.text.upper() == "RANGE" and value.token_type in STRINGS:
            message = "a window in brackets belongs right behind the stream's name or alias, after FROM"
            raise WindowFault(message, (token.start, word.end + 1), "write FROM stream [RANGE '...' SLIDE '...']")


def _read(tokens: Sequence[Token], opening: int, source: Source, time: Expression) -> Bracket:
    start = tokens[opening].start
    end = next((i for i in range(opening + 1, len(tokens)) if tokens[i].token_type in _ENDS), len(tokens))
    if end == len(tokens) or tokens[end].token_type is not TokenType.R_BRACKET:
        raise WindowFault("no closing ] for what begins here", (start, start + 1), _FORM)
    found = _durations(tokens[opening + 1 : end], tokens[end], source)
    window = make_window(time, found["RANGE"], found.get("SLIDE"), found.get("OFFSET"))
    return Bracket(window, (start, tokens[end].end + 1))


def _durations(tokens: Sequence[Token], closing: Token, source: Source) -> dict[str, Duration]:
    """The duration of each part, by its word. The parts have one order."""
    found: dict[str, Duration] = {}
    rest = list(tokens)
    for word in PARTS:
        if rest and rest[0].text.upper() == word and rest[0].token_type not in STRINGS:
            found[word], rest = _duration(rest[0], rest[1:], source)
        elif word == "RANGE":
            raise _unexpected(rest[0] if rest else closing, source, [word])
    if rest:
        raise _unexpected(rest[0], source, [word for word in PARTS if word not in found])
    return found


def _unexpected(token: Token, source: Source, expected: Sequence[str]) -> WindowFault:
    span = (token.start, token.end + 1)
    return WindowFault(
        f"did not expect '{source.cut(span)}' in a window", span, did_you_mean(token.text, expected) or _FORM
    )


def _duration(word: Token, tokens: list[Token], source: Source) -> tuple[Duration, list[Token]]:
    """The duration that follows a word, and the tokens behind it: a text, or a number of microseconds."""
    signed = bool(tokens) and tokens[0].token_type in (TokenType.DASH, TokenType.PLUS)
    value = tokens[signed] if len(tokens) > signed else None
    if value is None:
        raise WindowFault(f"no duration follows {word.text}", (word.start, word.end + 1), _FORM)
    span = (tokens[0].start, value.end + 1)
    sign = -1 if signed and tokens[0].token_type is TokenType.DASH else 1
    return Duration(sign * _value_us(value, source), span), tokens[signed + 1 :]


def _value_us(token: Token, source: Source) -> int:
    span = (token.start, token.end + 1)
    quoted = token.text if token.token_type in STRINGS else None
    length_us = read_length_us(quoted, source.cut(span), span, short=True)
    if length_us is None:
        message = f"'{source.cut(span)}' is no duration"
        raise WindowFault(message, span, "write it in quotes, such as '18 min' or '1 hour 30 minutes'")
    return length_us
