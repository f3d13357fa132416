"""Random Arrow tables for a schema: few rows, few different values, and all the edges.

A seed is drawn and the values follow from it, which is much faster than drawing every value. What matters
for a small counterexample still shrinks: the number of rows (a shorter table is a prefix of the longer one)
and the kinds of edges that occur. Values depend on the seed and the column's name only, so that they stay
when others go.
"""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from tests.harness.choices import Choices, Draw, Drawn
from tests.harness.schemas import Column, Kind, Role, StreamSchema
from tests.harness.values import EPOCHS, MAX_MAGNITUDE, OFFSETS_S, SPECIAL_FLOATS, candidates

__all__ = ["MAX_MAGNITUDE", "MAX_ROWS", "make_table", "tables"]

MAX_ROWS = 240


@dataclass(frozen=True)
class _Recipe:
    """What is drawn: everything else follows from it."""

    rows: int
    pool: int  # how many different values a column has at most
    null_percent: int
    special_percent: int  # of the floating columns: have NaN, infinities and -0.0
    null_times: bool
    seed: int


@st.composite
def tables(draw: Draw, schema: StreamSchema) -> pa.Table:
    """The tables that `make_table` makes."""
    return make_table(Drawn(draw), schema)


def make_table(choices: Choices, schema: StreamSchema) -> pa.Table:
    """A table of 0 to `MAX_ROWS` rows."""
    least, most = choices.weighted(((16, (2, 20)), (7, (21, 60)), (3, (0, 0)), (3, (1, 1)), (3, (61, MAX_ROWS))))
    recipe = _Recipe(
        rows=choices.number(least, most),
        # A pool of one value without nulls makes one giant group, whatever the keys are.
        pool=choices.pick((4, 2, 8, 1, 30)),
        null_percent=choices.pick((0, 10, 30, 100) if choices.chance(10) else (0, 10, 30)),
        special_percent=choices.pick((0, 30, 100)),
        null_times=choices.chance(20),
        seed=choices.number(0, 2**16 - 1),
    )
    arrays = [pa.array(_values(column, recipe), column.type) for column in schema.columns]
    return pa.Table.from_arrays(arrays, schema=schema.arrow)


def _values(column: Column, recipe: _Recipe) -> list[Any]:
    # A string seeds the same everywhere; the hash of a string would not.
    rng = random.Random(f"{recipe.seed}/{column.name}")
    if column.role is Role.UNIQUE:
        return rng.sample(range(-MAX_ROWS, MAX_ROWS), 2 * MAX_ROWS)[: recipe.rows]
    ordinary, special = _pool(column, recipe, rng)
    nulls = recipe.null_percent
    if column.role is Role.TIME:
        nulls = 10 if recipe.null_times else 0
    values: list[Any] = []
    for _ in range(recipe.rows):
        # The same number of random numbers for every row, so that fewer rows are a prefix.
        chosen, other, null, edge = rng.choice(ordinary), rng.choice(special), rng.random(), rng.random()
        if null * 100 < nulls:
            values.append(None)
        else:
            values.append(other if edge < 0.15 else chosen)
    return values


def _pool(column: Column, recipe: _Recipe, rng: random.Random) -> tuple[list[Any], list[Any]]:
    """The ordinary values of a column, and the ones that come now and then."""
    if column.kind in (Kind.TIMESTAMP, Kind.NTZ):
        pool = _times(column, recipe, rng)
        return pool, pool
    values = candidates(column)
    # The first ones are what queries ask for most, so that filters find something.
    pool = list(values[: recipe.pool])
    if rng.random() < 0.5:
        pool = rng.sample(values, min(recipe.pool, len(values)))
    if column.kind is Kind.FLOAT and rng.random() * 100 < recipe.special_percent:
        return pool, rng.sample(SPECIAL_FLOATS, rng.randint(1, 3))
    return pool, pool


def _times(column: Column, recipe: _Recipe, rng: random.Random) -> list[dt.datetime]:
    # One epoch as a rule: rows far apart in time share no window.
    epochs = rng.sample(EPOCHS, rng.choice((1, 1, 2)) if recipe.pool > 1 else 1)
    offsets = rng.sample(OFFSETS_S, min(recipe.pool * 2 if recipe.pool > 1 else 1, len(OFFSETS_S)))
    zone = dt.UTC if column.kind is Kind.TIMESTAMP else None
    return [(epoch + dt.timedelta(seconds=offset)).replace(tzinfo=zone) for epoch in epochs for offset in offsets]
