"""What a task does with the steps that it was given: partials of the log to answers."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from headrace.kernel.due import Due
from headrace.kernel.high import HighLevel
from headrace.kernel.piece import Ready
from headrace.kernel.shelf import Kept, Reader
from headrace.runtime.live.emitted import Answers, Emitted, Places
from headrace.runtime.live.version import Version
from headrace.runtime.worker import Batches, arrow_schema

LINES = "emitted string"
_SCHEMA = arrow_schema(LINES)


@dataclass(frozen=True, slots=True)
class Walk:
    """Steps, one after another: what is due in each, and its partials, each with its root."""

    version: Version
    steps: tuple[tuple[Due, tuple[tuple[int, Kept], ...]], ...]
    places: Places
    mark: str

    def run(self) -> Emitted:
        """All that is made of them."""
        version, reader = self.version, Reader(self.places.shelf)
        answers = Answers(version, self.places, self.mark)
        for due, partials in self.steps:
            # All rows of a group are here.
            level = HighLevel(version.plan, 1, last=True, conditions=version.conditions, due=due)
            for root, kept in partials:
                level.add(root, *reader.read(kept))
            answers.add(piece for piece in level.finish() if isinstance(piece, Ready))
        return answers.close()

    def lines(self) -> Batches:
        """The same in a worker: one line, about all that was made."""
        yield pa.RecordBatch.from_pylist([{"emitted": self.run().to_json()}], schema=_SCHEMA)
