"""A query's text and where it came from, so that every message can point at its place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from headrace.errors import Problem
from headrace.query.dialect import blank


@dataclass(frozen=True, slots=True)
class Source:
    """Query text; `origin` is its file or its name, `first_line` the line of the file on which it begins.

    `written` is what the user wrote, where `text` has blanks in place of a part of it.
    """

    text: str
    origin: str
    first_line: int = 1
    written: str = field(default="", repr=False)

    @property
    def original(self) -> Source:
        """The same with all that the user wrote."""
        return replace(self, text=self.written, written="") if self.written else self

    def without(self, spans: Iterable[tuple[int, int]]) -> Source:
        """The text with blanks in place of some spans; problems still show what was there."""
        text = self.text
        for start, end in spans:
            text = text[:start] + blank(text[start:end]) + text[end:]
        return replace(self, text=text, written=self.written or self.text)

    def problem(self, message: str, span: tuple[int, int] | None = None, hint: str = "") -> Problem:
        """A problem at a span of the text, or about the text as a whole."""
        if span is None:
            return Problem(message, origin=self.origin, hint=hint)
        text = self.written or self.text
        start = min(span[0], len(text))
        line_start = text.rfind("\n", 0, start) + 1
        line_end = text.find("\n", start)
        line = text[line_start : line_end if line_end >= 0 else len(text)]
        return Problem(
            message,
            origin=self.origin,
            line=self.first_line + text.count("\n", 0, start),
            column=start - line_start + 1,
            width=max(1, span[1] - span[0]),
            source_line=line,
            hint=hint,
        )

    def cut(self, span: tuple[int, int]) -> str:
        """The text of a span."""
        return self.text[span[0] : span[1]]
