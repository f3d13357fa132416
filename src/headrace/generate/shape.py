"""What a generated stream looks like: the figures by which the papers describe theirs, measured."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from headrace.algebra.ranks import first_rows
from headrace.errors import GenerateError
from headrace.generate.chunks import Longs
from headrace.generate.schemes import SCHEMES, Scheme
from headrace.machine import core_count
from headrace.plan.alike import Hashes
from headrace.plan.sizes import hash_column

TOP_GROUPS = 0.03  # the papers say how much the largest 3% of the groups hold
TRAIN_GAP = 100  # records of a flow that are no further apart belong to one train
_KEYS = tuple(dict.fromkeys(key for scheme in SCHEMES.values() for key in scheme.keys))
_TEN_MINUTES_US = 600_000_000
_MOST_ROWS = 2_000_000


@dataclass(frozen=True, slots=True)
class SchemeShape:
    """One scheme's result: how many groups, and which share of the records the largest 3% of them hold."""

    name: str
    groups: int
    top_share: float


@dataclass(frozen=True, slots=True)
class FlowShape:
    """A stream of flows: each scheme's result, and how many records of a flow come in a train."""

    records: int
    schemes: tuple[SchemeShape, ...]
    mean_train: float

    @property
    def results(self) -> int:
        """Result rows of all schemes together."""
        return sum(scheme.groups for scheme in self.schemes)

    @property
    def ratio(self) -> float:
        """Result rows per record."""
        return self.results / self.records

    def rows(self) -> list[tuple[str, ...]]:
        """A table for printing, header first."""
        table: list[tuple[str, ...]] = [
            ("scheme", "groups", "groups per record", f"records in the top {TOP_GROUPS:.0%}")
        ]
        for scheme in self.schemes:
            share = scheme.groups / self.records
            table.append((scheme.name, f"{scheme.groups:,}", f"{share:.4f}", f"{scheme.top_share:.1%}"))
        table.append(("all results", f"{self.results:,}", f"{self.ratio:.4f}", ""))
        table.append(("records", f"{self.records:,}", "", ""))
        table.append(("mean train", f"{self.mean_train:.2f}", "", ""))
        return table


def measure_flows(folder: str | Path, max_rows: int = _MOST_ROWS) -> FlowShape:
    """The shape of the first `max_rows` flows of a folder."""
    return flow_shape(_read(Path(folder), [*_KEYS], max_rows))


def flow_shape(table: pa.Table) -> FlowShape:
    """The shape of the flows in a table. Hashes of 64 bits stand for their keys: as good as exact here."""

    def hash_key(place: int) -> Hashes:
        # No key has values so large that, with its seed, one is another key's.
        return hash_column(table[_KEYS[place]].combine_chunks(), place << 40)

    def hash_keys(scheme: Scheme) -> Hashes:
        return functools.reduce(np.add, (hashes[key] for key in scheme.keys))

    def measure(scheme: Scheme) -> SchemeShape:
        counts = _group_sizes(hash_keys(scheme))
        return SchemeShape(scheme.name, len(counts), _top_share(counts))

    with ThreadPoolExecutor(core_count()) as pool:
        hashes = dict(zip(_KEYS, pool.map(hash_key, range(len(_KEYS))), strict=True))
        schemes = tuple(pool.map(measure, SCHEMES.values()))
    return FlowShape(table.num_rows, schemes, _mean_train(hash_keys(SCHEMES["DetailHostMatrix"])))


@dataclass(frozen=True, slots=True)
class Interval:
    """Ten minutes of trades."""

    start: str
    trades: int
    symbols: int
    top_symbol_share: float
    volumes: int
    least_volume: int
    most_volume: int
    share_of_100: float
    share_of_15: float


