"""What the studies are about: trades as in the paper, and recorded flights with hours in place of its seconds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from headrace.bench.question import read_data
from headrace.errors import StreamError
from headrace.generate.market import Market, open_market
from headrace.generate.options import TradeOptions
from headrace.generate.trades import TRADE_SCHEMA, trade_chunks
from headrace.generate.write import Layout, write_stream
from headrace.query.interval import UNIT_US
from headrace.sources import Stream
from headrace.sources.stream import open_parquet

Column = npt.NDArray[Any]
Columns = Mapping[str, Column]

_HOUR_S = 3600
_TRADED = ("ts", "symbol", "price", "volume")
_INDEXES = ("r3000", "r2000", "r1000")
_SCHEMA = pa.schema(
    [TRADE_SCHEMA.field(name) for name in _TRADED]
    + [pa.field("cp", pa.float64()), *(pa.field(name, pa.bool_()) for name in _INDEXES)]
)
_FLOWN = ("date", "delay", "distance", "origin")


@dataclass(frozen=True, slots=True)
class Member:
    """A set of groups: the condition that a record's group is in it, in SQL, and what it is not."""

    name: str
    inside: str
    outside: str


@dataclass(frozen=True, slots=True)
class Value:
    """A quantity that predicates compare with a constant.

    `sql` has places for the operator and the constant. In numpy it is the column `left` beside the constant, or
    beside the constant times the column `scale`: a quotient is compared without a division, which could raise.
    """

    name: str
    sql: str
    left: str
    scale: str = ""
    whole: bool = False

    def quantity(self, columns: Columns) -> Column:
        """The quantity itself, of all records; where `scale` is zero, it is left out."""
        if not self.scale:
            return columns[self.left]
        there = columns[self.scale] != 0
        return np.asarray(columns[self.left][there] / columns[self.scale][there])


@dataclass(frozen=True)
class Subject:
    """A stream with its key, its measure, and what its predicates are made of. `unit` is the papers' second."""

    name: str
    time: str
    key: str
    measure: str
    unit: str
    columns: tuple[str, ...]
    members: tuple[Member, ...]
    values: tuple[Value, ...]
    derive: Callable[[Columns], Columns]
    """The columns of members and values, from those that were read."""

    def stream(self, path: Path) -> Stream:
        """Its records in some files, as headrace's stream."""
        return Stream.parquet(str(path), self.name, self.time)


@dataclass(frozen=True)
class Records:
    """What is counted: the unit of time and the group of every record, and the columns of predicates."""

    units: npt.NDArray[np.int64]
    groups: npt.NDArray[np.int32]
    columns: Columns

    def __len__(self) -> int:
        return len(self.units)

    @property
    def ungrouped(self) -> Records:
        """The same records, all in one group."""
        return Records(self.units, np.zeros(len(self), dtype=np.int32), self.columns)


def prepare_trades(rows: int, folder: Path, hours: float = 1.0, start: str = "2024-03-04 12:00:00") -> Path:
    """Write so many trades of so much trading time, each with its symbol's closing price and index membership."""
    options = TradeOptions(rows, rate=rows / (hours * _HOUR_S), start=start)
    market = open_market(options)
    write_stream(_joined_chunks(options, market), Layout(_SCHEMA, delta=("ts",)), folder)
    return folder


def _joined_chunks(options: TradeOptions, market: Market) -> Iterator[Callable[[], pa.Table]]:
    static = {"cp": market.closing_prices()["cp"]} | {name: market.index_members()[name] for name in _INDEXES}
    for chunk in trade_chunks(options):
        yield partial(_join, chunk, static)


def _join(chunk: pa.Table, static: Mapping[str, pa.ChunkedArray]) -> pa.Table:
    """A chunk with the static tables' columns: symbols are numbered as these list them."""
    symbols = chunk["symbol"].combine_chunks()
    numbers = symbols.chunk(0).indices if isinstance(symbols, pa.ChunkedArray) else symbols.indices
    columns = [chunk[name] for name in _TRADED]
    return pa.table([*columns, *(column.take(numbers) for column in static.values())], schema=_SCHEMA)


