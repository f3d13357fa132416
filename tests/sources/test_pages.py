"""Numbers straight from the pages of Parquet, against Arrow: files of all kinds, of several writers, damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession

from headrace.errors import StreamError
from headrace.sources import pages, parquet
from headrace.sources.parquet import Task, read_footers, read_task

KINDS = (
    pa.int32(),
    pa.int64(),
    pa.date32(),
    pa.timestamp("us"),
    pa.timestamp("us", "UTC"),
    pa.float32(),
    pa.float64(),
)


def column_of(draw: np.random.Generator, kind: pa.DataType, shape: str, rows: int) -> pa.Array:
    """Values of a type: as few, as far apart and in such runs as the shape says."""
    bits = kind.bit_width - 1
    if shape == "constant":
        values = np.full(rows, draw.integers(-(2**bits), 2**bits))
    elif shape == "few":
        values = draw.choice(draw.integers(-(2**bits), 2**bits, draw.integers(1, 400)), rows)
    elif shape == "runs":
        values = np.repeat(draw.integers(0, 9, rows // 20 + 1), 20)[:rows]
    elif shape == "rising":
        values = np.cumsum(draw.integers(0, 1 << draw.integers(1, 20), rows))
    else:
        values = draw.integers(-(2**bits), 2**bits - 1, rows, endpoint=True)
    held = pa.array(values.astype(f"i{kind.bit_width // 8}"))
    if shape == "nulls":
        held = pa.array(held.to_numpy(), mask=draw.random(rows) < 0.1)
    return held.view(kind)


def read(path: Path, columns: list[str]) -> pa.Table:
    """All that our own reader makes of a file."""
    groups = tuple(group for footer in read_footers(str(path)) for group in footer.groups)
    batches = [batch for batch, _ in read_task(Task(groups), columns)]
    return pa.Table.from_batches(batches) if batches else pa.table({})


def check(path: Path) -> None:
    expected = pq.read_table(path)
    found = read(path, expected.schema.names)
    assert found.num_rows == expected.num_rows
    for name in expected.schema.names if expected.num_rows else ():
        own, other = (pa.concat_arrays(table[name].chunks) for table in (found, expected))
        own = own.cast(other.type) if pa.types.is_dictionary(own.type) else own
        assert own.type == other.type
        if pa.types.is_floating(own.type):
            held = pa.int32() if own.type == pa.float32() else pa.int64()
            own, other = own.view(held), other.view(held)  # so that NaN equals NaN
        assert own.equals(other), name


OPTIONS = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(["none", "snappy", "zstd", "gzip", "brotli", "lz4"]),
        "use_dictionary": st.booleans(),
        "data_page_version": st.sampled_from(["1.0", "2.0"]),
        "data_page_size": st.sampled_from([64, 1000, 1 << 20]),
        "dictionary_pagesize_limit": st.sampled_from([100, 1 << 20]),
        "write_batch_size": st.sampled_from([7, 100, 1024]),
        "row_group_size": st.sampled_from([50, 700, 1 << 20]),
        "write_statistics": st.sampled_from([True, True, True, False]),
    }
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    seed=st.integers(0, 2**32),
    rows=st.sampled_from([0, 1, 8, 33, 500, 3000]),
    kinds=st.lists(st.sampled_from(KINDS), min_size=1, max_size=4),
    shapes=st.lists(
        st.sampled_from(["constant", "few", "runs", "rising", "any", "nulls"]), min_size=4, max_size=4
    ),
    options=OPTIONS,
    differences=st.booleans(),
    required=st.booleans(),
    at_a_time=st.sampled_from([100, 1 << 18]),
)
def test_any_file_is_read_as_arrow_reads_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
    rows: int,
    kinds: list[pa.DataType],
    shapes: list[str],
    options: dict[str, Any],
    differences: bool,
    required: bool,
    at_a_time: int,
) -> None:
    draw = np.random.default_rng(seed)
    columns = [column_of(draw, kind, shape, rows) for kind, shape in zip(kinds, shapes, strict=False)]
    names = [f"c{number}" for number in range(len(columns))]
    fields = [
        pa.field(name, column.type, nullable=not required or shape == "nulls")
        for name, column, shape in zip(names, columns, shapes, strict=False)
    ]
    if differences and not options["use_dictionary"]:
        whole = [name for name, kind in zip(names, kinds, strict=True) if not pa.types.is_floating(kind)]
        options = {**options, "column_encoding": dict.fromkeys(whole, "DELTA_BINARY_PACKED")}
    table = pa.table(columns, schema=pa.schema(fields))
    pq.write_table(table, tmp_path / "file.parquet", **options)
    monkeypatch.setattr(parquet, "_BATCH_ROWS", at_a_time)
    check(tmp_path / "file.parquet")


@pytest.fixture
def table() -> pa.Table:
    draw = np.random.default_rng(5)
    return pa.table(
        {
            "few": pa.array(draw.integers(0, 300, 50_000), pa.int32()),
            "many": pa.array(draw.integers(-(2**62), 2**62, 50_000)),
            "rising": pa.array(np.cumsum(draw.integers(0, 9000, 50_000))),
            "price": pa.array(draw.integers(0, 5000, 50_000) / 100),
            "name": pa.array([f"n{number % 90}" for number in range(50_000)]),
        }
    )


def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many values come straight from pages."""
    taken, take = [], pages.Chunk.take

    def counting(self: pages.Chunk, count: int) -> pa.Array:
        taken.append(count)
        return take(self, count)

    monkeypatch.setattr(pages.Chunk, "take", counting)
    return taken


