"""Standing queries over a growing folder, through Spark."""

from __future__ import annotations

import json
import urllib.request
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from headrace import Stream, Workload
from headrace.errors import HeadraceError, LogError, OutputError, StreamError, WorkloadError
from headrace.runtime import worker
from headrace.runtime.live import emit, steps
from headrace.runtime.live.control import ask
from headrace.runtime.live.files import Folder
from headrace.runtime.live.sinks import ConsoleSink, SparkSink, WindowAnswer
from tests.harness.live import fuzz_live
from tests.runtime.live.feed import Feed, Record, at, counted, rows_of, wait_for

pytestmark = pytest.mark.spark

BY_KEY = "SELECT window.start AS at, k, count(*) AS n FROM s GROUP BY window(t, '1 minute'), k"
LONGER = "SELECT window.start AS at, k, count(*) AS n FROM s GROUP BY window(t, '3 minutes'), k"
SLIDING = "SELECT window.start AS at, k, count(*) AS n FROM s GROUP BY window(t, '2 minutes', '1 minute'), k"


def test_each_window_is_given_once_and_complete(feed: Feed) -> None:
    records: list[Record] = [(second, "ab"[second % 2], second) for second in range(0, 600, 7)]
    for low in range(0, len(records), 20):
        feed.add(*records[low : low + 20])
    live = feed.run({"by_key": BY_KEY, "longer": LONGER, "sliding": SLIDING})
    latest = max(second for second, _, _ in records if second is not None)
    assert feed.rows("by_key") == rows_of(counted(records, 60), latest, 60)
    assert feed.rows("longer") == rows_of(counted(records, 180), latest, 180)
    assert feed.rows("sliding") == rows_of(counted(records, 120, 60), latest, 120)
    last = live.progress()
    assert last is not None
    assert last.total_records == len(records)
    assert last.late == {}
    # A second start finds nothing new, and gives nothing again.
    feed.run({"by_key": BY_KEY, "longer": LONGER, "sliding": SLIDING})
    assert feed.rows("sliding") == rows_of(counted(records, 120, 60), latest, 120)


def test_folders_may_have_any_name(tmp_path: Path, spark: SparkSession) -> None:
    """Whoever takes a path for a URI, or a URI for a path, looks elsewhere."""
    (tmp_path / "1 %23 10%3A00").mkdir()
    feed = Feed(tmp_path / "1 %23 10%3A00", spark)
    by_spark = f"{BY_KEY} ORDER BY n LIMIT 1"
    queries = {"by_key": BY_KEY, "by_spark": by_spark}
    for records in ([(10, "a", 1)], [(70, "a", 1)], [(20, "a", 1), (130, "a", 1)]):
        feed.add(*records)
        feed.run(queries, dead_letters=str(feed.folder / "dead"))
    assert feed.rows("by_key") == feed.rows("by_spark") == [(at(0), "a", 1), (at(60), "a", 1)]
    assert pq.read_table(feed.folder / "dead").num_rows == 1
    assert [folder.name for folder in tmp_path.iterdir()] == [feed.folder.name]


@pytest.mark.parametrize(("least", "jobs"), [(1 << 13, 0), (0, 4)])
def test_few_rows_of_windows_take_no_task(feed: Feed, least: int, jobs: int) -> None:
    records: list[Record] = [(second, "ab"[second % 2], second) for second in range(0, 300, 7)]
    for low in range(0, 300, 60):
        feed.add(*(record for record in records if low <= (record[0] or 0) < low + 60))
    with (
        patch.object(emit, "on_tasks", side_effect=worker.on_tasks) as asked,
        patch.object(steps, "_LEAST_ROWS", least),
    ):
        feed.run({"by_key": BY_KEY})
    assert feed.rows("by_key") == rows_of(counted(records, 60), 294, 60)
    assert asked.call_count == jobs, "of five windows, one is still open"


