"""Dead letters: records that did not count, or not for all queries, as they came and with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.query import Window
from headrace.query.query import quote_name
from headrace.runtime.live.clock import given_before_sql
from headrace.runtime.live.files import Folder, take_written
from headrace.runtime.live.log import Given, Standing
from headrace.runtime.live.version import Version
from headrace.runtime.results import reporting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LETTERS = "(dead letters)"
"""In place of a query's name."""
REASON, LATE_FOR = "headrace_reason", "headrace_late_for"
_FILE = "dead-letters.parquet"


def write_letters(
    frame: DataFrame,
    time: str,
    version: Version,
    standings: Mapping[str, Standing],
    most_us: int,
    folder: Folder,
) -> list[Given]:
    """The letters of a micro-batch, in a file of its outbox, where there are any."""
    moment = f"unix_micros(CAST({quote_name(time)} AS TIMESTAMP))"
    late = [
        f"IF({_is_late(name, window, standings[name], moment, version)}, {_text(name)}, NULL)"
        for name, window in version.windows.items()
    ]
    marked = frame.selectExpr(
        "*",
        f"CASE WHEN {quote_name(time)} IS NULL THEN 'no time' WHEN {moment} > {most_us} THEN 'ahead' "
        f"ELSE 'late' END AS {REASON}",
        f"array_compact(array({', '.join(late)})) AS {LATE_FOR}",
    )
    letters = marked.where(f"{REASON} <> 'late' OR size({LATE_FOR}) > 0")
    parts = folder.make() / "dead.parts"
    with reporting("dead letters failed: "):
        letters.coalesce(1).write.mode("overwrite").parquet(parts.for_spark)
    rows = take_written(parts, folder, _FILE)
    folder.delete(parts.name)
    return [Given(LETTERS, _FILE, rows, 0, 0)] if rows else []


def _is_late(name: str, window: Window, standing: Standing, moment: str, version: Version) -> str:
    """SQL: whether some window of a record has been given already."""
    inside, where = given_before_sql(window, standing, moment), version.queries[name].where
    return f"({inside})" if where is None else f"({inside}) AND ({where.sql})"


def _text(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'"