def test_files_that_polars_and_duckdb_write(
    tmp_path: Path, table: pa.Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    duckdb, polars = pytest.importorskip("duckdb"), pytest.importorskip("polars")
    polars.from_arrow(table).write_parquet(tmp_path / "polars.parquet")
    for version in ("v1", "v2"):
        file = tmp_path / f"duckdb-{version}.parquet"
        duckdb.sql(f"COPY (FROM \"table\") TO '{file}' (FORMAT parquet, PARQUET_VERSION {version})")
    for file in tmp_path.iterdir():
        taken = counted(monkeypatch)
        check(file)
        assert sum(taken) >= 3 * len(table), f"hardly anything of {file.name} came straight from pages"


@pytest.mark.spark
@pytest.mark.parametrize("version", ["v1", "v2"])
def test_files_that_spark_writes(
    spark: SparkSession, tmp_path: Path, table: pa.Table, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    frame = spark.createDataFrame(table.to_pandas()).coalesce(1)
    frame.write.option("parquet.writer.version", version).parquet(str(tmp_path / "spark"))
    (file,) = (tmp_path / "spark").glob("*.parquet")
    taken = counted(monkeypatch)
    check(file)
    assert sum(taken) >= 3 * len(table), "nothing came straight from pages"


@pytest.mark.parametrize("seed", range(150))
def test_damage_is_an_error_or_other_numbers_and_never_more(tmp_path: Path, table: pa.Table, seed: int) -> None:
    draw = np.random.default_rng(seed)
    options: dict[str, Any] = {
        "compression": draw.choice(["none", "snappy", "zstd"]),
        "data_page_version": draw.choice(["1.0", "2.0"]),
    }
    if draw.random() < 0.5:
        differences = dict.fromkeys(["few", "many", "rising"], "DELTA_BINARY_PACKED")
        options |= {"use_dictionary": False, "column_encoding": differences}
    path = tmp_path / "file.parquet"
    pq.write_table(table.select(["few", "many", "rising", "price"]), path, **options)
    data = bytearray(path.read_bytes())
    footer = int.from_bytes(data[-8:-4], "little") + 8
    for place in draw.integers(4, len(data) - footer, draw.integers(1, 40)):
        # Headers of pages are short: most of the damage should be there.
        near = int(place) if draw.random() < 0.3 else int(draw.choice([4, 8, 12, 20, 30]) + draw.integers(0, 9))
        data[near] = int(draw.integers(0, 256))
    path.write_bytes(data)
    try:
        assert read(path, ["few", "many", "rising", "price"]).num_rows == len(table)
    except StreamError as error:
        assert "file.parquet' cannot be read as Parquet" in str(error)  # noqa: PT017  # either is right
