"""Text to `Query`: the syntax tree of `dialect.py`, taken apart into frozen values.

A query means the same with and without the stream's columns known, but for names that could be a column or an
alias: then Spark takes the column, and so does `parse_query` when it is told the columns. With them it also
checks every name, so that a mistake is found before Spark is started. A window in brackets is about the stream's
time, whose name is known only then as well.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from headrace.errors import QueryError
from headrace.query.aggregate import Aggregate, after_grouping, find_aggregates, parse_aggregate
from headrace.query.bracket import Bracket, cut_bracket
from headrace.query.check import check_clauses, check_names, syntax_problem
from headrace.query.dialect import SyntaxFault, parse_statement, span_of, tokenize
from headrace.query.expression import Expression, column_parts, make_qualifiers
from headrace.query.having import early_conditions
from headrace.query.obstacles import find_obstacles
from headrace.query.ordering import Ordering
from headrace.query.query import NAME, Obstacle, Output, Query, quote_name
from headrace.query.source import Source
from headrace.query.window import UnreadWindow, Window, WindowFault, find_window, is_window_call, parse_window

# Types that give their names to columns: `date`, `time`, `timestamp`.
_TYPES = SparkParser.TYPE_TOKENS - {TokenType.NULL, TokenType.INTERVAL}


def parse_query(
    name: str,
    text: str | Source,
    *,
    columns: Collection[str] | None = None,
    functions: Collection[str] = (),
    time: str = "time",
) -> Query:
    """The query of a text; raises `QueryError` with all problems that were found.

    `columns` are the stream's, where they are known; `functions` are those that the session has besides Spark's.
    `time` is the stream's column that windows in brackets are about.
    """
    source = text if isinstance(text, Source) else Source(text, origin=name)
    try:
        source = _without_end(source)
        if not source.text:
            raise QueryError([source.problem(f"query '{name}' is empty", hint="write a SELECT statement")])
        source, bracket = cut_bracket(source, _column(time))
        tree = parse_statement(source.text)
    except (SyntaxFault, TokenError) as fault:
        raise QueryError([syntax_problem(source, fault)]) from fault
    except WindowFault as fault:
        raise QueryError([source.problem(str(fault), fault.span, fault.hint)]) from fault
    if not isinstance(tree, exp.Query):
        raise QueryError([source.problem("only SELECT statements can be queries", (0, len(source.text)))])
    try:
        return _Parse(name, source, tree, bracket, columns, functions).query()
    except WindowFault as fault:
        raise QueryError([source.problem(str(fault), fault.span, fault.hint)]) from fault


def _without_end(source: Source) -> Source:
    """The text up to the semicolon that ends it, or to its last word; a comment may follow."""
    tokens = tokenize(source.text)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    end = tokens[-1].end + 1 if tokens else 0
    return Source(source.text[:end], source.origin, source.first_line)


def _column(name: str) -> Expression:
    """A column, named as users do: bare where that is a name, so that it equals what they write."""
    bare = NAME.fullmatch(name) and tokenize(name)[0].token_type in _TYPES
    return Expression.parse(name if bare else quote_name(name))


class _Parse:
    """The parts of one statement; a class only so that its functions share what they all need."""

    def __init__(
        self,
        name: str,
        source: Source,
        tree: exp.Query,
        bracket: Bracket | None,
        columns: Collection[str] | None,
        functions: Collection[str],
    ) -> None:
        self.name = name
        self.source = source
        self.tree = tree
        self.bracket = bracket
        self.columns = None if columns is None else {column.lower() for column in columns}
        self.known_columns = columns
        self.functions = functions
        self.stream, self.stream_span, self.qualifiers = _stream_of(tree, self.columns or ())

    def query(self) -> Query:
        obstacles = find_obstacles(
            self.tree, self.source, windowed=self.bracket is not None, columns=self.columns or ()
        )
        if isinstance(self.tree, exp.Select):
            problems = list(check_clauses(self.tree, self.source))
            if self.known_columns is not None and not any(obstacle.foreign for obstacle in obstacles):
                made = ("window",) if self.bracket is not None else ()
                problems += check_names(
                    self.tree, self.source, self.known_columns, self.functions, self.qualifiers, made
                )
            if problems:
                raise QueryError(problems)
            obstacles = obstacles or tuple(self._lateral_aliases())
            if not obstacles:
                return self._shareable(self.tree)
        return self._unshareable(obstacles)

    def _unshareable(self, obstacles: tuple[Obstacle, ...]) -> Query:
        if self.bracket is not None:
            raise _beside_spark(self.bracket, obstacles)
        source = self.source.original
        return Query(self.name, source, self.stream, obstacles=obstacles, stream_span=self.stream_span)

    def _shareable(self, select: exp.Select) -> Query:
        grouping = list(self._grouping(select))
        order = select.args.get("order")
        clauses = after_grouping(select)
        try:
            window = self._window(select, grouping)
            stray = self._stray_window(select, grouping, window)
            if stray is None and window is not None:
                stray = self._window_of_records(grouping, clauses)
        except UnreadWindow:
            reason = "a window() with arguments that are no plain constants"
            return self._unshareable((Obstacle(self.source.problem(reason)),))
        if stray is not None:
            return self._unshareable((stray,))
        outputs = tuple(self._output(item) for item in select.expressions)
        keys = self._keys(grouping, window)
        where, having = self._optional(select, "where"), self._optional(select, "having")
        if having is not None:
            where, having = early_conditions(where, having, keys, outputs)
        return Query(
            self.name,
            self.source.original,
            self.stream,
            outputs=outputs,
            where=where,
            window=window,
            keys=keys,
            aggregates=tuple(dict.fromkeys(self._aggregates(clauses))),
            having=having,
            order=tuple(Ordering.of(self.source, item, self.qualifiers) for item in order.expressions)
            if order
            else (),
            limit=self._optional(select, "limit", "expression"),
            offset=self._optional(select, "offset", "expression"),
            bracketed=self.bracket is not None,
            stream_span=self.stream_span,
        )

    def _expression(self, node: exp.Expr) -> Expression:
        return Expression.of(self.source, node, self.qualifiers)

    def _optional(self, select: exp.Select, clause: str, part: str = "this") -> Expression | None:
        node = select.args.get(clause)
        return self._expression(node.args[part]) if node else None

    def _output(self, item: exp.Expr) -> Output:
        if not isinstance(item, exp.Alias):
            return Output(self._expression(item))
        alias = span_of(item.args["alias"])
        return Output(self._expression(item.this), self.source.cut(alias) if alias else item.alias)

    def _grouping(self, select: exp.Select) -> Iterator[exp.Expr]:
        """The grouping expressions with ordinals, aliases and ALL replaced by what they stand for."""
        group = select.args.get("group")
        if group is None:
            return
        items = select.expressions
        if group.args.get("all"):
            yield from (item.unalias() for item in items if not any(find_aggregates(item)))
            return
        aliases = {item.alias.lower(): item.this for item in items if isinstance(item, exp.Alias)}
        for node in group.expressions:
            ordinal = int(node.name) if isinstance(node, exp.Literal) and node.is_int else 0
            if 1 <= ordinal <= len(items):
                yield items[ordinal - 1].unalias()
            elif self._is_alias(node, aliases):
                yield aliases[node.name.lower()]
            else:
                yield node

    def _is_alias(self, node: exp.Expr, aliases: Collection[str]) -> bool:
        if not isinstance(node, exp.Column) or len(column_parts(node)) != 1:
            return False
        name = node.name.lower()
        return name in aliases and (self.columns is None or name not in self.columns)

    def _window(self, select: exp.Select, grouping: list[exp.Expr]) -> Window | None:
        if self.bracket is not None:
            return self._bracket_window(select, self.bracket)
        calls = [call for call in map(find_window, grouping) if call is not None]
        windows = [parse_window(call, self.source, self.qualifiers) for call in calls]
        if len(set(windows)) > 1:
            raise WindowFault("Spark allows one window() per query", span_of(calls[1]))
        return windows[0] if windows else None

    def _bracket_window(self, select: exp.Select, bracket: Bracket) -> Window:
        """The window in brackets, if it is the only one and `window` can be its name."""
        call = next(filter(is_window_call, select.find_all(exp.Anonymous)), None)
        if call is not None:
            message = "window() beside a window in brackets: a query has one window"
            hint = "leave one of them out; that in brackets is named window, with window.start and window.end"
            raise WindowFault(message, span_of(call), hint)
        if self.columns is not None and "window" in self.columns:
            message = "the stream has a column 'window' of its own, so that a window in brackets has no name"
            raise WindowFault(message, bracket.span, "give the column another name in the stream's view")
        return bracket.window

    def _is_window(self, column: exp.Column) -> bool:
        """Whether a name is that of the window that the query groups by."""
        name = column_parts(column, self.qualifiers)[0].lower()
        return name == "window" and (self.columns is None or "window" not in self.columns)

    def _of_window(self, node: exp.Expr) -> bool:
        """Whether a key is the window's, such as `window.start`: grouping by the window says the same."""
        columns = list(node.find_all(exp.Column))
        return bool(columns) and all(map(self._is_window, columns))

    def _window_of_records(self, grouping: Sequence[exp.Expr], clauses: Sequence[exp.Expr]) -> Obstacle | None:
        """A part of the query that is about records and names the window, which only groups have."""
        keys = (node for node in grouping if not self._of_window(node))
        for node in (*keys, *(node for clause in clauses for node in find_aggregates(clause))):
            for column in filter(self._is_window, node.find_all(exp.Column)):
                reason = "the window in an aggregate, or in a key that is about records"
                return Obstacle(self.source.problem(reason, span_of(column)))
        return None

    def _stray_window(
        self, select: exp.Select, grouping: list[exp.Expr], window: Window | None
    ) -> Obstacle | None:
        """A window() that is not, as it stands, the one that the query groups by."""
        grouped = {id(call) for call in map(find_window, grouping) if call is not None}
        for call in select.find_all(exp.Anonymous):
            if not is_window_call(call) or id(call) in grouped:
                continue
            filtering = call.find_ancestor(exp.Where, exp.Group) is not None
            if filtering or parse_window(call, self.source, self.qualifiers) != window:
                reason = "window() other than as a key of the GROUP BY"
                return Obstacle(self.source.problem(reason, span_of(call)))
        return None

    def _keys(self, grouping: list[exp.Expr], window: Window | None) -> tuple[Expression, ...]:
        own = (node for node in grouping if find_window(node) is None)
        keys = dict.fromkeys(self._expression(node) for node in own if window is None or not self._of_window(node))
        # A bare number in GROUP BY would be an ordinal again, so a constant key is written as a sum.
        return tuple(Expression.parse(f"{key.sql} + 0") if key.sql.isdecimal() else key for key in keys)

    def _aggregates(self, clauses: list[exp.Expr]) -> Iterator[Aggregate]:
        for clause in clauses:
            for node in find_aggregates(clause):
                aggregate = parse_aggregate(node, self.source, self.qualifiers)
                if aggregate is not None:
                    yield aggregate

    def _lateral_aliases(self) -> Iterator[Obstacle]:
        """Outputs that refer to an earlier output of the same SELECT list."""
        if self.columns is None:
            return
        seen: set[str] = set()
        for item in self.tree.expressions:
            for column in item.find_all(exp.Column):
                name = column_parts(column)[0].lower()
                if name in seen and name not in self.columns:
                    reason = f"'{name}' refers to another column of the same SELECT list"
                    yield Obstacle(self.source.problem(reason, span_of(column)))
            if isinstance(item, exp.Alias):
                seen.add(item.alias.lower())


def _beside_spark(bracket: Bracket, obstacles: Sequence[Obstacle]) -> WindowFault:
    """Why a query with an obstacle cannot have its window in brackets."""
    reasons = "; ".join(obstacle.reason for obstacle in obstacles)
    message = f"plain Spark has to run this query, and does not know windows in brackets: {reasons}"
    hint = f"write GROUP BY {bracket.window.sql} instead"
    if bracket.window.hopping:
        hint = "do without what is named; Spark's window() has no windows with gaps"
    return WindowFault(message, bracket.span, hint)


def _stream_of(tree: exp.Query, columns: Collection[str]) -> tuple[str, tuple[int, int] | None, frozenset[str]]:
    """The table that the query reads, its place in the text, and what its name before a column looks like."""
    origin = tree.args.get("from_")
    table = origin.this if origin is not None else tree.find(exp.Table)
    if not isinstance(table, exp.Table):
        return "", None, frozenset()
    name = ".".join(part.name for part in table.parts)
    return name, span_of(table.this), make_qualifiers(table.alias_or_name.lower(), columns)
