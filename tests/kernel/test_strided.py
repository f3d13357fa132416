"""Columns of any width, wherever they lie, into packed rows: against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernel.strided import BLOCK, Codes, Field, Strided, wrapped

KINDS = (np.int8, np.int16, np.int32, np.int64)


@given(st.data())
def test_rows_are_what_their_columns_say(data: st.DataObject) -> None:
    rows = data.draw(st.sampled_from([0, 1, 3, BLOCK - 1, BLOCK, 2 * BLOCK + 5]))
    draw = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    chosen = data.draw(st.sampled_from([None, 0, 2, BLOCK + 1])) if rows else None
    numbers = None if chosen is None else draw.integers(0, rows, chosen)
    made = rows if numbers is None else len(numbers)
    fields, words = [], data.draw(st.integers(1, 3))
    for word in range(words):
        kind, step = data.draw(st.sampled_from(KINDS)), data.draw(st.sampled_from([0, 1, 4]))
        picked = numbers is None or data.draw(st.booleans())
        held = draw.integers(-100, 100, max(1, step) * max(rows, made) + 1).astype(kind)
        values = np.lib.stride_tricks.as_strided(
            held, (rows if picked else made,), (step * held.itemsize,), writeable=False
        )
        shift, bits = data.draw(st.sampled_from([(0, 64), (0, 5), (3, 7)]))
        place = data.draw(st.sampled_from([0, 9]))
        fields.append(Field(values, word, place, -100, shift, wrapped(2**bits - 1), picked))
    slots = [draw.integers(-9, 9, 2 * rows)[::2], np.broadcast_to(np.ones(1, dtype=np.int64), rows)]
    narrow = [
        Codes(draw.integers(-9, 9, rows).astype(kind), base)
        for kind, base in zip(KINDS, (0, 7, -7, 9), strict=True)
    ]
    packed = Strided.of(rows, words, fields, [*slots, *narrow], numbers).pack()
    assert packed.shape == (made, words + 2 + len(narrow))
    for row in range(made):
        source = row if numbers is None else int(numbers[row])
        for field in fields:
            code = int(field.values[source if field.picked else row]) + 100
            assert packed[row, field.word] == ((code >> field.shift) & field.mask) << field.place
        own = [int(slot.values[source]) - slot.base for slot in narrow]
        assert packed[row, words:].tolist() == [slots[0][source], 1, *own]
