"""The three workloads: what each asks, made from a few short lists."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count, islice

from headrace.bench.question import DAY_US, MINUTE_US, Measure, Question, Window, tumbling
from headrace.generate.schemes import SCHEMES, Scheme


@dataclass(frozen=True)
class Topic:
    """A workload: the stream that it is about, and as many questions as one likes in a fixed order.

    A name means the same measure in all questions, so that grouping sets can have each once. `usual` is how many
    questions are asked where nobody says.
    """

    name: str
    stream: str
    time: str
    usual: int
    endless: Callable[[], Iterator[Question]]

    def take(self, number: int) -> tuple[Question, ...]:
        """The first questions."""
        return tuple(islice(self.endless(), number))

    def spread(self, number: int, of: int) -> tuple[Question, ...]:
        """So many questions, evenly spread over the first ones: there are as many of each kind, in proportion."""
        first = self.take(of)
        return tuple(first[place * of // number] for place in range(number))

    @property
    def questions(self) -> tuple[Question, ...]:
        """The usual ones."""
        return self.take(self.usual)


_VALUES = {
    "B": (
        Measure("sum", "packets", "packets"),
        Measure("sum", "octets", "octets"),
        Measure("count", "", "flows"),
    ),
    "T": (Measure("min", "first", "first"), Measure("max", "last", "last")),
    "A": (Measure("sum", "active", "active"),),
}


_MINUTES = (1, 5, 10, 15, 30, 60)
_CONDITIONS = (
    "protocol = 6",
    "protocol = 17",
    "dstport = 443",
    "dstport = 53",
    "dstport IN (80, 443, 8080)",
    "dstport < 1024",
    "srcport >= 1024",
    "packets = 1",
    "packets >= 10",
    "octets BETWEEN 64 AND 1500",
    "tos = 0",
    "input <= 8",
    "src_mask >= 16",
)


def _netflow() -> Iterator[Question]:
    """The schemes, and then questions that are drawn, always the same ones.

    Each of these has some of a scheme's keys (one of them at least, any other with a chance of two thirds), its
    values, a window, and in half of all cases a filter of one condition or of two.
    """
    seen: set[tuple[object, ...]] = set()
    for scheme in SCHEMES.values():
        window = tumbling(5 * MINUTE_US)
        seen.add((frozenset(scheme.keys), window, ""))
        yield Question(scheme.name, scheme.keys, _values(scheme), window=window)
    draw = random.Random(22)
    while True:
        scheme = draw.choice(list(SCHEMES.values()))
        sure = draw.choice(scheme.keys)
        keys = tuple(key for key in scheme.keys if key == sure or draw.random() < 2 / 3)
        window = tumbling(draw.choice(_MINUTES) * MINUTE_US)
        conditions = draw.sample(_CONDITIONS, draw.choice((0, 0, 1, 2)))
        where = " AND ".join(sorted(conditions))
        if (frozenset(keys), window, where) not in seen:
            seen.add((frozenset(keys), window, where))
            yield Question(f"drawn_{len(seen):03}", keys, _values(scheme), where, window)


def _values(scheme: Scheme) -> tuple[Measure, ...]:
    return tuple(measure for letter in scheme.values for measure in _VALUES[letter])


@dataclass(frozen=True)
class _Lists:
    """What the questions of a topic are combined from: question i takes the i-th of each, going round.

    Measures stay for three questions each, so that they do not go along with filters, of which there are as many.
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
    "netflow": Topic("netflow", "flows", "ts", len(SCHEMES), _netflow),
    "trades": Topic("trades", "trades", "ts", 64, partial(_TRADES.questions, "trades")),
    "flights": Topic("flights", "flights", "date", 64, partial(_FLIGHTS.questions, "flights")),
}
