"""The questions by ClickHouse, as the library chdb: one after another, or grouping sets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from chdb import session

from headrace.bench.check import Check, to_check
from headrace.bench.question import Data, Question
from headrace.bench.text import CHDB, asked_together, chdb_text, check_columns, set_condition


class InChdb:
    """Answers are computed to the last row and thrown away; checks compute them again."""

    def __init__(self, data: Data, questions: Sequence[Question], variant: str, cores: int) -> None:
        self._data = data
        self._groups = asked_together(questions, variant)
        self._settings = (
            f"SETTINGS max_threads={cores}, prefer_column_name_to_alias=1, "
            # Columns that can hold nulls are slower, and most streams have none.
            f"schema_inference_make_columns_nullable={int(data.has_nulls)}"
        )
        self._session: Any = session.Session()  # type: ignore[no-untyped-call]

    def run(self, first: int | None = None) -> None:
        """All answers, or those of the first groups."""
        for group in self._groups[:first]:
            self._session.query(f"{chdb_text(group, self._data)} {self._settings} FORMAT Null")

    def check(self) -> dict[str, Check]:
        """The checks of the answers, which are computed for it."""
        checks = {}
        for group in self._groups:
            columns, widths = [], []
            for question in group:
                found = check_columns(question, self._data.kinds, CHDB, set_condition(group, question))
                columns += found
                widths.append(len(found))
            numbered = ", ".join(f"{column} AS c{i}" for i, column in enumerate(columns))
            text = f"SELECT {numbered} FROM ({chdb_text(group, self._data)}) {self._settings}"
            row = iter(json.loads(str(self._session.query(text, "JSONCompactEachRow"))))
            for question, width in zip(group, widths, strict=True):
                checks[question.name] = to_check([float(next(row)) for _ in range(width)])
        return checks

    def clear(self) -> None:
        """Nothing is kept."""
