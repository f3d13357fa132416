"""The questions by DuckDB: a table per answer, or grouping sets for all that share a window and a filter."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb

from headrace.bench.check import Check, to_check
from headrace.bench.question import Data, Question
from headrace.bench.text import DUCKDB, asked_together, check_columns, duckdb_text, set_condition


class InDuckDB:
    """Answers are temporary tables, dropped when they are cleared."""

    def __init__(self, data: Data, questions: Sequence[Question], variant: str, cores: int) -> None:
        self._data = data
        self._groups = asked_together(questions, variant)
        self._connection = duckdb.connect(config={"threads": cores, "preserve_insertion_order": False})

    def run(self, first: int | None = None) -> None:
        """All answers, or those of the first groups."""
        for i, group in enumerate(self._groups[:first]):
            self._connection.execute(f"CREATE TEMP TABLE answer_{i} AS {duckdb_text(group, self._data)}")

    def check(self) -> dict[str, Check]:
        """The checks of the answers that there are."""
        checks = {}
        for i, group in enumerate(self._groups):
            for question in group:
                condition = set_condition(group, question)
                columns = ", ".join(check_columns(question, self._data.kinds, DUCKDB, condition))
                row = self._connection.execute(f"SELECT {columns} FROM answer_{i}").fetchone()
                assert row is not None
                checks[question.name] = to_check(row)
        return checks

    def clear(self) -> None:
        """Drop the answers."""
        for i in range(len(self._groups)):
            self._connection.execute(f"DROP TABLE IF EXISTS answer_{i}")