def trades() -> Subject:
    """The paper's trades with their static tables joined: Table 7, and the predicates of Table 8."""
    members = tuple(Member(name, name, f"NOT {name}") for name in _INDEXES)
    values = (
        Value("volume", "volume {op} {constant}", "volume", whole=True),
        Value("value", "volume * price {op} {constant}", "value"),
        Value("change", "abs(price - cp) {op} {constant} * cp", "change", "cp"),
    )
    return Subject(
        "trades", "ts", "symbol", "sum(price * volume)", "second",
        tuple(_SCHEMA.names), members, values, _derive_trades,
    )  # fmt: skip


def _derive_trades(columns: Columns) -> Columns:
    price, volume, cp = columns["price"], columns["volume"], columns["cp"]
    members = {name: columns[name] for name in _INDEXES}
    return {**members, "volume": volume, "value": volume * price, "change": np.abs(price - cp), "cp": cp}


def flights(path: Path) -> Subject:
    """Recorded flights: members are the 20 airports with most departures, the next 60, and both together."""
    origins = _read(path, ["origin"])["origin"].combine_chunks().value_counts()
    counted = sorted(zip(origins.field(1).to_pylist(), origins.field(0).to_pylist(), strict=True), reverse=True)
    names = [name for _, name in counted]
    lists = {"hubs": names[:20], "others": names[20:80], "listed": names[:80]}
    members = tuple(_airports(name, airports) for name, airports in lists.items())
    values = (
        Value("delay", "delay {op} {constant}", "delay", whole=True),
        Value("distance", "distance {op} {constant}", "distance", whole=True),
        Value("pace", "delay {op} {constant} * distance", "delay", "distance"),
    )
    return Subject(
        "flights", "date", "origin", "sum(delay)", "hour",
        _FLOWN, members, values, partial(_derive_flights, lists),
    )  # fmt: skip


def _airports(name: str, airports: list[str]) -> Member:
    listed = ", ".join(f"'{airport}'" for airport in airports)
    return Member(name, f"origin IN ({listed})", f"origin NOT IN ({listed})")


def _derive_flights(lists: Mapping[str, list[str]], columns: Columns) -> Columns:
    origins, codes = np.unique(columns["origin"], return_inverse=True)
    members = {name: np.isin(origins, airports)[codes] for name, airports in lists.items()}
    return {**members, "delay": columns["delay"], "distance": columns["distance"]}


def subject_of(path: Path) -> Subject:
    """What a given stream is: trades as `prepare_trades` writes them, or flights. Raises `StreamError`."""
    names = read_data(path, "stream", "ts").kinds.keys()
    if names >= set(_SCHEMA.names):
        return trades()
    if names >= set(_FLOWN):
        return flights(path)
    raise StreamError(f"'{path}' is neither trades with their static tables joined nor flights")


def read_records(subject: Subject, path: Path) -> Records:
    """All records of a stream, as they are counted."""
    table = _read(path, list(subject.columns))
    times = table[subject.time].cast(pa.timestamp("us")).cast(pa.int64()).to_numpy()
    keys = table[subject.key].combine_chunks()
    if not pa.types.is_dictionary(keys.type):
        keys = keys.dictionary_encode()
    keys = keys.unify_dictionaries().combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys
    groups = np.asarray(keys.indices, dtype=np.int32)
    others = [name for name in subject.columns if name not in (subject.time, subject.key)]
    columns: dict[str, Column] = {name: table[name].to_numpy() for name in others}
    if subject.name == "flights":
        columns[subject.key] = np.asarray(keys.dictionary.to_pylist())[groups]
    return Records(times // UNIT_US[subject.unit], groups, subject.derive(columns))


def _read(path: Path, columns: list[str]) -> pa.Table:
    return open_parquet(str(path)).to_table(columns=columns)
