"""From Spark SQL text to frozen values: what each query asks for, and whether it can be shared."""

from headrace.query.aggregate import Aggregate
from headrace.query.expression import Expression
from headrace.query.parse import parse_query
from headrace.query.query import Query
from headrace.query.source import Source
from headrace.query.window import Window

__all__ = [
    "Aggregate",
    "Expression",
    "Query",
    "Source",
    "Window",
    "parse_query",
]
