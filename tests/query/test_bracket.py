"""Windows in brackets: what they mean, where they may stand, and what is said of wrong ones."""

from __future__ import annotations

import pytest

from headrace.errors import Problem, QueryError
from headrace.query import Query, Source, parse_query
from tests.harness.choices import Seeded
from tests.harness.windows import bracket

SECOND_US = 1_000_000
MINUTE_US = 60 * SECOND_US
COLUMNS = "ts symbol price volume".split()


def parse(text: str) -> Query:
    """A query as it is without its stream, and then with it."""
    assert parse_query("q", text).bracketed
    return parse_query("q", text, columns=COLUMNS, time="ts")


def refuse(text: str, columns: list[str] = COLUMNS) -> Problem:
    with pytest.raises(QueryError) as caught:
        parse_query("q", text, columns=columns, time="ts")
    (problem,) = caught.value.problems
    return problem


def underlined(problem: Problem) -> str:
    return problem.source_line[problem.column - 1 :][: problem.width]


@pytest.mark.parametrize(
    ("inside", "lengths_us"),
    [
        ("RANGE '18 min' SLIDE '15 min'", (18 * MINUTE_US, 15 * MINUTE_US, 0)),
        ("range '18 MINUTES' Slide '900 Secs' oFFset '-1 min'", (18 * MINUTE_US, 15 * MINUTE_US, -MINUTE_US)),
        ("RANGE '5 minutes'", (5 * MINUTE_US, 5 * MINUTE_US, 0)),
        ("RANGE '5 minutes' OFFSET '1 minute'", (5 * MINUTE_US, 5 * MINUTE_US, MINUTE_US)),
        ("RANGE '15 min' SLIDE '18 min'", (15 * MINUTE_US, 18 * MINUTE_US, 0)),
        ("RANGE '1 h' SLIDE '1 hr 30 mins'", (60 * MINUTE_US, 90 * MINUTE_US, 0)),
        ("RANGE '2 hrs' SLIDE '1.5 s'", (120 * MINUTE_US, 1_500_000, 0)),
        ("RANGE '1 sec' SLIDE '500 ms' OFFSET '7 us'", (SECOND_US, 500_000, 7)),
        ("RANGE \"90s\" SLIDE r'1min'", (90 * SECOND_US, MINUTE_US, 0)),
        ("RANGE 600000000 SLIDE 300000000L OFFSET -5", (10 * MINUTE_US, 5 * MINUTE_US, -5)),
        (
            "RANGE 'interval 1 week' -- of seven days\n SLIDE '1 day' /* ] */",
            (7 * 1440 * MINUTE_US, 1440 * MINUTE_US, 0),
        ),
    ],
)
def test_lengths(inside: str, lengths_us: tuple[int, int, int]) -> None:
    window = parse(f"SELECT sum(volume) FROM trades [{inside}]").window
    assert window is not None
    assert (window.range_us, window.slide_us, window.offset_us) == lengths_us
    assert window.time.sql == "ts"
    kinds = (window.overlapping, window.tumbling, window.hopping)
    assert kinds == (lengths_us[0] > lengths_us[1], lengths_us[0] == lengths_us[1], lengths_us[0] < lengths_us[1])


@pytest.mark.parametrize(
    "origin",
    [
        "trades [RANGE '5 min']",
        "trades[RANGE '5 min']",
        "trades t [RANGE '5 min']",
        "trades AS t [RANGE '5 min']",
        "trades [RANGE '5 min'] t",
        "trades [RANGE '5 min'] AS t",
        "`trades` -- [RANGE '6 min']\n[ RANGE '5 min' ]",
        "trades /* [ */ `t` [RANGE '5 min']",
    ],
)
def test_places(origin: str) -> None:
    query = parse(f"SELECT symbol, sum(volume) FROM {origin} WHERE price > 3 GROUP BY symbol")
    assert query.stream == "trades"
    assert query.sql == (
        "SELECT symbol, sum(volume)\nFROM trades\nWHERE price > 3\nGROUP BY window(ts, '5 minutes'), symbol"
    )


def test_the_text_stays_the_users_and_plain_is_sparks() -> None:
    text = "SELECT symbol, sum(volume) FROM trades [RANGE '18 min' SLIDE '15 min'] WHERE price > 3 GROUP BY symbol"
    query = parse(text)
    assert query.text == text
    assert query.plain == query.sql
    same = parse_query("q", query.sql, columns=COLUMNS)
    assert (same.window, same.keys, same.where, same.outputs) == (
        query.window,
        query.keys,
        query.where,
        query.outputs,
    )
    assert not same.bracketed
    assert same.plain == same.text


