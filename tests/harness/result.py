"""The answer of a query in the form that is compared, or the error instead of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Result:
    """Columns by name and Spark type, in order, and rows of Python values (timestamps with zone are in UTC)."""

    columns: tuple[tuple[str, str], ...]
    rows: tuple[Row, ...]

    @classmethod
    def of_arrow(cls, columns: tuple[tuple[str, str], ...], table: pa.Table) -> Result:
        arrays = [_in_utc(column).to_pylist() for column in table.columns]
        rows = zip(*arrays, strict=True) if arrays else ((),) * table.num_rows
        return cls(columns, tuple(rows))


@dataclass(frozen=True)
class Failure:
    """A query that raised."""

    error: Exception

    def __str__(self) -> str:
        lines = str(self.error).strip().splitlines()
        return f"{type(self.error).__name__}: {lines[0] if lines else ''}"


Outcome = Result | Failure


def collect(frame: DataFrame) -> Result:
    """Run a DataFrame and take its answer."""
    columns = tuple((field.name, field.dataType.simpleString()) for field in frame.schema.fields)
    if not columns:
        # Arrow has no place for rows without columns: toArrow gives none.
        return Result((), ((),) * frame.count())
    return Result.of_arrow(columns, frame.toArrow())


def outcome(run: Callable[[], Result]) -> Outcome:
    """What a run gives, or how it fails. Every error counts: Spark's and those of our own code."""
    try:
        return run()
    except Exception as error:  # noqa: BLE001 - the errors of both sides are compared
        return Failure(error)


def _in_utc(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """With all zones UTC: in their own zone, the two moments that the end of summer time repeats are equal."""
    target = _utc_type(array.type)
    return array if target == array.type else array.cast(target)


def _utc_type(arrow: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(arrow):
        return arrow if arrow.tz is None else pa.timestamp(arrow.unit, "UTC")
    if pa.types.is_struct(arrow):
        return pa.struct([field.with_type(_utc_type(field.type)) for field in arrow])
    if pa.types.is_map(arrow):
        return pa.map_(_utc_type(arrow.key_type), arrow.item_field.with_type(_utc_type(arrow.item_type)))
    if pa.types.is_list(arrow):
        return pa.list_(arrow.value_field.with_type(_utc_type(arrow.value_type)))
    return arrow
