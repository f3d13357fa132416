"""The stock market that trades happen in: symbols, how active each is, prices at the start, sizes of a trade.

Volumes are as Krishnamurthy et al. report them ("On-the-fly sharing for streamed aggregation", SIGMOD 2006): half
of all trades are of 100 shares, the 15 commonest volumes make nine tenths, and fewer than 2,000 different ones
occur in ten minutes, between 10 and 1.6 million.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from headrace.generate.chunks import Floats, Ints, Longs, to_arrow
from headrace.generate.options import TradeOptions
from headrace.generate.profiles import spread

EXCHANGES = ("NYSE", "NASDAQ", "ARCA")
# The most active symbols have names that everybody's queries use; the others are made up.
_KNOWN = {
    "NASDAQ": "QQQ AAPL MSFT NVDA TSLA AMZN INTC CSCO AMD ORCL META GOOG NFLX ADBE QCOM",
    "NYSE": "C GE F T BAC JPM XOM WFC GS MS CVX PFE KO DIS IBM WMT BA CAT MRK PG",
    "ARCA": "SPY IWM DIA",
}
_FUNDS = ("QQQ", "SPY", "IWM", "DIA")  # no companies, so in no index of companies
_FIRST = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OTHER = "BCDFGHJKLMNPQRSTVWXZ"  # no vowels: made-up names spell no words
_COMMON = (
    (100, 0.505), (200, 0.114), (300, 0.063), (500, 0.055), (400, 0.045), (1000, 0.040), (600, 0.020),
    (800, 0.015), (700, 0.0125), (2000, 0.0125), (900, 0.010), (1500, 0.0075), (3000, 0.006), (5000, 0.006),
    (2500, 0.005),
)  # fmt: skip
_SYMBOL_ENTRIES = 1 << 20
_VOLUME_ENTRIES = 1 << 18
_DAILY_MOVE = 0.02


@dataclass(frozen=True)
class Market:
    """Tables by symbol (0 is the most active), and two from which random bits draw a `symbol` and a `volume`."""

    names: pa.Array
    exchange: Ints
    activity: Floats
    size: Floats
    log_price: Floats
    overnight: Floats
    daily_move: Floats
    symbol: Longs
    volume: Longs

    def closing_prices(self) -> pa.Table:
        """The day before: each symbol's closing price, within a few percent of where the stream starts."""
        prices = to_cents(np.exp(self.log_price - self.overnight))
        return pa.table({"symbol": self.names, "cp": to_arrow(prices)})

    def index_members(self) -> pa.Table:
        """Who is in which index: the largest are in r1000, the next in r2000, and r3000 is both."""
        count = len(self.size)
        rank = np.empty(count, dtype=np.int64)
        rank[np.argsort(-self.size, kind="stable")] = np.arange(count)
        first, second = min(1000, count // 8), min(2000, count // 4)
        eligible = self.size > 0
        columns = {
            "r3000": eligible & (rank < first + second),
            "r2000": eligible & (rank >= first) & (rank < first + second),
            "r1000": eligible & (rank < first),
        }
        members = {name: pa.array(column.tolist(), pa.bool_()) for name, column in columns.items()}
        return pa.table({"symbol": self.names, **members})


def open_market(options: TradeOptions) -> Market:
    """The market of a seed. Names and activity are the same for every seed."""
    count = options.symbols
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(options.seed, spawn_key=(0, 0))))
    names, exchanges = zip(*_list_symbols(count), strict=True)
    weight = (np.arange(count) + 8.0) ** -0.95
    table = spread(range(count), weight, _SYMBOL_ENTRIES)
    activity = np.bincount(table, minlength=count) / _SYMBOL_ENTRIES
    exchange = np.array([EXCHANGES.index(name) for name in exchanges], dtype=np.int32)
    is_fund = np.array([name in _FUNDS for name in names])
    return Market(
        names=pa.array(names),
        exchange=exchange,
        activity=activity,
        size=np.where(is_fund, 0.0, weight * random.lognormal(0.0, 0.7, count)),
        log_price=np.clip(random.normal(np.log(28.0), 0.9, count), np.log(2.0), np.log(2000.0)),
        overnight=np.clip(random.normal(0.0, 0.01, count), -0.03, 0.03),
        daily_move=_DAILY_MOVE * random.lognormal(0.0, 0.3, count),
        symbol=table,
        volume=_volume_table(),
    )


def to_cents(prices: Floats) -> Floats:
    """Prices rounded to cents, one cent at least."""
    cents = np.rint(prices * 100.0)
    return np.maximum(cents, 1.0, out=cents) / 100.0


def _list_symbols(count: int) -> list[tuple[str, str]]:
    """Names and exchanges by activity: the known ones in turns, then made-up ones, all different."""
    by_exchange = [[(name, exchange) for name in names.split()] for exchange, names in _KNOWN.items()]
    longest = max(map(len, by_exchange))
    listed = [known[turn] for turn in range(longest) for known in by_exchange if turn < len(known)]
    taken = {name for name, _ in listed}
    number = 0
    while len(listed) < count:
        short = number % 5 < 2 and number < len(_FIRST) * len(_OTHER) ** 2
        name = _spell(number, 2 if short else 3)
        if name not in taken:
            listed.append((name, "NYSE" if short else "NASDAQ"))
        number += 1
    return listed[:count]


def _spell(number: int, more: int) -> str:
    """A made-up name of `1 + more` letters; different numbers give different names while they last."""
    space = len(_FIRST) * len(_OTHER) ** more
    code = number * 77_773 % space  # with no factor in common, so that all names come, in a scattered order
    letters = ""
    for _ in range(more):
        code, letter = divmod(code, len(_OTHER))
        letters += _OTHER[letter]
    return _FIRST[code] + letters


def _volume_table() -> Longs:
    """All volumes with their shares: the common ones, odd lots, round lots, and blocks up to 1.6 million."""
    common, share = zip(*_COMMON, strict=True)
    blocks = np.rint(np.geomspace(60_000, 1_600_000, 240) / 1000).astype(np.int64) * 1000
    rare = np.concatenate([np.arange(10, 100), np.arange(104, 9000, 13), np.arange(1100, 60_000, 100), blocks])
    rare = np.setdiff1d(rare, common)
    weight = rare**-0.7
    weight *= (1 - sum(share)) / weight.sum()
    return spread([*common, *rare.tolist()], [*share, *weight.tolist()], _VOLUME_ENTRIES)
