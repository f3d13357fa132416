"""`headrace bench stream`: what is run, and how it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.table import Table

from headrace.bench.contest import Task
from headrace.bench.in_flink import run_flink
from headrace.bench.report import write_json
from headrace.bench.streaming import StreamBench, StreamReport, in_order, measure_latency
from headrace.cli.console import out, telling
from headrace.kernel.compiled import load_kernels
from headrace.machine import machine_memory_mb
from headrace.runtime.session import open_session

_RATE = 50_000


def bench_stream(
    task: Task, engines: Sequence[str], files_per_batch: int, seconds: int, scratch: Path, json_file: Path | None
) -> None:
    """Run the engines over the data of a task as a stream, and print what came of it."""
    latency = None
    with telling() as tell:
        tell("putting the files in the order of their names")
        task = replace(task, data=in_order(task.data.files, task.data, scratch / "in-order"))
        # Plain Spark has the states of all queries in its memory.
        conf = {"spark.driver.memory": f"{2 * machine_memory_mb() // 3}m"}
        with open_session(cores=task.cores, conf=conf) as spark:
            load_kernels()
            bench = StreamBench(task, spark, scratch, files_per_batch, tell)
            runs = bench.run(engines)
            if seconds and "headrace" in engines:
                tell(f"time to answers at {_RATE:,} records/s, for {seconds} s")
                latency = measure_latency(spark, task.questions, task.data, scratch, _RATE, seconds)
        if "flink" in engines:
            runs.append(run_flink(task, scratch, tell))
    report = StreamReport(task.data.rows, len(task.questions), task.cores, files_per_batch, tuple(runs), latency)
    _print(report)
    if json_file is not None:
        write_json(report, json_file)


def _print(report: StreamReport) -> None:
    title = f"{report.rows:,} records as a stream, {report.queries} queries, {report.cores} cores"
    table = Table("engine", "seconds", "records/s", "rows of answers", "to headrace", title=title)
    for run in report.runs:
        ratio = report.ratios.get(run.engine)
        shown = f"{run.seconds:.2f}", f"{report.rows / run.seconds:,.0f}", f"{run.rows_out:,}"
        table.add_row(run.engine, *shown, f"{ratio:.1f}x" if ratio is not None else "")
    out.print(table)
    if (latency := report.latency) is not None:
        out.print(
            f"from the end of a window to its answers, at {latency.records_per_second:,} records/s: "
            f"median {latency.median_s:.2f} s, at most {latency.most_s:.2f} s ({latency.windows} windows)"
        )
