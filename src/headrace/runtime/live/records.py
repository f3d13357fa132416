"""The records of a micro-batch: files that workers read, or a DataFrame that Spark does."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True, slots=True)
class Records:
    """`files` are None where there are none that workers could read; `frame` makes the DataFrame, if needed."""

    frame: Callable[[], DataFrame]
    files: list[str] | None
