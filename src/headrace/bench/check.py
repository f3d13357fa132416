"""What is compared of two engines' answers: the rows, and sums in which every value has its row's weight.

A row's weight comes from its window and keys alone, so that a value in the wrong row changes the sum. The
arithmetic, with the numbers that stand here, is written twice: in `text.py` for engines that speak SQL, and in
`in_polars.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headrace.bench.question import Kind, Measure, Question
from headrace.errors import BenchError

WEIGHTS = 9973
"""Weights go from 1 to this prime."""
TIMES = 1_000_003
"""Times count as microseconds modulo this prime, which floats hold exactly."""
FACTORS = (1, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73, 79, 83, 89, 97)
"""One for the window and one for each key, so that keys that change places change the weight."""
NO_KEY = 7
"""What a null counts as among the keys."""

_TOLERANCE = 1e-9


@dataclass(frozen=True, slots=True)
class Sum:
    """One measure of all rows: how many have a value, the weighted sum of the values, and that of their sizes."""

    values: int = 0
    weighted: float = 0.0
    size: float = 0.0

    def plus(self, other: Sum) -> Sum:
        """That of both parts of an answer."""
        return Sum(self.values + other.values, self.weighted + other.weighted, self.size + other.size)

    def agrees(self, other: Sum) -> bool:
        """Whether two are the same, but for the order of adding."""
        near = abs(self.weighted - other.weighted) <= _TOLERANCE * max(self.size, other.size)
        return self.values == other.values and near


@dataclass(frozen=True, slots=True)
class Check:
    """What an answer comes down to: rows, the sum of their weights, and a `Sum` per measure."""

    rows: int
    weight: int
    sums: tuple[Sum, ...]


def weighed(question: Question, kinds: Mapping[str, Kind]) -> list[tuple[str, Kind, int]]:
    """What a row's weight comes from, its window first: columns with their kinds and factors."""
    columns: list[tuple[str, Kind]] = [("start", "time")] if question.window else []
    columns += [(key, kinds[key]) for key in question.keys]
    return [(name, kind, factor) for (name, kind), factor in zip(columns, FACTORS, strict=False)]


def to_check(row: Sequence[float]) -> Check:
    """A check from the numbers that an engine gives, in the order of `text.check_columns`."""
    rows, weight, *rest = row
    triples = zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    sums = tuple(Sum(int(values), float(weighted), float(size)) for values, weighted, size in triples)
    return Check(int(rows), int(weight), sums)


def compare(
    reference: str,
    expected: Mapping[str, Check],
    engine: str,
    found: Mapping[str, Check],
    names: Mapping[str, Sequence[str]],
) -> None:
    """Raise `BenchError` with every question that two engines answer differently; `names` are the measures'."""
    differences = [
        f"  {question}: {difference}"
        for question, check in expected.items()
        if (difference := _difference(check, found[question], names[question]))
    ]
    if differences:
        shown = "\n".join(differences[:10] + ["  ..."] * (len(differences) > 10))
        raise BenchError(
            f"{engine} and {reference} answer {len(differences)} of {len(expected)} queries differently:\n{shown}"
        )


def _difference(expected: Check, found: Check, names: Sequence[str]) -> str:
    """The first thing that differs, or an empty text."""
    if expected.rows != found.rows:
        return f"{found.rows:,} rows instead of {expected.rows:,}"
    if expected.weight != found.weight:
        return "other keys or windows"
    for name, old, new in zip(names, expected.sums, found.sums, strict=True):
        if old.values != new.values:
            return f"{name} has {new.values:,} values instead of {old.values:,}"
        if not old.agrees(new):
            return f"the weighted sum of {name} is {new.weighted!r} instead of {old.weighted!r}"
    return ""


def totalled(question: Question) -> Measure | None:
    """A measure whose values, added up, are that of all records; None where there is none, or a filter."""
    if question.where:
        return None
    return next((m for m in question.measures if m.function in ("sum", "count") and not m.only), None)


def compare_total(engine: str, question: Question, measure: Measure, found: object, expected: object) -> None:
    """Raise `BenchError` where the values of an engine's answer do not add up to that of all records."""
    if found != expected:
        raise BenchError(f"{engine}: {measure.name} of '{question.name}' is {found}, not {expected}")
