"""A strict comparison of two answers to the same query.

Compared are the columns (names with their case, order, Spark types down to the precision of a decimal, the
zone of a timestamp and the fields of a struct), the rows as a multiset, and their order where the query
decides it. Values are equal or not: there is no tolerance, except in columns that are flagged as floating
sums, whose tolerance is the rounding that the order of rows can cause and no more (tolerance.py states and
justifies it).

What equal means:

* NULL equals NULL only. NaN equals NaN, as in Spark, where NaN is one group and one distinct value.
* -0.0 equals 0.0. Spark holds them equal in =, GROUP BY, DISTINCT and ORDER BY, so that it depends on the
  order of the rows which of the two stands for the group or is the minimum.
* Arrays have an order, unless the column is flagged as a multiset. Maps have none.
* Where any of several values is right (first, mode, min_by with ties), a value is one of those that the witness of
  the query lists: the same query with collect_list in place of such an aggregate. Without a witness only name and
  type of the column count.
* Nullability is not compared. It is a promise of a plan, not a property of the answer: Spark's own analysis
  derives it differently for equivalent plans, and a table that went through a file or Python is nullable
  throughout.
"""

from __future__ import annotations

import datetime as dt
import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tests.harness.result import Result, Row
from tests.harness.tolerance import EXACT, Comparison, Mode

SHOWN = 5
_NAN = ("NaN",)


class ResultsDiffer(AssertionError):
    """Two answers that should be the same are not; the message says where."""


def compare(
    expected: Result,
    actual: Result,
    comparisons: Sequence[Comparison] | None = None,
    *,
    ordered: bool = False,
    rows: int = 0,
    context: str = "",
) -> None:
    """Raise `ResultsDiffer` unless the answers are the same.

    `comparisons` has one entry for each column (all exact if left out). `rows` is the number of input rows:
    no group has more, and the tolerance of floating sums grows with it. `context`, such as the query, heads
    the message.
    """
    differ = _Differ(expected, tuple(comparisons or [EXACT] * len(expected.columns)), rows)
    lines = _column_differences(expected, actual)
    if not lines:
        lines = differ.in_order(actual) if ordered else differ.as_multiset(actual)
    if lines:
        head = [context] if context else []
        raise ResultsDiffer("\n".join([*head, *lines]))


@dataclass(frozen=True)
class Allowed:
    """The values of which any is right."""

    values: frozenset[Hashable]


def with_witness(expected: Result, witness: Result, comparisons: Sequence[Comparison]) -> Result:
    """The expected answer with all that is allowed in place of what was chosen among it."""
    modes = [comparison.mode for comparison in comparisons]
    rows = [tuple(_allowed(mode, value) for mode, value in zip(modes, row, strict=True)) for row in witness.rows]
    return Result(expected.columns, tuple(rows))


def _allowed(mode: Mode, value: Any) -> Any:
    if mode is Mode.ONE_OF:
        # Each in a struct of its own, since collect_list leaves nulls out.
        return Allowed(frozenset(canonical(*item.values()) for item in value) or frozenset({None}))
    if mode is Mode.COMMONEST:
        counts = Counter(canonical(item) for item in value)
        most = max(counts.values(), default=0)
        return Allowed(frozenset(item for item, count in counts.items() if count == most) or frozenset({None}))
    return value


def canonical(value: Any, multiset: bool = False) -> Hashable:
    """A value such that equal means equal."""
    if isinstance(value, float):
        return _NAN if math.isnan(value) else value + 0.0  # -0.0 + 0.0 is 0.0
    if isinstance(value, dict):
        return tuple(canonical(item) for item in value.values())
    if isinstance(value, list):
        items = [canonical(item) for item in value]
        # Arrow gives the entries of a map, and nothing else, as tuples.
        if multiset or any(isinstance(item, tuple) for item in value):
            return frozenset(Counter(items).items())
        return tuple(items)
    if isinstance(value, tuple):
        return tuple(canonical(item) for item in value)
    hashable: Hashable = value
    return hashable


def _shown(value: Any) -> str:
    return str(value) if isinstance(value, dt.datetime) else repr(value)


def _column_differences(expected: Result, actual: Result) -> list[str]:
    if expected.columns == actual.columns:
        return []
    lines = ["the columns differ:"]
    for place in range(max(len(expected.columns), len(actual.columns))):
        pair = [side.columns[place] if place < len(side.columns) else None for side in (expected, actual)]
        if pair[0] != pair[1]:
            shown = [f"{column[0]!r} {column[1]}" if column else "nothing" for column in pair]
            lines.append(f"  column {place + 1}: expected {shown[0]}, got {shown[1]}")
    return lines