def test_a_late_record_counts_for_open_windows_only(feed: Feed) -> None:
    """A slice that one query has finished is still open for a longer window."""
    first: list[Record] = [(10, "a", 1), (70, "a", 1)]
    late: list[Record] = [(20, "a", 1), (80, "a", 1)]
    last: list[Record] = [(200, "a", 1)]
    for records in (first, late, last):
        feed.add(*records)
    live = feed.run({"by_key": BY_KEY, "longer": LONGER}, dead_letters=str(feed.folder / "dead"))
    assert feed.rows("by_key") == [(at(0), "a", 1), (at(60), "a", 2)]
    assert feed.rows("longer") == [(at(0), "a", 4)]
    progress = live.progress()
    assert progress is not None
    assert progress.late == {"by_key": 1}
    (letter,) = pq.read_table(feed.folder / "dead").to_pylist()
    assert (letter["t"], letter["headrace_reason"], letter["headrace_late_for"]) == (at(20), "late", ["by_key"])


def test_lateness_keeps_windows_open(tmp_path: Path, spark: SparkSession) -> None:
    feed = Feed(tmp_path, spark, lateness="30 seconds")
    feed.add((10, "a", 1), (80, "a", 1))
    feed.add((20, "a", 1))
    feed.add((95, "a", 1))
    live = feed.run({"by_key": BY_KEY})
    assert feed.rows("by_key") == [(at(0), "a", 2)]
    progress = live.progress()
    assert progress is not None
    assert progress.watermark == at(65).isoformat()


def test_odd_times_are_set_aside_and_move_nothing(feed: Feed) -> None:
    feed.add((10, "a", 1), (None, "a", 1), (4e9, "a", 1))
    feed.add((20, "a", 1), (61, "a", 1))
    live = feed.run({"by_key": BY_KEY}, dead_letters=str(feed.folder / "dead"))
    assert feed.rows("by_key") == [(at(0), "a", 2)]
    progress = live.progress()
    assert progress is not None
    assert (progress.no_time, progress.ahead, progress.latest) == (1, 1, at(61).isoformat())
    letters = {row["headrace_reason"] for row in pq.read_table(feed.folder / "dead").to_pylist()}
    assert letters == {"no time", "ahead"}