def test_a_hopping_window_is_a_column_of_the_relation() -> None:
    query = parse(
        "SELECT window.start, symbol, count(*) FROM trades t [RANGE '15 min' SLIDE '18 min'] GROUP BY t.symbol"
    )
    select, relation, grouping = query.sql.split("\n")
    assert select == "SELECT window.start, symbol, count(*)"
    assert "window(ts, '18 minutes') AS window FROM trades" in relation
    assert "ts < window.start + make_interval(0, 0, 0, 0, 0, 0, 900.000000)" in relation
    assert grouping == "GROUP BY window, symbol"


def test_without_a_stream_the_time_has_no_name_yet() -> None:
    window = parse_query("q", "SELECT count(*) FROM trades [RANGE '5 min']").window
    assert window is not None
    assert window.time.sql == "time"


@pytest.mark.parametrize(
    ("name", "written"),
    [("date", "date"), ("Time", "time"), ("event time", "`event time`"), ("null", "`null`"), ("case", "`case`")],
)
def test_the_time_equals_what_users_write(name: str, written: str) -> None:
    text = "SELECT count(*) FROM t {} GROUP BY {}"
    bracketed = parse_query("q", text.format("[RANGE '1 h']", "window"), time=name)
    assert bracketed.window == parse_query("q", text.format("", f"window({written}, '1 hour')")).window


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT window, count(*) FROM trades [RANGE '5 min']", []),
        ("SELECT window.start FROM trades [RANGE '5 min']", []),
        ("SELECT symbol, count(*) FROM trades [RANGE '5 min'] GROUP BY window, symbol", ["symbol"]),
        ("SELECT symbol, window.end, count(*) FROM trades [RANGE '5 min'] GROUP BY window.end, 1", ["symbol"]),
        ("SELECT date_format(window.start, 'HH') AS h, count(*) FROM trades [RANGE '5 min'] GROUP BY h", []),
        ("SELECT hour(window.start), symbol, count(*) FROM trades [RANGE '5 min'] GROUP BY ALL", ["symbol"]),
        ("SELECT count(*) FROM trades [RANGE '5 min'] HAVING window.start > '2024-01-01' ORDER BY window.end", []),
    ],
)
def test_the_window_is_named_window(text: str, keys: list[str]) -> None:
    query = parse(text)
    assert [key.sql for key in query.keys] == keys
    assert query.window is not None
    assert "window" not in (query.where.sql if query.where else "")


@pytest.mark.parametrize(
    "text",
    [
        "SELECT array(1, 2)[0], count(*) FROM trades WHERE array(price)[0] > 1 GROUP BY 1",
        "SELECT symbol, '[RANGE ''5 min'']' AS x, count(*) FROM trades -- [RANGE '5 min']\nGROUP BY 1, 2",
        "SELECT count(*) FROM trades WHERE price IS DISTINCT FROM array(1)[0]",
        "SELECT count_if(price IS DISTINCT FROM range[1]) FROM trades",
        "SELECT count(*) FROM trades WHERE extract(HOUR FROM times[0]) = 1",
        "SELECT count(*) FROM trades /* [RANGE '5 min'] */ WHERE symbol = '['",
    ],
)
def test_other_brackets_are_left_alone(text: str) -> None:
    query = parse_query("q", text)
    assert not query.bracketed
    assert query.window is None
    assert query.plain == query.text == text


@pytest.mark.parametrize(
    ("inside", "place", "message", "hint"),
    [
        ("[RANGE '5 mim']", "'5 mim'", "unknown unit 'mim'", ""),
        ("[RANGE '5']", "'5'", "'5' is no interval", ""),
        ("[RANGE '1 month']", "'1 month'", "no fixed length", ""),
        ("[RANGE '0 min']", "'0 min'", "range must be longer than zero", ""),
        ("[RANGE -'5 min']", "-'5 min'", "range must be longer than zero", ""),
        ("[RANGE '5 min' SLIDE '-1 s']", "'-1 s'", "slide must be longer than zero", ""),
        ("[RANGE '5 min' SLIDE '1 min' OFFSET '1 min']", "'1 min'", "offset must be shorter", ""),
        ("[RANGE 5 min]", "min", "did not expect 'min'", "write [RANGE"),
        ("[RANGE 1.5]", "1.5", "'1.5' is no duration", "in quotes"),
        ("[RANGE INTERVAL '5' MINUTE]", "INTERVAL", "'INTERVAL' is no duration", "in quotes"),
        ("[RANGE]", "RANGE", "no duration follows RANGE", "write [RANGE"),
        ("[RANGE '5 min' SLIDE]", "SLIDE", "no duration follows SLIDE", "write [RANGE"),
        ("[]", "]", "did not expect ']'", "write [RANGE"),
        ("[ROWS 5]", "ROWS", "did not expect 'ROWS'", "write [RANGE"),
        ("[SLIDE '5 min']", "SLIDE", "did not expect 'SLIDE'", "write [RANGE"),
        ("[RANEG '5 min']", "RANEG", "did not expect 'RANEG'", "did you mean 'RANGE'?"),
        ("[RANGE '5 min' SLIDES '5 min']", "SLIDES", "did not expect 'SLIDES'", "did you mean 'SLIDE'?"),
        ("[RANGE '5 min' OFFSET '1 s' SLIDE '5 min']", "SLIDE", "did not expect 'SLIDE'", ""),
        ("[RANGE '5 min'", "[", "no closing ]", "write [RANGE"),
        ("AS t WHERE price > 1 [RANGE '5 min']", "[RANGE", "right behind the stream's name", "FROM stream [RANGE"),
    ],
)
def test_wrong_brackets(inside: str, place: str, message: str, hint: str) -> None:
    problem = refuse(f"SELECT symbol, count(*)\nFROM trades {inside}\nGROUP BY symbol")
    assert problem.line == 2
    assert underlined(problem) == place
    assert message in problem.message
    assert hint in problem.hint


