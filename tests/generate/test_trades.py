"""Trades: hours, symbols, volumes as the paper reports them, and prices that walk across chunks."""

import itertools
from datetime import UTC, datetime, time
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from headrace.errors import GenerateError
from headrace.generate import TradeOptions, generate_trades, measure_trades, trade_chunks
from headrace.generate.market import open_market
from headrace.generate.trades import to_calendar

ROWS = 600_000  # three chunks


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("trades")
    generate_trades(TradeOptions(ROWS), path)
    return path


@pytest.fixture(scope="module")
def table(folder: Path) -> pa.Table:
    return pq.read_table(folder)


def prices_of(table: pa.Table, symbol: str) -> npt.NDArray[np.float64]:
    prices: npt.NDArray[np.float64] = table.filter(pc.equal(table["symbol"], symbol))["price"].to_numpy()
    return prices


def test_columns_and_types(table: pa.Table) -> None:
    assert table.num_rows == ROWS
    assert {field.name: str(field.type) for field in table.schema} == {
        "ts": "timestamp[us, tz=UTC]",
        "symbol": "string",
        "price": "double",
        "volume": "int64",
        "exchange": "string",
    }


def test_ten_minutes_look_as_the_paper_says(folder: Path) -> None:
    shape = measure_trades(folder)
    assert [interval.start for interval in shape.intervals] == [
        f"2024-03-04 {at}" for at in ("09:30", "09:40", "09:50")
    ]
    for interval in shape.intervals:
        assert interval.trades == pytest.approx(190_000, rel=0.01)
        assert 1000 < interval.volumes < 2000
        assert interval.least_volume == 10
        assert 1_000_000 < interval.most_volume <= 1_600_000
        assert 0.49 < interval.share_of_100 < 0.52
        assert 0.90 < interval.share_of_15 < 0.93
        assert 3000 < interval.symbols < 8000
        assert 0.01 < interval.top_symbol_share < 0.05
    header, *lines = shape.rows()
    assert {len(line) for line in lines} == {len(header)}


def test_prices_are_positive_whole_cents(table: pa.Table) -> None:
    cents = table["price"].to_numpy() * 100
    assert cents.min() >= 1
    assert np.abs(cents - np.rint(cents)).max() < 1e-6


@pytest.mark.parametrize("symbol", ["AAPL", "SPY", "JPM"])
def test_prices_walk_and_do_not_jump_between_chunks(symbol: str) -> None:
    chunks = [prices_of(chunk, symbol) for chunk in trade_chunks(TradeOptions(ROWS))]
    moves = [np.abs(np.diff(np.log(chunk))).max() for chunk in chunks]
    assert max(moves) < 0.005
    for before, after in itertools.pairwise(chunks):
        assert abs(np.log(after[0] / before[-1])) < 0.005
    whole = np.concatenate(chunks)
    assert whole.max() / whole.min() > 1.001
    # A walk's spread over many trades is far more than the step from one trade to the next.
    assert whole.std() > 3 * np.diff(whole).std()


def test_the_walk_grows_with_time_but_not_too_fast() -> None:
    options = TradeOptions(2000, symbols=1000, rate=2000 / 25_200)  # a whole session
    table = next(iter(trade_chunks(options)))
    start = dict(zip(open_market(options).names.to_pylist(), np.exp(open_market(options).log_price), strict=True))
    moved = [
        np.log(p / start[s]) for s, p in zip(table["symbol"].to_pylist(), table["price"].to_pylist(), strict=True)
    ]
    assert 0.005 < np.std(moved) < 0.04


def test_the_exchange_is_decided_by_the_symbol(table: pa.Table) -> None:
    groups = table.group_by("symbol").aggregate([("exchange", "count_distinct")])
    assert pc.max(groups["exchange_count_distinct"]).as_py() == 1
    assert set(table["exchange"].unique().to_pylist()) == {"NYSE", "NASDAQ", "ARCA"}
    listed = dict(zip(table["symbol"].to_pylist(), table["exchange"].to_pylist(), strict=True))
    assert (listed["AAPL"], listed["IBM"], listed["SPY"]) == ("NASDAQ", "NYSE", "ARCA")


