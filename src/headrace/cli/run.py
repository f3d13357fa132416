"""`headrace run`: the answers of a workload, in the terminal and as files."""

from __future__ import annotations

import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Annotated, cast, get_args

import typer

from headrace.cli.console import (
    Debug,
    check_known,
    counting,
    err,
    out,
    spark_session,
    wait_for_kernels,
    waiting,
)
from headrace.cli.inputs import load_inputs
from headrace.cli.show import answer_table
from headrace.errors import OutputError
from headrace.runtime.prepare import BUDGET_BYTES
from headrace.runtime.results import Format, Results
from headrace.workload import Workload

Queries = Annotated[
    Path, typer.Argument(help="A folder of *.sql files, or one file with '-- name: ...' before each query.")
]
StreamPath = Annotated[str, typer.Option("--stream", help="The stream: a Parquet file or a folder of them.")]
Name = Annotated[
    str | None,
    typer.Option("--name", help="The stream's name after FROM. [default: the one that the queries use]"),
]
Time = Annotated[
    str | None, typer.Option("--time", help="The stream's time column. [default: its only timestamp column]")
]
Cores = Annotated[int | None, typer.Option("--cores", min=1, help="Cores to use. [default: all]")]
TimeZone = Annotated[str, typer.Option("--time-zone", help="The session's time zone.")]
Memory = Annotated[int, typer.Option("--memory", min=1, help="MiB for groups in each worker.")]
MEMORY_MB = BUDGET_BYTES >> 20


def run(
    queries: Queries,
    stream: StreamPath,
    time_column: Time = None,
    name: Name = None,
    out_folder: Annotated[
        Path | None, typer.Option("--out", help="Write the answers below this folder, one folder per query.")
    ] = None,
    format_: Annotated[str, typer.Option("--format", help="parquet, csv or json.")] = "parquet",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace what is in --out.")] = False,
    show: Annotated[int, typer.Option("--show", min=0, help="Rows to print per query; 0 prints none.")] = 10,
    cores: Cores = None,
    time_zone: TimeZone = "UTC",
    memory: Memory = MEMORY_MB,
    profile: Annotated[
        bool, typer.Option("--profile", help="Print the plan with the rows and seconds of each node.")
    ] = False,
    debug: Debug = False,
) -> None:
    """Run all queries over a stream and show their answers.

    Example: headrace run examples/netflow/queries --stream data/flows --time ts --out results
    """
    check_known(format_, get_args(Format), "--format")
    if out_folder is not None and out_folder.exists() and not overwrite:
        # Said before anything is computed; `Results.write` makes sure of it again.
        raise OutputError(f"'{out_folder}' is there already; choose another folder, or add --overwrite")
    workload, source = load_inputs(queries, stream, name, time_column)
    with tempfile.TemporaryDirectory(prefix="headrace-") as scratch:
        # The answers are kept as Parquet in any case: rows to show are then read, not computed again.
        kept = out_folder if out_folder is not None and format_ == "parquet" else Path(scratch, "answers")
        with spark_session(cores, time_zone) as spark:
            wait_for_kernels()
            begin = time.perf_counter()
            with waiting(f"one pass for {len(workload)} queries ..."):
                results = workload.run(source, spark=spark, budget=memory << 20)
            if profile:
                err.print(str(results.profile()), highlight=False, markup=False, soft_wrap=True)
            with counting("queries", len(workload)) as done:
                results.write(str(kept), overwrite=overwrite, progress=lambda _: done(1))
            seconds = time.perf_counter() - begin
            if out_folder is not None and kept != out_folder:
                answers = {query: partial(spark.read.parquet, str(kept / query)) for query in workload}
                Results(answers, spark).write(str(out_folder), format=cast(Format, format_), overwrite=overwrite)
        if show:
            _show(workload, kept, show, time_zone)
    place = f", written to {out_folder}" if out_folder is not None else ""
    plan = results.profile().plan
    beside = f" and {len(plan.beside)} by plain Spark beside it" if plan.beside else ""
    err.print(f"{len(plan.answers)} queries by one shared pass{beside}: {seconds:.1f} s{place}")


def _show(workload: Workload, folder: Path, rows: int, time_zone: str) -> None:
    for query in workload.values():
        out.print(answer_table(query, folder / query.name, rows, time_zone))
        out.print()
