"""Columns of Parquet page by page: numbers without nulls, straight from the pages (`kernel/decode.py`).

Arrow reads all of Parquet, and these columns too, but by way of levels, validity and copies that they have no need
of. That took a third more of the time to read flow records, which is half of what a worker does.
"""

from __future__ import annotations

from collections import deque
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from headrace.algebra.words import is_time
from headrace.kernel.decode import DATA, DATA_V2, DICTIONARY, PAGE, decode_pages, list_pages

_CODECS = {"SNAPPY": "snappy", "ZSTD": "zstd", "GZIP": "gzip", "BROTLI": "brotli", "LZ4_RAW": "lz4_raw"}
_ENCODINGS = frozenset({"PLAIN", "PLAIN_DICTIONARY", "RLE_DICTIONARY", "DELTA_BINARY_PACKED", "RLE", "BIT_PACKED"})
_HELD = {
    ("INT32", pa.int32()),
    ("INT32", pa.date32()),
    ("INT64", pa.int64()),
    ("FLOAT", pa.float32()),
    ("DOUBLE", pa.float64()),
}
_FEW_PAGES = 64


class DamagedPages(ValueError):
    """Pages that cannot be what was written."""


def can_decode(chunk: pq.ColumnChunkMetaData, kind: pa.DataType) -> bool:
    """Whether a column of a row group, of which Arrow makes this type, is read here."""
    says = chunk.statistics
    return bool(
        (chunk.physical_type, pa.int64() if is_time(kind) else kind) in _HELD
        and (chunk.compression in _CODECS or chunk.compression == "UNCOMPRESSED")
        and _ENCODINGS.issuperset(chunk.encodings)
        and says is not None
        and says.has_null_count
        and says.null_count == 0
    )


class Chunk:
    """A column of a row group, of which some values are taken at a time."""

    def __init__(
        self, file: pa.NativeFile, chunk: pq.ColumnChunkMetaData, kind: pa.DataType, levels: bool
    ) -> None:
        """`levels`: pages say of each value whether it is null."""
        first = chunk.dictionary_page_offset if chunk.has_dictionary_page else None
        start = min(chunk.data_page_offset, first or chunk.data_page_offset)
        self._bytes = pa.py_buffer(file.read_at(chunk.total_compressed_size, start))
        self._kind, self._levels = kind, levels
        self._dtype = np.dtype(f"i{kind.bit_width // 8}")
        self._codec = None if chunk.compression == "UNCOMPRESSED" else _codec(_CODECS[chunk.compression])
        self._pages = deque(self._listed().tolist())
        self._dictionary: npt.NDArray[Any] = np.frombuffer(b"", self._dtype)
        self._rest: npt.NDArray[Any] = np.empty(0, self._dtype)

    def take(self, count: int) -> pa.Array:
        """The next values, all of which there are; raises `DamagedPages` where bytes are damaged."""
        told: list[tuple[int, ...]] = []
        held, known = [], len(self._rest)
        while known < count:
            self._check(len(self._pages) > 0)
            kind, start, packed, size, values, encoding, ahead, is_packed = self._pages.popleft()
            if kind == DICTIONARY:
                self._check(not told and size >= values * self._dtype.itemsize)
                data = self._unpacked(start, packed, size)
                self._dictionary = np.frombuffer(data, self._dtype, values)
                self._dictionary.flags.writeable = False  # as it is where bytes are not packed: one compiled form
            elif kind in (DATA, DATA_V2):
                data = self._unpacked(start + ahead, packed - ahead, size - ahead if is_packed else 0)
                levels = (self._bytes.address + start, ahead) if kind == DATA_V2 else (0, -1)
                told.append((*levels, data.address, data.size, values, encoding))
                held.append(data)
                known += values
        out = np.empty(known, self._dtype)
        out[: len(self._rest)] = self._rest
        pages = np.array(told, dtype=np.int64).reshape(len(told), 6)
        self._check(decode_pages(pages, self._levels, self._dictionary, out[len(self._rest) :]))
        self._rest = out[count:]
        return pa.Array.from_buffers(self._kind, count, [None, pa.py_buffer(out)])

    def _listed(self) -> npt.NDArray[np.int64]:
        """All pages, as `PAGE` says."""
        room, begin = _FEW_PAGES, self._bytes.address
        while True:
            pages = np.empty((room, PAGE), dtype=np.int64)
            count = list_pages(begin, begin + self._bytes.size, pages)
            self._check(count >= 0)
            if count <= room:
                return pages[:count]
            room = count

    def _unpacked(self, start: int, packed: int, size: int) -> pa.Buffer:
        """The bytes of a page; `size` is 0 where they are as they lie there."""
        data = self._bytes.slice(start, packed)
        if self._codec is None or size == 0:
            return data
        return self._codec.decompress(data, size, memory_pool=_pool())

    @staticmethod
    def _check(sound: bool) -> None:
        if not sound:
            raise DamagedPages("its pages are damaged, or not what its footer says")


@cache
def _codec(name: str) -> pa.Codec:
    return pa.Codec(name)


@cache
def _pool() -> pa.MemoryPool:
    """Memory that stays in the process (see `runtime/daemon.py`)."""
    return pa.system_memory_pool()
