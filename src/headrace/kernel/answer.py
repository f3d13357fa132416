"""The last step that the kernel makes: rows of a node to the columns of a query's answer."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from headrace.algebra.bag import BagRecipe, lower_bag
from headrace.algebra.lower import Overflow, lower
from headrace.algebra.ops import Words, identity_row
from headrace.algebra.settle import NegativeFrequency
from headrace.kernel.coding import Codes, RangeCoder
from headrace.kernel.reduce import Reducer
from headrace.kernel.rows import Rows
from headrace.plan.plan import Answer, Node, Plan, Slices
from headrace.query import Window


class AnswerError(ArithmeticError):
    """An aggregate of a query's that has no answer: Spark raises an error too."""


def finish(plan: Plan, answer: Answer, rows: Rows) -> tuple[list[pa.Array], int]:
    """The columns of an answer: the window's start and end, the query's keys, its aggregates."""
    node, query = plan.nodes[answer.node], answer.query
    window, slices = query.window, node.slices
    if len(rows) == 0 and (query.keys or slices is not None):
        return [], 0
    if window is not None and slices is not None and window.range_us != slices.size_us:
        rows = _merge_slices(window, slices, rows)
        slices = Slices(window.time, window.slide_us, window.offset_us)
    timed = 0 if slices is None else 1
    places = {key: index + timed for index, key in enumerate(node.keys)}
    own = [*range(timed), *(places[key] for key in answer.keys)]
    finer, into = rows, np.empty(0, dtype=np.int64)
    if answer.from_bag:
        rows, into = rows.reduce(own, range(len(node.states)))
        own = list(range(len(own)))
    if len(rows) == 0:
        # Without keys there is one group even where there is no record.
        identity = identity_row(rows.ops)
        rows = Rows(np.concatenate([[0], identity]).reshape(1, -1), (), rows.layout, rows.ops)
    states = [node.states.index(state) for recipe in answer.recipes for state in recipe.states]
    keys, slots = rows.columns(own, states)
    columns = keys[timed:]
    if window is not None and slices is not None:
        starts = slices.start_of(np.asarray(keys[0]))
        columns = [pa.array(starts), pa.array(starts + window.range_us), *columns]
    for aggregate, recipe in zip(query.aggregates, answer.recipes, strict=True):
        parts, slots = slots[: len(recipe.states)], slots[len(recipe.states) :]
        try:
            if isinstance(recipe, BagRecipe):
                columns.append(_from_bag(node, answer, recipe, finer, into, len(rows)))
            else:
                columns.append(lower(recipe, [slot for part in parts for slot in part]))
        except (Overflow, NegativeFrequency) as error:
            raise AnswerError(f"query '{query.name}', {aggregate.sql}: {error}") from error
    return columns, len(rows)


def _from_bag(node: Node, answer: Answer, recipe: BagRecipe, finer: Rows, into: Words, groups: int) -> pa.Array:
    """An aggregate's answers from the finer rows; `into` says which group each of them belongs to."""
    timed = 0 if node.slices is None else 1
    places = [timed + node.keys.index(argument) for argument in recipe.arguments]
    if len(finer) == 0:
        return lower_bag(recipe, into, groups, [pa.array([], kind) for kind in recipe.types], into)
    values, ((counts,),) = finer.columns(places, [node.states.index(recipe.count)])
    unique = {*answer.keys, *recipe.arguments} == set(node.keys)
    return lower_bag(recipe, into, groups, values, counts, unique=unique)


def _merge_slices(window: Window, slices: Slices, rows: Rows) -> Rows:
    """Rows of slices to rows of windows: each slice goes into every window that has it.

    Windows are numbered by their slides, as slices of that length would be.
    """
    (numbers,), states = rows.columns([0], range(len(rows.ops)))
    slots = [slot for part in states for slot in part]
    codes = [Codes(rows.codes(key)) for key in range(1, len(rows.coders))]
    starts = slices.start_of(np.asarray(numbers))
    slides = Slices(window.time, window.slide_us, window.offset_us)
    latest = slides.number_of(starts)
    windows = -(-window.range_us // window.slide_us)
    coder = RangeCoder(pa.int64(), int(latest.min()) - windows, int(latest.max()))
    merged = Reducer(rows.ops)
    for back in range(windows):
        inside = np.flatnonzero(slides.start_of(latest - back) + window.range_us > starts)
        own = coder.encode(pa.array(latest - back))
        merged.add((coder, *rows.coders[1:]), [own, *codes], slots, len(inside), inside)
    return merged.rows
