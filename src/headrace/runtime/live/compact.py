"""Many small partials of one slice to a large one: what is open for long should not have to be read in crumbs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from headrace.kernel.high import HighLevel
from headrace.kernel.piece import pack
from headrace.kernel.shelf import Files, Kept, Reader
from headrace.plan.plan import Plan
from headrace.runtime.live.log import PLACED, Entry, PartialLog, place_of, placed
from headrace.runtime.live.version import Version
from headrace.runtime.results import collected
from headrace.runtime.worker import Batches, arrow_schema, on_tasks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST_PARTIALS = 16
"""With more partials than this of one slice and bucket, they are merged."""

_LINES = f"lot int, {PLACED}"
_SCHEMA = arrow_schema(_LINES)


class _Lot(NamedTuple):
    """Partials that become one."""

    plan: Plan
    node: int
    kept: tuple[Kept, ...]

    def merge(self, shelf: Files, folder: str) -> list[dict[str, object]]:
        """Put the rows of all into one on the shelf."""
        reader, level = Reader(folder), HighLevel(self.plan, 1)
        for kept in self.kept:
            level.add(self.node, *reader.read(kept))
        lines: list[dict[str, object]] = []
        for rows, columns in pack(level.take(self.node)):
            (kept,) = shelf.keep(columns, [(0, rows)])
            lines.append(placed(rows, kept))
        return lines


def compacted(
    entries: Sequence[Entry], versions: Mapping[int, Version], log: PartialLog, spark: SparkSession
) -> tuple[Entry, ...]:
    """The same partials, those of which there are too many merged."""
    alike: dict[tuple[int, str, int, int], list[Entry]] = {}
    for entry in entries:
        alike.setdefault((entry.version, entry.node, entry.slice, entry.bucket), []).append(entry)
    many = [same for same in alike.values() if len(same) > MOST_PARTIALS]
    if not many:
        return tuple(entries)
    lots = []
    for same in many:
        version = versions[same[0].version]
        lots.append(_Lot(version.plan, version.root_places[same[0].node], tuple(map(log.kept, same))))
    folder, tasks = log.partials.uri, min(len(lots), spark.sparkContext.defaultParallelism)

    def merge(task: int) -> Batches:
        shelf = Files(folder, checked=True)
        own = range(task, len(lots), tasks)
        lines = [{"lot": number, **line} for number in own for line in lots[number].merge(shelf, folder)]
        shelf.close()
        yield pa.RecordBatch.from_pylist(lines, schema=_SCHEMA)

    rows = collected(on_tasks(spark, tasks, merge, _LINES))
    gone = {entry for same in many for entry in same}
    made = []
    for row in rows:
        first, *_ = many[row.lot]
        made.append(Entry(first.version, first.node, first.slice, first.bucket, *place_of(row)))
    return (*(entry for entry in entries if entry not in gone), *made)
