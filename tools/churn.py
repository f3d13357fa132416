"""Queries that come and go at full rate: `python -m tools.churn`.

The 22 NetFlow queries run over generated flows: while others come and go and, before and after that, undisturbed,
since what runs later finds more of Spark compiled. No answer of the 22 may change, every window that another query
gave must be the batch answer's, and the rate should hardly drop.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import pyarrow as pa
import pyarrow.parquet as pq
import typer
from pyspark.sql import SparkSession
from rich.console import Console

from headrace import Stream, Workload
from headrace.bench.question import Data, read_data
from headrace.bench.streaming import in_order
from headrace.bench.text import spark_text
from headrace.bench.workloads import TOPICS
from headrace.generate import FlowOptions, generate_flows
from headrace.kernel.compiled import load_kernels
from headrace.runtime.live.run import LiveRun
from headrace.runtime.session import open_session

console = Console(soft_wrap=True, highlight=False)
_LONG_AGO = 1_700_000_000
_MOST = 2
"""Queries that are there besides the usual ones, at most."""


@dataclass
class _Guests:
    """Queries that come and go."""

    live: LiveRun
    texts: dict[str, str]
    rng: random.Random
    changes: int
    seconds: list[float] = field(default_factory=list)
    there: list[str] = field(default_factory=list)
    came: list[str] = field(default_factory=list)

    def run(self, every_s: float, ended: threading.Event) -> None:
        """Change something now and then."""
        waiting = list(self.texts)
        while len(self.seconds) < self.changes and not ended.wait(every_s):
            begin = time.perf_counter()
            if self.there and (len(self.there) >= _MOST or not waiting or self.rng.random() < 0.5):
                self.live.remove(self.there.pop(self.rng.randrange(len(self.there))))
            elif waiting:
                name = waiting.pop()
                self.live.add(name, self.texts[name])
                self.there.append(name)
                self.came.append(name)
            self.seconds.append(time.perf_counter() - begin)


def main(
    rows: Annotated[int, typer.Option(min=100_000, help="records of the stream")] = 60_000_000,
    files: Annotated[int, typer.Option(min=2, help="files, a micro-batch each")] = 240,
    changes: Annotated[int, typer.Option(min=1, help="queries that come or go")] = 200,
    seed: Annotated[int, typer.Option(help="of the changes")] = 1,
) -> None:
    """Run all of it and compare."""
    with tempfile.TemporaryDirectory(prefix="headrace-churn-") as place, open_session() as spark:
        load_kernels()
        folder = Path(place)
        data = _make(folder, rows, files)
        topic = TOPICS["netflow"]
        usual = {q.name: spark_text(q, data) for q in topic.take(topic.usual)}
        # Short windows, so that a query that soon leaves has given some.
        guests = {
            q.name: re.sub(r"'\d+ minutes?'", "'30 seconds'", spark_text(q, data))
            for q in topic.take(topic.usual + changes)[topic.usual :]
        }
        first = in_order(data.files[:12], data, folder / "first")
        _run(spark, first, usual, {}, folder / "warm", 0, 0.0, seed)
        before_s, _ = _run(spark, data, usual, {}, folder / "calm", 0, 0.0, seed)
        console.print(f"undisturbed: {before_s:.1f} s, {rows / before_s:,.0f} records/s")
        every_s = 0.8 * before_s / changes
        busy_s, found = _run(spark, data, usual, guests, folder / "busy", changes, every_s, seed)
        console.print(f"with {len(found.seconds)} changes: {busy_s:.1f} s, {rows / busy_s:,.0f} records/s")
        after_s, _ = _run(spark, data, usual, {}, folder / "after", 0, 0.0, seed)
        console.print(f"undisturbed again: {after_s:.1f} s, {rows / after_s:,.0f} records/s")
        spent = sorted(found.seconds)
        console.print(
            f"changes take {100 * (1 - (before_s + after_s) / 2 / busy_s):.1f}% of the rate "
            f"({100 * (1 - before_s / busy_s):.1f}% by what was before, {100 * (1 - after_s / busy_s):.1f}% by "
            f"what was after); a change takes {spent[len(spent) // 2]:.3f} s (median), {spent[-1]:.3f} s at most"
        )
        wrong = [name for name in usual if not _rows(folder / "calm" / name).equals(_rows(folder / "busy" / name))]
        console.print(f"{len(usual) - len(wrong)} of {len(usual)} queries gave the same answers")
        checked, bad = _check_guests(spark, data, guests, found.came, folder / "busy")
        console.print(f"{len(found.came)} queries came; {checked} windows of theirs compared, {len(bad)} wrong")
        if wrong or bad:
            console.print(f"wrong: {wrong}, {bad[:10]}")
            raise typer.Exit(1)


def _make(folder: Path, rows: int, files: int) -> Data:
    """Flows in about so many files, in the order of time."""
    made = folder / "made"
    generate_flows(FlowOptions(rows=rows, profile="enterprise"), made)
    target = folder / "in"
    target.mkdir()
    step = -(-rows // files)
    for part in sorted(made.glob("*.parquet")):
        table = pq.read_table(part)
        for low in range(0, len(table), step):
            number = len(list(target.iterdir()))
            pq.write_table(table.slice(low, step), target / f"{number:06}.parquet")
            # Spark takes files in the order of their time.
            os.utime(target / f"{number:06}.parquet", (_LONG_AGO + number, _LONG_AGO + number))
    shutil.rmtree(made)
    return read_data(target, "flows", "ts")


def _run(
    spark: SparkSession,
    data: Data,
    texts: dict[str, str],
    guests: dict[str, str],
    out: Path,
    changes: int,
    every_s: float,
    seed: int,
) -> tuple[float, _Guests]:
    stream = Stream.parquet(str(data.path), data.stream, data.time)
    begin = time.perf_counter()
    live = Workload(texts).start(
        stream,
        sink=str(out),
        checkpoint=f"{out}-checkpoint",
        spark=spark,
        trigger="available now",
        files_per_batch=1,
    )
    found, ended = _Guests(live, guests, random.Random(seed), changes), threading.Event()
    thread = threading.Thread(target=found.run, args=(every_s, ended), daemon=True)
    thread.start()
    try:
        live.await_termination()
    finally:
        ended.set()
        thread.join()
    seconds = time.perf_counter() - begin
    live.stop()
    return seconds, found


def _rows(folder: Path) -> pa.Table:
    """All rows of a query, in an order that does not depend on files."""
    table = pa.concat_tables([pq.read_table(file) for file in sorted(folder.glob("*.parquet"))])
    table = table.replace_schema_metadata(None)
    return table.sort_by([(name, "ascending") for name in table.column_names]).combine_chunks()


def _check_guests(
    spark: SparkSession, data: Data, texts: dict[str, str], came: list[str], out: Path
) -> tuple[int, list[str]]:
    """Every window that a query gave against the batch answer."""
    there = [name for name in came if (out / name).is_dir()]
    if not there:
        return 0, []
    results = Workload({name: texts[name] for name in there}).run(
        Stream.parquet(str(data.path), data.stream, data.time), spark=spark
    )
    checked, bad = 0, []
    for name in there:
        given = spark.read.parquet(str(out / name))
        starts = [row.start for row in given.select("start").distinct().collect()]
        checked += len(starts)
        batch = results[name].where(results[name]["start"].isin(starts))
        if given.exceptAll(batch).limit(1).count() or batch.exceptAll(given).limit(1).count():
            bad.append(name)
    return checked, bad


if __name__ == "__main__":
    typer.run(main)
