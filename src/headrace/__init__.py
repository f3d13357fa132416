"""One pass over a stream, hundreds of aggregates: plain Spark SQL queries, planned together and run on Spark."""

from headrace.errors import HeadraceError
from headrace.query import Query
from headrace.sources import Stream
from headrace.workload import Workload

__version__ = "0.1.0"

__all__ = ["HeadraceError", "Query", "Stream", "Workload", "__version__"]