@dataclass(frozen=True)
class _Differ:
    """The comparison of rows against the expected ones."""

    expected: Result
    comparisons: tuple[Comparison, ...]
    rows: int

    def __post_init__(self) -> None:
        if len(self.comparisons) != len(self.expected.columns):
            raise ValueError(
                f"{len(self.comparisons)} comparisons for {len(self.expected.columns)} columns: "
                f"{[name for name, _ in self.expected.columns]}"
            )

    def in_order(self, actual: Result) -> list[str]:
        pairs = list(zip(self.expected.rows, actual.rows, strict=False))
        wrong = [(place, pair) for place, pair in enumerate(pairs) if not self._same(*pair)]
        lines = self._count_line(actual)
        for place, (one, two) in wrong[:SHOWN]:
            lines.append(f"row {place + 1} differs:")
            lines += self._cells(one, two)
        if len(wrong) > SHOWN:
            lines.append(f"... and {len(wrong) - SHOWN} more rows")
        if wrong and len(self.expected.rows) == len(actual.rows) and not self.as_multiset(actual):
            lines.insert(0, "the rows are the same, but their order differs:")
        return lines

    def as_multiset(self, actual: Result) -> list[str]:
        """Rows with the same exact part are matched with each other; what is left over is the difference."""
        ours, theirs = self._by_exact_part(self.expected.rows), self._by_exact_part(actual.rows)
        missing: list[Row] = []
        extra: list[Row] = []
        for part in {**ours, **theirs}:
            left, right = self._unmatched(ours.get(part, []), theirs.get(part, []))
            missing += left
            extra += right
        if not missing and not extra:
            return []
        return [*self._count_line(actual), *self._report(missing, extra)]

    def _count_line(self, actual: Result) -> list[str]:
        wanted, got = len(self.expected.rows), len(actual.rows)
        return [] if wanted == got else [f"expected {wanted} rows, got {got}"]

    def _by_exact_part(self, rows: Sequence[Row]) -> dict[Hashable, list[Row]]:
        parts: dict[Hashable, list[Row]] = defaultdict(list)
        for row in rows:
            parts[self._exact_part(row)].append(row)
        return parts

    def _exact_part(self, row: Row) -> Hashable:
        return tuple(
            canonical(value, comparison.mode is Mode.MULTISET)
            for value, comparison in zip(row, self.comparisons, strict=True)
            if comparison.mode in (Mode.EXACT, Mode.MULTISET)
        )

    def _same(self, one: Row, two: Row) -> bool:
        return all(map(self._same_cell, self.comparisons, one, two))

    def _same_cell(self, comparison: Comparison, one: Any, two: Any) -> bool:
        match comparison.mode:
            case Mode.EXCLUDED:
                return True
            case Mode.ONE_OF | Mode.COMMONEST:
                return not isinstance(one, Allowed) or canonical(two) in one.values
            case Mode.NEAR if isinstance(one, float) and isinstance(two, float):
                assert comparison.tolerance is not None
                return comparison.tolerance.accepts(one, two, self.rows)
            case mode:
                multiset = mode is Mode.MULTISET
                return canonical(one, multiset) == canonical(two, multiset)

    def _unmatched(self, ours: list[Row], theirs: list[Row]) -> tuple[list[Row], list[Row]]:
        """What remains of both sides after the largest matching.

        Rows that agree in the exact part differ at most in floating sums. Each of ours takes a free partner,
        or moves the one who has it on to another (Kuhn's algorithm): taking the first that fits is not enough,
        because being near is not transitive.
        """
        if len(ours) == len(theirs) == 1:
            return ([], []) if self._same(ours[0], theirs[0]) else (ours, theirs)
        taken: dict[int, int] = {}

        def place(mine: int, seen: set[int]) -> bool:
            for yours in range(len(theirs)):
                if yours not in seen and self._same(ours[mine], theirs[yours]):
                    seen.add(yours)
                    if yours not in taken or place(taken[yours], seen):
                        taken[yours] = mine
                        return True
            return False

        missing = [ours[mine] for mine in range(len(ours)) if not place(mine, set())]
        return missing, [row for number, row in enumerate(theirs) if number not in taken]

    def _report(self, missing: list[Row], extra: list[Row]) -> Iterator[str]:
        """Missing rows beside the extra rows that are most like them."""
        extra = list(extra)
        for shown, row in enumerate(missing):
            if shown == SHOWN:
                yield f"... and {len(missing) - SHOWN} more rows are missing or differ"
                return
            likeness = [sum(map(self._same_cell, self.comparisons, row, other)) for other in extra]
            if likeness and (max(likeness) > 0 or len(row) == 1):
                other = extra.pop(likeness.index(max(likeness)))
                yield "a row differs:"
                yield from self._cells(row, other)
            else:
                yield f"a row is missing: {self._shown(row)}"
        for row in extra[:SHOWN]:
            yield f"a row is too many: {self._shown(row)}"
        if len(extra) > SHOWN:
            yield f"... and {len(extra) - SHOWN} more are too many"

    def _shown(self, row: Row) -> str:
        cells = zip(self.expected.columns, row, strict=True)
        return ", ".join(f"{name}={_shown(value)}" for (name, _), value in cells)

    def _cells(self, one: Row, two: Row) -> Iterator[str]:
        yield f"  expected {self._shown(one)}"
        yield f"  got      {self._shown(two)}"
        columns = zip(self.expected.columns, self.comparisons, one, two, strict=True)
        for (name, kind), comparison, mine, yours in columns:
            if not self._same_cell(comparison, mine, yours):
                line = f"  column {name!r} ({kind}): expected {_shown(mine)}, got {_shown(yours)}"
                if comparison.tolerance and isinstance(mine, float) and isinstance(yours, float):
                    allowed = comparison.tolerance.allowed(mine, self.rows)
                    line += f", {abs(mine - yours):.3g} apart where {allowed:.3g} is allowed"
                yield line
