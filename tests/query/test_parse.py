"""From text to values: each part of a query arrives where it belongs."""

from __future__ import annotations

import pytest

from headrace.errors import QueryError
from headrace.query import Expression, Query, Window, parse_query
from headrace.query.aggregate import Kind

COLUMNS = "ts srcaddr dstaddr dstport bytes packets url price size".split()


def parse(text: str, columns: list[str] | None = None) -> Query:
    query = parse_query("q", text, columns=columns)
    assert query.shareable, query.obstacles
    return query


def sqls(expressions: tuple[Expression, ...]) -> list[str]:
    return [expression.sql for expression in expressions]


def test_a_whole_query() -> None:
    query = parse(
        """
        SELECT window.start, srcaddr, sum(bytes) AS bytes -- octets
        FROM flows
        WHERE dstport = 443 AND bytes > 0
        GROUP BY window(ts, '15 minutes', '5 minutes'), srcaddr
        HAVING sum(bytes) > 1000000
        ORDER BY bytes DESC NULLS LAST, srcaddr
        LIMIT 10;
        """
    )
    assert query.stream == "flows"
    assert query.window == Window(Expression.parse("ts"), 900_000_000, 300_000_000)
    assert sqls(query.keys) == ["srcaddr"]
    assert query.where is not None
    assert query.where.sql == "dstport = 443 AND bytes > 0"
    assert [aggregate.sql for aggregate in query.aggregates] == ["sum(bytes)"]
    assert query.sql == (
        "SELECT window.start, srcaddr, sum(bytes) AS bytes\n"
        "FROM flows\n"
        "WHERE dstport = 443 AND bytes > 0\n"
        "GROUP BY window(ts, '15 minutes', '5 minutes'), srcaddr\n"
        "HAVING sum(bytes) > 1000000\n"
        "ORDER BY bytes DESC NULLS LAST, srcaddr\n"
        "LIMIT 10"
    )


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        ("SELECT count(*) FROM t", []),
        ("SELECT srcaddr, count(*) FROM t GROUP BY 1", ["srcaddr"]),
        ("SELECT bytes % 3 AS r, count(*) FROM t GROUP BY r", ["bytes % 3"]),
        ("SELECT bytes % 3 AS r, upper(url), max(size) FROM t GROUP BY ALL", ["bytes % 3", "upper(url)"]),
        ("SELECT count(*) FROM t GROUP BY srcaddr, SRCADDR", ["srcaddr"]),
        ("SELECT count(*) FROM t GROUP BY date_trunc('hour', ts), dstport IS NULL",
         ["date_trunc('hour', ts)", "dstport IS NULL"]),
        ("SELECT 7, count(*) FROM t GROUP BY 1", ["7 + 0"]),
    ],
)  # fmt: skip
def test_keys(text: str, keys: list[str]) -> None:
    assert sqls(parse(text).keys) == keys


def test_a_column_wins_over_an_alias_in_group_by() -> None:
    text = "SELECT substr(url, 1, 5) AS url, count(*) FROM t GROUP BY url"
    assert sqls(parse(text, COLUMNS).keys) == ["url"]
    assert sqls(parse(text).keys) == ["substr(url, 1, 5)"]


def test_the_streams_name_before_a_column_is_dropped() -> None:
    query = parse("SELECT f.srcaddr, sum(F.bytes) FROM flows AS f WHERE NOT f.size > 1 GROUP BY f.srcaddr")
    assert [output.sql for output in query.outputs] == ["srcaddr", "sum(bytes)"]
    assert query.where == Expression.parse("not size > 1")


@pytest.mark.parametrize(
    ("columns", "output", "key"),
    [
        (None, "sum(x)", "y.z"),
        (["x", "y"], "sum(x)", "y.z"),
        (["t", "y"], "sum(t.x)", "y.z"),
        (["t", "x", "y"], "sum(x)", "y.z"),
        (["t"], "sum(t.x)", "t.y.z"),
    ],
)
def test_a_struct_column_may_have_the_streams_name(columns: list[str] | None, output: str, key: str) -> None:
    """As Spark reads `t.x`: the stream's x where there is one, and else the field x of the stream's t."""
    query = parse("SELECT sum(T.x) FROM t GROUP BY t.y.z", columns)
    assert [each.sql.lower() for each in query.outputs] == [output]
    assert sqls(query.keys) == [key]


