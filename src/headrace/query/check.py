"""Checks that need no Spark: names of columns and functions, and messages for text that does not parse."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.errors import TokenError

from headrace.errors import Problem, did_you_mean
from headrace.query.aggregate import find_aggregates
from headrace.query.dialect import SyntaxFault, blank_comments, span_of
from headrace.query.expression import column_parts
from headrace.query.functions import BARE_FUNCTIONS, spark_functions
from headrace.query.source import Source

KEYWORDS = (
    "SELECT FROM WHERE GROUP BY HAVING ORDER LIMIT OFFSET AS AND OR NOT IN LIKE BETWEEN IS NULL CASE WHEN THEN "
    "ELSE END DISTINCT FILTER OVER JOIN ON UNION WITH ASC DESC"
).split()

_UNIT_FIRST = frozenset("dateadd date_add datediff date_diff timestampadd timestampdiff".split())


def check_names(
    select: exp.Select,
    source: Source,
    columns: Collection[str],
    functions: Collection[str],
    qualifiers: frozenset[str],
    made: Collection[str] = (),
) -> list[Problem]:
    """Problems with the names of functions and columns; `made` are columns that only the answer has."""
    return [
        *_unknown_functions(select, source, functions),
        *_unknown_columns(select, source, columns, qualifiers, made),
    ]


def _unknown_functions(select: exp.Select, source: Source, functions: Collection[str]) -> Iterator[Problem]:
    known = [*spark_functions(), *functions]
    names = {name.lower() for name in known}
    for call in select.find_all(exp.Anonymous):
        if call.name.lower() not in names and not isinstance(call.parent, exp.Dot):
            start = call.meta.get("start")
            span = (start, call.meta["end"] + 1) if start is not None else span_of(call)
            yield source.problem(f"unknown function '{call.name}'", span, did_you_mean(call.name, known))


def _unknown_columns(
    select: exp.Select,
    source: Source,
    columns: Collection[str],
    qualifiers: frozenset[str],
    made: Collection[str],
) -> Iterator[Problem]:
    known = {column.lower() for column in columns}
    aliases = {item.alias.lower() for item in select.expressions if isinstance(item, exp.Alias)}
    # Grouping by a window makes a column of its name.
    calls = {call.name.lower() for call in select.find_all(exp.Anonymous)}
    aliases |= calls & {"window", "session_window"} | set(made)
    for column in select.find_all(exp.Column):
        name = column_parts(column, qualifiers)[0]
        bare = name.lower() in BARE_FUNCTIONS and len(column.parts) == 1
        if name.lower() in known or bare or isinstance(column.this, exp.Star):
            continue
        if _is_unit(column) or _is_lambda_variable(column, name):
            continue
        where = column.find_ancestor(exp.Where)
        if name.lower() in aliases and where is None:
            continue
        # A name that is an alias elsewhere may still be out of reach here: say so rather than 'unknown'.
        if name.lower() in aliases:
            message = f"'{name}' is a column of the answer; WHERE sees only columns of the stream"
            hint = "use HAVING for conditions on the answer" if any(_aliased(select, name)) else ""
        else:
            message, hint = f"unknown column '{name}'", did_you_mean(name, [*columns, *aliases])
            hint = hint or "the stream has: " + ", ".join(columns)
        yield source.problem(message, span_of(column), hint)


def _aliased(select: exp.Select, name: str) -> Iterator[exp.Expr]:
    for item in select.expressions:
        if isinstance(item, exp.Alias) and item.alias.lower() == name.lower():
            yield from find_aggregates(item)


def _is_unit(column: exp.Column) -> bool:
    """Whether a bare word is the unit of `timestampdiff(HOUR, a, b)` and its like."""
    call = column.parent
    return (
        isinstance(call, exp.Anonymous)
        and call.name.lower() in _UNIT_FIRST
        and len(call.expressions) == 3
        and call.expressions[0] is column
    )


def _is_lambda_variable(column: exp.Column, name: str) -> bool:
    scope = column.find_ancestor(exp.Lambda)
    while scope is not None:
        if any(variable.name.lower() == name.lower() for variable in scope.expressions):
            return True
        scope = scope.find_ancestor(exp.Lambda)
    return False


def check_clauses(select: exp.Select, source: Source) -> Iterator[Problem]:
    """What sqlglot lets pass and Spark does not: clauses without content."""
    end = len(source.text)
    if not select.expressions:
        yield source.problem("nothing is selected", (0, end), "name the columns between SELECT and FROM")
    group = select.args.get("group")
    if group is not None and not group.args.get("all") and not any(group.iter_expressions()):
        word = re.search(r"group\s+by", source.text, re.IGNORECASE)
        span = word.span() if word else (0, end)
        yield source.problem("GROUP BY names no key", span, "name the keys, or leave GROUP BY out")


def syntax_problem(source: Source, fault: SyntaxFault | TokenError) -> Problem:
    """A parse error in words, at its place, with a guess at what was meant."""
    if isinstance(fault, TokenError):
        return _unclosed(source, fault)
    word = source.cut((fault.start, fault.end))
    if fault.start >= len(source.text.rstrip()) or not word:
        return source.problem("the query ends too early", (len(source.text) - 1, len(source.text)))
    expected = re.fullmatch(r"Expecting (\S+)", fault.message)
    if expected:
        message = f"expected '{expected[1]}' before '{word}'"
    elif "Required keyword" in fault.message:
        message = f"something is missing after '{word}'"
    elif "Unexpected token" in fault.message:
        message = f"did not expect '{word}' here"
    else:
        message = fault.message[:1].lower() + fault.message[1:]
    hint, span = _misspelt_keyword(source, fault)
    if span is not None:
        return source.problem(f"did not expect '{source.cut(span)}' here", span, hint)
    return source.problem(message, (fault.start, fault.end))


def _misspelt_keyword(source: Source, fault: SyntaxFault) -> tuple[str, tuple[int, int] | None]:
    """The nearest word at or before the fault that looks like a keyword: `form flows`, `grop by x`."""
    before = list(re.finditer(r"\w+", source.text[: fault.end]))[-3:]
    for match in reversed(before):
        word = match[0]
        if word.upper() not in KEYWORDS and len(word) > 2:
            hint = did_you_mean(word, KEYWORDS)
            if hint:
                return hint, match.span()
    return "", None


def _unclosed(source: Source, fault: TokenError) -> Problem:
    missing = re.search(r"Missing (\S+) from", str(fault.__cause__ or fault))
    quote = missing[1] if missing else "'"
    opened = _last_open(blank_comments(source.text), quote)
    return source.problem(f"no closing {quote} for what begins here", (opened, opened + 1))


def _last_open(text: str, quote: str) -> int:
    """Where the quote that is never closed stands: the last one that opens when read from the left."""
    opened, inside, index = 0, "", 0
    while index < len(text):
        char = text[index]
        if inside:
            index += char == "\\"
            inside = "" if char == inside else inside
        elif char in "'\"`":
            inside, opened = char, index
        index += 1
    return opened if inside else max(0, text.rfind(quote))
