"""From Spark SQL text to frozen values: what each query asks for, and whether it can be shared."""

from headrace.query.aggregate import Aggregate, Kind
from headrace.query.expression import Expression
from headrace.query.ordering import Ordering
from headrace.query.parse import parse_query
from headrace.query.query import Obstacle, Output, Query
from headrace.query.source import Source
from headrace.query.window import Window

__all__ = [
    "Aggregate",
    "Expression",
    "Kind",
    "Obstacle",
    "Ordering",
    "Output",
    "Query",
    "Source",
    "Window",
    "parse_query",
]
