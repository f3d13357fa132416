"""Random aggregate queries in Spark SQL, with what must be known to compare their answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from tests.harness.aggregates import aggregate
from tests.harness.answers import Answer, answers
from tests.harness.choices import Choices, Draw, Drawn
from tests.harness.expressions import QUALIFIERS, Scope, Theme
from tests.harness.keys import Key, Output, keys
from tests.harness.predicates import predicate
from tests.harness.schemas import Kind, StreamSchema, quoted
from tests.harness.spelling import respell
from tests.harness.tolerance import EXACT, Comparison
from tests.harness.windows import window_call

MAX_QUERIES = 20


@dataclass(frozen=True)
class GeneratedQuery:
    """A query's text and how its answer may be compared."""

    text: str
    comparisons: tuple[Comparison, ...]  # one for each output column
    ordered: bool  # ORDER BY decides the place of every row
    may_fail: bool  # an error is a legal outcome, as for an overflow that depends on the order of rows
    witness: str | None = None  # the query that lists what is allowed where any of several values is right


@dataclass(frozen=True)
class _Draft:
    """A query before it is text: what the clauses look at."""

    scope: Scope
    keys: list[Key]
    answers: list[Answer]
    outputs: list[Output]

    @property
    def shadowed(self) -> bool:
        return any(output.shadows for output in self.outputs)

    def place(self, output: Output) -> int:
        """The ordinal of an output; equal ones answer equally, so that any of them will do."""
        return self.outputs.index(output) + 1


@st.composite
def queries(draw: Draw, schema: StreamSchema) -> GeneratedQuery:
    """The queries that `make_query` makes."""
    return make_query(Drawn(draw), schema)


@st.composite
def workloads(draw: Draw, schema: StreamSchema, max_queries: int = MAX_QUERIES) -> dict[str, GeneratedQuery]:
    """The workloads that `make_workload` makes."""
    return make_workload(Drawn(draw), schema, max_queries)


def make_query(choices: Choices, schema: StreamSchema, theme: Theme | None = None) -> GeneratedQuery:
    """A query over the schema's table, of its own or about the theme of its workload."""
    qualifier = choices.pick(QUALIFIERS) if choices.chance(25) else None
    scope = Scope(choices, schema, qualifier, mixing=choices.chance(10), theme=theme)
    made = keys(scope)
    # An alias inside another item and GROUP BY ALL do not go together in Spark.
    group_all = all(key.direct for key in made) and choices.chance(20 if made else 5)
    draft = _draft(scope, made, lateral=not group_all)
    having, having_may_fail = _having(draft) if choices.chance(25) else ("", False)
    order, total = _order(draft, behind_projection=bool(having)) if choices.chance(45) else ("", False)
    ordered = total or not made
    items = [_item(choices, output) for output in draft.outputs]
    clauses = [
        "FROM " + schema.view + (choices.pick((" AS ", " ")) + quoted(qualifier) if qualifier else ""),
        _where(scope),
        _group_by(draft, group_all),
        having,
        order,
        f"LIMIT {choices.pick((3, 1, 10, 5, 100, 2, 0))}" if ordered and order and choices.chance(40) else "",
    ]
    rest = " ".join(clause for clause in clauses if clause)
    text = respell(choices, f"SELECT {', '.join(items)} {rest}")
    may_fail = having_may_fail or any(answer.may_fail for answer in draft.answers)
    # Spark 4.3 loses a column that is written both as k and as K when it plans distinct aggregates, and raises
    # an internal error.
    may_fail = may_fail or (scope.mixing and "distinct" in text.lower())
    comparisons = tuple(output.comparison for output in draft.outputs)
    return GeneratedQuery(text, comparisons, ordered, may_fail, _witness(draft, items, rest))


def make_workload(
    choices: Choices, schema: StreamSchema, max_queries: int = MAX_QUERIES
) -> dict[str, GeneratedQuery]:
    """Named queries over one stream, 1 to `max_queries`; now and then the same one under two names."""
    made: list[GeneratedQuery] = []
    theme = _theme(choices, schema) if choices.chance(40) else None
    for _ in range(choices.number(1, max_queries)):
        again = bool(made) and choices.chance(4)
        made.append(choices.pick(made) if again else make_query(choices, schema, theme))
    return {f"q{number}": query for number, query in enumerate(made)}


def _theme(choices: Choices, schema: StreamSchema) -> Theme:
    """A few columns, windows and conditions, so that queries meet each other in a plan."""
    scope = Scope(choices, schema, qualifying=False)
    windows = [window_call(choices, quoted(schema.time)) for _ in range(choices.number(0, 3))]
    conditions = [predicate(scope, 1) for _ in range(choices.number(1, 3))]
    columns = tuple(choices.some(schema.columns, 2, 4))
    return Theme(columns, tuple(windows), tuple(conditions), simple=choices.chance(60))


def _where(scope: Scope) -> str:
    choices, theme = scope.choices, scope.theme
    if not choices.chance(45):
        return ""
    return "WHERE " + (choices.pick(theme.conditions) if theme and choices.chance(90) else predicate(scope))


