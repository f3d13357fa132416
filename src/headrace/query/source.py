"""A query's text and where it came from, so that every message can point at its place."""

from __future__ import annotations

from dataclasses import dataclass

from headrace.errors import Problem


@dataclass(frozen=True, slots=True)
class Source:
    """Query text; `origin` is its file or its name, `first_line` the line of the file on which it begins."""

    text: str
    origin: str
    first_line: int = 1

    def problem(self, message: str, span: tuple[int, int] | None = None, hint: str = "") -> Problem:
        """A problem at a span of the text, or about the text as a whole."""
        if span is None:
            return Problem(message, origin=self.origin, hint=hint)
        start = min(span[0], len(self.text))
        line_start = self.text.rfind("\n", 0, start) + 1
        line_end = self.text.find("\n", start)
        line = self.text[line_start : line_end if line_end >= 0 else len(self.text)]
        return Problem(
            message,
            origin=self.origin,
            line=self.first_line + self.text.count("\n", 0, start),
            column=start - line_start + 1,
            width=max(1, span[1] - span[0]),
            source_line=line,
            hint=hint,
        )

    def cut(self, span: tuple[int, int]) -> str:
        """The text of a span."""
        return self.text[span[0] : span[1]]
