"""`make demo-stream`: a generated feed that goes on, the 22 NetFlow queries on it, and what the run does, live."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated

import pyarrow.parquet as pq
import typer

from headrace.bench.feed import Feed
from headrace.bench.workloads import TOPICS
from headrace.cli.live import show_run
from headrace.runtime.live import progress

_WINDOW = "10 seconds"


def main(
    rate: Annotated[int, typer.Option(min=100, help="records a second")] = 20_000,
    seconds: Annotated[float | None, typer.Option(min=1, help="how long; until Ctrl-C if left out")] = None,
) -> None:
    """Feed, run, show."""
    with tempfile.TemporaryDirectory(prefix="headrace-demo-") as place:
        folder = Path(place)
        feed = Feed.of_flows(folder, rate)
        queries = folder / "queries"
        queries.mkdir()
        for name, text in feed.texts(TOPICS["netflow"].questions, _WINDOW).items():
            (queries / f"{name}.sql").write_text(text)
        command = [sys.executable, "-m", "headrace", "stream", str(queries), "--stream", str(feed.folder)]
        command += ["--time", "ts", "--checkpoint", str(folder / "run")]
        command += ["--out", str(folder / "windows"), "--watch"]
        with (folder / "run.log").open("w") as log, subprocess.Popen(command, stdout=log, stderr=log) as run:
            print(f"{rate:,} records a second into {feed.folder}; queries in {queries}")
            print(f"windows go to {folder / 'windows'}")
            print("the first results come after about 30 seconds: Spark starts, and windows have to end")
            try:
                with feed:
                    _show(folder, run, seconds)
            except KeyboardInterrupt:
                print("ending ...")
            finally:
                run.terminate()
        files = sorted((folder / "windows").rglob("*.parquet"))
        print(f"{len(files)} files of answers, {sum(pq.read_metadata(file).num_rows for file in files):,} rows")


def _show(folder: Path, run: subprocess.Popen[bytes], seconds: float | None) -> None:
    until = None if seconds is None else time.monotonic() + seconds
    while not (folder / "run" / progress.FILE).exists():
        if run.poll() is not None:
            raise SystemExit((folder / "run.log").read_text())
        time.sleep(0.2)
    show_run(folder / "run", every=1.0, until=until)


if __name__ == "__main__":
    typer.run(main)