def test_a_struct_column_keeps_its_name() -> None:
    query = parse("SELECT max(st.start) FROM flows GROUP BY a.b")
    assert query.outputs[0].sql == "max(st.start)"
    assert sqls(query.keys) == ["a.b"]


@pytest.mark.parametrize(
    ("call", "name", "kind"),
    [
        ("count(*)", "count", Kind.DISTRIBUTIVE),
        ("count(DISTINCT a, b)", "count", Kind.HOLISTIC),
        ("max(DISTINCT a)", "max", Kind.DISTRIBUTIVE),
        ("count_if(a > 1)", "count_if", Kind.DISTRIBUTIVE),
        ("mean(a)", "avg", Kind.ALGEBRAIC),
        ("std(a)", "stddev_samp", Kind.ALGEBRAIC),
        ("variance(a)", "var_samp", Kind.ALGEBRAIC),
        ("corr(a, b)", "corr", Kind.ALGEBRAIC),
        ("every(a)", "bool_and", Kind.DISTRIBUTIVE),
        ("ANY(a)", "bool_or", Kind.DISTRIBUTIVE),
        ("some(a)", "bool_or", Kind.DISTRIBUTIVE),
        ("bit_xor(a)", "bit_xor", Kind.DISTRIBUTIVE),
        ("min_by(a, b)", "min_by", Kind.DISTRIBUTIVE),
        ("percentile_cont(0.5) WITHIN GROUP (ORDER BY a)", "percentile", Kind.HOLISTIC),
        ("approx_percentile(a, array(0.5, 0.9), 100)", "percentile_approx", Kind.HOLISTIC),
        ("median(a)", "median", Kind.HOLISTIC),
        ("mode(a)", "mode", Kind.HOLISTIC),
        ("approx_top_k(a, 5)", "approx_top_k", Kind.HOLISTIC),
        ("approx_count_distinct(a)", "approx_count_distinct", Kind.HOLISTIC),
        ("collect_set(a)", "collect_set", Kind.HOLISTIC),
        ("array_agg(a)", "collect_list", Kind.ORDER_DEPENDENT),
        ("first(a) IGNORE NULLS", "first", Kind.ORDER_DEPENDENT),
        ("any_value(a)", "any_value", Kind.ORDER_DEPENDENT),
    ],
)
def test_aggregates(call: str, name: str, kind: Kind) -> None:
    (aggregate,) = parse(f"SELECT {call} AS x FROM t").aggregates
    assert (aggregate.function.name, aggregate.kind, aggregate.sql) == (name, kind, call)


def test_aggregates_in_expressions_filters_and_clauses_are_found_once() -> None:
    query = parse(
        "SELECT sum(price * size) / SUM(size) AS vwap, count(*) FILTER (WHERE size >= 100) FROM t "
        "HAVING sum( Size ) > 5 ORDER BY max(price)"
    )
    assert [aggregate.sql for aggregate in query.aggregates] == [
        "sum(price * size)",
        "SUM(size)",
        "count(*) FILTER (WHERE size >= 100)",
        "max(price)",
    ]
    assert query.aggregates[2].filter == Expression.parse("size >= 100")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("sum( a )", "SUM(a)", True),
        ("a /* why */ + b", "A + `b`", True),
        ("'a'", "'A'", False),
        ("`null`", "null", False),
        ("`current_date`", "current_date", False),
        ("a + 10L", "a + 10l", True),
        ("a + 10L", "a + 10", False),
        ("x'1F'", "x'1E'", False),
    ],
)
def test_equality_of_expressions(one: str, other: str, equal: bool) -> None:
    assert (Expression.parse(one) == Expression.parse(other)) is equal


