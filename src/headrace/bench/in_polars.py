"""The questions by Polars: lazy frames, collected one after another or all together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

import polars as pl

from headrace.bench.check import NO_KEY, TIMES, WEIGHTS, Check, to_check, weighed
from headrace.bench.question import MINUTE_US, Data, Kind, Measure, Question, measure_kind

EngineType = Literal["streaming", "in-memory"]


class InPolars:
    """Answers are collected frames, kept until they are cleared."""

    def __init__(self, data: Data, questions: Sequence[Question], variant: str) -> None:
        self._data = data
        self._questions = questions
        self._shared = variant.startswith("collect_all")
        self._engine: EngineType = "streaming" if variant.endswith("streaming") else "in-memory"
        self._answers: dict[str, pl.DataFrame] = {}

    def run(self, first: int | None = None) -> None:
        """All answers, or the first."""
        frames = {question.name: ask(question, self._data) for question in self._questions[:first]}
        if self._shared:
            collected = pl.collect_all(list(frames.values()), engine=self._engine)
            self._answers = dict(zip(frames, collected, strict=True))
        else:
            self._answers = {name: frame.collect(engine=self._engine) for name, frame in frames.items()}

    def check(self) -> dict[str, Check]:
        """The checks of the answers that there are."""
        kinds = self._data.kinds
        return {
            question.name: _check(question, self._answers[question.name], kinds) for question in self._questions
        }

    def clear(self) -> None:
        """Forget the answers."""
        self._answers = {}


def ask(question: Question, data: Data) -> pl.LazyFrame:
    """The question as a lazy frame."""
    frame = pl.scan_parquet(data.pattern)
    if question.where:
        frame = frame.filter(pl.sql_expr(question.where))
    measures = [_aggregate(measure).alias(measure.name) for measure in question.measures]
    window = question.window
    if window is None:
        return frame.group_by(*question.keys).agg(*measures)
    number = (pl.col(data.time).dt.epoch("us") // window.slide_us).cast(pl.Int32)
    if window.panes > 1:
        panes = pl.LazyFrame({"pane": range(window.panes)}, schema={"pane": pl.Int32})
        frame, number = frame.join(panes, how="cross"), number - pl.col("pane")
    start = (pl.col("start").cast(pl.Int64) * window.slide_us).cast(pl.Datetime("us"))
    return frame.group_by(number.alias("start"), *question.keys).agg(*measures).with_columns(start=start)


def _aggregate(measure: Measure) -> pl.Expr:
    if measure.function == "count":
        return pl.sql_expr(measure.only).sum() if measure.only else pl.len()
    value = pl.sql_expr(measure.value)
    only = pl.sql_expr(measure.only) if measure.only else None
    if only is not None:
        value = value.filter(only)
    match measure.function:
        case "sum":  # of nothing, Polars gives 0 and the others null
            return value.sum() if only is None else pl.when(only.any()).then(value.sum())
        case "avg":
            return value.mean()
        case "min":
            return value.min()
        case "max":
            return value.max()
        case "stddev_samp":
            return value.std()


def _check(question: Question, answer: pl.DataFrame, kinds: Mapping[str, Kind]) -> Check:
    weight = pl.lit(0, pl.Int64)
    for name, kind, factor in weighed(question, kinds):
        code = pl.col(name).dt.epoch("us") // MINUTE_US if name == "start" else _code(name, kind)
        weight = weight + (code % WEIGHTS).fill_null(NO_KEY) * factor
    weight = weight % WEIGHTS + 1
    numbers = [pl.len(), weight.sum()]
    for measure in question.measures:
        value = _code(measure.name, measure_kind(measure, kinds)).cast(pl.Float64)
        numbers += [pl.col(measure.name).count(), (value * weight).sum(), (value.abs() * weight).sum()]
    return to_check(answer.select(number.alias(str(i)) for i, number in enumerate(numbers)).row(0))


def _code(name: str, kind: Kind) -> pl.Expr:
    column = pl.col(name)
    if kind == "time":
        return column.dt.epoch("us") % TIMES
    if kind == "text":
        letters = column.cast(pl.String).str.tail(4).str.pad_start(4, " ").cast(pl.Binary)
        return letters.bin.reinterpret(dtype=pl.UInt32, endianness="big").cast(pl.Int64)
    return column.cast(pl.Int64) if kind == "int" else column
