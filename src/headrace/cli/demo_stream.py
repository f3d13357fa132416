"""`make demo-stream`: a generated feed that goes on, the 22 NetFlow queries on it, and what the run does, live."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer

from headrace.bench.question import read_data
from headrace.bench.soak import feed_files
from headrace.bench.text import spark_text
from headrace.bench.workloads import TOPICS
from headrace.cli.live import show_run
from headrace.generate import FlowOptions, generate_flows

_WINDOW = "10 seconds"


def main(
    rate: Annotated[int, typer.Option(min=100, help="records a second")] = 20_000,
    seconds: Annotated[float | None, typer.Option(min=1, help="how long; until Ctrl-C if left out")] = None,
) -> None:
    """Feed, run, show."""
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as place:
        folder = Path(place)
        generate_flows(FlowOptions(rows=4 * rate, profile="enterprise"), folder / "made")
        data = read_data(folder / "made", "flows", "ts")
        feed, queries = folder / "feed", folder / "queries"
        feed.mkdir()
        queries.mkdir()
        pq.write_table(pq.read_table(data.path).slice(0, 0), feed / "empty.parquet")
        topic = TOPICS["netflow"]
        for question in topic.take(topic.usual):
            text = spark_text(question, data).replace("'5 minutes'", f"'{_WINDOW}'")
            (queries / f"{question.name}.sql").write_text(text)
        ended = threading.Event()
        thread = threading.Thread(target=feed_files, args=(data, feed, rate, ended), daemon=True)
        command = [sys.executable, "-m", "headrace", "stream", str(queries), "--stream", str(feed), "--time", "ts"]
        command += ["--checkpoint", str(folder / "run"), "--out", str(folder / "windows"), "--watch"]
        with (folder / "run.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as run:
            thread.start()
            print(
                f"{rate:,} records a second into {feed}; queries in {queries}; windows go to {folder / 'windows'}"
            )
            print("the first results come after about 30 seconds: Spark starts, and windows have to end")
            try:
                _show(folder, run, seconds)
            except KeyboardInterrupt:
                print("ending ...")
            finally:
                ended.set()
                thread.join()
                run.terminate()
        files = sorted((folder / "windows").rglob("*.parquet"))
        print(f"{len(files)} files of answers, {sum(pq.read_metadata(file).num_rows for file in files):,} rows")


def _show(folder: Path, run: subprocess.Popen[bytes], seconds: float | None) -> None:
    until = None if seconds is None else time.monotonic() + seconds
    while not (folder / "run" / "progress.json").exists():
        if run.poll() is not None:
            raise SystemExit((folder / "run.log").read_text())
        time.sleep(0.2)
    show_run(folder / "run", every=1.0, until=until)


if __name__ == "__main__":
    typer.run(main)
