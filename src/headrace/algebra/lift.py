"""Records to states: the slots that each record brings."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from headrace.algebra.ops import IDENTITY, Floats, Words
from headrace.algebra.states import Lift, State
from headrace.algebra.words import Valid, restore_floats, to_words, valid_of

_ONE = np.ones(1, dtype=np.int64)

HAS_VALUE, HAS_NULL = 1, 2
"""What the first slot of a taken value says; 0 is no record at all."""


def lift(state: State, rows: int, arguments: Sequence[pa.Array], condition: Valid | None) -> list[Words]:
    """The slots of a state, one array each, for so many records.

    `arguments` are the columns that the state's expressions name, `condition` says which records satisfy its
    condition (None: all). Records that do not count bring the operation's identity.
    """
    if state.lift in (Lift.VALUE, Lift.ORDERED_VALUE):
        return _lift_value([to_words(argument) for argument in arguments], condition)
    counts = condition
    for argument in arguments:
        valid = valid_of(argument)
        if valid is not None:
            counts = valid if counts is None else counts & valid
    if state.lift is Lift.ONE:
        return [np.broadcast_to(_ONE, rows) if counts is None else counts.astype(np.int64)]
    columns = [to_words(argument) for argument in arguments]
    slots = _lift_numbers(state, columns, arguments)
    if counts is not None:
        rest = IDENTITY.get(state.op, 0)
        slots = [np.where(counts, slot, rest) for slot in slots]
    return slots


def _lift_numbers(
    state: State, columns: Sequence[tuple[Words, Valid | None]], arguments: Sequence[pa.Array]
) -> list[Words]:
    words = columns[0][0]
    if state.lift is Lift.WORD:
        return [words]
    if state.lift is Lift.WIDE:
        return [words, words >> 63]
    floats = [_floats(column, argument.type) for (column, _), argument in zip(columns, arguments, strict=True)]
    none = np.zeros(len(words), dtype=np.int64)
    if state.lift is Lift.FLOAT:
        return [floats[0].view(np.int64), none]
    one = np.ones(len(words)).view(np.int64)
    # The first distance from the mean is 0 for every number, and undefined for those that have no distances.
    odd = [np.where(np.isfinite(value), 0.0, np.nan).view(np.int64) for value in floats]
    if state.lift is Lift.VARIANCE:
        return [one, floats[0].view(np.int64), odd[0]]
    if state.lift is Lift.MOMENTS:
        return [one, floats[0].view(np.int64), odd[0], odd[0], odd[0]]
    both = (odd[0].view(np.float64) + odd[1].view(np.float64)).view(np.int64)
    return [one, floats[0].view(np.int64), floats[1].view(np.int64), both, odd[0], odd[1]]


def _floats(words: Words, kind: pa.DataType) -> Floats:
    if pa.types.is_floating(kind):
        return restore_floats(words)
    return words.astype(np.float64)


def _lift_value(columns: Sequence[tuple[Words, Valid | None]], condition: Valid | None) -> list[Words]:
    """A value may be null; what it is ordered by may not."""
    words, valid = columns[0]
    flag = np.full(len(words), HAS_VALUE) if valid is None else np.where(valid, HAS_VALUE, HAS_NULL)
    orders = [order for order, _ in columns[1:]]
    for counts in (condition, *(order_valid for _, order_valid in columns[1:])):
        if counts is not None:
            flag = np.where(counts, flag, 0)
    return [flag.astype(np.int64), *orders, words]
