"""From the command line's words to a checked workload and its stream."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from headrace.errors import QueryError, StreamError
from headrace.query import parse_query
from headrace.sources import Stream
from headrace.sources.stream import read_columns
from headrace.workload import Workload, read_texts


def load_inputs(queries: Path, stream: str, name: str | None, time: str | None) -> tuple[Workload, Stream]:
    """The workload, checked against the stream; name and time are found out where they are not given."""
    found = Stream.parquet(stream, name or _only_name(queries), time or _only_time(stream))
    return Workload.load(queries, found), found


def _only_name(queries: Path) -> str:
    """The name that most queries use after FROM; one that says something else gets its error later."""
    names: Counter[str] = Counter()
    for query, text in read_texts(queries):
        try:
            names[parse_query(query, text).stream] += 1
        except QueryError:
            continue  # reported, with its place, when all queries are checked against the stream
    if names:
        return names.most_common(1)[0][0]
    Workload.load(queries)  # raises, for no query could be parsed
    raise StreamError("say what the stream is called after FROM, with --name")


def _only_time(path: str) -> str:
    times = [column.name for column in read_columns(path) if column.is_time]
    if len(times) == 1:
        return times[0]
    found = f"timestamp columns are: {', '.join(times)}" if times else "it has no timestamp column"
    raise StreamError(f"say which column of '{path}' is the time, with --time; {found}")
