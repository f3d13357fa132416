"""The strategies make what they promise: every construct, every edge of the data, and queries that Spark runs."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from pyspark.sql import SparkSession

from tests.harness.cases import Case, case_of_seed, cases, check, make_case
from tests.harness.choices import Choices
from tests.harness.compare import ResultsDiffer, compare
from tests.harness.data import MAX_MAGNITUDE, MAX_ROWS
from tests.harness.result import Failure, Outcome, Result, collect, outcome
from tests.harness.schemas import Kind, Role, needs_quotes
from tests.harness.tolerance import Mode
from tests.harness.windows import DURATIONS, REFUSED

SEEDS = range(160)


@cache
def sampled() -> list[Case]:
    return [case_of_seed(seed) for seed in SEEDS]


@cache
def texts() -> list[str]:
    """All queries, without comments and with single blanks, so that patterns stay readable."""
    found = []
    for case in sampled():
        for query in case.workload.values():
            text = re.sub(r"/\* nested .*? `\*/|/\*.*?\*/|--[^\n]*", " ", query.text, flags=re.DOTALL)
            found.append(re.sub(r"\s+", " ", text))
    return found


FUNCTIONS = """
    count count_if sum avg mean min max var_pop var_samp variance stddev std stddev_pop stddev_samp
    covar_pop covar_samp corr skewness kurtosis bool_and bool_or every any some bit_and bit_or bit_xor
    min_by max_by any_value first last approx_count_distinct approx_percentile percentile median mode
    collect_set collect_list date_trunc upper coalesce round try_divide nullif window
