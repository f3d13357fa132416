"""How long files of answers take to write, and how large they are, by how columns are encoded.

`python benchmarks/encodings.py FOLDER`: a folder of answers that a run has written. One row group of each file is
written in each way, by one core; what it takes is multiplied by the number of row groups.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from headrace.runtime.live.answers import encodings

_ROUNDS = 3


def main(folder: Path) -> None:
    """Write all in each way, and print a table."""
    files = [pq.ParquetFile(path) for path in sorted(folder.rglob("*.parquet"))]
    middles = [(file.num_row_groups, file.read_row_group(file.num_row_groups // 2)) for file in files]
    print(f"{len(files)} files, about {sum(groups * len(table) for groups, table in middles):,} rows")
    for name in ("dictionaries", "packed"):
        seconds = size = 0.0
        for groups, table in middles:
            own_s, own_bytes = _write(table, packed=name == "packed")
            seconds, size = seconds + groups * own_s, size + groups * own_bytes
        print(f"{name}: {seconds:.2f} s, {size / 1e6:,.0f} MB")


def _write(table: pa.Table, packed: bool) -> tuple[float, int]:
    """The seconds of the fastest round, and bytes."""
    best = float("inf")
    with tempfile.TemporaryDirectory(prefix="headrace-encodings-") as place:
        path = Path(place) / "answers.parquet"
        for _ in range(_ROUNDS):
            begin = time.process_time()
            with pq.ParquetWriter(path, table.schema, **(encodings(table.schema) if packed else {})) as writer:
                writer.write_table(table, row_group_size=len(table))
            best = min(best, time.process_time() - begin)
        return best, path.stat().st_size


if __name__ == "__main__":
    main(Path(sys.argv[1]))
