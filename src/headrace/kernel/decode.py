"""Integers as Parquet packs them: codes of a dictionary in runs and groups, and differences in small blocks.

Bytes may be damaged. Nothing here reads beyond them, and each function says whether they were sound.
"""

from __future__ import annotations

from typing import Any

import numba
import numba.extending
import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]  # it has no types

from headrace.kernel.matrix import array_at

DATA, DICTIONARY, DATA_V2 = 0, 2, 3
"""Kinds of pages."""
PLAIN, PLAIN_DICTIONARY, DELTA, RLE_DICTIONARY = 0, 2, 5, 8
"""Encodings."""
PAGE = 8
"""Of a page: its kind, where its bytes begin, how many these are (packed, and unpacked), its values, how they are
encoded, bytes of levels that lie before them and are never packed, and whether the rest is."""
_STOP, _TRUE, _BYTE, _I64, _DOUBLE, _BINARY, _STRUCT = 0, 1, 3, 6, 7, 8, 12
"""Kinds of fields in Thrift's compact protocol."""


def _as_load(_, address):  # type: ignore[no-untyped-def]
    """Eight bytes from anywhere, as a number."""

    def generate(context, builder, _, arguments):  # type: ignore[no-untyped-def]
        loaded = builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()))
        loaded.align = 1
        return loaded

    return numba.types.uint64(address), generate


_load: Any = numba.extending.intrinsic(_as_load)


@numba.njit(nogil=True, cache=True)
def list_pages(begin, end, pages):  # type: ignore[no-untyped-def]
    """Write of each page what `PAGE` says; gives how many there are, or -1 where bytes are not sound."""
    at, count = begin, 0
    header = np.empty(8, dtype=np.int64)
    while at < end:
        body = _read_header(at, end, header)
        size, packed, levels = header[1], header[2], header[5] + header[6]
        if body == 0 or min(size, packed, header[3], header[5], header[6]) < 0 or packed > end - body:
            return -1
        if levels > min(size, packed):
            return -1
        if count < len(pages):
            pages[count] = header[0], body - begin, packed, size, header[3], header[4], levels, header[7]
        count += 1
        at = body + packed
    return count


@numba.njit(nogil=True, cache=True)
def decode_pages(pages, levelled, values, out):  # type: ignore[no-untyped-def]
    """Write the values of pages of data, one after another; says whether they were sound.

    Each of `pages` is (where its levels and values are, bytes of levels before these, or -1 if four bytes say how
    many; how many bytes it all is; values; encoding). `values` are those of a dictionary.
    """
    done = 0
    for p in range(len(pages)):
        levels, ahead, at, size, count, encoding = pages[p]
        end = at + size
        if levelled:
            if ahead < 0:
                if size < 4:
                    return False
                levels, ahead = at + 4, np.int64(_bits(at, end) & np.uint64(0xFFFFFFFF))
                at = levels + ahead
            if at > end or not _all_there(levels, levels + ahead, count):
                return False
        own = out[done : done + count]
        if encoding in (RLE_DICTIONARY, PLAIN_DICTIONARY):
            sound = _look_up(at, end, values, own)
        elif encoding == DELTA:
            sound = _add_up(at, end, own)
        else:
            sound = encoding == PLAIN and end - at >= count * own.itemsize
            for i in range(count if sound else 0):
                own[i] = _bits(at + i * own.itemsize, end)
        if not sound:
            return False
        done += count
    return done == len(out)


@numba.njit(nogil=True, cache=True)
def _byte(at, end) -> Any:  # type: ignore[no-untyped-def]
    return np.uint64(array_at(at, np.uint8)[0]) if at < end else np.uint64(0)


@numba.njit(nogil=True, cache=True)
def _bits(at, end) -> Any:  # type: ignore[no-untyped-def]
    """Eight bytes, as far as there are so many."""
    if at + 8 <= end:
        return _load(at)
    bits = np.uint64(0)
    for i in range(end - at):
        bits |= np.uint64(array_at(at + i, np.uint8)[0]) << np.uint64(8 * i)
    return bits