def test_through_spark_as_at_the_source(feed: Feed, spark: SparkSession) -> None:
    """Any streaming DataFrame, an expression that only Spark knows, and a last step that only Spark can do."""
    for start in (0, 60, 120, 180):
        feed.add(*((start + second, "ab"[second // 10 % 2], second) for second in range(0, 60, 10)))
    frame = spark.readStream.schema("t timestamp, k string, v long").option("maxFilesPerTrigger", 1)
    stream = Stream(frame.parquet(str(feed.folder / "in")), "s", "t")
    text = (
        "SELECT window.start AS at, format_number(sum(v), 1) AS total FROM s "
        "WHERE soundex(k) = 'A000' GROUP BY window(t, '1 minute') HAVING sum(v) > 1 ORDER BY at LIMIT 1"
    )
    live = Workload({"total": text}).start(
        stream, sink=str(feed.folder / "out"), checkpoint=feed.checkpoint, spark=spark, trigger="available now"
    )
    live.await_termination()
    live.stop()
    # LIMIT holds inside each window.
    assert feed.rows("total") == [(at(start), "60.0") for start in (0, 60, 120)]


def test_columns_in_the_names_of_folders(feed: Feed) -> None:
    for day in (1, 2):
        feed.add((day, "a", 1), (day + 100, "b", 2))
        (file,) = (feed.folder / "in").glob("*.parquet")
        (feed.folder / "in" / f"day={day}").mkdir()
        file.rename(feed.folder / "in" / f"day={day}" / file.name)
    feed.run({"days": "SELECT day, count(*) AS n FROM s GROUP BY window(t, '1 minute'), day"}, files_per_batch=2)
    assert feed.rows("days") == [(1, 1), (2, 1)]


def test_queries_come_and_go_while_others_run(feed: Feed) -> None:
    records: list[Record] = [(second, "ab"[second % 2], second) for second in range(0, 900, 5)]
    feed.add(*records[:40])
    with feed.start({"by_key": BY_KEY}, trigger="100 milliseconds") as live:
        wait_for(live, 40)
        live.add("longer", LONGER)
        sums = "SELECT window.start AS at, k, sum(v) AS total FROM s GROUP BY window(t, '1 minute'), k"
        live.add("sums", sums)
        with pytest.raises(WorkloadError, match="nothing"):
            live.add("bad", "SELECT nothing, count(*) FROM s GROUP BY window(t, '1 minute'), nothing")
        with pytest.raises(WorkloadError, match="already"):
            live.add("longer", LONGER)
        with pytest.raises(WorkloadError, match="no query named 'other'"):
            live.remove("other")
        feed.add(*records[40:100])
        wait_for(live, 100)
        live.remove("by_key")
        feed.add(*records[100:])
        wait_for(live, len(records))
        assert sorted(live.queries) == ["longer", "sums"]
        assert "by_key" not in live.plan.explain()
    # `by_key` was there until the second file; `longer` begins with the first window after the first file.
    assert feed.rows("by_key") == rows_of(counted(records, 60), 495, 60)
    whole = {start: keys for start, keys in counted(records, 180).items() if start > 195}
    assert feed.rows("longer") == rows_of(whole, 895, 180)
    assert [row[0] for row in feed.rows("sums") if row[1] == "a"] == [at(start) for start in range(240, 840, 60)]
    total = sum(v for second, k, v in records if second is not None and 240 <= second < 300 and k == "a")
    assert feed.rows("sums")[0] == (at(240), "a", total)


def test_a_backfill_begins_with_what_is_kept(feed: Feed) -> None:
    records: list[Record] = [(second, "a", 1) for second in range(0, 420, 10)]
    for low in range(0, 42, 7):
        feed.add(*records[low : low + 7])
    feed.run({"by_key": BY_KEY}, retain="1 hour")
    with feed.start({"by_key": BY_KEY}, trigger="100 milliseconds", retain="1 hour") as live:
        live.add("longer", LONGER, backfill=True)
        live.add("later", LONGER)
        feed.add((425, "a", 1), (541, "a", 1))
        wait_for(live, 44)
    everything: list[Record] = [*records, (425, "a", 1), (541, "a", 1)]
    assert feed.rows("longer") == rows_of(counted(everything, 180), 541, 180)
    assert feed.rows("later") == []


def test_a_run_goes_on_with_other_queries(feed: Feed) -> None:
    feed.add((10, "a", 1), (70, "a", 1))
    feed.run({"by_key": BY_KEY, "longer": LONGER})
    feed.add((130, "a", 1))
    changed = BY_KEY.replace("count(*)", "sum(v + 1)")
    feed.run({"by_key": changed, "sliding": SLIDING})
    feed.add((190, "a", 1), (260, "b", 5))
    live = feed.run({"by_key": changed, "sliding": SLIDING})
    assert feed.rows("by_key") == [(at(0), "a", 1), (at(120), "a", 2), (at(180), "a", 2)]
    assert feed.rows("sliding") == [(at(120), "a", 2)]
    assert feed.rows("longer") == []
    assert sorted(live.queries) == ["by_key", "sliding"]


def test_a_restart_does_not_undo_what_changed_meanwhile(feed: Feed) -> None:
    feed.add((10, "a", 1))
    asked = {"by_key": BY_KEY, "sliding": SLIDING}
    with feed.start(asked, trigger="100 milliseconds") as live:
        wait_for(live, 1)
        live.add("longer", LONGER)
        live.remove("sliding")
    feed.add((190, "a", 1), (370, "a", 1))
    live = feed.run(asked)
    assert sorted(live.queries) == ["by_key", "longer"]
    assert feed.rows("longer") == [(at(180), "a", 1)]
    # What is asked for in other words is a change; so is what is not asked for any more.
    live = feed.run({"sliding": SLIDING.replace("AS n", "AS m")})
    assert sorted(live.queries) == ["longer", "sliding"]


def test_sinks(feed: Feed, capsys: pytest.CaptureFixture[str]) -> None:
    windows: list[WindowAnswer] = []
    frames: list[tuple[str, int, str]] = []

    def keep(query: str, frame: DataFrame, name: str) -> None:
        frames.append((query, frame.count(), name))

    for start in (0, 60, 120, 180):
        feed.add((start, "a", 1), (start + 59, "b", 2))
    feed.run({"by_key": BY_KEY}, sink=[windows.append, SparkSink(keep), ConsoleSink()], name="demo")
    assert [(w.run, w.query, w.start, w.end, w.table.num_rows, w.early) for w in windows] == [
        ("demo", "by_key", at(start), at(start + 60), 2, False) for start in (0, 60, 120)
    ]
    assert [(query, rows) for query, rows, _ in frames] == [("by_key", 2)] * 3
    assert len({name for _, _, name in frames}) == 3
    printed = capsys.readouterr().out
    assert "by_key  2024-03-04 12:01:00 to 12:02:00  2 rows" in printed


def test_early_answers_are_marked(feed: Feed) -> None:
    windows: list[WindowAnswer] = []
    feed.add((0, "a", 1), (70, "b", 1))
    feed.add((75, "b", 1), (130, "a", 1))
    feed.run({"by_key": BY_KEY}, sink=[windows.append, str(feed.folder / "out")], early=True)
    seen = [(window.start, window.early, window.table["n"].to_pylist()) for window in windows]
    assert seen == [(at(0), False, [1]), (at(60), True, [1]), (at(60), False, [2]), (at(120), True, [1])]
    assert feed.rows("by_key") == [(at(0), "a", 1), (at(60), "b", 2)]
    (early,) = (feed.folder / "out" / "_early").iterdir()
    assert pq.read_table(early)["at"].to_pylist() == [at(120)]


def test_requests_a_watched_folder_and_metrics(feed: Feed) -> None:
    queries = feed.folder / "queries"
    queries.mkdir()
    (queries / "by_key.sql").write_text(BY_KEY)
    feed.add((10, "a", 1))
    options = {"trigger": "100 milliseconds", "watch": queries, "metrics_port": 0}
    with feed.start({"by_key": BY_KEY}, **options) as live:
        checkpoint = Folder(feed.checkpoint)
        ask(checkpoint, {"do": "add", "name": "longer", "text": LONGER})
        assert sorted(live.queries) == ["by_key", "longer"]
        with pytest.raises(Exception, match="has no window"):
            ask(checkpoint, {"do": "add", "name": "endless", "text": "SELECT count(*) FROM s"})
        ask(checkpoint, {"do": "remove", "name": "longer"})
        (queries / "sliding.sql").write_text(SLIDING)
        (queries / "wrong.sql").write_text("SELECT FROM")
        (queries / "by_key.sql").unlink()
        until = 100
        while (sorted(live.queries), list(live.refused)) != (["sliding"], ["wrong"]) and until:
            live.await_termination(0.1)
            until -= 1
        assert sorted(live.queries) == ["sliding"]
        assert list(live.refused) == ["wrong"]
        feed.add((20, "a", 1))
        wait_for(live, 2)
        with urllib.request.urlopen(f"http://localhost:{live.metrics_port}/metrics") as page:
            text = page.read().decode()
    assert 'headrace_records_total{run="run"} 2' in text
    assert json.loads((feed.folder / "run" / "progress.json").read_text())[-1]["total_records"] == 2


def test_a_run_says_how_it_is(feed: Feed) -> None:
    feed.add((10, "a", 1), (70, "a", 1))
    feed.add((130, "a", 1))
    live = feed.start({"by_key": BY_KEY}, trigger="0 seconds")
    try:
        wait_for(live, 3)
        active = live.is_active
        assert live.exception() is None
        assert {"message", "isDataAvailable", "isTriggerActive"} <= live.status.keys()
    finally:
        live.stop()
    assert (active, live.is_active) == (True, False)
    assert live.exception() is None, "it was stopped"
    assert [progress.batch for progress in live.recent_progress] == [0, 1]
    assert live.recent_progress[-1] == live.progress()


@pytest.mark.parametrize("error", [OutputError("no room"), OSError("no room")])
def test_a_run_says_why_it_has_ended(feed: Feed, error: Exception) -> None:
    def fail(_: WindowAnswer) -> None:
        raise error

    feed.add((10, "a", 1), (70, "a", 1))
    live = feed.start({"by_key": BY_KEY}, sink=fail)
    with pytest.raises(HeadraceError, match="no room"):
        live.await_termination()
    assert not live.is_active
    assert "no room" in str(live.exception())
    live.stop()


def test_many_micro_batches_leave_few_partials(feed: Feed) -> None:
    """What is open for long is merged now and then, and what nobody needs goes."""
    for second in range(40):
        feed.add((second, "a", second), (second + 0.5, "b", second))
    feed.add((200, "a", 1))
    most = 0
    live = feed.run({"longer": LONGER, "by_key": BY_KEY})
    most = max(progress.log_partials for progress in live.recent_progress)
    assert most < 40
    assert feed.rows("longer") == [(at(0), "a", 40), (at(0), "b", 40)]
    assert len(list((feed.folder / "run" / "partials").iterdir())) <= 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT count(*) FROM s", "has no window"),
        ("SELECT window.start, window.start FROM s GROUP BY window(t, '1 minute')", "'start' cannot be written"),
        ("SELECT k, count(*) FROM s GROUP BY session_window(t, '1 minute'), k", "cannot run in a stream"),
        ("SELECT collect_list(k) FROM s GROUP BY window(t, '1 minute')", "cannot run in a stream"),
        ("SELECT count(*) FROM s GROUP BY window(t + INTERVAL 1 HOUR, '1 minute')", "the stream's time is t"),
    ],
)
def test_queries_that_cannot_stream(feed: Feed, text: str, message: str) -> None:
    feed.add((10, "a", 1))
    with pytest.raises(WorkloadError, match=message):
        feed.start({"q": text})


def test_wrong_starts(feed: Feed, spark: SparkSession) -> None:
    feed.add((10, "a", 1))
    stream = Stream(spark.read.parquet(str(feed.folder / "in")), "s", "t")
    with pytest.raises(StreamError, match="a DataFrame that ends"):
        Workload({"q": BY_KEY}).start(stream, sink="out", checkpoint=feed.checkpoint, spark=spark)
    with pytest.raises(StreamError, match="trigger"):
        feed.start({"q": BY_KEY}, trigger="now and then")
    with pytest.raises(TypeError, match="is no sink"):
        feed.start({"q": BY_KEY}, sink=7)
    feed.run({"q": BY_KEY})
    for file in sorted((feed.folder / "run" / "spark").rglob("*"), reverse=True):
        file.rmdir() if file.is_dir() else file.unlink()
    with pytest.raises(LogError, match="checkpoint"):
        feed.run({"q": BY_KEY})


def test_what_spark_had_begun_to_write_first_of_all(feed: Feed) -> None:
    """A run that was killed in this moment could not start again: Spark wants the folder to be empty then."""
    feed.add((10, "a", 1), (70, "a", 1))
    offsets = feed.folder / "run" / "spark" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / ".0.3f1c.tmp").write_text("v1")
    (offsets / "..0.3f1c.tmp.crc").write_text("crc")
    feed.run({"by_key": BY_KEY})
    assert feed.rows("by_key") == [(at(0), "a", 1)]


@pytest.mark.parametrize("seed", [100, 103, 106])
def test_random_streams(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    report = fuzz_live(spark, seed, 12, tmp_path)
    assert report.differences == ()
    assert report.queries


def test_the_plan_adapts_to_what_the_stream_shows(feed: Feed, spark: SparkSession) -> None:
    """Nothing is known of a DataFrame at first; the first micro-batch tells, and no answer changes."""
    texts = {
        f"q{number}": f"SELECT window.start AS at, {keys}, sum(v) AS total "
        f"FROM s GROUP BY window(t, '1 minute'), {keys}"
        for number, keys in enumerate(["k", "v % 3", "k, v % 3", "v % 5", "k, v % 5", "v % 3, v % 5"])
    }
    records: list[Record] = [(second / 4, "abc"[second % 3], second % 15) for second in range(2400)]
    frame = spark.readStream.schema("t timestamp, k string, v long").option("maxFilesPerTrigger", 1)
    stream = Stream(frame.parquet(str(feed.folder / "in")), "s", "t")
    feed.add(*records[:500])
    live = Workload(texts).start(
        stream, sink=str(feed.folder / "out"), checkpoint=feed.checkpoint, spark=spark, trigger="100 milliseconds"
    )
    wait_for(live, 500)
    for _ in range(100):
        progress = live.progress()
        assert progress is not None
        if "phantom" in live.plan.explain() and live.plan.estimate is not None:
            break
        live.await_termination(0.1)
    for low in range(500, 2400, 475):
        feed.add(*records[low : low + 475])
    wait_for(live, 2400)
    last = live.progress()
    live.stop()
    assert last is not None
    assert last.version > 1
    expected = Workload(texts).reference(feed.stream, spark=spark)
    for name in texts:
        given = expected[name].where(f"at < TIMESTAMP '{at(540):%Y-%m-%d %H:%M:%S}Z'")
        assert feed.rows(name) == sorted(_plain(given))


def _plain(frame: DataFrame) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in frame.toArrow().to_pylist()]
