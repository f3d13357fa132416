"""The one place that sets Spark's configuration, and the one door to a session."""

from __future__ import annotations

import logging
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

from headrace.machine import core_count, machine_memory_mb
from headrace.runtime.java import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_session(
    app: str = "headrace",
    *,
    cores: int | None = None,
    time_zone: str = "UTC",
    quiet: bool = True,
    conf: Mapping[str, str] | None = None,
) -> SparkSession:
    """A local session, or the active one where there is one; `conf` has the last word."""
    from pyspark.sql import SparkSession  # costs a second, which `headrace --help` need not wait

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    ensure_java()
    # Workers would start the system's python3, which may lack every package. A driver in this process reads the
    # variable; spark-submit reads the setting below.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if quiet:
        # PySpark logs every refused query as a page of JSON, besides raising it.
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    builder = SparkSession.builder.appName(app)
    for key, value in (_settings(cores, time_zone, quiet) | dict(conf or {})).items():
        builder = builder.config(key, value)
    return builder.getOrCreate()


@contextmanager
def open_session(app: str = "headrace", **options: object) -> Iterator[SparkSession]:
    """A session that is stopped at the end of the block."""
    spark = start_session(app, **options)  # type: ignore[arg-type]  # handed on as they are
    try:
        yield spark
    finally:
        spark.stop()


def _settings(cores: int | None, time_zone: str, quiet: bool) -> dict[str, str]:
    count = cores or core_count()
    settings = {
        "spark.master": f"local[{count}]",
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        # Spark lets idle workers go after a minute; new ones should not have to load everything again.
        "spark.python.daemon.module": "headrace.runtime.daemon",
        # Over TCP, each task of Python's begins 40 ms late: small messages wait for each other's receipt.
        "spark.python.unix.domain.socket.enabled": str(hasattr(socket, "AF_UNIX")).lower(),
        # The default of 200 is made for clusters: on one machine it is 200 tiny tasks per query.
        "spark.sql.shuffle.partitions": str(count),
        # Answers must not depend on the machine's own time zone.
        "spark.sql.session.timeZone": time_zone,
        # The rest is for Python workers and files.
        "spark.driver.memory": f"{min(8192, max(1024, machine_memory_mb() // 3))}m",
        # The default is a form of the past that tells neither zones nor whole microseconds to other readers.
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # No _SUCCESS file among the results: the whole folder appears at once or not at all.
        "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    }
    if quiet:
        log4j = resources.files("headrace.runtime").joinpath("log4j2.properties")
        settings["spark.driver.extraJavaOptions"] = f"-Dlog4j2.configurationFile=file:{log4j}"
    return settings


_IDLE_S = 50
_last_used: dict[str, float] = {}
"""When the workers of a session were last known to be there. Spark lets idle ones go after a minute."""


def wake_workers(spark: SparkSession) -> None:
    """Have Python workers forked that Spark has let go, so that those who need them soon need not wait."""
    context, now = spark.sparkContext, time.monotonic()
    if now - _last_used.get(context.applicationId, float("-inf")) > _IDLE_S:
        count = context.defaultParallelism
        spark.range(0, count, 1, count).mapInArrow(lambda batches: batches, "id long").collect()
    keep_workers(spark)


def keep_workers(spark: SparkSession) -> None:
    """Note that workers have just worked."""
    _last_used[spark.sparkContext.applicationId] = time.monotonic()


def settings(spark: SparkSession) -> str:
    """All settings of a session that the meaning of a query may depend on, and which session it is."""
    session: Any = spark._jsparkSession
    return f"{session.sessionUUID()} {session.sessionState().conf().getAllConfs()}"


def user_functions(spark: SparkSession) -> frozenset[str]:
    """The names of the user's own functions in a session; some may hide a built-in one.

    As SHOW USER FUNCTIONS gives them, but without a query, which would take 20 to 40 ms of each run.
    """
    session: Any = spark._jsparkSession
    catalog = session.sessionState().catalog()
    kept = catalog.externalCatalog().listFunctions(catalog.getCurrentDatabase(), "*")
    names = f"{catalog.listTemporaryFunctions().mkString(' ')} {kept.mkString(' ')}".split()
    return frozenset(name.rpartition(".")[2].strip("`").lower() for name in names)
