"""What can go wrong, told in the user's terms: one root exception, one subclass per stage.

A mistake in a query's text is a `Problem`: what is wrong, where, and what would be right. Errors that stem
from text carry problems, so that a workload can report all of them together.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in one text: `line` and `column` count from 1, `width` characters are underlined."""

    message: str
    origin: str = ""
    line: int = 0
    column: int = 0
    width: int = 1
    source_line: str = ""
    hint: str = ""

    @property
    def located(self) -> bool:
        """Whether the problem points at a place in a text."""
        return self.line > 0

    def __str__(self) -> str:
        where = f"{self.origin}:{self.line}:{self.column}: " if self.located else ""
        if self.origin and not self.located:
            where = f"{self.origin}: "
        lines = [f"{where}{self.message}"]
        if self.located and self.source_line:
            # Tabs are kept in the pointer line, so that the caret stands under its character.
            pad = "".join("\t" if c == "\t" else " " for c in self.source_line[: self.column - 1])
            room = max(1, len(self.source_line) - self.column + 1)
            lines += [f"    {self.source_line}", f"    {pad}{'^' * max(1, min(self.width, room))}"]
        if self.hint:
            lines.append(f"  {self.hint}")
        return "\n".join(lines)


class HeadraceError(Exception):
    """The root of all errors that headrace raises on purpose."""


class SetupError(HeadraceError):
    """The machine lacks something that headrace needs (Java, a usable Spark)."""


class StreamError(HeadraceError):
    """The stream is not what it was said to be: no such folder, no such time column."""


class QueryError(HeadraceError):
    """A query's text is wrong."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n\n".join(str(problem) for problem in self.problems))


class WorkloadError(HeadraceError):
    """A set of queries is wrong: all problems of all its queries, in one report."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        count = len(self.problems)
        head = "1 problem in the workload" if count == 1 else f"{count} problems in the workload"
        super().__init__("\n\n".join([head, *(str(problem) for problem in self.problems)]))


class GenerateError(HeadraceError):
    """A generator was asked for something that it cannot make."""


class RunError(HeadraceError):
    """A query failed while it ran; the message names the query."""


class OutputError(HeadraceError):
    """Results could not be written; what was there before is untouched."""


class LogError(HeadraceError):
    """The partial log of a stream is damaged, or not one that this version reads."""


class BenchError(HeadraceError):
    """A benchmark is void: two engines gave different answers, or one of them gave none."""


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A hint with the near matches of `word` among `known`, or an empty text.

    >>> did_you_mean("byts", ["bytes", "packets"])
    "did you mean 'bytes'?"
    """
    by_lower = {name.lower(): name for name in known}
    near = difflib.get_close_matches(word.lower(), by_lower, n=3, cutoff=0.6)
    if not near:
        return ""
    # Only what comes as close as the best, or nearly: 'byts' is 'bytes' and hardly 'ts'.
    close = [difflib.SequenceMatcher(None, word.lower(), match).ratio() for match in near]
    shown = [by_lower[match] for match, ratio in zip(near, close, strict=True) if ratio > close[0] - 0.1]
    return "did you mean " + " or ".join(f"'{name}'" for name in shown) + "?"
