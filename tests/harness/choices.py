"""The decisions of a generator: drawn from hypothesis, which shrinks them, or from a seed, which is faster.

Every choice shrinks to the first option, the smallest number or "no", so the plain form of everything is written
first. Only small integers are drawn: thousands of them stay fast.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Protocol, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Choices(ABC):
    """A source of decisions."""

    @abstractmethod
    def number(self, least: int, most: int) -> int:
        """A number from `least` to `most`, both included."""

    def pick(self, options: Sequence[T]) -> T:
        return options[self.number(0, len(options) - 1)]

    def chance(self, percent: int) -> bool:
        return self.number(0, 99) >= 100 - percent

    def some(self, options: Sequence[T], least: int, most: int) -> list[T]:
        """Between `least` and `most` different options (fewer if there are not so many), in random order."""
        left = list(options)
        count = min(self.number(least, max(least, most)), len(left))
        return [left.pop(self.number(0, len(left) - 1)) for _ in range(count)]

    def weighted(self, options: Sequence[tuple[int, T]]) -> T:
        """One option, by its weight."""
        at = self.number(0, sum(weight for weight, _ in options) - 1)
        for weight, option in options:
            if at < weight:
                return option
            at -= weight
        raise AssertionError("weights are positive")


class Draw(Protocol):
    """What a composite strategy gets as its first argument."""

    def __call__(self, strategy: st.SearchStrategy[T], /) -> T: ...


@cache
def _up_to(most: int) -> st.SearchStrategy[int]:
    return st.integers(0, most)


class Drawn(Choices):
    """Decisions of hypothesis."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw

    def number(self, least: int, most: int) -> int:
        return least + self._draw(_up_to(most - least))


class Seeded(Choices):
    """Decisions that follow from a seed: independent of each other, and the same in every run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def number(self, least: int, most: int) -> int:
        return self._random.randint(least, most)
