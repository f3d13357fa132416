"""Answers of windows in files: a file has whole windows of one query, each a row group."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

from headrace.algebra.ranks import first_rows
from headrace.kernel.narrow import Column, array_of
from headrace.plan.slices import Windows
from headrace.query import Window
from headrace.runtime.live.finisher import Finisher
from headrace.runtime.live.log import Given
from headrace.runtime.worker import typed

STARTS = b"headrace.windows"
"""In a file's metadata: when the window of each row group begins, in microseconds."""
_MOST_RUNS = 64
"""Rows of windows that are out of order in more places than this are put in order."""
_MOST_DICTIONARY = 1 << 17
"""Bytes of a column's dictionary: more distinct values take longer to look up than it saves."""
_PACKED = "DELTA_BINARY_PACKED"
"""The encoding of whole numbers and times: smaller than a dictionary's, and twice as fast to write."""

Columns = Sequence[pa.Array]
"""Those of a query's groups; the first is the window's number."""


def file_name(query: str, mark: object) -> str:
    """The name of a file with some windows of a query."""
    return f"{mark}.{query}.parquet"


def mark_of(given: Given) -> str:
    """What tells a file from others of the same query."""
    return given.file.removesuffix(f".{given.query}.parquet")


def by_window(
    parts: Iterable[Sequence[Column]], schema: pa.Schema, window: Window
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The groups of each window, with its number, in the order of time; `schema` is what they have then."""
    runs: dict[int, list[Columns]] = {}
    for part in parts:
        for number, columns in _runs([array_of(column) for column in part]):
            runs.setdefault(number, []).append(columns)
    for number in sorted(runs):
        first, *others = runs.pop(number)
        together = [pa.concat_arrays(columns) for columns in zip(first, *others, strict=True)] if others else first
        yield number, typed(together, len(together[0]), schema, window)


def _runs(columns: Columns) -> Iterator[tuple[int, Columns]]:
    """Rows of one window each, with its number: few, for rows come mostly in order."""
    numbers = np.asarray(columns[0])
    starts = first_rows(numbers)
    if len(starts) > _MOST_RUNS and len(starts) > len(np.unique(numbers)):
        order = np.argsort(numbers, kind="stable")
        columns, numbers = [column.take(pa.array(order)) for column in columns], numbers[order]
        starts = first_rows(numbers)
    for first, end in itertools.pairwise([*starts.tolist(), len(numbers)]):
        yield int(numbers[first]), [column.slice(first, end - first) for column in columns]


@dataclass(slots=True)
class AnswerFile:
    """A file on its way; it is only there if some window has rows."""

    query: str
    file: str
    folder: str
    window: Window
    finisher: Finisher
    rows: int = 0
    _starts: list[int] = field(default_factory=list)
    _writer: pq.ParquetWriter | None = None

    def add(self, number: int, groups: pa.RecordBatch) -> None:
        """The groups of a window that is not before any that has come."""
        answer = self.finisher.finish(groups)
        if answer.num_rows == 0:
            return
        if self._writer is None:
            system, path = fs.FileSystem.from_uri(self.folder)
            self._writer = pq.ParquetWriter(
                f"{path}/{self.file}", self.finisher.schema, filesystem=system, **encodings(self.finisher.schema)
            )
        self._writer.write_batch(answer, row_group_size=answer.num_rows)
        self._starts.append(Windows(self.window).start_of(number))
        self.rows += answer.num_rows

    def close(self) -> Given | None:
        """All windows have come; gives what is in the file, None where there is none."""
        if self._writer is None:
            return None
        self._writer.add_key_value_metadata({STARTS: json.dumps(self._starts)})
        self._writer.close()
        return Given(self.query, self.file, self.rows, self._starts[0], self._starts[-1] + self.window.range_us)


def encodings(schema: pa.Schema) -> dict[str, Any]:
    """How a file's columns are encoded, as pyarrow's writer takes it."""
    leaves = dict(_leaves(schema))
    return {
        "column_encoding": {name: _PACKED for name, packed in leaves.items() if packed},
        "use_dictionary": [name for name, packed in leaves.items() if not packed],
        # There is next to nothing left to compress of what is packed.
        "compression": {name: "NONE" if packed else "SNAPPY" for name, packed in leaves.items()},
        "dictionary_pagesize_limit": _MOST_DICTIONARY,
    }


def _leaves(fields: Iterable[pa.Field], above: str = "") -> Iterator[tuple[str, bool]]:
    """The columns of a file as Parquet names them, and whether they are of whole numbers or times."""
    for field_ in fields:
        if pa.types.is_struct(field_.type):
            yield from _leaves(field_.type, f"{above}{field_.name}.")
        else:
            kind = field_.type
            packed = pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind)
            yield f"{above}{field_.name}", packed


def read_windows(path: str, start_us: int) -> Iterator[tuple[int, pa.Table]]:
    """The windows of a file, each with its start; a file that Spark has written has one, from `start_us` on."""
    with pq.ParquetFile(path) as file:
        held = (file.metadata.metadata or {}).get(STARTS)
        if held is None:
            yield start_us, file.read().replace_schema_metadata(None)
            return
        for number, start in enumerate(json.loads(held)):
            yield start, file.read_row_group(number).replace_schema_metadata(None)