@dataclass(frozen=True, slots=True)
class TradeShape:
    """A stream of trades, ten minutes at a time; the last interval is left out where it is not full."""

    intervals: tuple[Interval, ...]

    def rows(self) -> list[tuple[str, ...]]:
        """A table for printing, header first."""
        header = (
            "ten minutes from",
            "trades",
            "symbols",
            "top symbol",
            "volumes",
            "least",
            "most",
            "100",
            "top 15",
        )
        return [header, *(_as_row(interval) for interval in self.intervals)]


def _as_row(it: Interval) -> tuple[str, ...]:
    counts = (it.volumes, it.least_volume, it.most_volume)
    return (
        it.start,
        *(f"{count:,}" for count in (it.trades, it.symbols)),
        f"{it.top_symbol_share:.1%}",
        *(f"{count:,}" for count in counts),
        f"{it.share_of_100:.1%}",
        f"{it.share_of_15:.1%}",
    )


def measure_trades(folder: str | Path) -> TradeShape:
    """The shape of the first two million trades of a folder, for each ten minutes."""
    table = _read(Path(folder), ["ts", "symbol", "volume"], _MOST_ROWS)
    interval = pc.divide(table["ts"].cast(pa.int64()), _TEN_MINUTES_US)
    numbers = pc.unique(interval).sort().to_pylist()
    whole = numbers[:-1] if len(numbers) > 1 else numbers
    return TradeShape(tuple(_measure_interval(table.filter(pc.equal(interval, n)), n) for n in whole))


def _measure_interval(table: pa.Table, number: int) -> Interval:
    volumes = _frequencies(table["volume"])
    by_volume = dict(zip(*volumes, strict=True))
    trades = table.num_rows
    return Interval(
        start=f"{datetime.fromtimestamp(number * 600, UTC):%Y-%m-%d %H:%M}",
        trades=trades,
        symbols=pc.count_distinct(table["symbol"]).as_py(),
        top_symbol_share=max(_frequencies(table["symbol"])[1]) / trades,
        volumes=len(by_volume),
        least_volume=min(by_volume),
        most_volume=max(by_volume),
        share_of_100=by_volume.get(100, 0) / trades,
        share_of_15=sum(sorted(volumes[1])[-15:]) / trades,
    )


def _frequencies(column: pa.ChunkedArray) -> tuple[list[Any], list[int]]:
    """The values that occur, nulls apart, and how often each does."""
    counts = pc.value_counts(column.drop_null())
    return counts.field(0).to_pylist(), counts.field(1).to_pylist()


def _group_sizes(hashes: Hashes) -> Longs:
    return np.diff(first_rows(np.sort(hashes)), append=len(hashes))


def _top_share(counts: Longs) -> float:
    """The share of records in the largest 3% of the groups, one group at least."""
    top = max(1, round(len(counts) * TOP_GROUPS))
    return float(np.partition(counts, len(counts) - top)[-top:].sum() / counts.sum())


def _mean_train(flow: Hashes) -> float:
    """Records per train. Flow and position sort as one number, which is faster than sorting positions by flow."""
    width = np.uint64(len(flow).bit_length())
    ordered = np.sort((flow >> width << width) | np.arange(len(flow), dtype=np.uint64))
    # Equal flows differ only in the position; from one flow to the next the difference is huge.
    trains = 1 + int(np.count_nonzero(np.diff(ordered) > TRAIN_GAP))
    return len(flow) / trains


def _read(folder: Path, columns: list[str], max_rows: int) -> pa.Table:
    """The first rows of a folder, in the order of the files."""
    paths = sorted(folder.glob("part-*.parquet"))
    if not paths:
        raise GenerateError(f"{folder} holds no part-*.parquet; generate a stream into it first")
    return pa.Table.from_batches(_batches(paths, columns, max_rows))


def _batches(paths: Sequence[Path], columns: list[str], max_rows: int) -> Iterator[pa.RecordBatch]:
    left = max_rows
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches(1 << 18, columns=columns):
            yield batch.slice(0, left)
            left -= batch.num_rows
            if left <= 0:
                return