""".split()

CONSTRUCTS = {
    "count(*)": r"count\(\*\)",
    "count distinct": r"count\(DISTINCT [^,()]+\)",
    "count distinct of two": r"count\(DISTINCT [^,()]+, [^,()]+\)",
    "sum distinct": r"sum\(DISTINCT ",
    "filter on an aggregate": r"\) FILTER \(WHERE ",
    "filter on a distinct aggregate": r"\(DISTINCT [^()]*\) FILTER \(WHERE ",
    "sum of a product": r"sum\((DISTINCT )?\S+ \* \S+\)",
    "ratio of aggregates": r"sum\([^()]*\) / count\(",
    "difference of aggregates": r"max\([^()]*\) - min\(",
    "rounded mean": r"round\((avg|mean)\(",
    "window as a name": r"SELECT (.*, )?window(,| AS| FROM)",
    "window.start": r"\bwindow\.start\b",
    "window.end": r"\bwindow\.end\b",
    "window(...).start": r"window\([^()]*\)\.start",
    "window under an alias": r"window\([^()]*\) AS ",
    "tumbling window": r"window\([^(),]+, [^(),]+\)",
    "sliding window": r"window\([^(),]+, [^(),]+, [^(),]+\)",
    "window with a start": r"window\([^(),]+, [^(),]+, [^(),]+, [^(),]+\)",
    "duration of two units": r"'1 hour 30 minutes'",
    "duration with interval": r"'interval \d+ ",
    "duration in microseconds": r"window\([^(),]+, \d+",
    "group by ordinal": r"GROUP BY (.*, )?\d+\b",
    "group by all": r"GROUP BY ALL",
    "group by expression": r"GROUP BY (.*, )?upper\(",
    "group by alias": r"AS (m\d|total|n|Result) .*GROUP BY (.*, )?\1\b",
    "group by nothing": r"^(?!.*GROUP BY)",
    "key IS NULL": r"GROUP BY (.*, )?\S+ IS NULL",
    "key CASE": r"GROUP BY (.*, )?CASE WHEN",
    "key struct": r"GROUP BY (.*, )?struct\(",
    "key array": r"GROUP BY (.*, )?array\(",
    "nested key": r"GROUP BY (.*, )?named_struct\('u', struct\(",
    "key modulo": r"GROUP BY (.*, )?\S+ % 3",
    "where": r"FROM \S+ (AS )?(\S+ )?WHERE ",
    "and": r" AND ",
    "or": r" OR ",
    "not": r" NOT \(",
    "in": r" IN \(",
    "not in": r" NOT IN \(",
    "between": r" BETWEEN ",
    "like": r" LIKE '",
    "is null": r" IS NULL",
    "is not null": r" IS NOT NULL",
    "null-safe equality": r" <=> ",
    "arithmetics in a condition": r"WHERE .* [-+*] \S+ (>|<|=|<=|>=) ",
    "having an aggregate": r"HAVING (.* )?count\(\*\) >= ",
    "having an alias": r"AS (m\d|total|n|Result)\b.*HAVING (.* )?\1\b",
    "order by ordinal": r"ORDER BY (.*, )?\d+\b",
    "order by alias": r"AS (m\d|total|n|Result)\b.*ORDER BY (.*, )?\1\b",
    "order by aggregate": r"ORDER BY (.*, )?(count|sum|max|min)\(",
    "descending": r" DESC\b",
    "ascending": r" ASC\b",
    "nulls first": r" NULLS FIRST",
    "nulls last": r" NULLS LAST",
    "limit": r"ORDER BY .* LIMIT \d+",
    "table alias": r"FROM \S+ AS (s|src|T2)\b",
    "qualified column": r"\b(s|src|T2)\.\S",
    "quoted name": r"`",
    "order of a mode": r"mode\(\) WITHIN GROUP \(ORDER BY ",
}


@pytest.mark.parametrize("function", FUNCTIONS)
def test_function_occurs(function: str) -> None:
    found = sum(bool(re.search(rf"\b{function}\(", text, re.IGNORECASE)) for text in texts())
    assert found >= 5, f"{function} in {found} of {len(texts())} queries"


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_construct_occurs(name: str) -> None:
    found = sum(bool(re.search(CONSTRUCTS[name], text, re.IGNORECASE)) for text in texts())
    assert found >= 3, f"{name} in {found} of {len(texts())} queries"


def test_odd_spellings_occur() -> None:
    raw = [query.text for case in sampled() for query in case.workload.values()]
    for pattern in (r"^select", r"^Select", r"/\*", r"-- ", r"\n", r"\t", r";$", r"\bSuM|\bSum\(|\bSUM\("):
        assert sum(bool(re.search(pattern, text)) for text in raw) >= 3, pattern


def test_sizes() -> None:
    assert {len(case.workload) for case in sampled()} >= {1, 2, 10, 19, 20}
    rows = Counter(case.table.num_rows for case in sampled())
    assert rows[0] >= 3
    assert rows[1] >= 3
    assert max(rows) > 100
    one_group = [
        case
        for case in sampled()
        if case.table.num_rows > 5
        and all(
            len(set(map(repr, case.table[column.name].to_pylist()))) == 1
            for column in case.schema.columns
            if column.role is not Role.UNIQUE
        )
    ]
    assert len(one_group) >= 2


def test_types_and_names() -> None:
    columns = [column for case in sampled() for column in case.schema.columns]
    assert {column.kind for column in columns} == set(Kind)
    assert {column.role for column in columns} == set(Role)
    assert {str(column.type) for column in columns} >= {"int8", "int16", "int32", "int64", "float", "double"}
    assert len({column.type for column in columns if column.kind is Kind.DECIMAL}) >= 5
    assert {True, False} == {needs_quotes(column.name) for column in columns}
    assert any(not column.name.isascii() for column in columns)


def test_queries_of_a_theme_meet() -> None:
    """In some workloads several queries have the same condition, or several of one time have different windows."""
    conditions, windows = 0, 0
    for case in sampled():
        wheres = Counter(text.partition(" WHERE ")[2].partition(" GROUP BY ")[0] for text in case.texts.values())
        conditions += any(count > 2 for where, count in wheres.items() if where)
        calls = [set(re.findall(r"window\([^()]*\)", text)) for text in case.texts.values()]
        windows += len(set().union(*calls)) > 1 and sum(map(bool, calls)) > len(set().union(*calls))
    assert conditions >= 10
    assert windows >= 10


def test_times_and_decimals() -> None:
    """The stream's time has a zone or not; decimals have more digits than a word, below the most there are."""
    times = [case.schema.columns[0].kind for case in sampled()]
    assert min(times.count(Kind.TIMESTAMP), times.count(Kind.NTZ)) >= 5
    columns = [column for case in sampled() for column in case.schema.columns]
    assert any(column.kind is Kind.TIMESTAMP and column.role is Role.PLAIN for column in columns)
    digits = {(column.type.precision, column.role) for column in columns if column.kind is Kind.DECIMAL}
    assert {(precision, role) for precision in (19, 28, 38) for role in (Role.BOUNDED, Role.EXTREME)} <= digits


def test_every_answer_that_is_chosen_has_a_witness() -> None:
    for case in sampled():
        for query in case.workload.values():
            modes = {comparison.mode for comparison in query.comparisons}
            assert Mode.EXCLUDED not in modes
            assert bool(query.witness) == bool(modes & {Mode.ONE_OF, Mode.COMMONEST})


