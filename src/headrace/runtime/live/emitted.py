"""What tasks have made of windows: answers in files, and groups of queries that are still to be finished."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from headrace.kernel.piece import Ready
from headrace.kernel.shelf import Files, Kept
from headrace.runtime.live.answers import AnswerFile, by_window, file_name
from headrace.runtime.live.log import Given
from headrace.runtime.live.version import Version


class Unfinished(NamedTuple):
    """Rows of a query's groups, still to be finished."""

    rows: int
    kept: Kept


@dataclass(slots=True)
class Emitted:
    """Files with answers, and groups on a shelf, by query."""

    given: list[Given] = field(default_factory=list)
    groups: dict[str, list[Unfinished]] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows of answers, and of groups that are not answers yet."""
        return sum(given.rows for given in self.given) + sum(
            own.rows for lot in self.groups.values() for own in lot
        )

    def note(self, query: str, rows: int, kept: Kept) -> None:
        """Some groups more."""
        self.groups.setdefault(query, []).append(Unfinished(rows, kept))

    def add(self, other: Emitted) -> None:
        """What another task has made."""
        self.given += other.given
        for query, groups in other.groups.items():
            self.groups.setdefault(query, []).extend(groups)

    def to_json(self) -> str:
        """All of it as JSON: it passes Spark."""
        groups = {query: [(own.rows, own.kept._asdict()) for own in lot] for query, lot in self.groups.items()}
        return json.dumps({"given": self.given, "groups": groups})

    @staticmethod
    def from_json(text: str) -> Emitted:
        """What `to_json` gave."""
        told = json.loads(text)
        groups = {
            query: [Unfinished(rows, Kept(**kept)) for rows, kept in lot] for query, lot in told["groups"].items()
        }
        return Emitted([Given(*given) for given in told["given"]], groups)


@dataclass(frozen=True, slots=True)
class Places:
    """Where answers go: groups that Spark has to finish to a shelf, all others, as files, to a folder."""

    shelf: str
    folder: str


class Answers:
    """The answers that one task makes, window by window; the names of its files have a mark of their own."""

    def __init__(self, version: Version, places: Places, mark: str) -> None:
        self._version = version
        self._places = places
        self._mark = mark
        self._shelf = Files(places.shelf)
        self._files: dict[int, AnswerFile] = {}
        self._emitted = Emitted()

    def add(self, pieces: Iterable[Ready]) -> None:
        """Whole windows of some queries, none of them before any that has come."""
        for number, own in itertools.groupby((p for p in pieces if p.rows), attrgetter("answer")):
            if self._version.finishers[number] is None:
                for piece in own:
                    self._keep(piece)
            else:
                self._write(number, own)

    def close(self) -> Emitted:
        """All windows have come; gives what was made of them."""
        self._shelf.close()
        given = [file.close() for file in self._files.values()]
        self._emitted.given += [each for each in given if each is not None]
        return self._emitted

    def _keep(self, piece: Ready) -> None:
        (kept,) = self._shelf.keep(piece.columns, [(0, piece.rows)])
        self._emitted.note(self._version.plan.answers[piece.answer].query.name, piece.rows, kept)

    def _write(self, number: int, pieces: Iterable[Ready]) -> None:
        if number not in self._files:
            self._files[number] = self._file(number)
        file, columns = self._files[number], (piece.columns for piece in pieces)
        for window, groups in by_window(columns, self._version.schemas[number], file.window):
            file.add(window, groups)

    def _file(self, number: int) -> AnswerFile:
        finisher, query = self._version.finishers[number], self._version.plan.answers[number].query
        assert finisher is not None
        assert query.window is not None, "see `check_queries`"
        name = file_name(query.name, self._mark)
        return AnswerFile(query.name, name, self._places.folder, query.window, finisher)
