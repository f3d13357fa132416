"""A workload: the queries over one stream, taken as they are, checked together and run together."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import Problem, QueryError, WorkloadError, did_you_mean
from headrace.plan.plan import Plan
from headrace.plan.search import DEFAULT, SEARCHES
from headrace.query import Query, Source, parse_query
from headrace.runtime.batch import run_batch
from headrace.runtime.live.run import LiveRun
from headrace.runtime.live.sinks import AnySink
from headrace.runtime.live.start import start_run
from headrace.runtime.prepare import BUDGET_BYTES, prepare
from headrace.runtime.reference import run_reference
from headrace.runtime.results import Results
from headrace.runtime.session import start_session, user_functions
from headrace.sources import Stream

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME_LINE = re.compile(r"^[ \t]*--[ \t]*name:[ \t]*(.*?)[ \t]*$", re.MULTILINE)
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*")  # also a folder's name, and Spark hides folders that begin with _ or .


class Workload(Mapping[str, Query]):
    """Named queries over one stream: `workload["by_src"]` is a `Query`.

    >>> workload = Workload({"total": "SELECT count(*) AS n FROM flows"})
    >>> workload["total"].shareable
    True
    """

    def __init__(self, queries: Mapping[str, str | Source], stream: Stream | None = None) -> None:
        self._queries = _parse_all(queries.items(), stream)

    @classmethod
    def load(cls, path: str | Path, stream: Stream | None = None) -> Workload:
        """The workload of a folder of `*.sql` files, or of one file with `-- name: ...` before each query.

        With a stream, all names are checked too, and all mistakes of all files are in one report.
        """
        return cls._of(_parse_all(read_texts(Path(path)), stream))

    @classmethod
    def _of(cls, queries: dict[str, Query]) -> Workload:
        workload = cls.__new__(cls)
        workload._queries = queries
        return workload

    def __getitem__(self, name: str) -> Query:
        return self._queries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._queries)

    def __len__(self) -> int:
        return len(self._queries)

    def __repr__(self) -> str:
        return f"Workload({', '.join(self)})"

    @property
    def stream_names(self) -> tuple[str, ...]:
        """The names after FROM, each once."""
        return tuple(dict.fromkeys(query.stream for query in self.values() if query.stream))

    def bind(self, stream: Stream, functions: Collection[str] = ()) -> Workload:
        """The same queries with every name checked against the stream; `functions` are the user's own."""
        texts = ((name, query.source) for name, query in self.items())
        return self._of(_parse_all(texts, stream, functions))

    def reference(self, stream: Stream, *, spark: SparkSession | None = None) -> Results:
        """The answers by plain Spark, query by query, nothing shared."""
        spark = spark or start_session()
        return run_reference(self.bind(stream, user_functions(spark)), stream, spark)

    def run(
        self,
        stream: Stream,
        *,
        spark: SparkSession | None = None,
        budget: int = BUDGET_BYTES,
        search: str = DEFAULT,
    ) -> Results:
        """The answers of all queries: exactly those of plain Spark, by one pass over the stream.

        When this returns, that pass is done. Queries that cannot be shared run when their answer is read. `budget`
        is the memory in bytes that one worker has for groups; what exceeds it is sent on, at some cost in time.
        `search` is how the plan's tree is looked for; it changes no answer.
        """
        _check_search(search)
        spark = spark or start_session()
        own = user_functions(spark)
        return run_batch(self.bind(stream, own), stream, spark, budget, search, own)

    def start(
        self,
        stream: Stream,
        *,
        sink: AnySink | Sequence[AnySink],
        checkpoint: str,
        spark: SparkSession | None = None,
        name: str | None = None,
        trigger: str = "0 seconds",
        retain: str | None = None,
        ahead: str = "1 day",
        files_per_batch: int | None = None,
        dead_letters: str | None = None,
        watch: str | Path | None = None,
        metrics_port: int | None = None,
        replan: str = "5 minutes",
        early: bool = False,
        budget: int = BUDGET_BYTES,
    ) -> LiveRun:
        """Answer the queries over a stream that never ends: each window once, when the watermark passes its end.

        The watermark is the latest time of any record, less the stream's `lateness`. `sink` is a folder for
        Parquet, "console", a function that is given each window (see `WindowAnswer`), any `Sink`, or several of
        these. `checkpoint` is a folder for what the run has to remember: started with it again, the run goes on
        from where it was, also after a crash, and nothing is lost or given twice. `trigger` says how often Spark
        looks for new records, or "available now": until there are no more. Partials of windows that have been
        given are kept for `retain`, for queries that join with a backfill. A record whose time is later than the
        wall clock, and than all others, by more than `ahead` is set aside. Records that did not count, or not for
        all queries, go to the folder `dead_letters`. Queries that come into the folder `watch` as `*.sql`, or
        leave it, join the run or leave it. Prometheus finds metrics at `metrics_port`. As often as `replan` says,
        a better plan is looked for, by what the stream shows then. With `early`, sinks are also given what open
        windows would answer by now, after each micro-batch, and marked so.
        """
        spark = spark or start_session()
        own = user_functions(spark)

        def parse(query: str, text: str) -> Query:
            return _parse_all([(query, text)], stream, own)[query]

        return start_run(
            self.bind(stream, own),
            stream,
            spark,
            parse,
            own,
            sink=sink,
            checkpoint=checkpoint,
            name=name,
            trigger=trigger,
            retain=retain,
            ahead=ahead,
            files_per_batch=files_per_batch,
            dead_letters=dead_letters,
            watch=Path(watch) if watch is not None else None,
            read_texts=lambda folder: ((name, source.text) for name, source in read_texts(folder)),
            metrics_port=metrics_port,
            replan=replan,
            early=early,
            budget=budget,
        )

    def plan(self, stream: Stream, *, spark: SparkSession | None = None, search: str = DEFAULT) -> Plan:
        """How the queries would be run: `plan.explain()` prints it. `search` is how the tree is looked for."""
        _check_search(search)
        spark = spark or start_session()
        own = user_functions(spark)
        return prepare(self.bind(stream, own), stream, spark, search=search, functions=own).plan