@numba.njit(nogil=True, cache=True)
def _varint(at, end) -> Any:  # type: ignore[no-untyped-def]
    """A number of seven bits a byte, and where it ends."""
    number, shift = np.uint64(0), np.uint64(0)
    while at < end and shift < np.uint64(64):
        byte = _byte(at, end)
        at += 1
        number |= (byte & np.uint64(0x7F)) << shift
        if byte < np.uint64(0x80):
            break
        shift += np.uint64(7)
    return number, at


@numba.njit(nogil=True, cache=True)
def _signed(number) -> Any:  # type: ignore[no-untyped-def]
    """The signed number that a zigzag one stands for."""
    return np.int64(number >> np.uint64(1)) ^ -np.int64(number & np.uint64(1))


@numba.njit(nogil=True, cache=True)
def _read_header(at, end, header):  # type: ignore[no-untyped-def]
    """A page's header; gives where it ends, or 0 where it has what is not understood.

    That is: its kind, bytes (unpacked, packed), values, encoding, bytes of levels (both), whether it is packed.
    """
    header[:] = 0
    header[7] = 1
    depth: Any = 0
    inside: Any = 0
    number: Any = 0
    numbers = np.zeros(2, dtype=np.int64)
    while at < end:
        byte = np.int64(_byte(at, end))
        at += 1
        kind, step = byte & 15, byte >> 4
        if byte == _STOP:
            if depth == 0:
                return at
            depth -= 1
            number = numbers[depth]
            inside = inside if depth else 0
            continue
        if step:
            number += step
        else:
            told, at = _varint(at, end)
            number = _signed(told)
        value = np.int64(kind == _TRUE)
        if kind == _STRUCT:
            if depth == 2:
                return 0
            inside = inside if depth else number
            numbers[depth] = number
            number = 0
            depth += 1
            continue
        if kind == _BYTE:
            at += 1
        elif kind == _DOUBLE:
            at += 8
        elif kind == _BINARY:
            size, at = _varint(at, end)
            if size > np.uint64(end - at):
                return 0
            at += np.int64(size)
        elif _BYTE < kind <= _I64:
            told, at = _varint(at, end)
            value = _signed(told)
        elif kind > _BYTE:
            return 0
        if depth < 2:
            _note(inside, number, value, header)
    return 0


@numba.njit(nogil=True, cache=True)
def _note(inside, number, value, header):  # type: ignore[no-untyped-def]
    """One field of a header, or of what is inside it."""
    if inside == 0 and 1 <= number <= 3:
        header[number - 1] = value
    elif inside in (5, 7) and 1 <= number <= 2:
        header[number + 2] = value
    elif inside == 8 and number == 1:
        header[3] = value
    elif inside == 8 and 4 <= number <= 7:
        header[number] = value


