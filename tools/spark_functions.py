"""Print Spark's built-in functions with their groups: the content of src/headrace/query/spark_functions.txt.

Run after a change of the Spark version:
    python tools/spark_functions.py > src/headrace/query/spark_functions.txt
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headrace.runtime.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def builtin_functions(spark: SparkSession) -> dict[str, str]:
    """Name and group of Spark's built-in functions, from its registry."""
    jvm = spark._jvm
    assert jvm is not None
    catalyst = jvm.org.apache.spark.sql.catalyst
    registry = catalyst.analysis.FunctionRegistry.builtin()
    groups = {}
    for name in {row[0].lower() for row in spark.sql("SHOW FUNCTIONS").collect()}:
        info = registry.lookupFunction(catalyst.FunctionIdentifier(name))
        groups[name] = info.get().getGroup() or "other" if info.isDefined() else "other"
    return groups


if __name__ == "__main__":
    with open_session("spark-functions") as spark:
        print(f"# Spark {spark.version}: name and group of every built-in function that is called by name")
        for name, group in sorted(builtin_functions(spark).items()):
            if re.fullmatch(r"\w+", name):
                print(name, group)
