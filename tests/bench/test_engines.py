"""All engines give the same answers to all three workloads, and one that does not is caught."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace.bench.check import Check, compare, to_check
from headrace.bench.child import Child, ask_engine
from headrace.bench.contest import PACKAGES, VARIANTS, Task
from headrace.bench.growth import measure_growth, write_first
from headrace.bench.in_spark import InHeadrace, InSpark
from headrace.bench.measure import measure
from headrace.bench.plot import write_plot
from headrace.bench.question import Data, Kind, Measure, Question, read_data
from headrace.bench.report import write_json
from headrace.bench.text import DUCKDB, check_columns
from headrace.bench.workloads import TOPICS
from headrace.errors import BenchError
from headrace.generate import FlowOptions, TradeOptions, generate_flows, generate_trades

ROWS = 3000
CORES = 2


@pytest.fixture(scope="session")
def make_data(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Data]:
    def make(name: str) -> Data:
        topic = TOPICS[name]
        path = tmp_path_factory.mktemp(name) / "data"
        match name:
            case "netflow":
                generate_flows(FlowOptions(ROWS, rate=5.0), path)
            case "trades":
                generate_trades(TradeOptions(ROWS, rate=0.5, symbols=50), path)
            case _:
                pq.write_table(flights(), path)
        return read_data(path, topic.stream, topic.time)

    return make


def flights() -> pa.Table:
    """Flights as the recorded file has them: times without a zone, delays on both sides of zero."""
    random = np.random.default_rng(1)
    airports = np.array("ORD ATL DFW LAX JFK LGA EWR SEA PDX".split())
    minutes = np.sort(random.integers(0, 30 * 1440, ROWS)) + np.datetime64("2001-01-01T00:00", "m").astype(int)
    return pa.table(
        {
            "date": pa.array(minutes * 60_000_000, pa.timestamp("us")),
            "delay": random.integers(-60, 400, ROWS),
            "distance": random.integers(1, 30, ROWS) * 100,
            "origin": airports[random.integers(0, 9, ROWS)],
            "destination": airports[random.integers(0, 9, ROWS)],
        }
    )


@pytest.fixture(scope="session")
def netflow(make_data: Callable[[str], Data]) -> Task:
    return Task(make_data("netflow"), TOPICS["netflow"].take(5), CORES)


@pytest.mark.spark
@pytest.mark.parametrize("name", TOPICS)
def test_engines_agree(name: str, make_data: Callable[[str], Data], spark: SparkSession) -> None:
    # 36 have every filter with every window; the benchmark itself compares all.
    task = Task(make_data(name), TOPICS[name].questions[:36], CORES)
    names = task.measure_names
    expected = InSpark(task, spark).warm_up()
    assert sum(check.rows for check in expected.values()) > len(task.questions)
    for engine in PACKAGES:
        for variant in VARIANTS[engine]:
            asked = ask_engine(task, engine, variant)
            asked.run(1)
            asked.clear()
            asked.run()
            compare("spark", expected, f"{engine} ({variant})", asked.check(), names)
            asked.clear()


@pytest.mark.spark
def test_headrace_agrees(netflow: Task, spark: SparkSession) -> None:
    names = netflow.measure_names
    compare("spark", InSpark(netflow, spark).warm_up(), "headrace", InHeadrace(netflow, spark).warm_up(), names)


@pytest.mark.spark
def test_report(netflow: Task, spark: SparkSession, tmp_path: Path) -> None:
    told: list[str] = []
    engines = ("spark", "headrace", "duckdb")
    report = measure("netflow", netflow, engines, rounds=1, spark=spark, tell=told.append)
    write_json(report, tmp_path / "figures" / "bench.json")
    write_plot(report, tmp_path / "bench.png")
    found = json.loads((tmp_path / "figures" / "bench.json").read_text())
    assert {"workload", "rows", "queries", "cores", "runs", "ratios"} <= found.keys()
    assert (found["workload"], found["rows"], found["queries"], found["cores"]) == ("netflow", ROWS, 5, CORES)
    assert [(run["engine"], run["variant"]) for run in found["runs"]] == [
        ("spark", "queries"),
        ("headrace", "anew"),
        ("headrace", "run"),
        ("headrace", "read"),
        ("duckdb", "queries"),
        ("duckdb", "grouping_sets"),
    ]
    for run in found["runs"]:
        assert run.keys() == {"engine", "variant", "seconds", "rows_out", "peak_rss_mb"}
        assert run["seconds"] > 0
        assert run["peak_rss_mb"] > 10
    assert len({run["rows_out"] for run in found["runs"]}) == 1
    assert found["ratios"].keys() == {"spark", "spark_anew", "spark_read", "best_peer"}
    assert (tmp_path / "bench.png").read_bytes().startswith(b"\x89PNG")
    assert len(told) == 2 * 4  # four contestants, each warmed up and measured once


@pytest.mark.spark
def test_growth(netflow: Task, spark: SparkSession, tmp_path: Path) -> None:
    half = write_first(netflow.data, ROWS // 2, tmp_path / "half.parquet")
    told: list[str] = []
    report = measure_growth(
        TOPICS["netflow"],
        netflow.data,
        [half, netflow.data],
        queries=2,
        cores=CORES,
        rounds=1,
        spark=spark,
        tell=told.append,
        counts=(1, 3, 24),
    )
    write_plot(report, tmp_path / "growth.png")
    growth = report.to_json()["growth"]
    assert [point["rows"] for point in growth["rows"]] == [ROWS // 2, ROWS]
    for counts in (growth["queries"], growth["spread"]):
        assert [point["queries"] for point in counts] == [1, 3, 24]
    assert growth["queries"][-1] == growth["spread"][-1]
    asked = [line.partition(": ")[2] for line in told if line.startswith("round 1")]
    assert asked[2:] == [
        "the first 1 queries",
        "the first 3 queries",
        "the first 24 queries",
        "1 of 24 queries",
        "3 of 24 queries",
    ]
    assert growth["rows"][0].keys() == {"rows", "seconds", "peak_worker_mb"}
    assert growth["queries"][0].keys() == {"queries", "seconds"}


def test_different_answers_are_caught(netflow: Task) -> None:
    """An engine that leaves one record out, or asks for another sum, does not pass."""
    names = netflow.measure_names
    right = _answer(netflow)
    compare("duckdb", right, "duckdb again", _answer(netflow), names)
    other = dataclasses.replace(netflow.questions[0], where="srcport <> 443")
    with pytest.raises(BenchError, match=r"answer 1 of 5 queries differently:\n  SourceNode: "):
        compare("duckdb", right, "wrong", right | _answer(Task(netflow.data, (other,), CORES)), names)
    packets, octets, flows = netflow.questions[1].measures
    swapped = dataclasses.replace(packets, value="octets"), octets, flows
    other = dataclasses.replace(netflow.questions[1], measures=swapped)
    with pytest.raises(BenchError, match="DestNode: the weighted sum of packets is"):
        compare("duckdb", right, "wrong", right | _answer(Task(netflow.data, (other,), CORES)), names)


def test_values_in_wrong_rows_are_caught() -> None:
    """Two rows that have one another's values: all plain sums are the same."""
    question = Question("q", ("k",), (Measure("sum", "v", "v"),))
    kinds: dict[str, Kind] = {"k": "int", "v": "int"}
    columns = ", ".join(check_columns(question, kinds, DUCKDB))

    def check(rows: str) -> dict[str, Check]:
        found = duckdb.connect().execute(f"SELECT {columns} FROM (VALUES {rows}) AS t(k, v)").fetchall()
        return {"q": to_check(found[0])}

    compare("a", check("(1, 10), (2, 20)"), "b", check("(2, 20), (1, 10)"), {"q": ["v"]})
    with pytest.raises(BenchError, match="the weighted sum of v"):
        compare("a", check("(1, 10), (2, 20)"), "b", check("(1, 20), (2, 10)"), {"q": ["v"]})


def test_a_child_that_fails_is_named(netflow: Task) -> None:
    broken = dataclasses.replace(netflow.questions[0], where="no_such_column = 1")
    child = Child(Task(netflow.data, (broken,), CORES), "duckdb", "queries")
    try:
        with pytest.raises(BenchError, match=r"duckdb \(queries\) failed"):
            child.warm_up()
    finally:
        child.close()


def _answer(task: Task) -> dict[str, Check]:
    asked = ask_engine(task, "duckdb", "queries")
    asked.run()
    return asked.check()
