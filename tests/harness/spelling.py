"""Odd spellings of the same SQL: the case of keywords and functions, comments, newlines and tabs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from tests.harness.choices import Choices

_TOKEN = re.compile(
    r"""
      (?P<quoted> r?'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.)*" | `(?:[^`]|``)*` )
    | (?P<word> [A-Za-z_][A-Za-z_0-9]* )
    | (?P<space> \s+ )
    | (?P<other> . )
    """,
    re.VERBOSE | re.DOTALL,
)
# Written in capitals by the generator, so that a column of the same name in small letters is left alone.
_KEYWORDS = frozenset(
    """SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT AS AND OR NOT IN BETWEEN LIKE ILIKE IS NULL TRUE FALSE
    CASE WHEN THEN ELSE END DISTINCT FILTER WITHIN ASC DESC NULLS FIRST LAST ALL CAST DOUBLE STRING DATE INT
    TIMESTAMP TIMESTAMP_NTZ""".split()
)
_SPACES = (
    " ",
    "\n",
    "  ",
    "\t",
    " /* why, oh why */ ",
    " -- it's a comment\n",
    "\r\n",
    " /* nested /* one */ `*/ ",
)


def respell(choices: Choices, sql: str) -> str:
    """The same query, as somebody else would have typed it."""
    if choices.chance(60):
        return sql
    casings: tuple[Callable[[str], str], ...] = (str, str.lower, str.swapcase, str.title)
    casing = choices.pick(casings)
    spaces = _SPACES if choices.chance(40) else _SPACES[:4]
    percent = choices.pick((0, 5, 40))
    text = "".join(_tokens(choices, sql, casing, spaces, percent))
    return text + choices.pick(("", "", ";", "\n-- the end", " "))


def _tokens(
    choices: Choices, sql: str, casing: Callable[[str], str], spaces: tuple[str, ...], percent: int
) -> Iterator[str]:
    for match in _TOKEN.finditer(sql):
        text = match.group()
        if match.lastgroup == "space":
            yield choices.pick(spaces) if choices.chance(percent) else text
        elif match.lastgroup == "word" and (text in _KEYWORDS or sql[match.end() : match.end() + 1] == "("):
            yield casing(text)
        else:
            yield text