def _check_search(name: str) -> None:
    if name not in SEARCHES:
        raise ValueError(f"'{name}' is none of {', '.join(SEARCHES)}")


def _parse_all(
    texts: Iterable[tuple[str, str | Source]], stream: Stream | None, functions: Collection[str] = ()
) -> dict[str, Query]:
    """All queries, or one `WorkloadError` with the problems of all of them."""
    queries: dict[str, Query] = {}
    problems: list[Problem] = []
    seen: set[str] = set()
    for name, text in texts:
        origin = text.origin if isinstance(text, Source) else name
        if not _NAME.fullmatch(name):
            message = f"'{name}' cannot be a query's name"
            problems.append(Problem(message, origin=origin, hint="use letters, digits, '_', '-' and '.'"))
        elif name.lower() in seen:
            problems.append(Problem(f"there are two queries named '{name}'", origin=origin))
        else:
            seen.add(name.lower())
            try:
                queries[name] = _parse_one(name, text, stream, functions)
            except QueryError as error:
                problems += error.problems
    if not seen and not problems:
        problems = [Problem("the workload has no queries")]
    if problems:
        raise WorkloadError(problems)
    return queries


def _parse_one(name: str, text: str | Source, stream: Stream | None, functions: Collection[str]) -> Query:
    if stream is None:
        return parse_query(name, text)
    query = _parse_once(name, text, stream.column_names, stream.time, frozenset(functions))
    if query.stream.lower() != stream.name.lower() and not any(obstacle.foreign for obstacle in query.obstacles):
        message = f"reads '{query.stream}', but the stream is named '{stream.name}'"
        hint = did_you_mean(query.stream, [stream.name]) or f"write FROM {stream.name}"
        raise QueryError([query.source.problem(message, query.stream_span, hint)])
    return query


@lru_cache(maxsize=4096)
def _parse_once(
    name: str, text: str | Source, columns: tuple[str, ...], time: str, functions: frozenset[str]
) -> Query:
    """A query of a workload that runs again and again need not be parsed again."""
    return parse_query(name, text, columns=columns, functions=functions, time=time)


def read_texts(path: Path) -> Iterator[tuple[str, Source]]:
    """Name and text of every query in a folder or file, not yet parsed."""
    if path.is_dir():
        files = sorted(path.glob("*.sql"))
        if not files:
            raise WorkloadError([Problem(f"there are no *.sql files in '{path}'")])
        for file in files:
            yield from _read_file(file)
    elif path.is_file():
        yield from _read_file(path)
    else:
        raise WorkloadError([Problem(f"there is no file or folder '{path}'")])


def _read_file(file: Path) -> Iterator[tuple[str, Source]]:
    """The queries of a file: one named as the file, or several with a `-- name:` line before each."""
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise WorkloadError([Problem(f"not UTF-8 text: {error}", origin=str(file))]) from error
    marks = list(_NAME_LINE.finditer(text))
    if not marks:
        yield file.stem, Source(text, str(file))
        return
    for mark, end in zip(marks, [*(m.start() for m in marks[1:]), len(text)], strict=True):
        yield mark[1], Source(text[mark.end() : end], str(file), first_line=text.count("\n", 0, mark.end()) + 1)
