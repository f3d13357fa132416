"""What a query groups by: columns, expressions and windows, each with how it is selected."""

from __future__ import annotations

from dataclasses import dataclass

from tests.harness.expressions import Scope
from tests.harness.predicates import predicate
from tests.harness.schemas import Column, Kind, quoted
from tests.harness.tolerance import EXACT, Comparison
from tests.harness.windows import window_call


@dataclass(frozen=True)
class Output:
    """One item of a SELECT list."""

    sql: str
    alias: str | None = None
    comparison: Comparison = EXACT
    kind: Kind | None = None
    # The output has the name of a column: Spark means the column in GROUP BY and HAVING, the output in ORDER BY.
    shadows: bool = False
    witness: str | None = None


@dataclass(frozen=True)
class Key:
    """One grouping expression. `outputs` are its items of the SELECT list; each of them determines the key."""

    sql: str
    kind: Kind
    outputs: tuple[Output, ...]
    # Whether the first output is the grouping expression: then an alias, an ordinal or ALL can stand for it.
    direct: bool = True
    # What ORDER BY and HAVING can call the key.
    names: tuple[str, ...] = ()


def key_expression(scope: Scope, column: Column) -> tuple[str, Kind]:
    """A column, or an expression over it."""
    choices, name = scope.choices, scope.reference(column)
    options: list[tuple[str, Kind]] = []
    match column.kind:
        case Kind.INT | Kind.DECIMAL | Kind.FLOAT:
            options = [
                (f"coalesce({name}, 0)", column.kind),
                (f"CASE WHEN {name} > 1 THEN 'high' WHEN {name} <= 1 THEN 'low' ELSE 'none' END", Kind.STRING),
                (f"{name} > 0", Kind.BOOL),
            ]
            if column.kind is Kind.INT:
                options += [(f"{name} % 3", Kind.INT), (f"CAST({name} AS STRING)", Kind.STRING)]
        case Kind.STRING:
            options = [
                (f"upper({name})", Kind.STRING),
                (f"length({name})", Kind.INT),
                (f"substring({name}, 1, 1)", Kind.STRING),
                (f"coalesce({name}, 'none')", Kind.STRING),
                (f"concat({name}, '-', {name})", Kind.STRING),
            ]
        case Kind.TIMESTAMP | Kind.NTZ:
            unit = choices.pick(("hour", "DAY", "minute", "month", "week"))
            options = [
                (f"date_trunc('{unit}', {name})", Kind.TIMESTAMP),
                (f"hour({name})", Kind.INT),
                (f"CAST({name} AS DATE)", Kind.DATE),
            ]
        case Kind.DATE:
            options = [(f"year({name})", Kind.INT), (f"date_trunc('month', {name})", Kind.TIMESTAMP)]
        case Kind.STRUCT:
            options = [(f"{name}.p", Kind.INT), (f"{name}.q", Kind.STRING)]
        case Kind.ARRAY:
            options = [(f"size({name})", Kind.INT)]
    options += [(f"{name} IS NULL", Kind.BOOL), (f"({predicate(scope, 1)})", Kind.BOOL)]
    if choices.chance(25):
        other = scope.reference(choices.pick(scope.schema.columns))
        options = [
            (f"struct({name}, {other})", Kind.STRUCT),
            (f"array({name}, NULL, {name})", Kind.ARRAY),
            (f"named_struct('u', struct({other}), 'v', array({name}))", Kind.STRUCT),
        ]
    return (name, column.kind) if choices.chance(55) else choices.pick(options)


def keys(scope: Scope) -> list[Key]:
    """None to three keys, and a window or not."""
    choices = scope.choices
    themed = scope.theme.columns if scope.theme else scope.schema.columns
    columns = choices.some(themed, 0, 3)
    if not columns and choices.chance(70):
        columns = choices.some(scope.schema.columns, 1, 1)
    made = [_plain(scope, column) for column in columns]
    if choices.chance(40):
        at = choices.number(0, len(made))
        return [*made[:at], *_windowed(scope), *made[at:]]
    return made


def _plain(scope: Scope, column: Column) -> Key:
    choices = scope.choices
    sql, kind = key_expression(scope, column)
    if choices.chance(10):
        return Key(sql, kind, (), direct=False, names=(sql,))
    if choices.chance(50):
        # Spark names CAST(ts AS DATE) after its column: ts.
        return Key(sql, kind, (Output(sql, kind=kind, shadows=sql.startswith("CAST(")),), names=(sql,))
    if choices.chance(8):
        # Any column's name will do: an alias does not change what the expression means.
        alias = choices.pick(scope.schema.columns).name
        if alias.lower() not in scope.used:
            scope.used.add(alias.lower())
            return Key(sql, kind, (Output(sql, alias, kind=kind, shadows=True),))
    alias = scope.fresh_alias()
    return Key(sql, kind, (Output(sql, alias, kind=kind),), names=(sql, quoted(alias)))


def _windowed(scope: Scope) -> list[Key]:
    """A window over the time column, now and then over another timestamp."""
    choices, schema = scope.choices, scope.schema
    others = schema.of(Kind.NTZ)
    time = next(column for column in schema.columns if column.name == schema.time)
    column = choices.pick(others) if others and choices.chance(25) else time
    call = window_call(choices, scope.reference(column))
    if scope.theme and scope.theme.windows and choices.chance(90):
        column, call = time, choices.pick(scope.theme.windows)
    form = choices.pick((_by_name, _by_name, _by_alias, _by_edges))
    return form(scope, call, column.kind)


def _by_name(scope: Scope, call: str, kind: Kind) -> list[Key]:
    """GROUP BY window(...): the group is then called `window`."""
    choices = scope.choices
    edges = (("window.start", kind), ("window.end", kind), ("window", Kind.STRUCT))
    written = ((f"{call}.start", kind), (f"{call}.end", kind), (call, Kind.STRUCT), ("WINDOW.START", kind))
    chosen = choices.some((*edges, *edges, *written), 0, 3)
    outputs = []
    for sql, of in dict.fromkeys(chosen):
        alias = scope.fresh_alias() if choices.chance(40) else None
        # Spark names window.end after the field: end, which may be a column.
        name = sql.rpartition(".")[2]
        outputs.append(Output(sql, alias, kind=of, shadows=alias is None and scope.schema.taken(name)))
    return [Key(call, Kind.STRUCT, tuple(outputs), direct=False, names=("window", "window.start"))]


def _by_alias(scope: Scope, call: str, _: Kind) -> list[Key]:
    alias = scope.fresh_alias()
    names = (quoted(alias), f"{quoted(alias)}.start")
    return [Key(call, Kind.STRUCT, (Output(call, alias, kind=Kind.STRUCT),), names=names)]


def _by_edges(scope: Scope, call: str, kind: Kind) -> list[Key]:
    """The start of the window, or both ends, as keys of their own."""
    made = []
    for edge in ("start", "end")[: scope.choices.number(1, 2)]:
        alias = scope.fresh_alias()
        output = Output(f"{call}.{edge}", alias, kind=kind)
        made.append(Key(output.sql, kind, (output,), names=(quoted(alias),)))
    return made
