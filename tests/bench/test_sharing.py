"""Query sets of the studies, their times, and the command."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headrace.bench.check import Sum
from headrace.bench.sharing.on_spark import measure_spark
from headrace.bench.sharing.study import SHARED, UNSHARED, Field
from headrace.bench.sharing.subject import prepare_trades, subject_of
from headrace.bench.sharing.timing import compare, prepare
from headrace.bench.sharing.workloads import SETS, Window
from headrace.cli.app import main
from headrace.errors import BenchError, StreamError
from headrace.kernel.evaluate import compile_expression
from headrace.query import Expression

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def field(tmp_path_factory: pytest.TempPathFactory) -> Field:
    return Field.of(prepare_trades(3000, tmp_path_factory.mktemp("sharing") / "trades"))


@pytest.fixture(scope="module")
def flights(tmp_path_factory: pytest.TempPathFactory) -> Field:
    file = tmp_path_factory.mktemp("sharing") / "flights.parquet"
    random = np.random.default_rng(1)
    hours = np.sort(random.integers(0, 4344, 3000))
    columns = {
        "date": pa.array(hours * 3_600_000_000 + 978_307_200_000_000, pa.timestamp("us")),
        "delay": random.integers(-20, 200, 3000),
        "distance": random.integers(0, 2000, 3000),
        "origin": [f"A{number:02}" for number in random.integers(0, 100, 3000)],
        "destination": ["B"] * 3000,
    }
    pq.write_table(pa.table(columns), file)
    return Field.of(file)


def test_prepared_trades_are_an_hour_with_static_columns(field: Field) -> None:
    table = pq.read_table(field.path)
    assert table.column_names == ["ts", "symbol", "price", "volume", "cp", "r3000", "r2000", "r1000"]
    assert len(field.records) == 3000
    assert 3500 < field.records.units[-1] - field.records.units[0] < 3700
    by_symbol = {(row["symbol"], row["cp"], row["r3000"]) for row in table.to_pylist()}
    assert len(by_symbol) == len({symbol for symbol, *_ in by_symbol})


def test_sets_are_as_the_papers_describe_them(field: Field) -> None:
    for name in SETS:
        assert field.draw(name, 64, 0) == field.draw(name, 64, 0)
        assert field.draw(name, 64, 0).queries != field.draw(name, 64, 1).queries
        assert len(set(field.draw(name, 64, 0).queries)) == 64
    a, b, regular, low = (field.draw(name, 64, 0).queries for name in SETS)
    assert all(600 <= q.window.range <= 900 and 300 <= q.window.slide <= 600 and q.predicate is None for q in a)
    assert {query.window for query in b} == {Window(600, 600)}
    assert len({query.predicate for query in b}) == 64
    assert len({query.predicate for query in regular}) == len({query.window for query in regular}) == 8
    assert len({query.predicate for query in low}) == len({query.window for query in low}) == 64
    figure8 = field.draw("figure8", 32, 0).queries
    assert len({query.window.slide for query in figure8}) == 1
    assert all(1500 <= q.window.range <= 2500 and 1000 <= q.window.slide <= 2000 for q in figure8)


def test_texts(field: Field) -> None:
    texts = field.draw("a", 16, 0).texts(grouped=True)
    window = field.draw("a", 16, 0).queries[0].window
    assert texts["a_000"] == (
        "SELECT window.start AS start, symbol, sum(price * volume) AS total FROM trades GROUP BY "
        f"window(ts, '{window.range} seconds', '{window.slide} seconds'), symbol"
    )
    assert " GROUP BY window(ts, '600 seconds')" in field.draw("b", 16, 0).texts(grouped=False)["b_000"]


@pytest.mark.parametrize("made", ["field", "flights"])
def test_predicates_mean_in_sql_what_they_mean_in_numpy(made: str, request: pytest.FixtureRequest) -> None:
    field: Field = request.getfixturevalue(made)
    table = pq.read_table(field.path)
    columns = {name: table[name].combine_chunks() for name in table.column_names}
    columns = {n: c.chunk(0) if isinstance(c, pa.ChunkedArray) else c for n, c in columns.items()}
    kinds = {name: column.type for name, column in columns.items()}
    for query in field.draw("b", 64, 0).queries:
        assert query.predicate is not None
        evaluator = compile_expression(Expression.parse(query.predicate.sql), kinds, pa.bool_(), "UTC")
        assert evaluator is not None, query.predicate.sql
        assert evaluator(columns).to_pylist() == query.predicate.truth(field.records.columns).tolist()


def test_other_streams_are_refused(tmp_path: Path) -> None:
    pq.write_table(pa.table({"ts": [1]}), tmp_path / "x.parquet")
    with pytest.raises(StreamError, match="neither trades"):
        subject_of(tmp_path / "x.parquet")


@pytest.mark.parametrize("made", ["field", "flights"])
@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("name", [*SETS, "figure8"])
def test_strategies_agree(name: str, grouped: bool, made: str, request: pytest.FixtureRequest) -> None:
    field: Field = request.getfixturevalue(made)
    queries = field.draw(name, 16, 0)
    checks = [prepare(queries, grouped, field.path, strategy).checks() for strategy in (UNSHARED, SHARED)]
    compare("unshared", checks[0], "shared", checks[1])
    units, groups = field.records.units, field.records.groups if grouped else np.zeros(3000, dtype=np.int32)
    for text, query in zip(queries.texts(grouped), queries.queries, strict=True):
        chosen = query.predicate.truth(field.records.columns) if query.predicate else np.ones(3000, dtype=np.bool_)
        rows = set()
        for back in range(3):
            number = units // query.window.slide - back
            there = chosen & (units < number * query.window.slide + query.window.range)
            rows |= set(zip(number[there].tolist(), groups[there].tolist(), strict=True))
        assert checks[0][text].values == len(rows)


def test_answers_that_differ_are_told() -> None:
    compare("one", {"q": Sum(2, 1.0, 1.0)}, "other", {"q": Sum(2, 1.0 + 1e-12, 1.0)})
    for other in (Sum(1, 1.0, 1.0), Sum(2, 1.1, 1.1)):
        with pytest.raises(BenchError, match="one and other answer 1 of 1 queries differently"):
            compare("one", {"q": Sum(2, 1.0, 1.0)}, "other", {"q": other})


def test_the_command_and_the_plot(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "sharing.json"
    words = "bench sharing --rows 2000 --queries 16 --rounds 1 --engines headrace".split()
    with pytest.raises(SystemExit) as done:
        main([*words, "--json", str(file)])
    assert done.value.code == 0
    shown = capsys.readouterr()
    assert "sharing: 2,000 trades, 16 queries" in shown.out
    assert "counting, set 1 of 1" in shown.err
    found = json.loads(file.read_text())
    names = ["paired_vs_unshared", "paired_vs_paned", "sdf", "sds_regular", "sds_low"]
    for ratios in ("ratios", "ungrouped_ratios", "count_ratios", "grouped_count_ratios"):
        assert list(found[ratios]) == names
    plot = [sys.executable, "benchmarks/sharing_plot.py", str(file), "--out", str(tmp_path)]
    subprocess.run(plot, check=True, cwd=ROOT)
    assert sorted(path.stem for path in tmp_path.glob("*.png")) == sorted(f"sharing_{name}" for name in SETS)


def test_a_study_that_counts_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = "bench sharing --study --count --rows 2000 --queries 16 --sets 2".split()
    with pytest.raises(SystemExit) as done:
        main([*words, "--json", str(tmp_path / "s.json")])
    assert done.value.code == 0
    assert "the mean of 2 sets" in capsys.readouterr().out
    found = json.loads((tmp_path / "s.json").read_text())
    sizes = [(p["workload"], p["queries"]) for p in found["counted"]]
    assert [*dict.fromkeys(sizes)] == [*((name, 16) for name in SETS), *(("figure8", n) for n in (2, 4, 8, 16))]
    assert not found["timed"]
    assert not found["ratios"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["sharing", "--growth"], "sharing has no"),
        (["trades", "--sets", "2"], "only sharing has --study"),
        (["sharing", "--data", "x", "--rows", "5"], "taken whole"),
    ],
)
def test_wrong_words(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as done:
        main(["bench", *words])
    assert done.value.code == 2
    assert message in " ".join(capsys.readouterr().err.replace("│", " ").split())


@pytest.mark.spark
def test_on_spark(field: Field, spark: SparkSession) -> None:
    found = measure_spark(field.draw("c_regular", 4, 0), field.path, spark, 1, lambda text: None)
    assert (found.workload, found.queries, found.timed) == ("c_regular", 4, 4)
    assert found.headrace_s > 0
    assert found.spark_s > 0