def floats() -> Iterator[float]:
    for case in sampled():
        for column in case.schema.of(Kind.FLOAT):
            yield from (value for value in case.table[column.name].to_pylist() if value is not None)


def test_edges_of_numbers() -> None:
    values = list(floats())
    assert any(map(math.isnan, values))
    assert {math.inf, -math.inf, 0.1, MAX_MAGNITUDE, 5e-324} <= set(values)
    assert any(value == 0 and math.copysign(1, value) < 0 for value in values)
    assert max(abs(value) for value in values if math.isfinite(value)) == MAX_MAGNITUDE
    digits = {
        value.as_tuple().digits
        for case in sampled()
        for column in case.schema.of(Kind.DECIMAL)
        for value in case.table[column.name].to_pylist()
        if value is not None
    }
    assert (9,) * 38 in digits
    integers = {
        value
        for case in sampled()
        for column in case.schema.of(Kind.INT)
        for value in case.table[column.name].to_pylist()
    }
    assert {-128, 32767, -(2**31), 2**63 - 1, None} <= integers


def test_edges_of_text_and_time() -> None:
    strings: set[str | None] = set()
    years: set[int] = set()
    for case in sampled():
        for column in case.schema.of(Kind.STRING):
            strings.update(case.table[column.name].to_pylist())
        for column in case.schema.of(Kind.TIMESTAMP, Kind.NTZ, Kind.DATE):
            years.update(value.year for value in case.table[column.name].to_pylist() if value is not None)
    assert {"", None, "e\u0301", "\u00e9", "\U00010348"} <= strings
    assert {1916, 1969, 1970, 2024} <= years


@given(cases(max_queries=3))
def test_tables_keep_their_schema(case: Case) -> None:
    assert case.table.schema == case.schema.arrow
    assert case.table.num_rows <= MAX_ROWS
    assert case.schema.time in case.table.column_names
    for column in case.schema.columns:
        values = case.table[column.name].to_pylist()
        if column.role is Role.UNIQUE:
            assert len(set(values)) == len(values)
            assert None not in values
        if column.spread:
            known = sorted({float(value) for value in values if value is not None and math.isfinite(value)})
            assert all(abs(value) <= column.spread.magnitude for value in known)
            # Half a gap is room for the rounding of values that are not dyadic.
            assert all(two - one > column.spread.gap / 2 for one, two in pairwise(known))


class Least(Choices):
    """What hypothesis shrinks to if it may: always the first option."""

    def number(self, least: int, most: int) -> int:
        return least


def test_the_smallest_case_is_small() -> None:
    case = make_case(Least())
    assert case.texts == {"q0": "SELECT count(*) FROM t"}
    assert case.table.num_rows == 2
    assert case.table.column_names == ["ts", "a", "b"]


# With Spark


def run(spark: SparkSession, text: str) -> Outcome:
    return outcome(lambda: collect(spark.sql(text)))


@pytest.fixture
def quick(spark: SparkSession) -> Iterator[SparkSession]:
    """The session without what only pays on larger data."""
    settings = {"spark.sql.adaptive.enabled": "false", "spark.sql.shuffle.partitions": "1"}
    before = {key: str(spark.conf.get(key)) for key in settings}
    for key, value in settings.items():
        spark.conf.set(key, value)
    yield spark
    for key, value in before.items():
        spark.conf.set(key, value)


@pytest.mark.spark
def test_spark_runs_the_queries_and_answers_alike_in_other_partitions(quick: SparkSession) -> None:
    """150 queries over tables in 1 and in 3 partitions: what depends on the order of rows is flagged, and no more.

    At least 95 % of the queries run; the reasons of the others are in the message.
    """
    total, failures, flags_needed, witnessed = 0, Counter[str](), 0, 0
    for seed in range(1000, 1030):
        case = case_of_seed(seed, max_queries=12)
        case.register(quick, partitions=1)
        expected = {name: run(quick, query.text) for name, query in case.workload.items()}
        witnesses = {name: run(quick, query.witness) for name, query in case.workload.items() if query.witness}
        case.register(quick, partitions=3)
        for name, query in case.workload.items():
            actual = run(quick, query.text)
            total += 1
            witness = witnesses.get(name)
            check(query, expected[name], actual, case.table.num_rows, witness)
            # Spark's own choice is one that the witness allows; a witness runs where its query does.
            check(query, expected[name], expected[name], case.table.num_rows, witness)
            assert not isinstance(witness, Failure) or isinstance(expected[name], Failure), (
                f"{witness}\n{query.witness}"
            )
            witnessed += isinstance(witness, Result)
            match expected[name], actual:
                case (Failure() as failure, _):
                    failures[str(failure)[:200] + "\n" + query.text] += 1
                case (Result() as one, Result() as two):
                    flags_needed += not exactly_equal(one, two, query.ordered)
    assert total >= 150
    assert failures.total() <= 0.05 * total, "\n".join(failures)
    # Without the flags the same answers would differ: the partitions did change the order of rows.
    assert flags_needed >= 5
    assert witnessed >= 5


