"""Answers as tables that one can look at."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
from rich.table import Table

from headrace.query import Query
from headrace.sources.stream import open_parquet


def answer_table(query: Query, folder: Path, rows: int, time_zone: str) -> Table:
    """The first rows of an answer that was written as Parquet, with the number of all rows."""
    data = open_parquet(str(folder))
    count = data.count_rows()
    head = data.head(rows, use_threads=False)
    table = Table(title=f"{query.name}  ({count:,} row{'s' * (count != 1)})", title_justify="left")
    for field in head.schema:
        numeric = pa.types.is_integer(field.type) or pa.types.is_floating(field.type)
        table.add_column(field.name, justify="right" if numeric else "left", overflow="ellipsis", no_wrap=True)
    zone = ZoneInfo(time_zone)
    for row in zip(*(column.to_pylist() for column in head.columns), strict=True):
        table.add_row(*(_cell(value, zone) for value in row))
    if count > rows:
        table.caption = f"... and {count - rows:,} more"
        table.caption_justify = "left"
    return table


def _cell(value: Any, zone: ZoneInfo) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        if value.keys() == {"start", "end"}:
            return f"{_cell(value['start'], zone)} - {_cell(value['end'], zone)}"
        return "{" + ", ".join(f"{key}: {_cell(item, zone)}" for key, item in value.items()) + "}"
    if isinstance(value, datetime):
        local = value.astimezone(zone).replace(tzinfo=None) if value.tzinfo else value
        return local.isoformat(
            sep=" ", timespec="auto" if local.microsecond % 1000 else "milliseconds"
        ).removesuffix(".000")
    if isinstance(value, float):
        return f"{value:.6g}" if value and abs(value) < 1e-4 else f"{value:,.4f}".rstrip("0").rstrip(".")
    return str(value)
