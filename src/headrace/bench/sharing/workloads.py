"""The query sets of the studies, the same for the same seed and data.

A: no predicates, each query its own window, range from 600 to 900 and slide from 300 to 600 units. B: windows of
600 units that tumble, each query its own predicate. C: both differ. *Regular* is every pair of sqrt(n) predicates
and sqrt(n) windows, *low* has n of either. Figure 8 of the earlier paper: one slide from 1000 to 2000 units for
all queries, ranges from 1500 to 2500.

A predicate is the conjunction of a membership (one of three sets, in it or not) and of a quantity above or below a
constant, each drawn evenly. The paper does not give its constants, but says what they are for: to find outliers of
volume and significant movements of price. Here each is a quantile. The share of records above it goes from a half
to a hundredth in `LEVELS` steps, each the same part of the one before.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from headrace.bench.sharing.subject import Columns, Member, Subject, Value

T = TypeVar("T")

LEVELS = 20
MOST_ABOVE, LEAST_ABOVE = 0.5, 0.01
TUMBLING = 600
RANGES, SLIDES = (600, 900), (300, 600)
FIGURE8_RANGES, FIGURE8_SLIDES = (1500, 2500), (1000, 2000)


@dataclass(frozen=True, slots=True)
class Window:
    """A window of so many units, one every so many units."""

    range: int
    slide: int

    @property
    def tumbling(self) -> bool:
        """Whether no two windows overlap."""
        return self.range == self.slide


@dataclass(frozen=True, slots=True)
class Predicate:
    """Inside a set of groups or not, and a quantity above or below a constant."""

    member: Member
    inside: bool
    value: Value
    above: bool
    constant: float

    @property
    def sql(self) -> str:
        """The condition as Spark reads it."""
        constant = str(int(self.constant)) if self.value.whole else f"{self.constant!r}D"
        compared = self.value.sql.format(op=">" if self.above else "<", constant=constant)
        return f"{self.member.inside if self.inside else self.member.outside} AND {compared}"

    def truth(self, columns: Columns) -> npt.NDArray[np.bool_]:
        """For which records it is true."""
        left, limit = columns[self.value.left], self.constant
        right = limit * columns[self.value.scale] if self.value.scale else limit
        compared = left > right if self.above else left < right
        return np.asarray(compared & (columns[self.member.name] == self.inside))


@dataclass(frozen=True, slots=True)
class Asked:
    """One query: a window, and a predicate or none."""

    window: Window
    predicate: Predicate | None = None


@dataclass(frozen=True)
class QuerySet:
    """The queries of one point of a study; all have the same measure."""

    name: str
    subject: Subject
    queries: tuple[Asked, ...]
    measure: str

    def __len__(self) -> int:
        return len(self.queries)

    def texts(self, grouped: bool) -> dict[str, str]:
        """All queries as Spark SQL, by name."""
        return {f"{self.name}_{i:03}": self._text(query, grouped) for i, query in enumerate(self.queries)}

    def _text(self, query: Asked, grouped: bool) -> str:
        subject, lengths = self.subject, dict.fromkeys((query.window.range, query.window.slide))
        window = ", ".join([subject.time, *(f"'{length} {subject.unit}s'" for length in lengths)])
        where = f" WHERE {query.predicate.sql}" if query.predicate is not None else ""
        key = [subject.key] if grouped else []
        columns = ", ".join(["window.start AS start", *key, f"{self.measure} AS total"])
        groups = ", ".join([f"window({window})", *key])
        return f"SELECT {columns} FROM {subject.name}{where} GROUP BY {groups}"


Constants = Mapping[str, tuple[float, ...]]
"""For each quantity, by name, what it is compared with."""


def find_constants(subject: Subject, columns: Columns) -> Constants:
    """The quantiles that predicates compare with, rounded as people would."""
    above = np.geomspace(MOST_ABOVE, LEAST_ABOVE, LEVELS)
    found: dict[str, tuple[float, ...]] = {}
    for value in subject.values:
        levels = np.quantile(value.quantity(columns), 1 - above)
        rounded = [float(round(level)) if value.whole else float(f"{level:.4g}") for level in levels.tolist()]
        found[value.name] = tuple(dict.fromkeys(rounded))
    return found


SETS: tuple[str, ...] = ("a", "b", "c_regular", "c_low")


def draw(name: str, subject: Subject, constants: Constants, queries: int, seed: int = 0) -> QuerySet:
    """One of `SETS`, or "figure8"."""
    chance = random.Random(f"{name} {queries} {seed}")

    def window() -> Window:
        return Window(chance.randint(*RANGES), chance.randint(*SLIDES))

    def predicate() -> Predicate:
        return _predicate(subject, constants, chance)

    measure = subject.measure
    match name:
        case "a":
            found = [Asked(window) for window in _distinct(window, queries)]
        case "b":
            tumbling = Window(TUMBLING, TUMBLING)
            found = [Asked(tumbling, predicate) for predicate in _distinct(predicate, queries)]
        case "c_regular":
            side = math.isqrt(queries)
            if side * side != queries:
                raise ValueError(f"{queries} queries are no square of predicates and windows")
            predicates, windows = _distinct(predicate, side), _distinct(window, side)
            found = [Asked(window, predicate) for predicate in predicates for window in windows]
        case "c_low":
            pairs = zip(_distinct(window, queries), _distinct(predicate, queries), strict=True)
            found = [Asked(window, predicate) for window, predicate in pairs]
        case "figure8":
            slide = chance.randint(*FIGURE8_SLIDES)
            ranges = _distinct(
                lambda: chance.randint(max(slide + 1, FIGURE8_RANGES[0]), FIGURE8_RANGES[1]), queries
            )
            found, measure = [Asked(Window(range_, slide)) for range_ in ranges], "count(*)"
        case _:
            raise ValueError(f"there is no query set '{name}'")
    return QuerySet(name, subject, tuple(found), measure)


def _predicate(subject: Subject, constants: Constants, chance: random.Random) -> Predicate:
    member, value = chance.choice(subject.members), chance.choice(subject.values)
    inside, above = chance.random() < 0.5, chance.random() < 0.5
    return Predicate(member, inside, value, above, chance.choice(constants[value.name]))


def _distinct(make: Callable[[], T], count: int) -> Sequence[T]:
    """So many different ones, in the order in which they come."""
    found: dict[T, None] = {}
    for _ in range(1000 * count):
        found[make()] = None
        if len(found) == count:
            return [*found]
    raise ValueError(f"there are no {count} different ones to draw")
