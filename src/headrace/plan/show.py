"""A plan as text, as JSON and as a picture."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict

from headrace.plan.plan import Plan
from headrace.plan.slices import Times, Windows

Notes = Mapping[int, str]
"""What is to be said of nodes, by their numbers."""


def as_text(plan: Plan, notes: Notes) -> str:
    """The tree with a line for each node, the notes below them, and what runs beside it."""
    lines = [_headline(plan)]
    for index, depth in _walk(plan):
        lines.append(f"{'  ' * depth}- {line(plan, index)}")
        if index in notes:
            lines.append(f"{'  ' * depth}    {notes[index]}")
    if plan.beside:
        lines.append(f"{len(plan.beside)} queries beside, by plain Spark")
        lines += [f"  {name}: {reason}" for name, reason in plan.beside]
    return "\n".join(lines)


def as_json(plan: Plan) -> str:
    """Nodes with parents, queries with their node."""
    nodes = [
        {"id": node.id, "parent": parent, "keys": [key.sql for key in node.keys], "level": _level(plan, index)}
        | {"any of": [condition.sql for condition in node.any_of], "slices": _length(node.slices)}
        | {"marks": [mark.sql for mark in node.marks]}
        | {"states": len(node.states), "answers": list(plan.names(index))}
        | {"assumed": sorted(_assumed(plan, index))}
        | {"rows": round(plan.expected[index].rows), "seconds": plan.expected[index].seconds}
        | ({"dealt by": str(deal)} if (deal := plan.deals[index]) is not None else {})
        for index, (node, parent) in enumerate(zip(plan.nodes, plan.parents, strict=True))
    ]
    estimate = asdict(plan.estimate) if plan.estimate is not None else None
    return json.dumps({"nodes": nodes, "beside": dict(plan.beside), "estimate": estimate})


def reasons(plan: Plan) -> dict[int, str]:
    """What is expected of each node and, of a phantom, why it is there."""
    return {index: _expectation(plan, index) for index in range(len(plan.nodes))}


def _expectation(plan: Plan, index: int) -> str:
    own, parent = plan.expected[index], plan.parents[index]
    text = f"about {own.rows:,.0f} rows in {own.seconds:.2f} s"
    if plan.names(index):
        assumed = " and ".join(_assumed(plan, index))
        return f"{text}; one node for all, as {assumed}" if assumed else text
    children = plan.children(index)
    if plan.carried(index):
        return f"about {own.rows:,.0f} rows travel, so that those of {_count(len(children), 'node')} need not"
    if windows := _windows_of(plan, index):
        return f"{text}; its slices make {_count(len(windows), 'kind')} of windows"
    source = f"{plan.expected[parent].rows:,.0f} rows" if parent is not None else "the records"
    made = f"{_count(len(children), 'node')} made from these instead of {source}"
    return f"{text}; {made} {'saves' if len(children) == 1 else 'save'} {own.saved:.2f} s"


def _assumed(plan: Plan, index: int) -> list[str]:
    """What the answers of a node assume, each once."""
    answers = [plan.answers[number] for number in plan.answers_of(index)]
    return list(dict.fromkeys(str(dependency) for answer in answers for dependency in answer.assumed))


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


_FEW_FILTERS = 4
"""More are counted, not listed."""
_LINE, _STEP, _INDENT, _WIDTH, _BAR = 46, 12, 26, 1180, 180
_COLOURS = {"query": "#1f6f8b", "phantom": "#c8553d", "carried": "#8a6d3b", "slices": "#5b7f3a"}


def as_picture(plan: Plan) -> str:
    """The tree as SVG: a box for each node, below and to the right of what it is made from.

    The bars to the right say how long nodes take, by estimate; phantoms have a dashed outline.
    """
    longest = max((own.seconds for own in plan.expected), default=0.0) or 1.0
    rows = list(_walk(plan))
    height = _LINE * (len(rows) + 1) + 2 * _STEP + 18 * len(plan.beside)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" '
        f'font-family="sans-serif" font-size="12">',
        f'<text x="{_STEP}" y="24" font-size="15">{html.escape(_headline(plan))}</text>',
    ]
    if plan.estimate is not None:
        parts.append(f'<text x="{_STEP}" y="40" fill="#666">{html.escape(str(plan.estimate))}</text>')
    tops = {index: _LINE * (place + 1) + _STEP for place, (index, _) in enumerate(rows)}
    for index, depth in rows:
        parts += _box(plan, index, depth, tops, longest)
    for place, (name, reason) in enumerate(plan.beside):
        y = _LINE * (len(rows) + 1) + _STEP + 18 * (place + 1)
        text = html.escape(f"beside, by plain Spark: {name} ({reason})")
        parts.append(f'<text x="{_STEP}" y="{y}" fill="#666">{text}</text>')
    return "\n".join([*parts, "</svg>"])


def _box(plan: Plan, index: int, depth: int, tops: Mapping[int, int], longest: float) -> Iterator[str]:
    left, top, parent = _STEP + _INDENT * depth, tops[index], plan.parents[index]
    width, high = _WIDTH - _BAR - _STEP - left, _LINE - _STEP
    kind = "query" if plan.names(index) else _unasked(plan, index)
    if parent is not None:
        x, y = left - _INDENT + 10, top + high // 2
        yield f'<path d="M{x} {tops[parent] + high} V{y} H{left}" fill="none" stroke="#999"/>'
    dashes = ' stroke-dasharray="5 3"' if kind != "query" else ""
    said = html.escape("\n".join([line(plan, index), _expectation(plan, index)]))
    shape = f'x="{left}" y="{top}" width="{width}" height="{high}" rx="5"'
    yield f"<g><title>{said}</title>"
    yield f'<rect {shape} fill="white" stroke="{_COLOURS[kind]}"{dashes}/>'
    for y, text, colour in (
        (top + 14, f"{_about(plan, index)}: {_answers(plan, index)}", _COLOURS[kind]),
        (top + 28, _expectation(plan, index), "#666"),
    ):
        yield f'<text x="{left + 8}" y="{y}" fill="{colour}">{html.escape(_cut(text, width))}</text>'
    seconds = plan.expected[index].seconds
    bar = max(1, round((_BAR - 60) * seconds / longest))
    x = _WIDTH - _BAR
    yield f'<rect x="{x}" y="{top + 8}" width="{bar}" height="{high - 16}" fill="{_COLOURS[kind]}" opacity="0.6"/>'
    yield f'<text x="{x + bar + 5}" y="{top + 22}" fill="#666">{seconds:.2f} s</text></g>'


def _cut(text: str, width: int) -> str:
    """As much of a text as a box of a width has room for."""
    most = width // 7
    return text if len(text) <= most else f"{text[: most - 3]}..."


def _walk(plan: Plan) -> Iterator[tuple[int, int]]:
    """All nodes with their depth, each before its children."""

    def below(index: int, depth: int) -> Iterator[tuple[int, int]]:
        yield index, depth
        for child in plan.children(index):
            yield from below(child, depth + 1)

    for root in plan.roots:
        yield from below(root, 0)


def _headline(plan: Plan) -> str:
    queries = "1 query" if len(plan.answers) == 1 else f"{len(plan.answers)} queries"
    return f"{queries} from {_count(len(plan.roots), 'root')}"


def line(plan: Plan, index: int) -> str:
    """A node in one line."""
    dealt = f", dealt by {plan.deals[index]}" if plan.deals[index] else ""
    level, states = _level(plan, index), len(plan.nodes[index].states)
    return f"{_about(plan, index)}: {_answers(plan, index)} [{level} level, {states} states{dealt}]"


def _about(plan: Plan, index: int) -> str:
    """Keys, slices and conditions; those that a parent has already are not said again."""
    node, parent = plan.nodes[index], plan.parents[index]
    given = plan.nodes[parent].any_of if parent is not None else ()
    marks = [f"whether {mark.sql}" for mark in node.marks]
    marks = marks if len(marks) <= _FEW_FILTERS else [f"fragments of {len(marks)} filters"]
    keys = ", ".join([*(key.sql for key in node.keys), *marks]) or "no keys"
    slices = f" per {_length(node.slices)}" if node.slices else ""
    where = ", or ".join(condition.sql for condition in node.any_of if node.any_of != given)
    where = f"any of {len(node.any_of)} filters" if where and len(node.any_of) > _FEW_FILTERS else where
    return f"({keys}){slices}" + (f" where {where}" if where else "")


def _answers(plan: Plan, index: int) -> str:
    return ", ".join(plan.names(index)) or _unasked(plan, index)


def _unasked(plan: Plan, index: int) -> str:
    """What a node is that answers no query."""
    if plan.carried(index):
        return "carried"
    return "slices" if _windows_of(plan, index) else "phantom"


def _windows_of(plan: Plan, index: int) -> list[int]:
    """The nodes that are windows of a node's slices."""
    return [child for child in plan.children(index) if isinstance(plan.nodes[child].slices, Windows)]


def _level(plan: Plan, index: int) -> str:
    """Where most of a node's groups are whole; a root's rows are made where records are read in any case."""
    return "low" if plan.parents[index] is None or plan.expected[index].low else "high"


def _length(slices: Times | None) -> str | None:
    return str(slices) if slices else None
