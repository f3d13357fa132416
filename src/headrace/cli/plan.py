"""`headrace plan`: what headrace understood of each query, and what can be shared."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from headrace.cli.console import Debug, check_known, err, out, spark_session
from headrace.cli.inputs import load_inputs
from headrace.cli.run import Name, Queries, Time
from headrace.plan.plan import Plan
from headrace.plan.search import DEFAULT, SEARCHES
from headrace.query import Query
from headrace.query.interval import format_interval
from headrace.sources import Stream
from headrace.workload import Workload


def plan(
    queries: Queries,
    stream: Annotated[
        str | None, typer.Option("--stream", help="The stream; with it, all names are checked too.")
    ] = None,
    time_column: Time = None,
    name: Name = None,
    tree: Annotated[
        bool,
        typer.Option("--tree", help="Start Spark and print the plan: the tree of nodes, and what runs beside."),
    ] = False,
    search: Annotated[
        str, typer.Option("--search", help=f"With --tree: how the tree is looked for, {', '.join(SEARCHES)}.")
    ] = DEFAULT,
    compare: Annotated[
        bool, typer.Option("--compare", help="Start Spark and print what each search finds, side by side.")
    ] = False,
    picture: Annotated[
        Path | None,
        typer.Option("--picture", help="Also write the tree as a picture, an SVG file.", dir_okay=False),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
    debug: Debug = False,
) -> None:
    """Show the parsed queries (keys, window, aggregates, whether each can be shared or why not), or their plan.

    Example: headrace plan examples/netflow/queries --stream data/flows --time ts
    """
    if (tree or compare or picture) and stream is None:
        option = "--tree" if tree else "--compare" if compare else "--picture"
        raise typer.BadParameter("a plan needs the stream's types: add --stream", param_hint=option)
    check_known(search, SEARCHES, "--search")
    if stream is None:
        workload = Workload.load(queries)
    else:
        workload, source = load_inputs(queries, stream, name, time_column)
        if compare:
            out.print(_compare(workload, source))
            return
        if tree or picture is not None:
            ((made, _),) = _make_plans(workload, source, [search])
            if as_json:
                out.print_json(made.to_json())
            else:
                text = f"{made.explain(made.reasons())}\n{made.estimate}"
                out.print(text, highlight=False, markup=False, soft_wrap=True)
            if picture is not None:
                picture.write_text(made.picture())
                err.print(f"the picture is in {picture}")
            return
    if as_json:
        out.print_json(json.dumps([describe(query) for query in workload.values()]))
        return
    out.print(_table(workload, Path(queries)))
    shared = sum(query.shareable for query in workload.values())
    out.print(f"{shared} of {len(workload)} queries can be shared")


def _make_plans(workload: Workload, stream: Stream, searches: Sequence[str]) -> Iterator[tuple[Plan, float]]:
    """The plans of some searches, each with the seconds that it took to make."""
    with spark_session() as spark:
        for search in searches:
            begin = time.perf_counter()
            yield workload.plan(stream, spark=spark, search=search), time.perf_counter() - begin


def _compare(workload: Workload, stream: Stream) -> Table:
    searches = [search for search in SEARCHES if search != "exhaustive"]
    table = Table("search", title="seconds of one core, by estimate", title_justify="left")
    for heading in ("tree", "of unshared", "roots", "nodes", "phantoms", "planned in"):
        table.add_column(heading, justify="right")
    plans = _make_plans(workload, stream, ["none", *searches])
    next(plans)  # the first one takes longer, whatever it is
    for search, (plan, seconds) in zip(searches, plans, strict=True):
        assert plan.estimate is not None, "every plan is made by estimates"
        share = plan.estimate.tree / plan.estimate.unshared if plan.estimate.unshared else 1.0
        table.add_row(
            f"{search} (default)" if search == DEFAULT else search,
            f"{plan.estimate.tree:.2f}",
            f"{share:.0%}",
            str(len(plan.roots)),
            str(len(plan.nodes)),
            str(sum(not plan.names(node) for node in range(len(plan.nodes)))),
            f"{seconds:.2f} s",
        )
        table.caption = (
            f"{plan.estimate.least:.2f} s at least: a group for every record, and the queries' own rows"
        )
    return table


def describe(query: Query) -> dict[str, Any]:
    """A query's parts as plain data."""
    return {
        "name": query.name,
        "stream": query.stream,
        "shareable": query.shareable,
        "obstacles": [obstacle.reason for obstacle in query.obstacles],
        "keys": [key.sql for key in query.keys],
        "window": query.window.sql if query.window else None,
        "where": query.where.sql if query.where else None,
        "aggregates": [{"sql": aggregate.sql, "kind": aggregate.kind.value} for aggregate in query.aggregates],
        "having": query.having.sql if query.having else None,
        "order": [item.sql for item in query.order],
        "limit": query.limit.sql if query.limit else None,
    }


def _table(workload: Workload, path: Path) -> Table:
    table = Table(
        title=f"{path}: {len(workload)} queries over {', '.join(workload.stream_names)}", title_justify="left"
    )
    for heading in ("query", "window", "keys", "filter", "aggregates", "shared"):
        table.add_column(heading, overflow="fold")
    for query in workload.values():
        if not query.shareable:
            reasons = "; ".join(obstacle.reason for obstacle in query.obstacles)
            table.add_row(query.name, "", "", "", "", f"[yellow]no[/yellow]: {reasons}")
            continue
        table.add_row(
            query.name,
            _window(query),
            ", ".join(key.sql for key in query.keys),
            query.where.sql if query.where else "",
            ", ".join(aggregate.sql for aggregate in query.aggregates),
            "[green]yes[/green]",
        )
    return table


def _window(query: Query) -> str:
    window = query.window
    if window is None:
        return ""
    text = format_interval(window.range_us)
    text += "" if window.tumbling else f" every {format_interval(window.slide_us)}"
    return text + (f" from {format_interval(window.offset_us)}" if window.offset_us else "")