@pytest.mark.parametrize(
    ("text", "place", "message", "hint"),
    [
        (
            "SELECT count(*) FROM t [RANGE '5 min'] GROUP BY window(ts, '5 minutes')",
            "window(ts, '5 minutes')",
            "window() beside a window in brackets",
            "leave one of them out",
        ),
        (
            "SELECT window(ts, '5 minutes').start, count(*) FROM t [RANGE '5 min']",
            "window(ts, '5 minutes')",
            "window() beside a window in brackets",
            "window.start",
        ),
        (
            "SELECT symbol, rank() OVER (ORDER BY symbol) FROM t [RANGE '5 min'] GROUP BY symbol",
            "[RANGE '5 min']",
            "a window function (OVER)",
            "write GROUP BY window(ts, '5 minutes') instead",
        ),
        (
            "SELECT count(*) FROM t [RANGE '5 min' SLIDE '6 min'] JOIN u ON t.a = u.a",
            "[RANGE '5 min' SLIDE '6 min']",
            "a join inside the query",
            "no windows with gaps",
        ),
        (
            "SELECT n FROM (SELECT count(*) AS n FROM t [RANGE '5 min'])",
            "[RANGE '5 min']",
            "a subquery",
            "window(ts",
        ),
        (
            "SELECT max(window.end - ts) FROM t [RANGE '5 min']",
            "[RANGE '5 min']",
            "the window in an aggregate",
            "window(ts",
        ),
        ("SELECT count(*) FROM t [RANGE '5 min'] WHERE window.start > ts", "window.start", "WHERE sees only", ""),
        ("SELECT sum(volum) FROM t [RANGE '5 min']", "volum", "unknown column 'volum'", "did you mean 'volume'?"),
        ("SELECT sum(volume) FROM t [RANGE '5 min'] WHERE pricee > 1", "pricee", "unknown column", "'price'"),
        ("SELECT count(*) FROM t [RANGE '5 min'] GROP BY symbol", "GROP", "did not expect 'GROP'", "'GROUP'"),
    ],
)
def test_brackets_in_the_wrong_query(text: str, place: str, message: str, hint: str) -> None:
    problem = refuse(text)
    assert underlined(problem) == place
    assert message in problem.message
    assert hint in problem.hint
    assert problem.source_line == text


def test_a_column_named_window_leaves_no_name() -> None:
    problem = refuse("SELECT count(*) FROM t [RANGE '5 min']", [*COLUMNS, "Window"])
    assert underlined(problem) == "[RANGE '5 min']"
    assert "column 'window' of its own" in problem.message


def test_places_are_those_of_the_file() -> None:
    source = Source("SELECT sum(volume)\nFROM trades\n  [RANGE '5 min'\n   SLIDE '1 mn']", "queries/q.sql", 7)
    with pytest.raises(QueryError) as caught:
        parse_query("q", source)
    assert str(caught.value).startswith("queries/q.sql:10:10: unknown unit 'mn'")


def test_windows_with_gaps_are_offered_where_spark_has_none() -> None:
    problem = refuse("SELECT count(*) FROM t GROUP BY window(ts, '5 minutes', '6 minutes')")
    assert "[RANGE '...' SLIDE '...']" in problem.hint


def test_random_brackets_are_read() -> None:
    kinds = set()
    for seed in range(300):
        window = parse(f"SELECT count(*) FROM trades {bracket(Seeded(seed))}").window
        assert window is not None
        kinds.add((window.overlapping, window.tumbling, window.hopping, window.offset_us != 0))
    assert len(kinds) == 6