def test_symbols_are_unique_and_the_same_for_every_seed() -> None:
    many = open_market(TradeOptions(1, symbols=100_000)).names.to_pylist()
    assert len(set(many)) == 100_000
    assert all(name.isascii() and name.isupper() and 1 <= len(name) <= 4 for name in many)
    assert open_market(TradeOptions(1, symbols=500, seed=9)).names.to_pylist() == many[:500]


def test_every_chunk_is_drawn_anew() -> None:
    first, second = trade_chunks(TradeOptions(500_000))
    for name in ("symbol", "volume"):
        assert pc.mean(pc.equal(first[name], second[name])).as_py() < 0.9


def test_one_symbol_is_enough() -> None:
    table = next(trade_chunks(TradeOptions(100, symbols=1)))
    assert set(table["symbol"].to_pylist()) == {"QQQ"}


def test_static_tables_lie_beside_and_are_not_part_of_the_stream(folder: Path, table: pa.Table) -> None:
    close = pq.read_table(folder / "_static" / "close.parquet")
    assert close.column_names == ["symbol", "cp"]
    assert set(table["symbol"].unique().to_pylist()) <= set(close["symbol"].to_pylist())
    closing = dict(zip(close["symbol"].to_pylist(), close["cp"].to_pylist(), strict=True))
    early = table.slice(0, 20_000)
    change = [
        p / closing[s] - 1 for s, p in zip(early["symbol"].to_pylist(), early["price"].to_pylist(), strict=True)
    ]
    assert np.abs(change).max() < 0.1
    assert np.std(change) > 0.002


def test_index_members_are_the_largest(folder: Path) -> None:
    index = pq.read_table(folder / "_static" / "index.parquet")
    assert index.column_names == ["symbol", "r3000", "r2000", "r1000"]
    r3000, r2000, r1000 = (np.array(index[name].to_pylist()) for name in index.column_names[1:])
    assert (r1000.sum(), r2000.sum()) == (1000, 2000)
    assert not (r1000 & r2000).any()
    assert (r3000 == (r1000 | r2000)).all()
    member = dict(zip(index["symbol"].to_pylist(), r3000, strict=True))
    assert member["AAPL"]
    assert not any(member[fund] for fund in ("SPY", "QQQ", "IWM", "DIA"))


def test_nights_and_weekends_are_skipped() -> None:
    def at(text: str) -> int:
        return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000_000)

    hour = 3_600_000_000
    passed = np.array([0, hour, hour + 1, 8 * hour, 9 * hour], dtype=np.int64)
    friday = to_calendar(at("2024-03-08 15:30:00"), passed)  # one hour before the close
    assert friday.tolist() == [
        at("2024-03-08 15:30:00"),
        at("2024-03-11 09:30:00"),
        at("2024-03-11 09:30:00.000001"),
        at("2024-03-12 09:30:00"),
        at("2024-03-12 10:30:00"),
    ]


def test_a_stream_of_days_keeps_to_trading_hours() -> None:
    table = next(trade_chunks(TradeOptions(20_000, rate=0.05)))
    times = table["ts"].to_pylist()
    assert times == sorted(times)
    assert all(time(9, 30) <= at.time() < time(16, 30) and at.weekday() < 5 for at in times)
    assert len({at.date() for at in times}) > 10


def test_disturbances_leave_the_trades_alone() -> None:
    calm = next(trade_chunks(TradeOptions(20_000)))
    moved = next(trade_chunks(TradeOptions(20_000, late=0.2, disorder_s=2.0)))
    assert moved.drop_columns(["ts"]).equals(calm.drop_columns(["ts"]))
    assert not moved["ts"].equals(calm["ts"])
    holed = next(trade_chunks(TradeOptions(20_000, nulls=0.1)))
    assert [holed[name].null_count > 0 for name in holed.column_names] == [False, True, True, True, True]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"symbols": 0}, "symbols must be a whole number from 1 to 100000"),
        ({"symbols": 100_001}, "symbols must be a whole number from 1 to 100000"),
        ({"start": "2024-03-04 09:29:59"}, "start must be in trading hours"),
        ({"start": "2024-03-04 16:30:00"}, "start must be in trading hours"),
        ({"start": "2024-03-09 12:00:00"}, "Monday to Friday"),
    ],
)
def test_wrong_options_say_what_would_be_right(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(GenerateError, match=message):
        TradeOptions(1000, **wrong)  # type: ignore[arg-type]