def exactly_equal(one: Result, two: Result, ordered: bool) -> bool:
    try:
        compare(one, two, ordered=ordered)
    except ResultsDiffer:
        return False
    return True


@pytest.mark.spark
def test_window_durations(quick: SparkSession) -> None:
    """Every spelling means what the table says; those that Spark refuses are refused still."""
    template = (
        "SELECT unix_micros(w.end) - unix_micros(w.start) AS us FROM "
        "(SELECT window(ts, {}) AS w FROM VALUES (TIMESTAMP '2024-01-01 00:00:00') AS t(ts))"
    )
    for seconds, spellings in DURATIONS.items():
        expected = Result((("us", "bigint"),), ((seconds * 1_000_000,),))
        for spelling in spellings:
            assert run(quick, template.format(spelling)) == expected, spelling
    for spelling in REFUSED:
        assert isinstance(run(quick, template.format(spelling)), Failure), spelling


@pytest.mark.spark
def test_tables_reach_spark_as_they_are(spark: SparkSession) -> None:
    """Types, nulls, NaN and the zones of timestamps survive, in one partition and in three."""
    for case in sampled()[:8]:
        columns = tuple((field.name, field.dataType.simpleString()) for field in case.schema.spark())
        table = Result.of_arrow(columns, case.table)
        for partitions in (1, 3):
            frame = case.frame(spark, partitions)
            assert partitions == 1 or frame.rdd.getNumPartitions() == partitions
            compare(table, collect(frame))


@pytest.mark.spark
def test_collect_takes_every_shape(spark: SparkSession) -> None:
    frame = spark.sql(
        "SELECT 1 AS a, 2L AS a, map('k', X'00') AS m, array(struct(CAST(1.5 AS DECIMAL(5,2)) AS d)) AS s, "
        "TIMESTAMP_NTZ '2024-01-01 00:00:00' AS n, CAST(NULL AS STRING) AS z"
    )
    result = collect(frame)
    kinds = ["int", "bigint", "map<string,binary>", "array<struct<d:decimal(5,2)>>", "timestamp_ntz", "string"]
    assert [kind for _, kind in result.columns] == kinds
    assert repr(result.rows[0][:3]) == "(1, 2, [('k', b'\\x00')])"
    empty = collect(frame.where("z IS NOT NULL"))
    assert empty == Result(result.columns, ())
    assert collect(frame.select()) == Result((), ((),))


@pytest.mark.spark
def test_collect_does_not_depend_on_the_session_time_zone(spark: SparkSession) -> None:
    text = (
        "SELECT ts, window(ts, '1 hour') AS w FROM VALUES "
        "(TIMESTAMP '2024-10-27 00:30:00Z'), (TIMESTAMP '2024-10-27 01:30:00Z') AS t(ts)"
    )
    expected = collect(spark.sql(text))
    zone = spark.conf.get("spark.sql.session.timeZone")
    try:
        spark.conf.set("spark.sql.session.timeZone", "Europe/Berlin")
        actual = collect(spark.sql(text))
    finally:
        spark.conf.set("spark.sql.session.timeZone", str(zone))
    compare(expected, actual)
    assert len(set(map(repr, actual.rows))) == 2


def test_why_no_nan_goes_into_an_approximate_percentile(spark: SparkSession) -> None:
    """Of the same values in two partitions Spark says another thing: nothing can be compared with that."""
    values = [(5e-324,), (math.nan,)]
    found = [
        spark.sparkContext.parallelize(values, partitions)
        .toDF("x double")
        .selectExpr("approx_percentile(x, 1)", "approx_percentile(nanvl(x, 0D), 1)")
        .first()
        for partitions in (1, 2)
    ]
    (one, plain_one), (two, plain_two) = (tuple(row or ()) for row in found)
    assert math.isnan(one)
    assert two == 5e-324
    assert plain_one == plain_two == 5e-324
