"""Questions, and the checks of their answers, as SQL for Spark, DuckDB and ClickHouse."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.bench.check import NO_KEY, TIMES, WEIGHTS, weighed
from headrace.bench.question import (
    MINUTE_US,
    Data,
    Kind,
    Measure,
    Question,
    Window,
    all_keys,
    all_measures,
    measure_kind,
)
from headrace.query.interval import format_interval

NUMBER = "window_number"
"""The column that holds a window's place in the row of all windows since 1970."""
SET = "set_id"
"""The column that says which grouping set a row belongs to."""


@dataclass(frozen=True)
class Dialect:
    """Where the three kinds of SQL differ, as far as checks need it."""

    micros: str
    div: str
    long: str
    double: str
    ascii: str = "ascii({})"
    last_four: str = "lpad(right({}, 4), 4, ' ')"


SPARK = Dialect("unix_micros(CAST({} AS TIMESTAMP))", "({} div {})", "CAST({} AS BIGINT)", "CAST({} AS DOUBLE)")
DUCKDB = Dialect("epoch_us({})", "({} // {})", "CAST({} AS BIGINT)", "CAST({} AS DOUBLE)")
CHDB = Dialect(
    "toUnixTimestamp64Micro({})",
    "intDiv({}, {})",
    "CAST({} AS Nullable(Int64))",
    "CAST({} AS Nullable(Float64))",
    last_four="leftPad(right({}, 4), 4, ' ')",
)


def spark_text(question: Question, data: Data) -> str:
    """The question as any user of Spark would write it."""
    outputs = ["window.start AS start"] * (question.window is not None)
    outputs += [*question.keys, *(f"{_standard(measure)} AS {measure.name}" for measure in question.measures)]
    groups = [f"window({data.time}, {_lengths(question.window)})"] if question.window else []
    lines = [f"SELECT {', '.join(outputs)}", f"FROM {data.stream}"]
    lines += [f"WHERE {question.where}"] if question.where else []
    return "\n".join([*lines, f"GROUP BY {', '.join([*groups, *question.keys])}"])


def duckdb_text(questions: Sequence[Question], data: Data) -> str:
    """One question, or several with the same window and filter as grouping sets."""
    first = questions[0]
    source = f"read_parquet('{data.pattern}')"
    start, number = [], []
    if first.window:
        slide_us, panes = first.window.slide_us, first.window.panes
        expression = f"CAST(epoch_us({data.time}) // {slide_us} AS INTEGER)"
        if panes > 1:
            source, expression = f"{source}, range({panes}) AS panes(pane)", f"{expression} - pane"
        source = f"(SELECT *, {expression} AS {NUMBER} FROM {source}{_where(first)})"
        start, number = [f"make_timestamp(CAST({NUMBER} AS BIGINT) * {slide_us}) AS start"], [NUMBER]
    else:
        source = f"{source}{_where(first)}"
    outputs = [*start, *_set_id(questions), *all_keys(questions)]
    outputs += [f"{_standard(measure)} AS {measure.name}" for measure in all_measures(questions)]
    return f"SELECT {', '.join(outputs)} FROM {source} GROUP BY {_groups(questions, number)}"


def chdb_text(questions: Sequence[Question], data: Data) -> str:
    """One question, or several with the same window and filter as grouping sets."""
    first = questions[0]
    start, number, with_ = [], [], ""
    if first.window:
        slide_us, panes = first.window.slide_us, first.window.panes
        expression = f"toUInt32(intDiv(toUnixTimestamp64Micro({data.time}), {slide_us}))"
        if panes > 1:
            expression = f"toUInt32({expression} - arrayJoin(range({panes})))"
        with_ = f"WITH {expression} AS {NUMBER} "
        start, number = [f"fromUnixTimestamp64Micro(toInt64({NUMBER}) * {slide_us}) AS start"], [NUMBER]
    outputs = [*start, *_set_id(questions), *all_keys(questions)]
    outputs += [f"{_clickhouse(measure)} AS {measure.name}" for measure in all_measures(questions)]
    source = f"file('{data.pattern}', Parquet){_where(first)}"
    return f"{with_}SELECT {', '.join(outputs)} FROM {source} GROUP BY {_groups(questions, number)}"


