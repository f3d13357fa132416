"""Text to `Query`: the syntax tree of `dialect.py`, taken apart into frozen values.

A query means the same with and without the stream's columns known, but for names that could be a column or an
alias: then Spark takes the column, and so does `parse_query` when it is told the columns. With them it also
checks every name, so that a mistake is found before Spark is started.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp
from sqlglot.errors import TokenError
from sqlglot.tokenizer_core import TokenType

from headrace.errors import QueryError
from headrace.query.aggregate import Aggregate, find_aggregates, parse_aggregate
from headrace.query.check import check_clauses, check_names, name_parts, syntax_problem
from headrace.query.dialect import SyntaxFault, parse_statement, span_of, tokenize
from headrace.query.expression import Expression
from headrace.query.having import early_conditions
from headrace.query.obstacles import find_obstacles
from headrace.query.query import Obstacle, Ordering, Output, Query
from headrace.query.source import Source
from headrace.query.window import UnreadWindow, Window, WindowFault, find_window, is_window_call, parse_window


def parse_query(
    name: str,
    text: str | Source,
    *,
    columns: Collection[str] | None = None,
    functions: Collection[str] = (),
) -> Query:
    """The query of a text; raises `QueryError` with all problems that were found.

    `columns` are the stream's, where they are known; `functions` are those that the session has besides Spark's.
    """
    source = text if isinstance(text, Source) else Source(text, origin=name)
    try:
        source = _without_end(source)
        if not source.text:
            raise QueryError([source.problem(f"query '{name}' is empty", hint="write a SELECT statement")])
        tree = parse_statement(source.text)
    except (SyntaxFault, TokenError) as fault:
        raise QueryError([syntax_problem(source, fault)]) from fault
    if not isinstance(tree, exp.Query):
        raise QueryError([source.problem("only SELECT statements can be queries", (0, len(source.text)))])
    try:
        return _Parse(name, source, tree, columns, functions).query()
    except WindowFault as fault:
        raise QueryError([source.problem(str(fault), span_of(fault.node))]) from fault


def _without_end(source: Source) -> Source:
    """The text up to the semicolon that ends it, or to its last word; a comment may follow."""
    tokens = tokenize(source.text)
    while tokens and tokens[-1].token_type is TokenType.SEMICOLON:
        tokens.pop()
    end = tokens[-1].end + 1 if tokens else 0
    return Source(source.text[:end], source.origin, source.first_line)


class _Parse:
    """The parts of one statement; a class only so that its functions share what they all need."""

    def __init__(
        self,
        name: str,
        source: Source,
        tree: exp.Query,
        columns: Collection[str] | None,
        functions: Collection[str],
    ) -> None:
        self.name = name
        self.source = source
        self.tree = tree
        self.columns = None if columns is None else {column.lower() for column in columns}
        self.known_columns = columns
        self.functions = functions
        self.stream, self.stream_span, self.qualifiers = _stream_of(tree)

    def query(self) -> Query:
        obstacles = find_obstacles(self.tree, self.source)
        if isinstance(self.tree, exp.Select):
            problems = list(check_clauses(self.tree, self.source))
            if self.known_columns is not None and not any(obstacle.foreign for obstacle in obstacles):
                problems += check_names(
                    self.tree, self.source, self.known_columns, self.functions, self.qualifiers
                )
            if problems:
                raise QueryError(problems)
            obstacles = obstacles or tuple(self._lateral_aliases())
            if not obstacles:
                return self._shareable(self.tree)
        return self._unshareable(obstacles)

    def _unshareable(self, obstacles: tuple[Obstacle, ...]) -> Query:
        return Query(self.name, self.source, self.stream, obstacles=obstacles, stream_span=self.stream_span)

    def _shareable(self, select: exp.Select) -> Query:
        grouping = list(self._grouping(select))
        try:
            window = self._window(grouping)
            stray = self._stray_window(select, grouping, window)
        except UnreadWindow:
            reason = "a window() with arguments that are no plain constants"
            return self._unshareable((Obstacle(reason, self.source.problem(reason)),))
        if stray is not None:
            return self._unshareable((stray,))
        order = select.args.get("order")
        clauses = [
            *select.expressions,
            *(select.args[key] for key in ("having", "order") if select.args.get(key)),
        ]
        outputs = tuple(self._output(item) for item in select.expressions)
        keys = self._keys(grouping)
        where, having = self._optional(select, "where"), self._optional(select, "having")
        if having is not None:
            where, having = early_conditions(where, having, keys, outputs)
        return Query(
            self.name,
            self.source,
            self.stream,
            outputs=outputs,
            where=where,
            window=window,
            keys=keys,
            aggregates=tuple(dict.fromkeys(self._aggregates(clauses))),
            having=having,
            order=tuple(self._ordering(item) for item in order.expressions) if order else (),
            limit=self._optional(select, "limit", "expression"),
            offset=self._optional(select, "offset", "expression"),
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

    def _ordering(self, item: exp.Expr) -> Ordering:
        whole = self._expression(item)
        inner = self._expression(item.this)
        return Ordering(inner, whole.sql[len(inner.sql) :].strip())

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
        if not isinstance(node, exp.Column) or len(name_parts(node)) != 1:
            return False
        name = node.name.lower()
        return name in aliases and (self.columns is None or name not in self.columns)

    def _window(self, grouping: list[exp.Expr]) -> Window | None:
        calls = [call for call in map(find_window, grouping) if call is not None]
        windows = [parse_window(call, self.source, self.qualifiers) for call in calls]
        if len(set(windows)) > 1:
            raise WindowFault("Spark allows one window() per query", calls[1])
        return windows[0] if windows else None

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
                return Obstacle(reason, self.source.problem(reason, span_of(call)))
        return None

    def _keys(self, grouping: list[exp.Expr]) -> tuple[Expression, ...]:
        keys = dict.fromkeys(self._expression(node) for node in grouping if find_window(node) is None)
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
                name = name_parts(column)[0].lower()
                if name in seen and name not in self.columns:
                    reason = f"'{name}' refers to another column of the same SELECT list"
                    yield Obstacle(reason, self.source.problem(reason, span_of(column)))
            if isinstance(item, exp.Alias):
                seen.add(item.alias.lower())


def _stream_of(tree: exp.Query) -> tuple[str, tuple[int, int] | None, frozenset[str]]:
    """The table that the query reads, its place in the text, and the names that may stand before its columns."""
    origin = tree.args.get("from_")
    table = origin.this if origin is not None else tree.find(exp.Table)
    if not isinstance(table, exp.Table):
        return "", None, frozenset()
    name = ".".join(part.name for part in table.parts)
    return name, span_of(table.this), frozenset({table.alias_or_name.lower()})
