"""Windows and intervals, in all of Spark's spellings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import QueryError
from headrace.query import parse_query
from headrace.query.interval import format_interval, parse_interval_us

MINUTE_US = 60_000_000


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("5 minutes", 5 * MINUTE_US),
        (" 5   MINUTES ", 5 * MINUTE_US),
        ("interval 90 seconds", 90_000_000),
        ("1 hour 30 minutes", 90 * MINUTE_US),
        ("1 week", 7 * 24 * 60 * MINUTE_US),
        ("1.5 seconds", 1_500_000),
        ("1 minute -30 seconds", 30_000_000),
        ("+1 minute", MINUTE_US),
        ("1 day 2 hours 3 minutes 4 seconds 5 milliseconds 6 microseconds", 93_784_005_006),
    ],
)
def test_interval_texts(text: str, us: int) -> None:
    assert parse_interval_us(text) == us


@pytest.mark.parametrize(
    "text", ["", "5", "5m", "5 mins", "PT5M", "00:05:00", "1 month", "1.5 minutes", "minutes"]
)
def test_texts_that_spark_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_interval_us(text)


@given(st.integers(min_value=-(10**15), max_value=10**15))
def test_intervals_are_read_back_as_they_were_written(us: int) -> None:
    assert parse_interval_us(format_interval(us)) == us


@pytest.mark.parametrize(
    ("call", "range_us", "slide_us", "offset_us"),
    [
        ("window(ts, '10 minutes')", 10, 10, 0),
        ("window(ts, '18 minutes', '15 minutes')", 18, 15, 0),
        ("window(ts, '15 minutes', '5 minutes', '2 minutes')", 15, 5, 2),
        ("window(ts, '15 minutes', '5 minutes', '-2 minutes')", 15, 5, -2),
        ("WINDOW(f.ts, 600000000)", 10, 10, 0),
        ("window(ts, 600000000L)", 10, 10, 0),
        ("window(ts, '10 minutes').start", 10, 10, 0),
        ("window(ts, r'10 minutes', ('5 minutes'), -60000000)", 10, 5, -1),
    ],
)
def test_calls(call: str, range_us: int, slide_us: int, offset_us: int) -> None:
    window = parse_query("q", f"SELECT count(*) FROM flows f GROUP BY {call}").window
    assert window is not None
    assert (window.time.sql, window.range_us, window.slide_us, window.offset_us) == (
        "ts",
        range_us * MINUTE_US,
        slide_us * MINUTE_US,
        offset_us * MINUTE_US,
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT window(ts, '5 minutes'), count(*) FROM t GROUP BY 1",
        "SELECT window(ts, '5 minutes') AS w, count(*) FROM t GROUP BY w",
        "SELECT window(ts, '5 minutes') AS window, count(*) FROM t GROUP BY window",
        "SELECT window(ts, '5 minutes').end, count(*) FROM t GROUP BY window(ts, '5 minutes', '5 minutes')",
        "SELECT window, window.start, window.end, count(*) FROM t GROUP BY window(ts, '5 minutes')",
        "SELECT window(ts, '300 seconds') AS w, count(*) FROM t GROUP BY ALL",
    ],
)
def test_ways_to_group_by_the_same_window(text: str) -> None:
    query = parse_query("q", text)
    assert query.shareable, query.obstacles
    assert query.window is not None
    assert query.window.sql == "window(ts, '5 minutes')"
    assert query.keys == ()


@pytest.mark.parametrize(
    ("call", "message", "underlined"),
    [
        ("window(ts, '5 mins')", "unknown unit 'mins'", "'5 mins'"),
        (
            "window(ts, INTERVAL 5 MINUTES)",
            "takes a text such as '10 minutes', not an INTERVAL",
            "INTERVAL 5 MINUTES",
        ),
        ("window(ts, '1 month')", "no fixed length", "'1 month'"),
        ("window(ts, '0 seconds')", "longer than zero", "'0 seconds'"),
        ("window(ts, '5 minutes', '6 minutes')", "slide longer than the range", "'6 minutes'"),
        ("window(ts, '5 minutes', '2 minutes', '3 minutes')", "offset must be shorter", "'3 minutes'"),
        ("window(ts)", "takes a time column, a range", "window(ts)"),
    ],
)
def test_windows_that_spark_refuses_are_errors_at_their_place(call: str, message: str, underlined: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_query("q", f"SELECT count(*)\nFROM t GROUP BY {call}")
    (problem,) = caught.value.problems
    assert message in problem.message
    assert problem.line == 2
    assert problem.source_line[problem.column - 1 :][: problem.width] == underlined
