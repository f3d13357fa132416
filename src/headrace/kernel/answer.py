"""The last step that the kernel makes: rows of a node to the columns of a query's answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import pyarrow as pa

from headrace.algebra.bag import BagRecipe, lower_bag
from headrace.algebra.lower import Overflow, is_slot, lower
from headrace.algebra.ops import Words, identity_row
from headrace.algebra.settle import NegativeFrequency
from headrace.algebra.states import Recipe
from headrace.kernel.narrow import Column, Narrow, array_of
from headrace.kernel.reduce import reduce
from headrace.kernel.rows import Rows
from headrace.plan.plan import Answer, Node
from headrace.plan.slices import Windows
from headrace.query import Window

_ROWS_AT_A_TIME = 1 << 16
"""Rows whose columns are still in the cache when the next step needs them."""


class AnswerError(ArithmeticError):
    """An aggregate of a query's that has no answer: Spark raises an error too."""


def finish(node: Node, answer: Answer, rows: Rows, sure: bool) -> Iterator[tuple[list[Column], int]]:
    """The columns of an answer (the window's number, the query's keys, its aggregates), some rows at a time.

    The node's rows are the query's groups if it is `sure` that what the answer assumes is true; else there may be
    several for a group.
    """
    query = answer.query
    window = query.window
    if len(rows) == 0 and (query.keys or window is not None):
        return
    timed = 0 if window is None else 1
    keys = [*range(timed), *(node.place_of(key) for key in answer.keys)]
    from_bags: dict[int, pa.Array] = {}
    if answer.from_bag or not sure:
        finer, (rows, into) = rows, reduce(rows, keys, range(len(node.states)))
        keys = list(range(len(keys)))
        from_bags = _from_bags(node, answer, finer, into, max(1, len(rows)))
    if len(rows) == 0:
        # Without keys there is one group even where there is no record.
        identity = identity_row(rows.ops)
        rows = Rows(np.concatenate([[0], identity]).reshape(1, -1), (), rows.layout, rows.ops)
    states = list(dict.fromkeys(state for recipe in answer.recipes for state in recipe.states))
    places = node.states_at(states)
    for low in range(0, len(rows), _ROWS_AT_A_TIME):
        part = rows.slice(low, low + _ROWS_AT_A_TIME)
        columns, found = part.columns(keys, places)
        slots = dict(zip(states, found, strict=True))
        for number, recipe in enumerate(answer.recipes):
            if isinstance(recipe, BagRecipe):
                columns.append(from_bags[number].slice(low, len(part)))
            else:
                with _naming(answer, number):
                    columns.append(_lowered(recipe, [slot for state in recipe.states for slot in slots[state]]))
        yield columns, len(part)


def _lowered(recipe: Recipe, slots: Sequence[Narrow]) -> Column:
    """The answers to an aggregate, which are mostly a slot as it is."""
    if is_slot(recipe, [(slot.least, slot.most) for slot in slots]):
        return slots[0].viewed(recipe.type)
    return lower(recipe, [slot.words() for slot in slots])


def _from_bags(node: Node, answer: Answer, finer: Rows, into: Words, groups: int) -> dict[int, pa.Array]:
    """The answers of all aggregates with bags, from the finer rows; `into` says which group each belongs to."""
    found = {}
    for number, recipe in enumerate(answer.recipes):
        if isinstance(recipe, BagRecipe):
            with _naming(answer, number):
                found[number] = _from_bag(node, answer, recipe, finer, into, groups)
    return found


@contextmanager
def _naming(answer: Answer, number: int) -> Iterator[None]:
    """Errors say in which aggregate of which query."""
    try:
        yield
    except (Overflow, NegativeFrequency) as error:
        place = f"query '{answer.query.name}', {answer.query.aggregates[number].sql}"
        raise AnswerError(f"{place}: {error}") from error


def _from_bag(node: Node, answer: Answer, recipe: BagRecipe, finer: Rows, into: Words, groups: int) -> pa.Array:
    places = [node.place_of(argument) for argument in recipe.arguments]
    if len(finer) == 0:
        return lower_bag(recipe, into, groups, [pa.array([], kind) for kind in recipe.types], into)
    columns, ((counted,),) = finer.columns(places, [node.states.index(recipe.count)])
    values, counts = list(map(array_of, columns)), counted.words()
    unique = {*answer.keys, *recipe.arguments} == set(node.keys)
    return lower_bag(recipe, into, groups, values, counts, unique=unique)


def window_edges(window: Window, numbers: Words) -> tuple[Words, Words]:
    """Where windows begin and end, by their numbers."""
    windows = Windows(window)
    return windows.start_of(numbers), windows.end_of(numbers)