def check_columns(
    question: Question, kinds: Mapping[str, Kind], dialect: Dialect, condition: str = ""
) -> list[str]:
    """The numbers of a `Check` as aggregates over the answer, or over the rows that meet the condition."""
    weight = _weight(question, kinds, dialect)
    columns = [_only("count", "1", condition), _only("sum", weight, condition)]
    for measure in question.measures:
        value = dialect.double.format(_code(measure.name, measure_kind(measure, kinds), dialect))
        columns += [
            _only("count", measure.name, condition),
            _only("sum", f"{value} * {weight}", condition),
            _only("sum", f"abs({value}) * {weight}", condition),
        ]
    return [f"coalesce({column}, 0)" for column in columns]


def set_id(questions: Sequence[Question], question: Question) -> int:
    """The number that `grouping` gives to the rows of one of the questions."""
    bits = ["0" if key in question.keys else "1" for key in all_keys(questions)]
    return int("".join(bits), 2)


def set_condition(questions: Sequence[Question], question: Question) -> str:
    """What is true of the rows of one of the questions; empty where there are no others."""
    return f"{SET} = {set_id(questions, question)}" if len(questions) > 1 else ""


def asked_together(questions: Sequence[Question], variant: str) -> list[tuple[Question, ...]]:
    """The questions by the queries in which a variant asks them."""
    return shared_sets(questions) if variant == "grouping_sets" else [(question,) for question in questions]


def shared_sets(questions: Sequence[Question]) -> list[tuple[Question, ...]]:
    """The questions by window and filter, those with the same together: what grouping sets can do in one query."""
    groups: dict[tuple[str, Window | None], list[Question]] = {}
    for question in questions:
        groups.setdefault((question.where, question.window), []).append(question)
    return [tuple(group) for group in groups.values()]


def _where(question: Question) -> str:
    return f" WHERE {question.where}" if question.where else ""


def _set_id(questions: Sequence[Question]) -> list[str]:
    return [f"grouping({', '.join(all_keys(questions))}) AS {SET}"] if len(questions) > 1 else []


def _groups(questions: Sequence[Question], number: list[str]) -> str:
    if len(questions) == 1:
        return ", ".join([*number, *questions[0].keys])
    distinct = {frozenset(question.keys): question.keys for question in questions}
    sets = (f"({', '.join([*number, *keys])})" for keys in distinct.values())
    return f"GROUPING SETS ({', '.join(sets)})"


def _lengths(window: Window) -> str:
    lengths = [window.length_us] if window.panes == 1 else [window.length_us, window.slide_us]
    return ", ".join(f"'{format_interval(length)}'" for length in lengths)


def _standard(measure: Measure) -> str:
    only = f" FILTER (WHERE {measure.only})" if measure.only else ""
    return f"{measure.function}({measure.value or '*'}){only}"


def _clickhouse(measure: Measure) -> str:
    """ClickHouse gives 0 or infinity where the others give null, if it is not asked for null."""
    count = f"countIf({measure.only})" if measure.only else "count()"
    if measure.function == "count":
        return count
    function = "stddevSampStable" if measure.function == "stddev_samp" else measure.function
    text = (
        f"{function}OrNullIf({measure.value}, {measure.only})" if measure.only else f"{function}({measure.value})"
    )
    return f"if({count} > 1, {text}, NULL)" if measure.function == "stddev_samp" else text


def _only(function: str, value: str, condition: str) -> str:
    return f"{function}(CASE WHEN {condition} THEN {value} END)" if condition else f"{function}({value})"


def _weight(question: Question, kinds: Mapping[str, Kind], dialect: Dialect) -> str:
    terms = []
    for name, kind, factor in weighed(question, kinds):
        code = _code(name, kind, dialect)
        if name == "start":
            code = dialect.div.format(dialect.micros.format(name), MINUTE_US)
        terms.append(f"coalesce({code} % {WEIGHTS}, {NO_KEY}) * {factor}")
    return f"(1 + ({' + '.join(terms)}) % {WEIGHTS})"


def _code(name: str, kind: Kind, dialect: Dialect) -> str:
    """A value as a number: of a text its last four letters, of a time its microseconds."""
    if kind == "time":
        return f"({dialect.micros.format(name)} % {TIMES})"
    if kind == "text":
        letters = dialect.last_four.format(name)
        codes = (dialect.ascii.format(f"substr({letters}, {place}, 1)") for place in (1, 2, 3, 4))
        terms = (
            dialect.long.format(code) + f" * {256**power}" for power, code in zip((3, 2, 1, 0), codes, strict=True)
        )
        return f"({' + '.join(terms)})"
    return dialect.long.format(name) if kind == "int" else name
