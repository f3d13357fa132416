"""The start of a run: a new one, or one that goes on from where it was."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import LogError, StreamError
from headrace.query import Query
from headrace.query.interval import parse_interval_us
from headrace.runtime.live.clock import Clock
from headrace.runtime.live.control import Controller, ReadTexts
from headrace.runtime.live.engine import Engine, Settings
from headrace.runtime.live.files import Folder
from headrace.runtime.live.progress import Watcher
from headrace.runtime.live.run import LiveRun
from headrace.runtime.live.sinks import AnySink, as_sinks
from headrace.runtime.live.version import Desk, Version
from headrace.sources import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FILES = "path string, modificationTime timestamp, length long, content binary"
"""What Spark knows of any file; workers read the records."""
_BUCKETS_PER_CORE = 4


def start_run(
    queries: Mapping[str, Query],
    stream: Stream,
    spark: SparkSession,
    parse: Callable[[str, str], Query],
    functions: Collection[str],
    *,
    sink: AnySink | Sequence[AnySink],
    checkpoint: str,
    name: str | None,
    trigger: str,
    retain: str | None,
    ahead: str,
    files_per_batch: int | None,
    dead_letters: str | None,
    watch: Path | None,
    read_texts: ReadTexts,
    metrics_port: int | None,
    replan: str,
    early: bool,
    budget: int,
) -> LiveRun:
    """Start a run, or go on with the one whose checkpoint it is; see `Workload.start`."""
    records, of_files = _records(stream, spark, files_per_batch)
    folder = Folder(checkpoint).make()
    clock = Clock(stream.lateness_us, _interval_us("ahead", ahead))
    settings = Settings(
        name or folder.name,
        clock,
        _interval_us("retain", retain) if retain is not None else 0,
        budget,
        _BUCKETS_PER_CORE * spark.sparkContext.defaultParallelism,
        dead_letters,
        early,
    )
    engine = Engine(stream, spark, folder, as_sinks(sink), settings)
    if engine.commit.batch >= 0 and not (folder / "spark").has("offsets"):
        raise LogError(f"'{checkpoint}' has a log, but Spark's own checkpoint in it is gone; begin a new run")
    offsets = folder / "spark" / "offsets"
    if not offsets.names():
        # Spark refuses to begin where it was once killed while it wrote the first of these.
        offsets.sweep()
    started, replan_s = _trigger(trigger), _interval_us("replan", replan) / 1e6
    desk = Desk(stream, spark, budget, functions)
    engine.resume()
    with ThreadPoolExecutor(1) as threads:
        # Spark takes its time to begin; the first micro-batch waits for the plan.
        planning = threads.submit(_version, engine, desk, queries)
        run = LiveRun(engine, desk, planning, Watcher(folder), parse, metrics_port, replan_s)
        run.begin(records, of_files, (folder / "spark").for_spark, started)
        try:
            planning.result()
        except Exception:
            run.stop()
            raise
    run.listen(Controller(run, folder, watch, read_texts))
    return run


def _version(engine: Engine, desk: Desk, queries: Mapping[str, Query]) -> Version:
    """The version to go on with. What is asked for now and was not the last time joins, and the other way round.

    Queries that came, or went, while the run was going are not affected: a restart does not undo them.
    """
    asked = {name: query.source.original.text.strip() for name, query in queries.items()}
    before = engine.versions.latest()
    if before is None:
        version = desk.first(queries)
    else:
        version = before
        changed = [name for name, text in asked.items() if before.asked.get(name) != text]
        # First those that come: one query has to be there at all times.
        for name in changed:
            there = version.queries.get(name)
            if there is None:
                version = desk.with_query(version, queries[name])
            elif there.source.original.text.strip() != asked[name]:
                version = desk.replaced(version, queries[name])
        for name in before.asked:
            if name not in asked and name in version.queries:
                version = desk.without_query(version, name)
    if before is None or before.asked != asked:
        version = replace(version, asked=asked)
        engine.versions.put(version)
    return version


def _records(stream: Stream, spark: SparkSession, files_per_batch: int | None) -> tuple[DataFrame, bool]:
    """What Spark streams: records, or the names of files that workers read."""
    if not isinstance(stream.data, str):
        if not stream.data.isStreaming:
            raise StreamError(f"'{stream.name}' is a DataFrame that ends; use run, or spark.readStream to make it")
        if files_per_batch is not None:
            raise StreamError("files_per_batch is for a folder of Parquet; a DataFrame has options of its own")
        return stream.data, False
    reader = spark.readStream.format("binaryFile").schema(_FILES).option("recursiveFileLookup", "true")
    reader = reader.option("pathGlobFilter", "*.parquet")
    if files_per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_per_batch)
    # What is in a file is read only where it is asked for.
    return reader.load(stream.data).select("path"), True


def _trigger(text: str) -> dict[str, Any]:
    if text == "available now":
        return {"availableNow": True}
    _interval_us("trigger", text)
    return {"processingTime": text}


def _interval_us(what: str, text: str) -> int:
    try:
        return parse_interval_us(text)
    except ValueError as error:
        raise StreamError(f"{what}: {error}") from error
