"""What a level gives: partials, which travel on to where their groups meet, and answers that are ready."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from headrace.algebra.ops import Words
from headrace.algebra.ranks import first_rows
from headrace.kernel.narrow import Column, array_of
from headrace.kernel.rows import Rows
from headrace.plan.plan import Plan
from headrace.plan.slices import Slices, Times

PARTIAL_ROWS = 1 << 18
"""Rows that travel together: a value of Spark's must stay far below 2 GiB."""


class Part(NamedTuple):
    """Rows for a bucket: from which one to before which. In a stream they are all of one slice."""

    bucket: int
    first: int
    end: int
    slice: int | None = None


@dataclass(frozen=True, slots=True)
class Partial:
    """Rows of a node, each for the bucket in which all of its group meet: key values, then the slots of states."""

    node: int
    columns: tuple[Column, ...]
    parts: tuple[Part, ...]


@dataclass(frozen=True, slots=True)
class Ready:
    """Rows of an answer (a number in `plan.answers`), as columns."""

    answer: int
    rows: int
    columns: tuple[Column, ...]


Piece = Partial | Ready


def send(plan: Plan, node: int, rows: Rows, buckets: int, by_slice: bool = False) -> Iterator[Partial]:
    """Rows of a node as partials; `by_slice`, those of each slice are a part by themselves."""
    if len(rows) == 0:
        return
    order, parts = _dealt(plan, node, rows, buckets, by_slice)
    low = 0
    for size, columns in pack(rows, order):
        own = (part._replace(first=max(part.first - low, 0), end=min(part.end - low, size)) for part in parts)
        yield Partial(node, columns, tuple(part for part in own if part.first < part.end))
        low += size


def pack(rows: Rows, order: Words | None = None) -> Iterator[tuple[int, tuple[Column, ...]]]:
    """Rows, as they are or in an order, as the columns of partials, with the number of rows in each."""
    columns = range(len(rows.coders)), range(len(rows.ops))
    for low in range(0, len(rows), PARTIAL_ROWS):
        high = min(low + PARTIAL_ROWS, len(rows))
        part = rows.slice(low, high) if order is None else rows
        keys, states = part.columns(*columns, None if order is None else order[low:high])
        yield high - low, (*keys, *(slot for slots in states for slot in slots))


def slice_numbers(rows: Rows) -> Words:
    """The number of each row's slice."""
    (numbers,), _ = rows.columns([0], [])
    return np.asarray(array_of(numbers))


def _dealt(plan: Plan, index: int, rows: Rows, buckets: int, by_slice: bool) -> tuple[Words | None, list[Part]]:
    """The order of rows by their buckets, and which are whose; `by_slice`, inside each of their slices."""
    bucket_of = _buckets_of(plan, index, rows, buckets)
    if not by_slice:
        counts = np.bincount(bucket_of, minlength=buckets)
        ends = itertools.pairwise([0, *np.cumsum(counts).tolist()])
        parts = [Part(bucket, *own) for bucket, own in enumerate(ends)]
        return None if counts.max() == len(rows) else np.argsort(bucket_of, kind="stable"), parts
    numbers = slice_numbers(rows)
    order = np.lexsort((numbers, bucket_of))
    bucket_of, numbers = bucket_of[order], numbers[order]
    starts = first_rows(bucket_of, numbers)
    parts = [
        Part(int(bucket_of[first]), first, end, int(numbers[first]))
        for first, end in itertools.pairwise([*starts.tolist(), len(rows)])
    ]
    return order, parts


def _buckets_of(plan: Plan, index: int, rows: Rows, buckets: int) -> npt.NDArray[np.uint16]:
    """The bucket of each row."""
    node, (deal, home) = plan.nodes[index], plan.meeting(index)
    if deal.epoch is None and deal.key is None:
        return np.full(len(rows), home % buckets, dtype=np.uint16)
    mark = np.zeros(len(rows), dtype=np.uint64)
    if deal.epoch is not None:
        mark += _epoch_numbers(node.slices, rows, deal.epoch).view(np.uint64)
    if deal.key is not None:
        place = node.place_of(deal.key)
        mark += rows.coders[place].hashes(rows.codes(place))
    return (mark % np.uint64(buckets)).astype(np.uint16)


def _epoch_numbers(slices: Times | None, rows: Rows, epoch: Slices) -> Words:
    assert slices is not None, "epochs are made of slices"
    return rows.at_starts(slices, epoch.number_of)
