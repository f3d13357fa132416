"""A question: one aggregate query, described so that each engine can be asked it in its own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pyarrow as pa

from headrace.errors import StreamError
from headrace.query.interval import UNIT_US
from headrace.sources.stream import reading

Kind = Literal["int", "float", "text", "time"]
Function = Literal["count", "sum", "avg", "min", "max", "stddev_samp"]

MINUTE_US, DAY_US = UNIT_US["minute"], UNIT_US["day"]


@dataclass(frozen=True, slots=True)
class Window:
    """A window of time; it tumbles where `slide_us` is its length, and else the length is a multiple of it."""

    length_us: int
    slide_us: int

    def __post_init__(self) -> None:
        if self.length_us % self.slide_us:
            raise ValueError(f"the length of {self} is not a multiple of its slide")

    @property
    def panes(self) -> int:
        """In how many windows a record is."""
        return self.length_us // self.slide_us


def tumbling(length_us: int) -> Window:
    """A window that begins where the one before ends."""
    return Window(length_us, length_us)


@dataclass(frozen=True, slots=True)
class Measure:
    """One aggregate: a function of a value, of all records or of those that a condition holds for.

    `value` is a column or an expression in the SQL that all engines share; a count has none.
    """

    function: Function
    value: str
    name: str
    only: str = ""


@dataclass(frozen=True, slots=True)
class Question:
    """One query. `where` is a condition in the SQL that all engines share; empty where there is none."""

    name: str
    keys: tuple[str, ...]
    measures: tuple[Measure, ...]
    where: str = ""
    window: Window | None = None


@dataclass(frozen=True)
class Data:
    """The records of a workload: Parquet files in one folder, or one file."""

    path: Path
    stream: str
    time: str
    kinds: Mapping[str, Kind]
    rows: int
    has_nulls: bool

    @property
    def files(self) -> list[Path]:
        """The files, in the order of their names."""
        return _files(self.path)

    @property
    def pattern(self) -> str:
        """The files, as engines other than Spark want them named."""
        return str(self.path / "*.parquet" if self.path.is_dir() else self.path)


def read_data(path: Path, stream: str, time: str) -> Data:
    """What the files' footers say; raises `StreamError`."""
    from pyarrow import parquet  # imports pandas, which takes half a second

    path = path.absolute()
    files = _files(path)
    if not files or not files[0].is_file():
        raise StreamError(f"there are no Parquet files at '{path}'")
    with reading(str(path)):
        footers = [parquet.read_metadata(file) for file in files]
        schema = parquet.read_schema(files[0])
    return Data(
        path,
        stream,
        time,
        {field.name: _kind(field.type) for field in schema},
        sum(footer.num_rows for footer in footers),
        any(_has_nulls(footer) for footer in footers),
    )


def all_keys(questions: Sequence[Question]) -> tuple[str, ...]:
    """The keys of all questions, each once."""
    return tuple(dict.fromkeys(key for question in questions for key in question.keys))


def all_measures(questions: Sequence[Question]) -> tuple[Measure, ...]:
    """The measures of all questions, each once."""
    return tuple(dict.fromkeys(measure for question in questions for measure in question.measures))


def measure_kind(measure: Measure, kinds: Mapping[str, Kind]) -> Kind:
    """The kind of a measure's result; any expression that is no column counts as a float."""
    if measure.function == "count":
        return "int"
    if measure.function in ("avg", "stddev_samp"):
        return "float"
    return kinds.get(measure.value, "float")


def _files(path: Path) -> list[Path]:
    return sorted(path.glob("*.parquet")) if path.is_dir() else [path]


def _kind(type_: pa.DataType) -> Kind:
    if pa.types.is_integer(type_):
        return "int"
    if pa.types.is_timestamp(type_):
        return "time"
    return "float" if pa.types.is_floating(type_) else "text"


def _has_nulls(footer: pa.parquet.FileMetaData) -> bool:
    """Whether a column has nulls, or does not say."""
    for group in range(footer.num_row_groups):
        for column in range(footer.num_columns):
            statistics = footer.row_group(group).column(column).statistics
            if statistics is None or not statistics.has_null_count or statistics.null_count:
                return True
    return False