@numba.njit(nogil=True, cache=True)
def _all_there(at, end, count):  # type: ignore[no-untyped-def]
    """Whether levels of one bit say of so many values that none is null."""
    while count > 0 and at < end:
        told, at = _varint(at, end)
        run: Any = min(np.int64(told >> np.uint64(1)), count)
        if told & np.uint64(1):
            for i in range(min(run, (count + 7) // 8)):
                left = min(8, count - 8 * i)
                wanted = (np.uint64(1) << np.uint64(left)) - np.uint64(1)
                if _byte(at + i, end) & wanted != wanted:
                    return False
            at += run
            count -= 8 * run
        else:
            if run == 0 or _byte(at, end) != np.uint64(1):
                return False
            at += 1
            count -= run
    return count <= 0


@numba.njit(nogil=True, cache=True)
def _look_up(at, end, values, out):  # type: ignore[no-untyped-def]
    """Values of a dictionary, by codes in runs and groups."""
    bits, last = np.int64(_byte(at, end)), np.uint64(len(values) - 1)
    at += 1
    if bits > 32 or len(values) == 0:
        return False
    mask = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    count, done, most = len(out), 0, np.uint64(0)
    while done < count:
        if at >= end:
            return False
        told, at = _varint(at, end)
        run: Any = min(np.int64(told >> np.uint64(1)), count)
        if told & np.uint64(1):
            size = min(8 * run, count - done)
            if size == 0 or at + (size * bits + 7) // 8 > end:
                return False
            own = out[done : done + size]
            most = max(most, _look_up_group(at, end, np.uint64(bits), mask, values, last, own))
            at += run * bits
        else:
            size = min(run, count - done)
            if size == 0 or at + (bits + 7) // 8 > end:
                return False
            code = _bits(at, end) & mask
            most = max(most, code)
            out[done : done + size] = values[min(code, last)]
            at += (bits + 7) // 8
        done += size
    return most <= last


@numba.njit(nogil=True, cache=True)
def _look_up_group(at, end, bits, mask, values, last, out):  # type: ignore[no-untyped-def]
    """Values by codes that are packed side by side; gives the greatest code."""
    most, size, done = np.uint64(0), len(out), 0
    if bits <= np.uint64(16):
        # Eight codes are as many bytes as one has bits, and four of them are in eight bytes.
        half = np.int64(bits * np.uint64(4))
        second, shift = half >> 3, np.uint64(half & 7)
        while done + 8 <= size and at + second + 8 <= end:
            low, high = _load(at), _load(at + second) >> shift
            for i in range(4):
                code = low & mask
                most = max(most, code)
                out[done + i] = values[min(code, last)]
                low >>= bits
            for i in range(4):
                code = high & mask
                most = max(most, code)
                out[done + 4 + i] = values[min(code, last)]
                high >>= bits
            at += np.int64(bits)
            done += 8
    for i in range(size - done):
        bit = i * np.int64(bits)
        code = (_bits(at + (bit >> 3), end) >> np.uint64(bit & 7)) & mask
        most = max(most, code)
        out[done + i] = values[min(code, last)]
    return most


@numba.njit(nogil=True, cache=True)
def _add_up(at, end, out):  # type: ignore[no-untyped-def]
    """Values by their differences (DELTA_BINARY_PACKED)."""
    block, at = _varint(at, end)
    parts, at = _varint(at, end)
    there, at = _varint(at, end)
    first, at = _varint(at, end)
    count = len(out)
    if parts == 0 or block > np.uint64(1 << 16) or block % (np.uint64(32) * parts) or np.int64(there) < count:
        return False
    size, value = np.int64(block // parts), _signed(first)
    steps = np.empty(size, dtype=np.int64)
    if count:
        out[0] = value
    done = 1
    while done < count:
        told, at = _varint(at, end)
        least, widths = _signed(told), at
        at += np.int64(parts)
        if at > end:
            return False
        for part in range(np.int64(parts)):
            if done >= count:
                break
            bits = np.int64(_byte(widths + part, end))
            if bits > 64 or at + size // 8 * bits > end:
                return False
            here: Any = min(size, count - done)
            _read_steps(at, end, np.uint64(bits), least, here, steps)
            for i in range(here):
                value += steps[i]
                out[done + i] = value
            at += size // 8 * bits
            done += here
    return True


@numba.njit(nogil=True, cache=True)
def _read_steps(at, end, bits, least, size, steps):  # type: ignore[no-untyped-def]
    """Numbers of so many bits, and a least one added to each."""
    if bits == 0:
        steps[:size] = least
        return
    mask = ~np.uint64(0) >> (np.uint64(64) - bits)
    if bits <= np.uint64(56) and at + (np.int64(bits) * size >> 3) + 8 <= end:
        for i in range(size):
            bit = i * np.int64(bits)
            steps[i] = np.int64((_load(at + (bit >> 3)) >> np.uint64(bit & 7)) & mask) + least
        return
    for i in range(size):
        bit = i * np.int64(bits)
        shift = np.uint64(bit & 7)
        number = _bits(at + (bit >> 3), end) >> shift
        if bits + shift > np.uint64(64):
            number |= _byte(at + (bit >> 3) + 8, end) << (np.uint64(64) - shift)
        steps[i] = np.int64(number & mask) + least
