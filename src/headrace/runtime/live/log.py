"""The partial log: which partials of a stream have been counted, and which windows have been given.

Partials lie in immutable files. A commit is one small file that names all of them that still matter, with the
watermark and how far each query has come; its rename is what makes a micro-batch count. Whoever starts again reads
the latest commit and knows everything.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.errors import LogError
from headrace.kernel.shelf import Kept, Reader
from headrace.runtime.live.files import Folder

if TYPE_CHECKING:
    from pyspark.sql import Row

FORMAT = 2
"""The log's format; a reader of another one refuses it."""
_KEPT_COMMITS = 4
"""Commits that are kept, so that a person can see where a run came from."""


PLACED = "rows bigint, file string, start bigint, size bigint, crc bigint"
"""The last fields of an `Entry` as columns, in which workers tell what they have put into the log."""


def placed(rows: int, kept: Kept) -> dict[str, object]:
    """The columns of `PLACED`."""
    file = (kept.place or "").rpartition("/")[2]
    return {"rows": rows, "file": file, "start": kept.start, "size": kept.size, "crc": kept.crc}


def place_of(row: Row) -> tuple[int, str, int, int, int]:
    """The last fields of an `Entry`, from the columns of `PLACED`."""
    return row.rows, row.file, row.start, row.size, row.crc


class Entry(NamedTuple):
    """A partial: rows of a node, all of one slice and for one bucket, that the plan of a version made."""

    version: int
    node: str
    slice: int
    bucket: int
    rows: int
    file: str
    start: int
    size: int
    crc: int


@dataclass(frozen=True, slots=True)
class Standing:
    """How far a query has come: its first window begins at `first_us` or later, and those have been given that
    end at `until_us` or before. It joined with a version of the plan."""

    first_us: int
    until_us: int
    version: int

    def maker(self, made: int) -> int:
        """The version whose plan says if a partial, made by one, counts for the query: none before it joined."""
        return max(made, self.version)


@dataclass(frozen=True, slots=True)
class Counts:
    """Records since the beginning, and those that did not count: without a time, or with one too far ahead.

    `late` are a query's windows, one for each record, that had been given already when the record came.
    """

    records: int = 0
    no_time: int = 0
    ahead: int = 0
    late: Mapping[str, int] = field(default_factory=dict)

    @property
    def lost(self) -> int:
        """How much did not count."""
        return self.no_time + self.ahead + sum(self.late.values())

    def plus(self, other: Counts) -> Counts:
        """Both together."""
        late = dict(self.late)
        for query, count in other.late.items():
            late[query] = late.get(query, 0) + count
        return Counts(self.records + other.records, self.no_time + other.no_time, self.ahead + other.ahead, late)


class Given(NamedTuple):
    """Windows of a query that a commit makes final: the file in the outbox, its rows, and from when to when."""

    query: str
    file: str
    rows: int
    start_us: int
    end_us: int


@dataclass(frozen=True, slots=True)
class Commit:
    """All that is known after a micro-batch."""

    run: str
    batch: int = -1
    version: int = 0
    buckets: int = 1
    latest_us: int | None = None
    """The latest time of a record so far;"""
    watermark_us: int = 0
    """all windows that end then, or before, have been given."""
    queries: Mapping[str, Standing] = field(default_factory=dict)
    whole_from: Mapping[str, int] = field(default_factory=dict)
    """For each root, since when all records are in its partials."""
    entries: tuple[Entry, ...] = ()
    given: tuple[Given, ...] = ()
    counts: Counts = Counts()

    @property
    def files(self) -> set[str]:
        """The files of partials that matter."""
        return {entry.file for entry in self.entries}

    def to_bytes(self) -> bytes:
        """As JSON, with a checksum."""
        body = json.dumps(asdict(self), separators=(",", ":"))
        return json.dumps({"format": FORMAT, "crc": zlib.crc32(body.encode()), "body": body}).encode()

    @staticmethod
    def from_bytes(data: bytes, name: str) -> Commit:
        """What `to_bytes` gave; raises `LogError` where it is not that any more."""
        try:
            outer = json.loads(data)
            body = outer["body"]
            stated = outer["format"], outer["crc"]
        except (ValueError, KeyError, TypeError) as error:
            raise LogError(f"the commit '{name}' is damaged: {error}") from error
        if stated[0] != FORMAT:
            raise LogError(
                f"the commit '{name}' has format {stated[0]}; this version of headrace reads format {FORMAT}"
            )
        if zlib.crc32(body.encode()) != stated[1]:
            raise LogError(f"the commit '{name}' is damaged: its checksum does not match")
        return _commit(json.loads(body))


def _commit(values: dict[str, Any]) -> Commit:
    values["queries"] = {name: Standing(**standing) for name, standing in values["queries"].items()}
    values["entries"] = tuple(Entry(*entry) for entry in values["entries"])
    values["given"] = tuple(Given(*given) for given in values["given"])
    values["counts"] = Counts(**values["counts"])
    return Commit(**values)


class PartialLog:
    """The log below a folder: `commits` and `partials`."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.partials = folder / "partials"
        self._commits = folder / "commits"

    def latest(self) -> Commit | None:
        """The last commit; None where nothing has been committed."""
        names = self._commits.names()
        return Commit.from_bytes(self._commits.read(names[-1]), names[-1]) if names else None

    def commit(self, commit: Commit) -> None:
        """Make a micro-batch count, all at once."""
        self._commits.put(_name(commit.batch), commit.to_bytes())

    def tidy(self, commit: Commit, before: Iterable[str]) -> None:
        """Remove what no commit needs: files that were needed `before`, and old commits."""
        for file in sorted(set(before) - commit.files):
            self.partials.delete(file)
        for name in self._commits.names()[:-_KEPT_COMMITS]:
            self._commits.delete(name)

    def recover(self) -> Commit | None:
        """The last commit, after what a writer that ended left behind has been removed."""
        self._commits.sweep()
        commit = self.latest()
        needed = commit.files if commit is not None else set()
        for file in self.partials.names():
            if file not in needed:
                self.partials.delete(file)
        return commit

    def kept(self, entry: Entry) -> Kept:
        """Where an entry's rows are."""
        return Kept(None, self.partials.path(entry.file), entry.start, entry.size, entry.crc)

    def verify(self) -> Iterator[str]:
        """What is wrong with the log, a sentence each; nothing where all is well."""
        try:
            commit = self.latest()
        except LogError as error:
            yield str(error)
            return
        if commit is None:
            yield "there is no commit"
            return
        reader = Reader(self.partials.uri)
        for entry in commit.entries:
            place = f"{entry.file} at {entry.start}"
            try:
                _, rows = reader.read(self.kept(entry))
            except (OSError, ValueError) as error:
                yield f"{place}: {error}"
                continue
            if rows != entry.rows:
                yield f"{place}: {rows} rows in place of {entry.rows}"


def _name(batch: int) -> str:
    return f"{batch:012}.json"
