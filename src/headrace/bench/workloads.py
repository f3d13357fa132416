"""The three workloads: what each asks, made from a few short lists, and how it grows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

from headrace.bench.question import DAY_US, MINUTE_US, Measure, Question, Window, tumbling
from headrace.generate.schemes import SCHEMES

_COUNT = 64
"""So many questions are asked about trades and about flights; flows have as many as there are schemes."""


@dataclass(frozen=True)
class Topic:
    """A workload: the stream that it is about, and its questions in a fixed order.

    A name means the same measure in all questions, so that grouping sets can have each once.
    """

    name: str
    stream: str
    time: str
    questions: tuple[Question, ...]

    def take(self, number: int) -> tuple[Question, ...]:
        """The first questions; where there are not as many, they come again with longer windows.

        What has no window gets one then, a multiple of the topic's shortest.
        """
        return tuple(islice(self._endless(), number))

    def _endless(self) -> Iterator[Question]:
        shortest = min((q.window for q in self.questions if q.window), key=lambda window: window.length_us)
        for repeat in count():
            for question in self.questions:
                yield question if not repeat else _vary(question, repeat, shortest)


def _vary(question: Question, repeat: int, shortest: Window) -> Question:
    window = question.window.times(repeat + 1) if question.window else shortest.times(6 + repeat)
    return dataclasses.replace(question, name=f"{question.name}_x{repeat + 1}", window=window)


_VALUES = {
    "B": (
        Measure("sum", "packets", "packets"),
        Measure("sum", "octets", "octets"),
        Measure("count", "", "flows"),
    ),
    "T": (Measure("min", "first", "first"), Measure("max", "last", "last")),
    "A": (Measure("sum", "active", "active"),),
}


def _netflow() -> Iterator[Question]:
    for scheme in SCHEMES.values():
        measures = tuple(measure for letter in scheme.values for measure in _VALUES[letter])
        yield Question(scheme.name, scheme.keys, measures, window=tumbling(5 * MINUTE_US))


@dataclass(frozen=True)
class _Lists:
    """What the questions of a topic are combined from: question i takes the i-th of each, going round.

    The lists have lengths without a common divisor, so that no combination comes twice among the first ones.
    """

    keys: tuple[tuple[str, ...], ...]
    windows: tuple[Window | None, ...]
    filters: tuple[str, ...]
    measures: tuple[tuple[Measure, ...], ...]

    def questions(self, topic: str) -> Iterator[Question]:
        for i in count():
            keys, window = self.keys[i % len(self.keys)], self.windows[i % len(self.windows)]
            if keys or window:
                where = self.filters[i % len(self.filters)]
                measures = self.measures[i // 3 % len(self.measures)]
                yield Question(f"{topic}_{i:02}", keys, measures, where, window)


_N = Measure("count", "", "n")

_TRADES = _Lists(
    keys=(("symbol",), ("exchange",), ("symbol", "exchange"), (), ("exchange", "volume"), ("volume",)),
    windows=(*(tumbling(minutes * MINUTE_US) for minutes in (1, 5, 15, 60)), None),
    filters=(
        "",
        "volume >= 1000",
        "",
        "exchange IN ('NYSE', 'ARCA') AND price IS NOT NULL",
        "",
        "price BETWEEN 10 AND 100",
        "symbol IN ('AAPL', 'MSFT', 'NVDA', 'TSLA') OR volume > 5000",
    ),
    measures=(
        (_N, Measure("sum", "volume", "shares")),
        (Measure("sum", "price * volume", "turnover"), Measure("sum", "volume", "shares")),
        (Measure("min", "price", "low"), Measure("max", "price", "high"), Measure("avg", "price", "mean")),
        (_N, Measure("stddev_samp", "price", "spread"), Measure("avg", "price", "mean")),
        (_N, Measure("count", "", "blocks", "volume >= 10000"), Measure("max", "volume", "largest")),
        (Measure("sum", "volume", "odd_lots", "volume < 100"), Measure("sum", "volume", "shares")),
        (Measure("avg", "volume", "mean_size"), Measure("stddev_samp", "volume", "size_spread")),
    ),
)

_FLIGHTS = _Lists(
    keys=(("origin",), ("destination",), ("origin", "destination"), (), ("origin", "distance"), ("distance",)),
    windows=(
        tumbling(DAY_US),
        None,
        tumbling(7 * DAY_US),
        Window(7 * DAY_US, DAY_US),
        tumbling(60 * MINUTE_US),
    ),
    filters=(
        "",
        "delay > 15",
        "",
        "origin IN ('ORD', 'ATL', 'DFW', 'LAX') AND distance IS NOT NULL",
        "",
        "distance BETWEEN 500 AND 1500",
        "destination IN ('JFK', 'LGA', 'EWR') OR delay < -10",
    ),
    measures=(
        (_N, Measure("count", "", "late", "delay > 15")),
        (Measure("avg", "delay", "mean"), Measure("stddev_samp", "delay", "spread")),
        (_N, Measure("min", "delay", "best"), Measure("max", "delay", "worst")),
        (Measure("sum", "distance", "miles"), Measure("max", "distance", "longest")),
        (_N, Measure("sum", "delay", "minutes_lost", "delay > 0"), Measure("sum", "delay", "minutes")),
        (
            Measure("avg", "distance", "mean_miles"),
            Measure("min", "date", "first"),
            Measure("max", "date", "last"),
        ),
        (Measure("avg", "delay", "mean_late", "delay > 15"), _N),
    ),
)

TOPICS = {
    "netflow": Topic("netflow", "flows", "ts", tuple(_netflow())),
    "trades": Topic("trades", "trades", "ts", tuple(islice(_TRADES.questions("trades"), _COUNT))),
    "flights": Topic("flights", "flights", "date", tuple(islice(_FLIGHTS.questions("flights"), _COUNT))),
}
