"""The functions that Spark has built in, with Spark's own grouping (`agg_funcs`, `string_funcs`, ...).

The list is data, written by `tools/spark_functions.py`; a test compares it with the Spark that is installed.
It makes it possible to find a misspelt function before a Spark session is started.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from importlib import resources

# Their value depends on when, where or how often they are called, so one pass for all may not reuse it.
NOT_REPEATABLE = frozenset(
    """rand randn random uniform randstr uuid shuffle monotonically_increasing_id spark_partition_id
    input_file_name input_file_block_start input_file_block_length current_timestamp current_date current_time
    curdate now localtimestamp localtime reflect java_method try_reflect""".split()
)

# Bare words that Spark takes for a function when there is no column of that name.
BARE_FUNCTIONS = frozenset(
    "current_date current_timestamp current_time current_user user session_user localtimestamp localtime "
    "current_catalog current_database current_schema".split()
)

# Called like functions, but known to Spark's grammar rather than to its registry.
_IN_GRAMMAR = ("timestampadd", "timestampdiff")


@functools.lru_cache(maxsize=1)
def spark_functions() -> Mapping[str, str]:
    """Name (lower case) to group of every built-in function."""
    text = resources.files("headrace.query").joinpath("spark_functions.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    return {line[0]: line[1] for line in lines} | dict.fromkeys(_IN_GRAMMAR, "datetime_funcs")


def is_aggregate_name(name: str) -> bool:
    """Whether Spark itself takes a function of this name for an aggregate."""
    return spark_functions().get(name.lower()) == "agg_funcs"