def test_text_stays_as_written_where_sqlglot_would_change_it() -> None:
    outputs = [
        "percentile_cont(0.5) WITHIN GROUP (ORDER BY size DESC)",
        "sum(price::int)",
        "sum(TRY_CAST(url AS INT))",
        "count_if(url <=> 'x')",
        "sum(2.5BD * size)",
        "max(date_trunc('hour', ts))",
    ]
    query = parse(f"SELECT {', '.join(outputs)} FROM t")
    assert [output.sql for output in query.outputs] == outputs


def test_comments_do_not_swallow_what_follows() -> None:
    query = parse("SELECT sum(a -- first\n + b) /* two\nlines */ AS s FROM t -- end")
    assert query.outputs[0].sql == "sum(a + b) AS s"


@pytest.mark.parametrize("end", [";", " ;\n", ";\n-- '90 seconds", "; /* ; */ ;", "\n-- the end"])
def test_what_may_end_a_query(end: str) -> None:
    assert parse(f"SELECT count(*) FROM t{end}").text == "SELECT count(*) FROM t"


def test_comments_stand_anywhere() -> None:
    text = "SELECT a, 'x -- y' AS s, count(*) FROM t GROUP /* one /* two */ ` */ BY -- it's\n a ORDER/**/BY a"
    assert parse(text).sql == "SELECT a, 'x -- y' AS s, count(*)\nFROM t\nGROUP BY a\nORDER BY a"


def test_hints_are_left_out() -> None:
    assert parse("SELECT /*+ COALESCE(1) */ count(*) FROM t", COLUMNS).sql == "SELECT count(*)\nFROM t"


def test_values_are_frozen_and_hashable() -> None:
    text = "SELECT a, sum(b) FROM t GROUP BY a"
    assert parse(text) == parse(text)
    assert hash(parse(text)) == hash(parse(text))
    with pytest.raises(AttributeError):
        parse(text).name = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("clauses", "where", "having"),
    [
        ("GROUP BY a HAVING a = 1", "a = 1", None),
        (
            "WHERE b OR c GROUP BY a HAVING n > 5 AND (a = 1 AND k < 3)",
            "(b OR c) AND (a = 1) AND ((a) < 3)",
            "n > 5",
        ),
        ("WHERE b GROUP BY a % 3 HAVING A%3 = 1 AND count(*) > 1", "(b) AND (A%3 = 1)", "count(*) > 1"),
        ("GROUP BY a HAVING a = 1 OR n > 5", None, "a = 1 OR n > 5"),
        ("GROUP BY a, b HAVING max(b) > 1 AND a + 1 IN (1, 2)", "a + 1 IN (1, 2)", "max(b) > 1"),
        (
            "GROUP BY a, window(ts, '1 hour') HAVING window.start > '2024-01-01'",
            None,
            "window.start > '2024-01-01'",
        ),
    ],
)
def test_conditions_on_keys_in_having_choose_records(clauses: str, where: str | None, having: str | None) -> None:
    query = parse(f"SELECT a AS k, count(*) AS n FROM t {clauses}")
    assert query.where == (where and Expression.parse(where))
    assert query.having == (having and Expression.parse(having))


