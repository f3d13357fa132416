"""The last step of a query where the kernel knows all of it: outputs and HAVING over its groups.

What it does not know is finished by Spark: all windows in one job, or, where their rows are ordered or cut off,
window by window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from headrace.kernel.evaluate import Evaluator, compile_expression
from headrace.query import Expression, Query
from headrace.query.rewrite import rewrite
from headrace.runtime.finish import WINDOW, GroupNames, finishing_texts

_START, _END = "__window_start", "__window_end"
_EDGES = {Expression.parse(f"{WINDOW}.start"): _START, Expression.parse(f"{WINDOW}.end"): _END}


@dataclass(frozen=True, slots=True)
class Finisher:
    """Makes a query's answer of its groups; `schema` is the answer's."""

    outputs: tuple[Evaluator | str, ...]
    """Compiled, or the name of a column of the groups."""
    having: Evaluator | None
    schema: pa.Schema

    @staticmethod
    def of(query: Query, names: GroupNames, held: pa.Schema, answer: pa.Schema, time_zone: str) -> Finisher | None:
        """The finisher of a query whose groups have a schema; None where the kernel does not know all of it."""
        if query.order or query.limit or query.offset or not all(_lies_in_parquet(field.type) for field in answer):
            return None
        kinds = {field.name: field.type for field in held if field.name != WINDOW}
        edge = held.field(WINDOW).type.field("start").type
        kinds |= {_START: edge, _END: edge}
        texts, having = finishing_texts(query, names)
        outputs = [_output(text, field.type, kinds, time_zone) for text, field in zip(texts, answer, strict=True)]
        known = tuple(output for output in outputs if output is not None)
        chosen = compile_expression(_parsed(having), kinds, pa.bool_(), time_zone) if having is not None else None
        if len(known) < len(outputs) or (having is not None and chosen is None):
            return None
        return Finisher(known, chosen, answer)

    def finish(self, groups: pa.RecordBatch) -> pa.RecordBatch:
        """The rows of the answer."""
        window = groups[WINDOW]
        columns = {name: groups[name] for name in groups.schema.names}
        columns |= {_START: window.field("start"), _END: window.field("end")}
        if self.having is not None:
            chosen = self._made(self.having, columns)
            columns = {name: column.filter(chosen) for name, column in columns.items()}
        made = [self._made(output, columns) for output in self.outputs]
        kinds = self.schema.types
        cast = [
            column if column.type == kind else column.cast(kind) for column, kind in zip(made, kinds, strict=True)
        ]
        return pa.record_batch(cast, schema=self.schema)

    @staticmethod
    def _made(output: Evaluator | str, columns: dict[str, pa.Array]) -> pa.Array:
        if isinstance(output, str):
            return columns[output]
        # An expression without columns is as long as any of them.
        return output({name: columns[name] for name in output.names or (_START,)})


def _output(text: str, kind: pa.DataType, kinds: dict[str, pa.DataType], time_zone: str) -> Evaluator | str | None:
    expression = _parsed(text)
    names = {name.lower(): name for name in (*kinds, WINDOW)}
    if expression.column is not None:
        return names.get(expression.column.lower())
    return compile_expression(expression, kinds, kind, time_zone)


def _parsed(text: str) -> Expression:
    """SQL over a query's groups, with the edges of windows as columns."""
    return Expression.parse(rewrite(Expression.parse(text), _EDGES))


_PLAIN: Sequence[object] = (
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_boolean,
    pa.types.is_string,
    pa.types.is_date,
    pa.types.is_timestamp,
    pa.types.is_decimal,
    pa.types.is_binary,
)


def _lies_in_parquet(kind: pa.DataType) -> bool:
    """Whether Spark reads values of a type from a file as what they were."""
    if pa.types.is_struct(kind):
        return all(_lies_in_parquet(field.type) for field in kind)
    return any(is_such(kind) for is_such in _PLAIN)  # type: ignore[operator]  # functions of pyarrow, without types
