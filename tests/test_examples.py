"""Every example query is understood, checked against its stream, run, and has an answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace import Stream, Workload
from headrace.bench.workloads import TOPICS
from headrace.generate import FlowOptions, TradeOptions, generate_flows, generate_trades
from headrace.generate.schemes import SCHEMES
from headrace.query.interval import UNIT_US

EXAMPLES = Path(__file__).parents[1] / "examples"


def run_all(spark: SparkSession, queries: Path, stream: Stream) -> dict[str, int]:
    results = Workload.load(queries, stream).reference(stream, spark=spark)
    return {name: frame.count() for name, frame in results.items()}


@pytest.mark.parametrize(
    ("path", "count"), [("netflow/queries", 22), ("trades/queries.sql", 64), ("flights/queries", 64)]
)
def test_examples_are_understood(path: str, count: int) -> None:
    workload = Workload.load(EXAMPLES / path)
    assert len(workload) == count
    assert sum(query.shareable for query in workload.values()) >= count - 1
    texts = {query.sql for query in workload.values()}
    assert len(texts) == count


def test_the_netflow_queries_are_the_22_schemes() -> None:
    workload = Workload.load(EXAMPLES / "netflow" / "queries")
    keys = {frozenset(key.sql for key in query.keys) for query in workload.values()}
    assert keys == {frozenset(scheme.keys) for scheme in SCHEMES.values()}
    asked = {"".join(word.title() for word in name.split("_")): query for name, query in workload.items()}
    for question in TOPICS["netflow"].take(len(SCHEMES)):
        (query,) = (query for name, query in asked.items() if name.lower() == question.name.lower())
        assert {key.sql for key in query.keys} == set(question.keys)
        assert query.window is not None
        assert query.window.slide_us == 5 * UNIT_US["minute"]
        measures = {f"{m.function}({m.value or '*'})" for m in question.measures}
        assert {aggregate.sql for aggregate in query.aggregates} == measures


@pytest.mark.spark
def test_netflow(spark: SparkSession, tmp_path: Path) -> None:
    generate_flows(FlowOptions(20_000, profile="enterprise"), tmp_path / "flows")
    stream = Stream.parquet(str(tmp_path / "flows"), name="flows", time="ts")
    assert all(run_all(spark, EXAMPLES / "netflow" / "queries", stream).values())


@pytest.mark.spark
def test_trades(spark: SparkSession, tmp_path: Path) -> None:
    generate_trades(TradeOptions(60_000), tmp_path / "trades")
    stream = Stream.parquet(str(tmp_path / "trades"), name="trades", time="ts")
    empty = [
        name for name, rows in run_all(spark, EXAMPLES / "trades" / "queries.sql", stream).items() if not rows
    ]
    assert not empty


@pytest.mark.spark
def test_flights(spark: SparkSession, shared_data: Path, tmp_path: Path) -> None:
    whole = pq.read_table(shared_data / "flights" / "flights-3m.parquet")
    pq.write_table(whole.take(np.arange(0, whole.num_rows, 15)), tmp_path / "flights.parquet")
    stream = Stream.parquet(str(tmp_path / "flights.parquet"), name="flights", time="date")
    counts = run_all(spark, EXAMPLES / "flights" / "queries", stream)
    # A fifteenth of the flights is too few for some conditions on busy days; the whole file fulfils all.
    assert sum(1 for rows in counts.values() if rows) >= 60
