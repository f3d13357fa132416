"""A hash table of rows: the one place where groups are found and states combined by hashing.

`Table.take_in` is the operator `reduce`: it takes rows of a parent, be they records or another table's rows, and
combines them into its own, one for each distinct key. A row is `words` of key followed by the slots of its states.
"""

from __future__ import annotations

import itertools
from typing import Any

import numba
import numpy as np
import numpy.typing as npt

from headrace.algebra.combine import combine
from headrace.algebra.ops import Op, Words, slot_count
from headrace.kernel.strided import BLOCK, Strided, fill

_LEAST_CAPACITY = 1 << 10
_ROW_BITS = 28
_ROW = (1 << _ROW_BITS) - 1
_ENTRIES = 4
"""Of the index, for each row that there is room for."""
_LINE_BYTES = 64
_PAGE_BYTES = 4096


class Table:
    """Rows by key, in the order in which keys came first; open addressing, at most a quarter of the index taken.

    An entry of the hash index holds the row's number and four bits of its hash, so that a probe that misses seldom
    touches a row. The index is large and its entries are small: most keys are where they are first looked for.
    Rows that are settled are not in it any more, so that it stays in the cache though rows are many.
    """

    def __init__(self, words: int, ops: tuple[Op, ...], expect: int = 0) -> None:
        """An empty table; one that knows how many rows to `expect` at most need not grow."""
        self.words = words
        self.ops = ops
        ends = list(itertools.accumulate(map(slot_count, ops), initial=words))
        self._states = np.array([*zip(ops, ends[:-1], strict=True)], dtype=np.int64).reshape(len(ops), 2)
        self.width = ends[-1]
        self._count = 0
        # Memory that is never touched costs nothing.
        capacity = _capacity_for(expect)
        self._index = _empty_index(capacity)
        self._rows = _aligned(capacity, self.width)
        self._kept = _NONE
        """The rows of the index: these, and all"""
        self._since = 0
        """from this one on."""

    def __len__(self) -> int:
        return self._count

    @property
    def rows(self) -> Words:
        """All rows, in the order in which their keys came first. A view: valid until the next `add`."""
        return self._rows[: self._count]

    @property
    def bytes(self) -> int:
        """Memory that the table has touched, at most."""
        return int(min(self._index.nbytes, self._count * _PAGE_BYTES) + self._count * self.width * 8)

    def add(self, rows: Words) -> Words:
        """Combine packed rows into the table; gives, for each, the number of the row that it went into."""
        into = np.empty(len(rows), dtype=np.int64)
        self.take_in(Strided.of_rows(rows, self.words), into)
        return into

    def take_in(self, source: Strided, into: Words | None = None) -> None:
        """Combine rows into the table; writes `into`, for each, the number of the row that it went into."""
        into = np.empty(0, dtype=np.int64) if into is None else into
        done = 0
        while done < source.rows:
            done, self._count = _insert(
                source.fields,
                source.slots,
                source.chosen,
                source.rows,
                done,
                self.words,
                self._states,
                self._index,
                self._rows,
                self._count,
                self._room,
                into,
            )
            if done < source.rows:
                self._grow()

    @property
    def indexed(self) -> int:
        """How many rows are in the index: those that are not settled."""
        return len(self._kept) + self._count - self._since

    @property
    def unsettled(self) -> Words:
        """The numbers of these."""
        return np.concatenate([self._kept, np.arange(self._since, self._count)])

    def settle(self, others: Words) -> None:
        """No row of a key will come any more that is in the index, but for those of these numbers."""
        more = self._count - self._since
        self._kept, self._since = others, self._count
        self._reindex(_capacity_for(len(others) + more))

    @property
    def _room(self) -> int:
        """How many rows there may be before the index is too full."""
        return self._since - len(self._kept) + len(self._index) // _ENTRIES

    def _grow(self) -> None:
        if self._count + BLOCK > len(self._rows):
            rows = _aligned(_capacity_for(len(self._rows)), self.width)
            rows[: self._count] = self._rows[: self._count]
            self._rows = rows
        if self._count + BLOCK > self._room:
            self._reindex(2 * len(self._index) // _ENTRIES)

    def _reindex(self, capacity: int) -> None:
        self._index = _empty_index(capacity)
        _fill_index(self._rows, self._kept, self._since, self._count, self.words, self._index)


_NONE = np.empty(0, dtype=np.int64)


def _capacity_for(rows: int) -> int:
    """Room for so many rows and what comes at a time."""
    capacity = max(_LEAST_CAPACITY, 1 << (rows + BLOCK).bit_length())
    if capacity > _ROW:
        raise MemoryError(f"a table of more than {_ROW:,} groups; more tasks have fewer each")
    return capacity


def _empty_index(capacity: int) -> npt.NDArray[np.uint32]:
    """An index for so many rows."""
    return np.zeros(_ENTRIES * capacity, dtype=np.uint32)


def _aligned(count: int, width: int) -> Words:
    """Rows that begin on a cache line, so that one of eight words is one line."""
    room = np.empty(count * width + _LINE_BYTES // 8, dtype=np.int64)
    start = (-room.ctypes.data % _LINE_BYTES) // 8
    return room[start : start + count * width].reshape(count, width)


# Functions that are called for every row take numbers only: with arrays, Numba would count references at each
# call, which costs more than the work itself.


@numba.njit(nogil=True, cache=True, inline="always")
def mix(h, word):  # type: ignore[no-untyped-def]
    """A hash of one word more."""
    h = (h ^ np.uint64(word)) * np.uint64(0x9E3779B97F4A7C15)
    return h ^ (h >> np.uint64(32))


@numba.njit(nogil=True, cache=True, inline="always")
def _finish(h):  # type: ignore[no-untyped-def]
    h *= np.uint64(0xC2B2AE3D27D4EB4F)
    return h ^ (h >> np.uint64(29))


@numba.njit(nogil=True, cache=True, inline="always")
def _tag(h):  # type: ignore[no-untyped-def]
    return np.uint32(h >> np.uint64(32 + _ROW_BITS)) << np.uint32(_ROW_BITS)


@numba.njit(nogil=True, cache=True)
def _fill_index(rows, kept, since, count, words, index):  # type: ignore[no-untyped-def]
    mask = np.uint64(len(index) - 1)
    for number in range(len(kept) + count - since):
        g = kept[number] if number < len(kept) else since + number - len(kept)
        h = np.uint64(0)
        for j in range(words):
            h = mix(h, rows[g, j])
        h = _finish(h)
        place = h & mask
        while index[place] != 0:
            place = (place + np.uint64(1)) & mask
        index[place] = _tag(h) | np.uint32(g + 1)


@numba.njit(nogil=True, cache=True)
def _insert(fields, slots, chosen, total, done, words, states, index, rows, count, room, into) -> Any:  # type: ignore[no-untyped-def]
    """Add rows from `done` on, block by block, until all are in, or the rows or the index are full."""
    block = np.empty((rows.shape[1], BLOCK), dtype=np.int64)
    batch, batch_floats, row_floats = block.T, block.view(np.float64).T, rows.view(np.float64)
    hashes = np.empty(BLOCK, dtype=np.uint64)
    entries = np.empty(BLOCK, dtype=np.int64)
    found = np.empty(BLOCK, dtype=np.int64)
    numbers = np.empty(BLOCK, dtype=np.int64)
    known = np.empty(BLOCK, dtype=np.int64)
    while done < total:
        if count + BLOCK > min(len(rows), room):
            return done, count
        size = min(BLOCK, total - done)
        fill(fields, slots, chosen, done, size, words, numbers, block)
        _fetch(block, size, words, index, rows, hashes, entries)
        count, old = _find(batch, size, words, index, rows, count, hashes, found, known)
        if old:
            for m in range(len(states)):
                combine(states[m, 0], states[m, 1], rows, row_floats, found, batch, batch_floats, known[:old])
        if len(into):
            into[done : done + size] = found[:size]
        done += size
    return done, count


@numba.njit(nogil=True, cache=True)
def _fetch(block, size, words, index, rows, hashes, entries):  # type: ignore[no-untyped-def]
    """Hash a block of keys and bring what they will meet into the cache.

    Memory is the bottleneck. Short loops of independent loads let the processor wait for a whole block of cache
    misses at once, instead of for each row's in turn.
    """
    mask = np.uint64(len(index) - 1)
    hashes[:size] = 0
    for word in range(words):
        own = block[word]
        for i in range(size):
            hashes[i] = mix(hashes[i], own[i])
    for i in range(size):
        hashes[i] = _finish(hashes[i])
    for i in range(size):
        entries[i] = index[hashes[i] & mask]
    for i in range(size):
        if entries[i] != 0:
            entries[i] = rows[(entries[i] & np.int64(_ROW)) - 1, 0]


@numba.njit(nogil=True, cache=True)
def _find(batch, size, words, index, rows, count, hashes, into, known):  # type: ignore[no-untyped-def]
    """The row of each key of a block: a copy of the batch's row where there was none, else the row is `known`.

    Gives the number of rows of the table, and of those known.
    """
    mask = np.uint64(len(index) - 1)
    width = rows.shape[1]
    old = 0
    for i in range(size):
        h = hashes[i]
        place = h & mask
        tag = _tag(h)
        g = np.int64(-1)
        while g < 0:
            entry = index[place]
            if entry == 0:
                index[place] = tag | np.uint32(count + 1)
                for j in range(width):
                    rows[count, j] = batch[i, j]
                g = count
                count += 1
            elif entry >> np.uint32(_ROW_BITS) == tag >> np.uint32(_ROW_BITS):
                g = np.int64(entry & np.uint32(_ROW)) - 1
                for j in range(words):
                    if rows[g, j] != batch[i, j]:
                        g = np.int64(-1)
                        break
                if g >= 0:
                    known[old] = i
                    old += 1
            place = (place + np.uint64(1)) & mask
        into[i] = g
    return count, old
