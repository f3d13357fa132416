"""From the command line's words to a checked workload and its stream."""

from __future__ import annotations

from pathlib import Path

from headrace.errors import StreamError
from headrace.sources import Stream
from headrace.sources.stream import read_columns
from headrace.workload import Workload


def load_inputs(queries: Path, stream: str, name: str | None, time: str | None) -> tuple[Workload, Stream]:
    """The workload, checked against the stream; name and time are found out where they are not given."""
    workload = Workload.load(queries)
    found = Stream.parquet(stream, name or _only_name(workload), time or _only_time(stream))
    return workload.bind(found), found


def _only_name(workload: Workload) -> str:
    """The name that the queries use after FROM, where they agree."""
    names = {name.lower(): name for name in workload.stream_names}
    if len(names) == 1:
        return next(iter(names.values()))
    raise StreamError(f"the queries read {', '.join(names) or 'no table'}; say which is the stream with --name")


def _only_time(path: str) -> str:
    times = [column.name for column in read_columns(path) if column.is_time]
    if len(times) == 1:
        return times[0]
    found = f"timestamp columns are: {', '.join(times)}" if times else "it has no timestamp column"
    raise StreamError(f"say which column of '{path}' is the time, with --time; {found}")
