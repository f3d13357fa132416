"""One Spark session for all tests, hardened, with the reason beside each setting."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from pyspark.sql import SparkSession

import headrace
from headrace.runtime.session import start_session

# Spark answers in tens or hundreds of milliseconds, so a deadline per example would only measure the machine.
# Shrinking a failure runs hundreds of queries more; `--hypothesis-profile=shrink` does it where it is wanted.
LOOSE = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}
settings.register_profile("shrink", **LOOSE)  # type: ignore[arg-type]  # a dict of both kinds of values
settings.register_profile(
    "headrace", settings.get_profile("shrink"), phases=set(Phase) - {Phase.shrink, Phase.explain}
)
settings.load_profile("headrace")

SOURCES = Path(headrace.__file__).parent
# Numba does not notice that a compiled function calls into a file that has changed.
_compiled = [file for file in SOURCES.rglob("*.py") if "numba.njit" in file.read_text(encoding="utf-8")]
_latest = max(file.stat().st_mtime for file in _compiled)
for _index in SOURCES.rglob("__pycache__/*.nbi"):
    if _index.stat().st_mtime < _latest:
        _index.unlink(missing_ok=True)

SHARED_DATA = Path(__file__).parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    # pytest's own settings must not reach the workers, which are started by Spark.
    os.environ.pop("PYTEST_CURRENT_TEST", None)
    session = start_session(
        "headrace-tests",
        cores=2,
        conf={
            "spark.sql.shuffle.partitions": "1",  # the data is tiny; more would only start more tasks
            "spark.sql.adaptive.enabled": "false",  # replanning costs a third of a small query's time
            "spark.sql.codegen.wholeStage": "false",  # compiling a query costs more than running it on tiny data
            "spark.sql.codegen.factoryMode": "NO_CODEGEN",  # the same, for projections
            "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),  # not in the checkout
            "spark.driver.memory": "2g",  # CI machines are small
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Recorded data that lies beside the checkout on some machines."""
    if not SHARED_DATA.is_dir():
        pytest.skip("the recorded data sets (shared/data beside the checkout) are not here")
    return SHARED_DATA