def test_in_having_a_key_goes_before_an_alias_of_its_name() -> None:
    query = parse("SELECT count(*) AS size FROM t GROUP BY size HAVING size > 1", COLUMNS)
    assert (query.where, query.having) == (Expression.parse("size > 1"), None)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT a, count(*) FROM t JOIN u ON t.x = u.x GROUP BY a", "join"),
        ("SELECT count(*) FROM t, u", "join"),
        ("SELECT count(*) FROM (SELECT * FROM t)", "subquery or table function in FROM"),
        ("SELECT count(*) FROM t WHERE x IN (SELECT y FROM u)", "a subquery"),
        ("SELECT count(*) FROM t WHERE x > (SELECT max(y) FROM u)", "a subquery"),
        ("WITH u AS (SELECT 1) SELECT count(*) FROM u", "WITH"),
        ("SELECT count(*) FROM t UNION ALL SELECT 1", "set operation"),
        ("SELECT session_window(ts, '5 minutes'), count(*) FROM t GROUP BY 1", "session window"),
        ("SELECT a, sum(count(*)) OVER (ORDER BY a) FROM t GROUP BY a", "window function"),
        ("SELECT rank() OVER w FROM t WINDOW w AS (ORDER BY a)", "WINDOW clause"),
        ("SELECT histogram_numeric(a, 5) FROM t", "aggregate histogram_numeric()"),
        ("SELECT listagg(a, ',') FROM t", "aggregate listagg()"),
        ("SELECT my_sum(a) FROM t GROUP BY b", "user-defined function my_sum()"),
        ("SELECT a, count(*) FROM t GROUP BY CUBE (a, b)", "CUBE"),
        ("SELECT a, count(*) FROM t GROUP BY GROUPING SETS ((a), ())", "GROUPING SETS"),
        ("SELECT DISTINCT a, count(*) FROM t GROUP BY a", "DISTINCT"),
        ("SELECT a FROM t", "no aggregate"),
        ("SELECT * FROM t GROUP BY ALL", "SELECT *"),
        ("SELECT count(*) FROM t WHERE rand() < 0.1", "rand()"),
        ("SELECT count(*) FROM t WHERE ts > current_timestamp", "current time"),
        ("SELECT count(*) FROM t WHERE ts > Current_Date", "current time"),
        ("SELECT max(ts - localtimestamp) FROM t", "current time"),
        ("SELECT count(*) FROM t GROUP BY current_time > x", "current time"),
        ("SELECT count(*) FROM t HAVING max(x) < `localtime`", "current time"),
        ("SELECT count(*) FROM t WHERE x > localtime()", "localtime()"),
        ("SELECT max(unix_timestamp() - x) FROM t", "unix_timestamp()"),
        ("SELECT count(*) FROM t LATERAL VIEW explode(xs) AS x", "LATERAL VIEW"),
        ("SELECT count(*) FROM t TABLESAMPLE (10 PERCENT)", "TABLESAMPLE"),
        ("SELECT count(*) FROM t |> WHERE a > 1", "pipe"),
        ("SELECT count(*) FROM t WHERE window(ts, '1 hour').start > '2020-01-01'", "window() other than"),
        ("SELECT hour(window(ts, '1 hour').start), count(*) FROM t GROUP BY 1", "window() other than"),
        ("SELECT sum(a) FROM t LIMIT 0", "a LIMIT other than a number above 0"),
        ("SELECT sum(a) FROM t LIMIT 2 - 2", "a LIMIT other than a number above 0"),
        ("SELECT a, count(*) FROM t GROUP BY a HAVING (1 = 0) AND a > 1", "a constant in HAVING"),
    ],
)
def test_obstacles(text: str, reason: str) -> None:
    query = parse_query("q", text)
    assert not query.shareable
    assert any(reason in obstacle.reason for obstacle in query.obstacles), query.obstacles
    assert query.sql == text


@pytest.mark.parametrize("word", ["current_time", "localtimestamp", "LocalTime"])
def test_the_current_time_is_a_column_where_the_stream_has_one(word: str) -> None:
    text = f"SELECT max({word}) FROM t"
    assert not parse_query("q", text, columns=COLUMNS).shareable
    assert parse_query("q", text, columns=[*COLUMNS, word.lower()]).shareable
    assert parse_query("q", f"SELECT max(t.{word}) FROM t").shareable
    with pytest.raises(QueryError, match="unknown column"):
        parse_query("q", f"SELECT max(t.{word}) FROM t", columns=COLUMNS)


def test_unix_time_of_a_column_is_shared() -> None:
    assert parse_query("q", "SELECT max(unix_timestamp(url)) FROM t", columns=COLUMNS).shareable


def test_an_output_that_refers_to_another_is_not_shared() -> None:
    text = "SELECT sum(bytes) AS b, b / 2 AS half FROM t"
    assert not parse_query("q", text, columns=COLUMNS).shareable
    assert parse_query("q", text, columns=[*COLUMNS, "b"]).shareable


@pytest.mark.parametrize("call", ["array(NULL)", "array()", "map()", "struct(NULL)", "ARRAY (date)"])
def test_a_call_is_no_type(call: str) -> None:
    query = parse_query("q", f"SELECT count(*) FROM t WHERE {call} < x")
    assert query.where == Expression.parse(f"{call} < x")
