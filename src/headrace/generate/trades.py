"""Stock trades, made chunk by chunk: active symbols often, prices that walk, volumes as traders choose them.

Each symbol's price is a random walk. The walk is drawn twice: first from chunk to chunk, for all symbols, which
is cheap and is done in order (`_tasks`); then from trade to trade inside a chunk, as a bridge between the
prices that the chunk starts and ends with (`_walk`). So chunks can be made in any order and still fit together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa

from headrace.generate.chunks import (
    TIME,
    Floats,
    Longs,
    arrivals,
    chunk_count,
    chunk_random,
    chunk_rows,
    delay,
    spoil,
    to_arrow,
)
from headrace.generate.market import EXCHANGES, Market, open_market, to_cents
from headrace.generate.options import CLOSE_S, OPEN_S, TradeOptions
from headrace.generate.write import Generated, Layout, write_stream
from headrace.query.interval import UNIT_US

TEXT = pa.dictionary(pa.int32(), pa.string())
TRADE_SCHEMA = pa.schema(
    {"ts": TIME, "symbol": TEXT, "price": pa.float64(), "volume": pa.int64(), "exchange": TEXT}
)
_DAY_US, _SECOND_US = UNIT_US["day"], UNIT_US["second"]
_OPEN_US, _SESSION_US = OPEN_S * _SECOND_US, (CLOSE_S - OPEN_S) * _SECOND_US
_FIRST_MONDAY = 4  # in days since 1970


def generate_trades(
    options: TradeOptions,
    folder: str | Path,
    *,
    workers: int | None = None,
    progress: Callable[[int], None] | None = None,
    overwrite: bool = False,
) -> Generated:
    """Write the trades that the options describe as Parquet files into a folder that is new or empty.

    Beside them, in `_static`, go the tables that queries join with: `close.parquet` (symbol, cp) has each symbol's
    closing price of the day before, and `index.parquet` (symbol, r3000, r2000, r1000) the members of three
    indexes. The files are the same for the same options, whatever the number of workers (threads; by default
    one per core). `progress` is called, in the caller's thread, with the number of rows that were just made.
    """
    market = open_market(options)
    layout = Layout(TRADE_SCHEMA, delta=("ts",))
    static = {"close": market.closing_prices(), "index": market.index_members()}
    return write_stream(
        _tasks(options, market),
        layout,
        Path(folder),
        static=static,
        workers=workers,
        progress=progress,
        overwrite=overwrite,
    )


def trade_chunks(options: TradeOptions) -> Iterator[pa.Table]:
    """The same records as tables, in the order of the files."""
    return (make() for make in _tasks(options, open_market(options)))


@dataclass(frozen=True)
class _Stretch:
    """A chunk of the walk: the logarithm of each symbol's price where it starts and where it ends."""

    chunk: int
    start: Floats
    end: Floats


def _tasks(options: TradeOptions, market: Market) -> Iterator[Callable[[], pa.Table]]:
    """One call per chunk; the calls may run in any order and in any thread."""
    rows_per_day = options.records_per_s * (CLOSE_S - OPEN_S)
    start = market.log_price
    for chunk in range(chunk_count(options)):
        move = chunk_random(options, chunk, 2).standard_normal(options.symbols)
        end = start + move * market.daily_move * np.sqrt(chunk_rows(options, chunk) / rows_per_day)
        yield partial(_make_chunk, options, market, _Stretch(chunk, start, end))
        start = end


def _make_chunk(options: TradeOptions, market: Market, stretch: _Stretch) -> pa.Table:
    random = chunk_random(options, stretch.chunk, 0)
    disturbance = chunk_random(options, stretch.chunk, 1)
    arrived = to_calendar(options.start_us, arrivals(options, stretch.chunk, random))
    bits = random.integers(0, 2**63, len(arrived), dtype=np.int64)
    symbol = market.symbol[bits & len(market.symbol) - 1]
    volume = market.volume[bits >> 32 & len(market.volume) - 1]
    price = _walk(options, market, stretch, symbol, random)
    code = to_arrow(symbol.astype(np.int32))
    exchange = to_arrow(market.exchange[symbol])
    table = pa.table(
        [
            to_arrow(delay(arrived, options, disturbance), TIME),
            pa.DictionaryArray.from_arrays(code, market.names),
            to_arrow(price),
            to_arrow(volume),
            pa.DictionaryArray.from_arrays(exchange, pa.array(EXCHANGES)),
        ],
        schema=TRADE_SCHEMA,
    )
    return spoil(table, options, disturbance)


def _walk(
    options: TradeOptions, market: Market, stretch: _Stretch, symbol: Longs, random: np.random.Generator
) -> Floats:
    """Each trade's price: a walk per symbol that starts and ends where the stretch says.

    The trades are put in the order of symbols, where all walks are one running sum of steps. A symbol's walk is
    the sum since its first trade, tilted so that it meets the end.
    """
    few = symbol.astype(np.uint16) if options.symbols <= 1 << 16 else symbol  # short integers sort much faster
    order = np.argsort(few, kind="stable")
    trades = np.bincount(symbol, minlength=options.symbols)
    after = np.cumsum(trades)
    before = after - trades
    steps = np.concatenate([[0.0], np.cumsum(random.standard_normal(len(symbol)))])
    trades_per_day = market.activity * options.records_per_s * (CLOSE_S - OPEN_S)
    step = market.daily_move / np.sqrt(trades_per_day)
    wandered = step * (steps[after] - steps[before])
    tilt = (stretch.end - stretch.start - wandered) / np.maximum(trades, 1)
    level = stretch.start - step * steps[before] - tilt * before
    log_price = np.repeat(tilt, trades) * np.arange(1, len(symbol) + 1)
    log_price += np.repeat(step, trades) * steps[1:]
    log_price += np.repeat(level, trades)
    price = np.empty(len(symbol))
    price[order] = to_cents(np.exp(log_price))
    return price


def to_calendar(start_us: int, passed_us: Longs) -> Longs:
    """The time on the calendar when `passed_us` of trading time have passed: nights and weekends are skipped."""
    date, clock_us = divmod(start_us, _DAY_US)
    week, weekday = divmod(date - _FIRST_MONDAY, 7)
    session, within_us = np.divmod(passed_us + (clock_us - _OPEN_US), _SESSION_US)
    session += week * 5 + weekday
    week_of, weekday_of = np.divmod(session, 5)
    return (week_of * 7 + weekday_of + _FIRST_MONDAY) * _DAY_US + _OPEN_US + within_us
