"""Print Spark's built-in functions with their groups: the content of src/headrace/query/spark_functions.txt.

Run after a change of the Spark version:
    python tools/spark_functions.py > src/headrace/query/spark_functions.txt
"""

from __future__ import annotations

import re

from headrace.runtime.session import builtin_functions, open_session

if __name__ == "__main__":
    with open_session(app="spark-functions", quiet=True) as spark:
        print(f"# Spark {spark.version}: name and group of every built-in function that is called by name")
        for name, group in sorted(builtin_functions(spark).items()):
            if re.fullmatch(r"\w+", name):
                print(name, group)
