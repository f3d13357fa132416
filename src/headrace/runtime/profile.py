"""What a run measured, beside the plan: rows, bytes and seconds of each node and answer."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from headrace.kernel.cascade import Measure, Measures
from headrace.plan.plan import Plan


def pack_measures(measures: Measures) -> str:
    """Measures as text, to travel."""
    return json.dumps(asdict(measures))


@dataclass(frozen=True, slots=True)
class Profile:
    """Measures of all tasks together; `print(profile)` shows them beside the tree."""

    plan: Plan
    nodes: dict[int, Measure]
    answers: dict[int, Measure]
    seconds: float

    @staticmethod
    def of(plan: Plan, packed: Iterable[str], seconds: float) -> Profile:
        """The sum of what tasks have measured."""
        profile = Profile(plan, {}, {}, seconds)
        for text in packed:
            measures = json.loads(text)
            for kind, into in (("nodes", profile.nodes), ("answers", profile.answers)):
                for index, measure in measures[kind].items():
                    into.setdefault(int(index), Measure()).add(**measure)
        return profile

    def to_json(self) -> str:
        """The measures of each node and query as JSON."""
        nodes = {self.plan.nodes[index].id: asdict(measure) for index, measure in sorted(self.nodes.items())}
        queries = {self.plan.answers[n].query.name: asdict(m) for n, m in sorted(self.answers.items())}
        return json.dumps({"seconds": self.seconds, "nodes": nodes, "queries": queries})

    def __str__(self) -> str:
        """The plan's tree, each node with what it took in and gave."""
        notes = {}
        for index, measure in self.nodes.items():
            answers = [self.answers[n].seconds for n in self.plan.answers_of(index) if n in self.answers]
            notes[index] = (
                f"{measure.rows_in:,} -> {measure.rows_out:,} rows ({self.plan.rows[index]:,.0f} expected), "
                f"{measure.bytes_out / 1e6:,.1f} MB, "
                f"{measure.seconds:.2f} s" + (f", answers {sum(answers):.2f} s" if answers else "")
            )
        return f"{self.plan.explain(notes)}\n{self.seconds:.2f} s in all; seconds of nodes are those of all cores"
