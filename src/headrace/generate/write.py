"""From chunks to a folder of Parquet files: several workers, bounded memory, no half files.

A worker makes the chunks of one file and writes each as a row group, so chunks never change hands; memory holds
one chunk per worker, however many rows there are. The workers are threads: numpy and pyarrow let go of the
interpreter lock in everything that takes time, and threads need no start-up and no copies.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from queue import SimpleQueue
from threading import Event

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.errors import GenerateError
from headrace.machine import core_count

CHUNKS_PER_FILE = 4
_COMPRESSION = "snappy"
_PART = re.compile(r"part-\d+\.parquet")  # Spark's files have more in their names, and are not ours to remove
STATIC = "_static"  # Spark and pyarrow pass over folders that begin with an underscore


@dataclass(frozen=True, slots=True)
class Generated:
    """What was written."""

    folder: Path
    rows: int
    files: int
    bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Layout:
    """How a stream lies in Parquet: `delta` columns as differences, all others through a dictionary.

    Differences suit integers of many values: a dictionary of them takes longer to build and is no smaller.
    """

    schema: pa.Schema
    delta: tuple[str, ...]

    def open(self, path: Path) -> pq.ParquetWriter:
        """A writer of one file. Without the Arrow schema, so that dictionary columns read back as text.

        Least and greatest values are kept for all columns but text, where they cost a third of the writing and
        would tell a reader nothing: every row group holds texts from the whole range.
        """
        is_text = {field.name: pa.types.is_dictionary(field.type) for field in self.schema}
        return pq.ParquetWriter(
            path,
            self.schema,
            compression=_COMPRESSION,
            use_dictionary=[name for name in self.schema.names if name not in self.delta],
            column_encoding=dict.fromkeys(self.delta, "DELTA_BINARY_PACKED"),
            dictionary_pagesize_limit=16 << 20,
            write_statistics=[name for name in self.schema.names if not is_text[name]],
            store_schema=False,
        )


Task = Callable[[], pa.Table]


@dataclass(frozen=True)
class _Run:
    """One run's folder and what its workers share: `events` carries rows made and files finished."""

    folder: Path
    layout: Layout
    events: SimpleQueue[int | Future[Path]] = field(default_factory=SimpleQueue)
    stopped: Event = field(default_factory=Event)

    def write_file(self, number: int, tasks: list[Task]) -> Path:
        """Make the chunks and write them, under a name that readers pass over until the file is whole."""
        path = self.folder / f"part-{number:05d}.parquet"
        unfinished = self.folder / f".{path.name}.tmp"
        with self.layout.open(unfinished) as writer:
            for task in tasks:
                if self.stopped.is_set():
                    return path
                table = task()
                writer.write_table(table, row_group_size=table.num_rows)
                self.events.put(table.num_rows)
        return unfinished.rename(path)


def write_stream(
    tasks: Iterator[Task],
    layout: Layout,
    folder: Path,
    *,
    static: Mapping[str, pa.Table] | None = None,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    overwrite: bool = False,
) -> Generated:
    """Write all chunks into the folder, and the static tables beside them.

    If anything fails, what this run has written is removed.
    """
    began = time.perf_counter()
    workers = core_count() if workers is None else workers
    if workers < 1:
        raise GenerateError(f"workers must be a whole number from 1 up, not {workers!r}")
    prepare_folder(folder, overwrite=overwrite)
    run = _Run(folder, layout)
    with _removed_on_failure(folder), ThreadPoolExecutor(workers) as pool:
        _write_static(folder, static or {})
        try:
            rows, files = _drive(run, pool, tasks, workers, progress or (lambda _: None))
        except BaseException:
            run.stopped.set()
            raise
    size = sum(path.stat().st_size for path in _parts(folder))
    return Generated(folder, rows, files, size, time.perf_counter() - began)


def _write_static(folder: Path, tables: Mapping[str, pa.Table]) -> None:
    for name, table in tables.items():
        (folder / STATIC).mkdir(exist_ok=True)
        pq.write_table(table, folder / STATIC / f"{name}.parquet", store_schema=False)


def _drive(
    run: _Run, pool: ThreadPoolExecutor, tasks: Iterator[Task], workers: int, progress: Callable[[int], None]
) -> tuple[int, int]:
    """Keep the workers busy, with one file waiting for each at the most."""
    rows = files = pending = 0
    done = False
    while not done or pending:
        while not done and pending < 2 * workers:
            if batch := list(islice(tasks, CHUNKS_PER_FILE)):
                pool.submit(run.write_file, files, batch).add_done_callback(run.events.put)
                files += 1
                pending += 1
            else:
                done = True
        if not pending:
            break
        event = run.events.get()
        if isinstance(event, int):
            rows += event
            progress(event)
        else:
            event.result()
            pending -= 1
    return rows, files


def prepare_folder(folder: Path, *, overwrite: bool) -> None:
    """Make the folder, or see that it is empty; with `overwrite`, remove what a generator wrote, nothing else."""
    if folder.exists() and not folder.is_dir():
        raise GenerateError(f"{folder} is a file; give a folder that is new or empty")
    folder.mkdir(parents=True, exist_ok=True)
    if not any(folder.iterdir()):
        return
    if not overwrite:
        raise GenerateError(f"{folder} is not empty; give a new folder, or overwrite=True to replace its files")
    ours = {*_written(folder), folder / STATIC}
    others = sorted(path.name for path in (*folder.iterdir(), *folder.glob(f"{STATIC}/*")) if path not in ours)
    if others:
        raise GenerateError(f"{folder} holds {others[0]!r}, which no generator wrote; give another folder")
    _remove(folder)


@contextlib.contextmanager
def _removed_on_failure(folder: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        _remove(folder)
        raise


def _parts(folder: Path) -> list[Path]:
    return [path for path in folder.glob("part-*.parquet") if _PART.fullmatch(path.name)]


def _written(folder: Path) -> list[Path]:
    return [*_parts(folder), *folder.glob(".part-*.parquet.tmp"), *folder.glob(f"{STATIC}/*.parquet")]


def _remove(folder: Path) -> None:
    for path in _written(folder):
        path.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # absent, or holds what is not ours
        (folder / STATIC).rmdir()
