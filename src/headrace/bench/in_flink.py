"""The questions as one statement set of Flink's, over the same records as text files.

Flink drops records that are late without a word, also where it reads files out of their order itself. So each
subtask has one file, in the order of time, that it cannot split; and the totals of all answers are compared with
those of the records.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pyarrow.parquet as pq

from headrace.bench import flink_job
from headrace.bench.check import compare_total, totalled
from headrace.bench.contest import Task, Tell
from headrace.bench.question import MINUTE_US, Measure, Question, measure_kind
from headrace.bench.streaming import LATENESS_S, StreamRun
from headrace.errors import BenchError, SetupError

PYTHON = "HEADRACE_FLINK_PYTHON"
"""A Python that has `apache-flink`, which needs other versions of what headrace needs."""
_KINDS = {"int": "BIGINT", "float": "DOUBLE", "text": "STRING", "time": "TIMESTAMP(3)"}
_MEMORY = "6g"


def run_flink(task: Task, scratch: Path, tell: Tell) -> StreamRun:
    """All questions, and before that the reading alone; raises `BenchError` where records are missing."""
    python = os.environ.get(PYTHON)
    if python is None and find_spec("pyflink") is None:
        raise SetupError(f"the benchmark needs Flink; set {PYTHON} to a Python that has apache-flink")
    tell("writing the records as text for Flink")
    _write_text(task, scratch / "flink-in")
    tell("flink: reading alone")
    scan_s = _job(task, scratch, [], python or "python")
    tell(f"flink: {task.data.rows:,} records, {len(task.questions)} queries")
    seconds = _job(task, scratch, task.questions, python or "python")
    rows = _check(task, scratch)
    tell(f"flink: {seconds:.1f} s, of which {scan_s:.1f} s reading, {rows:,} rows")
    return StreamRun("flink", seconds, rows, scan_s)


def _write_text(task: Task, folder: Path) -> None:
    """Each record to one of as many files as there are cores, in turns."""
    folder.mkdir(exist_ok=True)
    columns = task.columns
    sinks = [pa.CompressedOutputStream(str(folder / f"{n}.csv.gz"), "gzip") for n in range(task.cores)]
    options = csv.WriteOptions(include_header=False)
    for file in task.data.files:
        table = pq.read_table(file, columns=columns)
        for place, name in enumerate(columns):
            if task.data.kinds[name] == "time":
                times = pc.strftime(table[name].cast(pa.timestamp("us")), "%Y-%m-%d %H:%M:%S")
                table = table.set_column(place, name, times)
        for number, sink in enumerate(sinks):
            own = table.take(pa.array(range(number, len(table), task.cores), pa.int64()))
            csv.write_csv(own, sink, options)
    for sink in sinks:
        sink.close()


def _job(task: Task, scratch: Path, questions: Sequence[Question], python: str) -> float:
    data = task.data
    fields = [f"`{name}` {_KINDS[data.kinds[name]]}" for name in task.columns]
    source = (
        f"CREATE TABLE `{data.stream}` ({', '.join(fields)}, "
        f"WATERMARK FOR `{data.time}` AS `{data.time}` - INTERVAL '{LATENESS_S}' SECOND) "
        f"WITH ('connector' = 'filesystem', 'path' = '{(scratch / 'flink-in').as_uri()}', 'format' = 'csv')"
    )
    tables, inserts = [source], []
    for question in questions:
        outputs = [f"`{key}` {_KINDS[data.kinds[key]]}" for key in question.keys]
        outputs += [f"`{m.name}` {_KINDS[measure_kind(m, data.kinds)]}" for m in question.measures]
        place = (scratch / "flink-out" / question.name).as_uri()
        tables.append(
            f"CREATE TABLE `out_{question.name}` (`start` TIMESTAMP(3), {', '.join(outputs)}) "
            f"WITH ('connector' = 'filesystem', 'path' = '{place}', 'format' = 'csv')"
        )
        inserts.append(f"INSERT INTO `out_{question.name}` {_select(question, task)}")
    if not questions:
        tables.append(f"CREATE TABLE `nowhere` ({', '.join(fields)}) WITH ('connector' = 'blackhole')")
        inserts.append(f"INSERT INTO `nowhere` SELECT * FROM `{data.stream}`")
    settings = {
        "parallelism.default": str(task.cores),
        "taskmanager.numberOfTaskSlots": str(task.cores),
        "taskmanager.memory.process.size": _MEMORY,
        "table.local-time-zone": "UTC",
    }
    job = scratch / "flink.json"
    job.write_text(json.dumps({"settings": settings, "tables": tables, "inserts": inserts}))
    run = subprocess.run([python, flink_job.__file__, str(job)], capture_output=True, text=True, check=False)
    if run.returncode:
        raise BenchError(f"Flink failed:\n{run.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(run.stdout.strip().splitlines()[-1])
    return float(found["seconds"])


def _select(question: Question, task: Task) -> str:
    assert question.window is not None, "a stream's questions have windows"
    minutes = question.window.length_us // MINUTE_US
    outputs = ["window_start", *(f"`{key}`" for key in question.keys)]
    outputs += [f"{_call(measure)} AS `{measure.name}`" for measure in question.measures]
    stream = f"`{task.data.stream}`"
    records = f"(SELECT * FROM {stream} WHERE {question.where})" if question.where else f"TABLE {stream}"
    return (
        f"SELECT {', '.join(outputs)} FROM TABLE(TUMBLE({records}, "
        f"DESCRIPTOR(`{task.data.time}`), INTERVAL '{minutes}' MINUTES)) "
        f"GROUP BY window_start, window_end, {', '.join(f'`{key}`' for key in question.keys)}"
    )


def _call(measure: Measure) -> str:
    argument = "*" if measure.function == "count" and not measure.value else f"`{measure.value}`"
    return f"{measure.function}({argument})"


def _check(task: Task, scratch: Path) -> int:
    """The rows of all answers; all records must be in those of each question without a filter."""
    rows = 0
    columns = {measure.value for q in task.questions if (measure := totalled(q)) and measure.value}
    records = pq.read_table(task.data.path, columns=sorted(columns))
    for question in task.questions:
        place = scratch / "flink-out" / question.name
        names = ["start", *question.keys, *(measure.name for measure in question.measures)]
        options = csv.ReadOptions(column_names=names)
        files = [file for file in place.rglob("*") if file.is_file()]
        tables = [csv.read_csv(file, options) for file in files if file.stat().st_size]
        rows += sum(map(len, tables))
        if (measure := totalled(question)) is not None:
            found = sum(pc.sum(table[measure.name]).as_py() for table in tables)
            expected = pc.sum(records[measure.value]).as_py() if measure.value else task.data.rows
            compare_total("flink", question, measure, found, expected)
    return rows
