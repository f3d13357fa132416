"""What rows say of keys that are assumed to decide others, against plain Python."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernel.layout import Layout
from headrace.kernel.strided import wrapped
from headrace.kernel.sure import decides


@given(
    rows=st.lists(st.lists(st.integers(0, 3), min_size=4, max_size=4), max_size=30),
    bits=st.lists(st.sampled_from([2, 7, 33, 60]), min_size=4, max_size=4),
    keys=st.sets(st.integers(0, 3), min_size=1, max_size=2),
    repeated=st.integers(1, 200),
)
def test_decides(rows: list[list[int]], bits: list[int], keys: set[int], repeated: int) -> None:
    layout = Layout.of(bits)
    matrix = np.full((len(rows) * repeated, layout.words + 1), 7, dtype=np.int64)
    matrix[:, : layout.words] = 0
    for number, row in enumerate(rows * repeated):
        for place, code in zip(layout.places, row, strict=True):
            matrix[number, place.word] |= wrapped(code << place.shift)
    others = [column for column in range(4) if column not in keys]
    seen = {tuple(row[key] for key in keys): [row[other] for other in others] for row in rows}
    expected = all(seen[tuple(row[key] for key in keys)] == [row[other] for other in others] for row in rows)
    assert decides(matrix, layout.bits(sorted(keys)), layout.bits(others)) == expected


def test_decides_of_many_values() -> None:
    values = np.arange(100_000, dtype=np.int64) % 30_000
    rows = np.stack([values | (values // 3) << 32, np.zeros_like(values)], axis=1)
    low, high = np.array([0xFFFFFFFF]), np.array([0x7FFFFFFF << 32])
    assert decides(rows, low, high)
    assert not decides(rows, high, low)
    rows[-1, 0] += 1 << 32
    assert not decides(rows, low, high)