def _witness(draft: _Draft, items: Sequence[str], rest: str) -> str | None:
    """The query with its witnesses in place of the aggregates that have one."""
    if not any(output.witness for output in draft.outputs):
        return None
    chosen = [
        item if output.witness is None else f"{output.witness} AS {quoted(output.alias or 'witness')}"
        for item, output in zip(items, draft.outputs, strict=True)
    ]
    return f"SELECT {', '.join(chosen)} {rest}"


def _draft(scope: Scope, made: list[Key], lateral: bool) -> _Draft:
    choices = scope.choices
    selected = [output for key in made for output in key.outputs]
    # SELECT a FROM t GROUP BY a is an aggregate query too.
    only_keys = bool(selected) and choices.chance(4)
    aggregated = [] if only_keys else answers(scope, made, lateral)
    answered = [answer.output for answer in aggregated]
    outputs = [*answered, *selected] if choices.chance(20) else [*selected, *answered]
    return _Draft(scope, made, aggregated, outputs)


def _item(choices: Choices, output: Output) -> str:
    if output.alias is None:
        return output.sql
    return f"{output.sql} {'' if choices.chance(20) else 'AS '}{quoted(output.alias)}"


def _group_by(draft: _Draft, group_all: bool) -> str:
    if group_all:
        return "GROUP BY ALL"
    return "GROUP BY " + ", ".join(_group_term(draft, key) for key in draft.keys) if draft.keys else ""


def _group_term(draft: _Draft, key: Key) -> str:
    """The key as its expression, its ordinal or its alias."""
    terms = [key.sql, key.sql]
    if key.direct:
        first = key.outputs[0]
        terms.append(str(draft.place(first)))
        if first.alias and not first.shadows:
            terms.append(quoted(first.alias))
    return draft.scope.choices.pick(terms)


def _having(draft: _Draft) -> tuple[str, bool]:
    """HAVING over aggregates, aliases and keys: only what is exact, or a rounding could decide."""
    choices = draft.scope.choices
    conditions = [f"count(*) >= {choices.pick((1, 1, 2, 3))}"]
    may_fail = False
    if not draft.shadowed:
        conditions += [
            f"{quoted(output.alias)} {'<> 1' if output.kind is Kind.INT else 'IS NOT NULL'}"
            for output in draft.outputs
            if output.alias and output.comparison is EXACT
        ]
        # A key that compares structs or arrays gets casts, behind which HAVING does not find it again.
        plain = [key for key in draft.keys if "struct(" not in key.sql and "array(" not in key.sql]
        conditions += [f"({key.names[0]}) IS NOT NULL" for key in plain]
        extra = aggregate(draft.scope, draft.keys)
        if extra.comparison is EXACT and extra.kind in (Kind.INT, Kind.DECIMAL):
            conditions.append(f"{extra.sql} >= 0")
            may_fail = extra.may_fail
    chosen = choices.some(conditions, 1, 2)
    return "HAVING " + choices.pick((" AND ", " OR ")).join(chosen), may_fail


def _order(draft: _Draft, behind_projection: bool) -> tuple[str, bool]:
    """ORDER BY, and whether it decides the place of every row: it does if it names every key of the group.

    When HAVING has an aggregate that is not selected, or an item refers to the alias of another, Spark puts a
    projection over the aggregation, and ORDER BY behind it finds no expression over the input any more: only
    ordinals and aliases are left.
    """
    choices = draft.scope.choices
    by_output = behind_projection or draft.shadowed or any(answer.lateral for answer in draft.answers)
    terms = [_named(draft, output, by_output) for output in choices.some(_sortable(draft), 0, 2)]
    total = choices.chance(85)
    for key in choices.some(draft.keys, len(draft.keys) if total else 0, len(draft.keys)):
        names = [] if by_output else list(key.names)
        names += [str(draft.place(output)) for output in key.outputs]
        # An alias that is a column's name too may be another output's: Spark then sorts by that column.
        own = [output.alias for output in key.outputs if output.alias and not output.shadows]
        names += [quoted(alias) for alias in own if by_output]
        total = total and bool(names)
        terms += [choices.pick(names)] if names else []
    if total and draft.keys and choices.chance(30):
        # Behind a total order anything may follow, also what is not exact.
        terms.append(str(choices.number(1, len(draft.outputs))))
    if not terms:
        return "", False
    return "ORDER BY " + ", ".join(_directed(choices, term) for term in terms), total


def _sortable(draft: _Draft) -> Sequence[Output]:
    return [answer.output for answer in draft.answers if answer.output.comparison is EXACT]


def _named(draft: _Draft, output: Output, by_output: bool) -> str:
    """An output in ORDER BY: its ordinal, its alias, or its expression."""
    names = [str(draft.place(output))]
    if output.alias:
        names.append(quoted(output.alias))
    if not by_output:
        names.append(output.sql)
    return draft.scope.choices.pick(names)


def _directed(choices: Choices, term: str) -> str:
    return term + choices.pick(("", "", " DESC", " ASC")) + choices.pick(("", "", " NULLS LAST", " NULLS FIRST"))
