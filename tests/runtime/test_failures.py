"""What goes wrong while a workload runs: a clear error or the right answer, and never half of an output."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headrace import Stream, Workload
from headrace.errors import HeadraceError, RunError, StreamError
from tests.harness.compare import compare
from tests.harness.result import Failure, collect, outcome

pytestmark = pytest.mark.spark

QUERIES = {"n": "SELECT name, count(*) AS n FROM t GROUP BY name", "sums": "SELECT sum(x) AS s FROM t"}


def table(rows: int, least: int = 0) -> pa.Table:
    first = datetime(2024, 3, 4, tzinfo=UTC)
    times = [first + timedelta(seconds=number) for number in range(rows)]
    return pa.table(
        {
            "ts": pa.array(times, pa.timestamp("us", "UTC")),
            "name": ["ab"[number % 2] for number in range(rows)],
            "x": pa.array(range(least, least + rows), pa.int64()),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files of a stream."""
    path = tmp_path / "t"
    path.mkdir()
    for number in range(2):
        pq.write_table(table(1000, least=1000 * number), path / f"part-{number}.parquet")
    return path


def write_answers(spark: SparkSession, path: Path, out: Path) -> None:
    """All that a user does, from the folder to the written answers."""
    stream = Stream.parquet(str(path), name="t", time="ts")
    workload = Workload(QUERIES, stream)
    assert len(workload.plan(stream, spark=spark).answers) == len(QUERIES)
    workload.run(stream, spark=spark).write(str(out))


def test_an_overflow_names_its_query_and_leaves_no_output(spark: SparkSession, folder: Path) -> None:
    pq.write_table(table(10, least=2**63 - 10), folder / "part-2.parquet")
    with pytest.raises(RunError, match=r"'sums', sum\(x\): the sum of integers exceeds 64 bits"):
        write_answers(spark, folder, folder.parent / "out")
    assert [path.name for path in folder.parent.iterdir()] == ["t"]


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def spoil_page(path: Path) -> None:
    """Garbage where the data of all columns lies; the footer stays."""
    group = pq.read_metadata(path).row_group(0)
    data = bytearray(path.read_bytes())
    for number in range(group.num_columns):
        chunk = group.column(number)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        data[start : start + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(data)


def replace_with_text(path: Path) -> None:
    path.write_text("this is no Parquet\n" * 100)


@pytest.mark.parametrize("harm", [truncate, spoil_page, replace_with_text])
@pytest.mark.parametrize("number", [0, 1])
def test_a_corrupt_file_is_named(
    spark: SparkSession, folder: Path, harm: Callable[[Path], None], number: int
) -> None:
    harm(folder / f"part-{number}.parquet")
    with pytest.raises((StreamError, RunError), match=rf"part-{number}\.parquet"):
        write_answers(spark, folder, folder.parent / "out")
    assert [path.name for path in folder.parent.iterdir()] == ["t"]


@pytest.mark.parametrize("number", [0, 1])
def test_a_column_that_one_file_lacks_is_what_spark_makes_of_it(
    spark: SparkSession, folder: Path, number: int
) -> None:
    path = folder / f"part-{number}.parquet"
    pq.write_table(pq.read_table(path).drop_columns("x"), path)
    spark.read.parquet(str(folder)).createOrReplaceTempView("t")
    expected = {name: outcome(lambda text=text: collect(spark.sql(text))) for name, text in QUERIES.items()}  # type: ignore[misc]
    if any(isinstance(answer, Failure) for answer in expected.values()):
        with pytest.raises(HeadraceError, match="x"):
            write_answers(spark, folder, folder.parent / "out")
        assert [path.name for path in folder.parent.iterdir()] == ["t"]
        return
    stream = Stream.parquet(str(folder), name="t", time="ts")
    results = Workload(QUERIES, stream).run(stream, spark=spark)
    for name, answer in expected.items():
        assert not isinstance(answer, Failure)
        compare(answer, collect(results[name]))


KILLED = """
import os, signal, sys
from pathlib import Path

from headrace import Stream, Workload
from headrace.runtime.session import start_session

def kill_all_workers_once(batches):
    for batch in batches:
        try:
            open(sys.argv[1], "x").close()
        except FileExistsError:
            yield batch
            continue
        others = Path(f"/proc/{os.getppid()}/task/{os.getppid()}/children").read_text().split()
        for worker in others:  # of this session's daemon
            os.kill(int(worker), signal.SIGKILL)

spark = start_session("killed", conf={"spark.master": "local[2, 4]"})
fields = "id", "timestamp_seconds(id) AS ts", "id % 7 AS k"
frame = spark.range(0, 20000, 1, 4).selectExpr(*fields)
stream = Stream(frame.mapInArrow(kill_all_workers_once, frame.schema), name="t", time="ts")
text = "SELECT k, sum(id) AS s, count(*) AS n FROM t GROUP BY k ORDER BY k"
answer = Workload({"q": text}, stream).run(stream, spark=spark)["q"].collect()
frame.createOrReplaceTempView("t")
assert Path(sys.argv[1]).exists(), "nothing was killed"
assert answer == spark.sql(text).collect(), answer
print("the same")
"""


def test_workers_that_are_killed_once_change_nothing(tmp_path: Path) -> None:
    """In a process of its own, because only a master with retries takes up the task again."""
    arguments = [sys.executable, "-c", KILLED.replace("sys.argv[1]", repr(str(tmp_path / "killed")))]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "the same", done.stderr[-3000:]


def write_to_a_full_disk(spark: SparkSession, folder: Path) -> Exception:
    """Write answers, then write them again where there is no room: the error of the second time.

    A limit on the size of files stands for the full disk: what exceeds it cannot be written.
    """
    rows = 30_000
    numbers = table(rows).append_column("r", pa.array(np.random.default_rng(1).random(rows)))
    (folder / "t").mkdir()
    pq.write_table(numbers, folder / "t" / "part-0.parquet")
    stream = Stream.parquet(str(folder / "t"), name="t", time="ts")
    texts = {"small": "SELECT count(*) AS n FROM t", "large": "SELECT x, sum(r) AS s FROM t GROUP BY x"}
    results = Workload(texts, stream).run(stream, spark=spark)
    results.write(str(folder / "out"))
    jvm = spark._jvm
    assert jvm is not None
    process = jvm.java.lang.ProcessHandle.current().pid()
    soft, hard = resource.prlimit(process, resource.RLIMIT_FSIZE)
    before = files(folder / "out")
    resource.prlimit(process, resource.RLIMIT_FSIZE, (64 << 10, hard))
    try:
        with pytest.raises((HeadraceError, Py4JJavaError)) as caught:
            results.write(str(folder / "out"), overwrite=True)
    finally:
        resource.prlimit(process, resource.RLIMIT_FSIZE, (soft, hard))
    assert files(folder / "out") == before
    error: Exception = caught.value
    return error


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_a_full_disk_leaves_the_output_as_it_was(spark: SparkSession, tmp_path: Path) -> None:
    write_to_a_full_disk(spark, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "t"]


def test_a_full_disk_is_an_error_that_names_the_query(spark: SparkSession, tmp_path: Path) -> None:
    error = write_to_a_full_disk(spark, tmp_path)
    assert isinstance(error, HeadraceError)
    assert "'large'" in str(error)
