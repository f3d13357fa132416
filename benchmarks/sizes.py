"""How good the estimates of sizes are: the truth, GEE and the default side by side.

    python benchmarks/sizes.py data/flows --time ts --window "5 minutes"
    python benchmarks/sizes.py flights-3m.parquet --time date --window "1 day"

For every key alone and for random sets of keys, over all time and in each window: how many groups there are, what
the seed's GEE says of records drawn one by one, and what the planner says of its blocks, both from the same share
of the records. A ratio error is how many times too large or too small an estimate is.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import random
import statistics

import numpy as np
import pyarrow as pa
from pyarrow import dataset
from rich.console import Console
from rich.progress import track
from rich.table import Table

from headrace.algebra.words import to_words
from headrace.plan.gee import gee
from headrace.plan.growth import Hashes
from headrace.plan.sizes import Sizes, hash_column
from headrace.plan.slices import Slices
from headrace.query import Expression
from headrace.query.interval import parse_interval_us
from headrace.sources.parquet import read_footers
from headrace.sources.sample import read_sample

Keys = tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", help="Parquet, a file or a folder")
    parser.add_argument("--time", required=True, help="the column with the time")
    parser.add_argument(
        "--window", default="5 minutes", help="groups are counted in each of these too (5 minutes)"
    )
    parser.add_argument("--keys", help="the columns that keys are of, by commas (all but times and fractions)")
    parser.add_argument("--sets", type=int, default=20, help="how many random sets of keys (20)")
    parser.add_argument("--share", type=float, default=0.01, help="of the records that are in the sample (0.01)")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    _Trial(arguments).run()


class _Trial:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self._sets, self._seed = arguments.sets, arguments.seed
        schema = dataset.dataset(arguments.path).schema
        self._keys = arguments.keys.split(",") if arguments.keys else [f.name for f in schema if _is_key(f.type)]
        table = dataset.dataset(arguments.path).to_table(columns=[*self._keys, arguments.time])
        time = Expression.parse(f"`{arguments.time}`")
        self._slices = Slices.every(time, parse_interval_us(arguments.window))
        self._window = arguments.window
        times, _ = to_words(table[arguments.time].combine_chunks().cast(pa.timestamp("us", "UTC")))
        self._numbers = self._slices.number_of(times)
        self._hashes = {key: hash_column(table[key].combine_chunks(), seed=n) for n, key in enumerate(self._keys)}
        self._records = table.num_rows
        drawn = np.random.default_rng(self._seed).random(self._records) < arguments.share
        self._drawn = np.flatnonzero(drawn)
        batches = read_sample(
            read_footers(arguments.path, [arguments.time]), self._keys, round(self._records * arguments.share)
        )
        blocks = [{Expression.parse(f"`{key}`"): batch[key] for key in self._keys} for batch in batches]
        busy_us = len(np.unique(self._numbers)) * self._slices.unit_us
        self._sizes = Sizes(blocks, self._records, busy_us)

    def run(self) -> None:
        several = [keys for size in range(2, 6) for keys in itertools.combinations(self._keys, size)]
        some = random.Random(self._seed).sample(several, min(self._sets, len(several)))
        chosen = [*((key,) for key in self._keys), *some]
        table = Table(title=f"{self._records:,} records, {len(self._drawn):,} in the sample", title_justify="left")
        for heading in ("keys", "groups", "GEE", "off", "default", "off"):
            table.add_column(heading, justify="left" if heading == "keys" else "right", overflow="fold")
        errors: dict[str, list[float]] = {"GEE": [], "default": []}
        for keys in track(chosen, "counting", console=Console(stderr=True)):
            for slices in (None, self._slices):
                truth, guesses = self._count(keys, slices)
                ratios = {name: max(guess / truth, truth / guess) for name, guess in guesses.items()}
                for name, ratio in ratios.items():
                    errors[name].append(ratio)
                cells = [
                    cell for name, guess in guesses.items() for cell in (f"{guess:,.0f}", f"{ratios[name]:.2f}")
                ]
                label = ", ".join(keys) + (f" per {self._window}" if slices else "")
                table.add_row(label, f"{truth:,}", *cells)
        console = Console()
        console.print(table)
        for name, own in errors.items():
            spread = statistics.median(own), statistics.quantiles(own, n=20)[-1], max(own)
            console.print(
                f"{name}: off by {spread[0]:.2f} in the median, {spread[1]:.2f} (95%), {spread[2]:.2f} at worst"
            )

    def _count(self, keys: Keys, slices: Slices | None) -> tuple[int, dict[str, float]]:
        parts: list[Hashes] = [self._hashes[key] for key in keys]
        if slices is not None:
            parts.append(hash_column(pa.array(self._numbers), seed=-1))
        hashes = functools.reduce(np.add, parts)
        default = self._sizes.groups([Expression.parse(f"`{key}`") for key in keys], (), (), slices)
        return len(np.unique(hashes)), {"GEE": gee(hashes[self._drawn], self._records), "default": default}


def _is_key(kind: pa.DataType) -> bool:
    return not (pa.types.is_timestamp(kind) or pa.types.is_floating(kind))


if __name__ == "__main__":
    main()
