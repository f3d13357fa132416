"""What a session knows of its workloads: queries that stand are run again and again, and planned once.

A plan is right for all records that need the same of it. So it is kept, with what Spark said of the queries, and
taken again as long as the stream is about as large as it was (`Prepared.renewed`).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING

from headrace.plan.costs import load_costs
from headrace.query import Query
from headrace.runtime.prepare import Prepared
from headrace.runtime.session import settings
from headrace.sources import Stream

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST = 16
"""Workloads that are known at a time; the one that was not asked for longest is forgotten."""


@dataclass(frozen=True, slots=True)
class Known:
    """A workload that has been run: its plan, and its queries as Spark understood them."""

    prepared: Prepared
    analysed: Mapping[str, DataFrame]


_known: OrderedDict[Hashable, Known] = OrderedDict()
_lock = Lock()


def key_of(
    queries: Mapping[str, Query],
    stream: Stream,
    spark: SparkSession,
    budget: int,
    search: str,
    functions: Collection[str],
) -> Hashable:
    """All that a plan and the meaning of queries depend on, but for the records."""
    texts = tuple((name, query.text) for name, query in queries.items())
    return texts, stream, settings(spark), budget, search, frozenset(functions), load_costs()


def recall(key: Hashable) -> Known | None:
    """What is known of a workload."""
    with _lock:
        if key in _known:
            _known.move_to_end(key)
        return _known.get(key)


def remember(key: Hashable, known: Known) -> None:
    """Know a workload from now on."""
    with _lock:
        _known[key] = known
        _known.move_to_end(key)
        while len(_known) > _MOST:
            _known.popitem(last=False)


def forget() -> None:
    """Know nothing any more: the next run of any workload makes its plan anew."""
    with _lock:
        _known.clear()
