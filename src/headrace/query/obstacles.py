"""Why a query cannot be shared. Such a query is not refused: it runs as plain Spark does, beside the plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from sqlglot import exp

from headrace.query.aggregate import after_grouping, find_aggregates, parse_aggregate, peel
from headrace.query.condition import conjuncts, is_constant
from headrace.query.dialect import span_of
from headrace.query.functions import BARE_FUNCTIONS, NOT_REPEATABLE, spark_functions
from headrace.query.query import Obstacle
from headrace.query.source import Source
from headrace.query.window import is_call

Found = Iterator[tuple[str, exp.Expr]]

# Clauses that bring in other relations than the stream.
_RELATIONS = {
    "with_": "a WITH clause",
    "joins": "a join inside the query (join in the stream's view instead)",
    "laterals": "LATERAL VIEW",
    "pivots": "PIVOT",
}
# Clauses over the stream alone that the model has no part for.
_CLAUSES = {
    "distinct": "SELECT DISTINCT",
    "qualify": "QUALIFY",
    "windows": "a WINDOW clause",
    "sort": "SORT BY",
    "cluster": "CLUSTER BY",
    "distribute": "DISTRIBUTE BY",
    "sample": "TABLESAMPLE",
    "version": "time travel",
}


def find_obstacles(
    tree: exp.Expr, source: Source, *, windowed: bool = False, columns: Collection[str] = ()
) -> tuple[Obstacle, ...]:
    """All reasons against sharing, in the order of the clauses; empty for a query that can be shared.

    `windowed`: the query groups by a window, whatever its GROUP BY says. `columns` are those of the stream that
    are known, in lower case.
    """
    foreign = list(_foreign(tree, source))
    found = foreign or [*_own(tree, windowed), *_calls(tree, source, columns)]
    # A reason is given once, at the first place where it holds.
    places: dict[str, exp.Expr] = {}
    for reason, node in found:
        places.setdefault(reason, node)
    return tuple(Obstacle(source.problem(reason, span_of(node)), bool(foreign)) for reason, node in places.items())


def _foreign(tree: exp.Expr, source: Source) -> Found:
    """Reasons that leave nothing else to say, for the query is not one SELECT over one stream."""
    if not isinstance(tree, exp.Select):
        yield "a set operation (UNION, INTERSECT, EXCEPT)", tree
        return
    if "|>" in source.text:
        yield "pipe syntax (|>)", tree
    origin = tree.args.get("from_")
    table = origin.this if origin else None
    if table is None:
        yield "no FROM clause", tree
    elif not isinstance(table, exp.Table) or not isinstance(table.this, exp.Identifier):
        yield "a subquery or table function in FROM (make it the stream's view instead)", table
    for owner in (tree, table):
        for key, reason in _RELATIONS.items():
            if owner is not None and owner.args.get(key):
                yield reason, owner
    for query in tree.find_all(exp.Query):
        if query is not tree and query.find_ancestor(exp.With, exp.From) is None:
            yield "a subquery", query
    for call in tree.find_all(exp.Anonymous):
        if spark_functions().get(call.name.lower()) == "generator_funcs":
            yield f"{call.name.lower()}(), which makes rows", call


def _own(select: exp.Expr, windowed: bool) -> Found:
    for owner in (select, select.args["from_"].this):
        for key, reason in _CLAUSES.items():
            if owner.args.get(key):
                yield reason, owner
    group = select.args.get("group")
    if group and any(group.find(kind) for kind in (exp.GroupingSets, exp.Cube, exp.Rollup)):
        yield "GROUPING SETS, CUBE or ROLLUP", group
    for item in select.expressions:
        if isinstance(item, exp.Star) or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star)):
            yield "SELECT *", item
    having = select.args.get("having")
    for condition in conjuncts(having.this) if having else ():
        if is_constant(condition):
            yield "a constant in HAVING, by which Spark may compute nothing", condition
    limit = select.args.get("limit")
    if limit and not (limit.expression.is_int and int(limit.expression.name) > 0):
        yield "a LIMIT other than a number above 0, by which Spark may compute nothing", limit
    if not group and not windowed and not any(_select_aggregates(select)):
        yield "no aggregate and no GROUP BY", select


def _select_aggregates(select: exp.Expr) -> Iterator[exp.Expr]:
    for item in select.expressions:
        yield from find_aggregates(item)


def _calls(select: exp.Expr, source: Source, columns: Collection[str]) -> Found:
    for node in select.walk():
        if isinstance(node, exp.Window):
            yield "a window function (OVER)", node
        elif _is_current_time(node, columns):
            yield "the current time, which differs from run to run", node
        elif isinstance(node, exp.Anonymous):
            yield from _call(node)
    for clause in after_grouping(select):
        for node in find_aggregates(clause):
            yield from _aggregate(node, source)


def _is_current_time(node: exp.Expr, columns: Collection[str]) -> bool:
    """Whether a node is the current time without parentheses, for which sqlglot has a class or takes a column."""
    if isinstance(node, exp.Column):
        name = node.name.lower()
        return len(node.parts) == 1 and name in BARE_FUNCTIONS & NOT_REPEATABLE and name not in columns
    return isinstance(node, (exp.CurrentDate, exp.CurrentTimestamp))


def _call(node: exp.Anonymous) -> Found:
    name = node.name.lower()
    if is_call(node, "session_window"):
        yield "a session window", node
    elif name in NOT_REPEATABLE or (name == "unix_timestamp" and not node.expressions):
        yield f"{name}(), whose value differs from call to call", node
    elif name not in spark_functions():
        yield f"the user-defined function {name}()", node


def _aggregate(node: exp.Expr, source: Source) -> Found:
    call = peel(node)[0]
    if call is not None and call.name.lower() not in ("grouping", "grouping_id"):
        aggregate = parse_aggregate(node, source)
        if aggregate is None:
            yield f"the aggregate {call.name.lower()}(), which headrace does not know in this form", node
