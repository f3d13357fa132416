"""The reference runtime: each query by `spark.sql`, nothing shared. It defines what is correct."""

from __future__ import annotations

import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from headrace.errors import Problem, WorkloadError
from headrace.query import Query
from headrace.runtime.results import Results
from headrace.sources import Stream

if TYPE_CHECKING:
    from pyspark.errors import AnalysisException
    from pyspark.sql import DataFrame, SparkSession

_AT_A_TIME = 4
"""Queries that Spark looks at together: it takes its time for each, and not all of it on a core."""


def run_reference(queries: Mapping[str, Query], stream: Stream, spark: SparkSession) -> Results:
    """One DataFrame per query, analysed but not yet computed; all of Spark's complaints in one report."""
    frames = analyse(queries, stream, spark)
    return Results({name: partial(frames.__getitem__, name) for name in frames}, spark)


def analyse(
    queries: Mapping[str, Query], stream: Stream, spark: SparkSession, frame: DataFrame | None = None
) -> dict[str, DataFrame]:
    """The queries as Spark understands them; raises `WorkloadError` with all of its complaints.

    `frame` is the stream's DataFrame, where there is one already.
    """
    from pyspark.errors import AnalysisException  # see session.py

    stream.register(spark, frame)

    def analysed(query: Query) -> DataFrame | Problem:
        try:
            return spark.sql(query.plain)
        except AnalysisException as error:
            return _problem(query, error)

    with ThreadPoolExecutor(_AT_A_TIME) as threads:
        found = dict(zip(queries, threads.map(analysed, queries.values()), strict=True))
    if problems := [each for each in found.values() if isinstance(each, Problem)]:
        raise WorkloadError(problems)
    return {name: each for name, each in found.items() if not isinstance(each, Problem)}


def _problem(query: Query, error: AnalysisException) -> Problem:
    """Spark's message in one sentence, at the place that Spark names."""
    text = str(error)
    found = re.match(r"\s*(?:\[[\w.]+\]\s*)?(.*?)\s*(?:SQLSTATE|\(line \d|; line \d|==|$)", text, re.DOTALL)
    message = " ".join((found[1] if found else text).split()).rstrip(".;")
    return query.source.problem(message, _span(query, text))


def _span(query: Query, message: str) -> tuple[int, int] | None:
    """The place that Spark names. Where Spark read another text: that of the same word, if there is only one."""
    span = _named_span(query.plain, message)
    if span is None or not query.bracketed:
        return span
    word = re.escape(query.plain[slice(*span)])
    places = [found.span() for found in re.finditer(rf"(?<!\w){word}(?!\w)", query.text)]
    return places[0] if len(places) == 1 else None


def _named_span(text: str, message: str) -> tuple[int, int] | None:
    found = re.search(r"line (\d+),? pos (\d+)", message)
    if found is None:
        return None
    lines = text.split("\n")[: int(found[1]) - 1]
    start = sum(len(line) + 1 for line in lines) + int(found[2])
    word = re.compile(r"`[^`]*`|\w+|.", re.DOTALL).match(text, min(start, len(text) - 1))
    return (start, word.end() if word else start + 1)
