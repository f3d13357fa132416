"""Random planning problems: a made-up stream, and queries of random keys, filters and windows over it."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa

from headrace.algebra.states import State
from headrace.plan.costs import Costs
from headrace.plan.lattice import Lattice
from headrace.plan.shapes import Filters, Shape, Shapes
from headrace.plan.sizes import Sizes
from headrace.plan.slices import Slices
from headrace.query import Expression

TIME = Expression.parse("ts")
HOUR_US = 3_600_000_000
_MINUTES = (1, 2, 4, 5, 10, 20)


def random_lattice(
    seed: int, queries: int, states: tuple[State, ...], *, filters: bool = True, windows: bool = True
) -> Lattice:
    """So many different queries of the same states over an hour of a stream of five columns."""
    draw = random.Random(seed)
    columns = [Expression.parse(name) for name in "abcde"]
    conditions = [Expression.parse(f"f{number}") for number in range(2)]
    sizes = Sizes([_block(seed, draw, columns, conditions)], 10 ** draw.randint(5, 7), HOUR_US)
    shapes = Shapes(
        filters=draw.choice([Filters(), Filters({conditions[0]: [columns[0]]}, {conditions[0]: conditions})])
    )
    wanted: dict[Shape, tuple[State, ...]] = {}
    while len(wanted) < queries:
        keys = draw.sample(columns, draw.randint(1, 3))
        where = draw.choice(conditions) if filters and draw.random() < 0.3 else None
        minutes = draw.choice(_MINUTES)
        slices = Slices.every(TIME, minutes * 60_000_000) if windows and draw.random() < 0.5 else None
        wanted[shapes.shape(keys, where, slices)] = states
    return Lattice(wanted, shapes, sizes, Costs())


def _block(
    seed: int, draw: random.Random, columns: list[Expression], conditions: list[Expression], rows: int = 4096
) -> dict[Expression, pa.Array]:
    """Columns with few values and with many, even and skewed, some of them decided by another one.

    The first column decides the first condition, and the second one is true wherever that is.
    """
    made = np.random.default_rng(seed)
    block: dict[Expression, pa.Array] = {}
    for place, column in enumerate(columns):
        values = int(2 ** draw.uniform(1, 14))
        skewed = np.floor(values * made.random(rows) ** draw.choice([1, 1, 3, 8])).astype(np.int64)
        if place and draw.random() < 0.3:
            skewed = np.asarray(block[draw.choice(columns[:place])]) // draw.choice([2, 10, 100])
        block[column] = pa.array(skewed)
    shares = [draw.choice([0.01, 0.1, 0.5]) for _ in conditions]
    first = np.asarray(block[columns[0]])
    narrow = first <= np.quantile(first, shares[0])
    block[conditions[0]] = pa.array(narrow)
    block[conditions[1]] = pa.array(narrow | (made.random(rows) < shares[1]))
    return block
