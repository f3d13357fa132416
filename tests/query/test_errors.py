"""Wrong text: what is wrong, where, and what would be right."""

from __future__ import annotations

import pytest

from headrace.errors import Problem, QueryError
from headrace.query import Source, parse_query

COLUMNS = "ts srcaddr dstport bytes".split()


def problems(text: str, columns: list[str] | None = COLUMNS) -> tuple[Problem, ...]:
    with pytest.raises(QueryError) as caught:
        parse_query("q", text, columns=columns)
    return caught.value.problems


@pytest.mark.parametrize(
    ("text", "underlined", "message", "hint"),
    [
        ("SELECT sum(byts) FROM t", "byts", "unknown column 'byts'", "did you mean 'bytes'?"),
        ("SELECT sum(zzzzz) FROM t", "zzzzz", "unknown column", "the stream has: ts, srcaddr, dstport, bytes"),
        ("SELECT t.byts, count(*) FROM t GROUP BY 1", "t.byts", "unknown column 'byts'", "'bytes'"),
        ("SELECT count(*) FROM t AS s WHERE t.bytes > 1", "t.bytes", "unknown column 't'", "'ts'?"),
        ("SELECT summ(bytes) FROM t", "summ", "unknown function 'summ'", "did you mean 'sum'"),
        ("SELECT sum(bytes) AS b FROM t WHERE b > 1", "b", "WHERE sees only columns of the stream", "HAVING"),
        ("SELECT sum(bytes FROM t", "FROM", "expected ')' before 'FROM'", ""),
        ("SELECT count(*) FORM t", "FORM", "did not expect 'FORM'", "did you mean 'FROM'"),
        ("SELECT count(*) FROM t GROP BY srcaddr", "GROP", "did not expect 'GROP'", "did you mean 'GROUP'?"),
        ("SELCT count(*) FROM t", "SELCT", "did not expect 'SELCT'", "did you mean 'SELECT'?"),
        ("SELECT srcaddr,, count(*) FROM t", ",", "nothing follows this comma", ""),
        ("SELECT count(*), FROM t", ",", "nothing follows this comma", ""),
        ("SELECT dstport FROM t GROUP BY dstport, ORDER BY 1", ",", "nothing follows this comma", ""),
        ("SELECT count(*) FROM t WHERE", "WHERE", "something is missing after 'WHERE'", ""),
        ("SELECT count(*) FROM t GROUP BY", "GROUP BY", "GROUP BY names no key", "name the keys"),
        ("SELECT count(*) FROM t WHERE s = 'abc", "'", "no closing '", ""),
        ("SELECT count(*) -- it's all\nFROM t WHERE s = \"abc", '"', 'no closing "', ""),
        ("DROP TABLE t", "DROP TABLE t", "only SELECT", ""),
        ("SELECT 1; SELECT 2", "2", "expected one statement", ""),
    ],
)
def test_one_mistake(text: str, underlined: str, message: str, hint: str) -> None:
    (problem,) = problems(text)
    assert message in problem.message
    assert hint in problem.hint
    assert problem.source_line[problem.column - 1 :][: problem.width] == underlined


def test_all_unknown_names_of_a_query_are_reported() -> None:
    found = problems("SELECT sum(byts), avgg(bytes) FROM t WHERE dstprt = 1 GROUP BY srcadr")
    assert {problem.message for problem in found} == {
        "unknown column 'byts'",
        "unknown function 'avgg'",
        "unknown column 'dstprt'",
        "unknown column 'srcadr'",
    }


def test_the_report_shows_file_line_column_and_a_caret() -> None:
    source = Source("SELECT srcaddr,\n\tsum(byts)\nFROM t GROUP BY srcaddr", "queries/web.sql", first_line=4)
    with pytest.raises(QueryError) as caught:
        parse_query("web", source, columns=COLUMNS)
    assert str(caught.value) == (
        "queries/web.sql:5:6: unknown column 'byts'\n    \tsum(byts)\n    \t    ^^^^\n  did you mean 'bytes'?"
    )


@pytest.mark.parametrize(
    "text",
    [
        "SELECT timestampdiff(HOUR, ts, ts), count(*) FROM t GROUP BY 1",
        "SELECT transform(array(bytes), x -> x + dstport) AS y, count(*) FROM t GROUP BY y HAVING y[0] > 1",
        "SELECT aggregate(array(1), 0, (acc, x) -> acc + x), count(*) FROM t GROUP BY ALL",
        "SELECT window.start, count(*) FROM t GROUP BY window(ts, '1 minute') ORDER BY window.end",
        "SELECT count(*) FROM t WHERE filter(array(bytes), b -> b > 1)[0] > 1",
        "SELECT session_window.start, count(*) FROM t GROUP BY session_window(ts, '1 minute')",
        "SELECT EXTRACT(HOUR FROM ts) AS h, count(*) FROM t GROUP BY h",
        "SELECT date_add(DAY, 1, ts), count(*) FROM t GROUP BY ALL",
        "SELECT count(*) FROM t WHERE ts > current_date - INTERVAL 3 DAYS",
        "SELECT SRCADDR, Sum(T.Bytes) FROM T GROUP BY t.srcAddr",
        "SELECT struct(bytes AS b, dstport AS p) AS s, count(*) FROM t GROUP BY s",
        "SELECT x.bytes FROM u JOIN x ON u.a = x.a GROUP BY 1",
        "SELECT count(*) FROM t WHERE `bytes` > 1 AND ts >= TIMESTAMP '2020-01-01' AND dstport IN (1, 2)",
    ],
)
def test_names_that_are_right(text: str) -> None:
    parse_query("q", text, columns=COLUMNS)


def test_functions_of_the_session_are_known() -> None:
    query = parse_query("q", "SELECT mine(bytes) FROM t GROUP BY 1", columns=COLUMNS, functions=["mine"])
    assert not query.shareable
