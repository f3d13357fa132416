"""A job for Flink, by a Python that has `apache-flink` and not headrace: `python flink_job.py JOB.json`.

The file names the number of cores, statements that make tables, and those that insert. What it takes is printed.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> None:
    """Run the inserts as one statement set."""
    from pyflink.table import EnvironmentSettings, TableEnvironment

    job = json.loads(Path(sys.argv[1]).read_text())
    tables = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
    for key, value in job["settings"].items():
        tables.get_config().set(key, value)
    for statement in job["tables"]:
        tables.execute_sql(statement)
    begin = time.perf_counter()
    together = tables.create_statement_set()
    for statement in job["inserts"]:
        together.add_insert_sql(statement)
    together.execute().wait()
    print(json.dumps({"seconds": time.perf_counter() - begin}))


if __name__ == "__main__":
    main()
