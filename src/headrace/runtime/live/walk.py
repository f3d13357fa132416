"""What a task does with the steps that it was given: partials of the log to files of answers."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from operator import attrgetter

import pyarrow as pa

from headrace.kernel.due import Due
from headrace.kernel.high import HighLevel
from headrace.kernel.piece import Ready
from headrace.kernel.shelf import File, Kept, Reader
from headrace.runtime.live.answers import AnswerFile, by_window, file_name
from headrace.runtime.live.version import Version
from headrace.runtime.worker import Batches, arrow_schema

LINES = (
    "query string, file string, rows bigint, start_us bigint, end_us bigint, "
    "place string, start bigint, size bigint"
)
_SCHEMA = arrow_schema(LINES)


@dataclass(frozen=True, slots=True)
class Walk:
    """Steps, one after another: what is due in each, and its partials, each with its root."""

    version: Version
    steps: tuple[tuple[Due, tuple[tuple[int, Kept], ...]], ...]
    shelf: str
    """For groups that Spark has to finish;"""
    folder: str
    """for all others, as files,"""
    mark: int
    """which have this in their names."""

    def run(self) -> Batches:
        """Lines about files, and about groups on the shelf."""
        version, reader, shelf = self.version, Reader(self.shelf), File(self.shelf)
        files: dict[int, AnswerFile] = {}
        lines: list[dict[str, object]] = []
        for due, partials in self.steps:
            # All rows of a group are here.
            level = HighLevel(version.plan, 0, 1, last=True, conditions=version.conditions, due=due)
            for root, kept in partials:
                level.add(root, *reader.read(kept))
            ready = (piece for piece in level.finish() if isinstance(piece, Ready) and piece.rows)
            for number, pieces in itertools.groupby(ready, attrgetter("answer")):
                if version.finishers[number] is None:
                    lines += [self._keep(piece, shelf) for piece in pieces]
                else:
                    self._write(files.setdefault(number, self._file(number)), number, pieces)
        shelf.close()
        given = [file.close() for file in files.values()]
        lines += [each._asdict() for each in given if each is not None]
        yield pa.RecordBatch.from_pylist(lines, schema=_SCHEMA)

    def _keep(self, piece: Ready, shelf: File) -> dict[str, object]:
        (kept,) = shelf.keep(piece.columns, [(0, piece.rows)])
        query = self.version.plan.answers[piece.answer].query.name
        return {"query": query, "rows": piece.rows, **asdict(kept)}

    def _write(self, file: AnswerFile, number: int, pieces: Iterable[Ready]) -> None:
        columns = (piece.columns for piece in pieces)
        for window, groups in by_window(columns, self.version.schemas[number], file.window):
            file.add(window, groups)

    def _file(self, number: int) -> AnswerFile:
        finisher, query = self.version.finishers[number], self.version.plan.answers[number].query
        assert finisher is not None
        assert query.window is not None, "see `check_queries`"
        return AnswerFile(query.name, file_name(query.name, self.mark), self.folder, query.window, finisher)
