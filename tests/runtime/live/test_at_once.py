"""Windows that are over with the micro-batch they came in: answered where records are read, without the log."""

from __future__ import annotations

import pytest

from headrace.errors import RunError
from headrace.runtime.live import intake
from headrace.runtime.live.run import LiveRun
from tests.runtime.live.feed import Feed, Record, at, counted, rows_of, wait_for

pytestmark = pytest.mark.spark

BY_KEY = "SELECT window.start AS at, k, count(*) AS n FROM s GROUP BY window(t, '1 minute'), k"
SOME = "SELECT window.start AS at, sum(v) AS total FROM s WHERE v >= 100 GROUP BY window(t, '1 minute')"
BY_SPARK = "SELECT window.start AS at, k, soundex(k) AS s FROM s GROUP BY window(t, '1 minute'), k"
LONGER = "SELECT window.start AS at, k, count(*) AS n FROM s GROUP BY window(t, '3 minutes'), k"
RECORDS: list[Record] = [(second, "ab"[second % 2], second) for second in range(0, 600, 5)]


def at_once(live: LiveRun) -> int:
    """Rows that were given without the log."""
    return sum(progress.given_at_once for progress in live.recent_progress)


def test_only_windows_that_go_on_pass_the_log(feed: Feed) -> None:
    for low in (0, 50):  # until 245 s, then until 495 s
        feed.add(*RECORDS[low : low + 50])
    live = feed.run({"by_key": BY_KEY, "some": SOME, "by_spark": BY_SPARK})
    assert feed.rows("by_key") == rows_of(counted(RECORDS, 60), 495, 60)
    totals = {
        start: sum(v for s, _, v in RECORDS if s is not None and start <= s < start + 60) for start in (120, 180)
    }
    assert feed.rows("some")[1:3] == [(at(start), total) for start, total in totals.items()]
    assert [(begin, key) for begin, key, _ in feed.rows("by_spark")] == [row[:2] for row in feed.rows("by_key")]
    # The fifth window is in both files; all others are not: seven of two keys, six of which `some` has rows of.
    assert at_once(live) == 14 + 6 + 14
    last = live.progress()
    assert last is not None
    assert last.log_rows > 0, "the ninth window is open"


def test_nobody_is_told_of_windows_that_the_log_has_in_part(feed: Feed) -> None:
    """A backfill begins after all windows that were answered at once: the log has no slices of them."""
    feed.add(*RECORDS[:30])  # until 145 s: of the first three minutes, two are over
    feed.run({"by_key": BY_KEY})
    with feed.start({"by_key": BY_KEY}, trigger="100 milliseconds") as live:
        live.add("longer", LONGER, backfill=True)
        feed.add(*RECORDS[30:])
        wait_for(live, len(RECORDS))
    whole = {start: keys for start, keys in counted(RECORDS, 180).items() if start >= 180}
    assert feed.rows("longer") == rows_of(whole, 595, 180)


def test_what_is_retained_is_in_the_log(feed: Feed) -> None:
    feed.add(*RECORDS)
    live = feed.run({"by_key": BY_KEY}, retain="1 hour")
    assert at_once(live) == 0
    assert feed.rows("by_key") == rows_of(counted(RECORDS, 60), 595, 60)


def test_longer_windows_of_the_same_slices_need_the_log(feed: Feed) -> None:
    feed.add(*RECORDS)
    live = feed.run({"by_key": BY_KEY, "longer": LONGER})
    assert len(live.plan.roots) == 1
    assert at_once(live) == 0
    assert feed.rows("longer") == rows_of(counted(RECORDS, 180), 595, 180)


def test_rows_that_memory_has_no_room_for_go_through_the_log(feed: Feed) -> None:
    feed.add(*RECORDS)
    live = feed.run({"by_key": BY_KEY}, budget=1)
    assert at_once(live) == 0
    assert feed.rows("by_key") == rows_of(counted(RECORDS, 60), 595, 60)


def test_a_file_that_tells_a_wrong_time(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_surely_latest", lambda reading, most_us: most_us)
    feed.add(*RECORDS)
    with pytest.raises(RunError, match="no record of the time that it says"):
        feed.run({"by_key": BY_KEY})
    assert not (feed.folder / "out").exists()
    monkeypatch.undo()
    feed.run({"by_key": BY_KEY})
    assert feed.rows("by_key") == rows_of(counted(RECORDS, 60), 595, 60)
