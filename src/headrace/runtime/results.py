"""The answers of a workload: a Spark DataFrame per query, and one way to write them all at once or not at all."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from headrace.errors import OutputError, RunError, did_you_mean
from headrace.runtime.profile import Profile
from headrace.sources.stream import absolute

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

Format = Literal["parquet", "csv", "json"]


class Results(Mapping[str, "DataFrame"]):
    """`results["by_src"]` is the answer of the query `by_src`."""

    def __init__(
        self,
        make: Mapping[str, Callable[[], DataFrame]],
        spark: SparkSession,
        profile: Profile | None = None,
        release: Callable[[], None] | None = None,
    ) -> None:
        """The DataFrame of a query is made when someone asks for it first."""
        self._make = dict(make)
        self._release = release
        self._frames: dict[str, DataFrame] = {}
        self._spark = spark
        self._profile = profile

    def __getitem__(self, name: str) -> DataFrame:
        if name not in self._make:
            raise KeyError(f"no query '{name}' {did_you_mean(name, list(self._make))}".rstrip())
        if name not in self._frames:
            self._frames[name] = self._make[name]()
        return self._frames[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._make)

    def __len__(self) -> int:
        return len(self._make)

    def __repr__(self) -> str:
        return f"Results({', '.join(self)})"

    def release(self) -> None:
        """Let the answers go, on disk or in Spark's memory; they cannot be read any more.

        In a local session, later runs write over their files: up to a share of the machine's memory, these stay
        on disk until this process ends. Without it, answers are kept as long as this process.
        `with workload.run(...) as results:` does it at the end.
        """
        if self._release is not None:
            self._release()

    def __enter__(self) -> Results:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def profile(self) -> Profile:
        """What the shared pass measured, node by node; raises `RunError` where there was none."""
        if self._profile is None:
            raise RunError("plain Spark gave these answers, query by query: there is no plan to profile")
        return self._profile

    def write(
        self,
        path: str,
        *,
        format: Format = "parquet",  # the word that Spark's users know
        overwrite: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> None:
        """Write one folder per query below `path`, which appears whole or not at all.

        Everything is computed into a staging folder beside `path`; one rename makes it visible. `progress` is
        called with each query's name when it is done. After `OutputError` or `RunError`, `path` is as it was.
        """
        target = _Folder(self._spark, absolute(path))
        if target.exists() and not overwrite:
            raise OutputError(f"'{path}' is there already; choose another folder, or overwrite it on purpose")
        staging = target.sibling(f".{target.name}.staging-{uuid.uuid4().hex[:8]}")
        try:
            for name, frame in self.items():
                self._write_one(name, frame, f"{staging.path}/{name}", format)
                if progress is not None:
                    progress(name)
            staging.replace(target)
        finally:
            staging.delete()

    def _write_one(self, name: str, frame: DataFrame, path: str, kind: Format) -> None:
        with reporting(f"query '{name}' failed: "):
            if kind == "csv":
                _flat(frame).write.csv(path, header=True)
            else:
                frame.write.format(kind).save(path)


def collected(frame: DataFrame) -> list[Row]:
    """The rows of a job; raises `RunError` with what went wrong."""
    with reporting():
        return frame.collect()


@contextmanager
def reporting(what: str = "") -> Iterator[None]:
    """Meanwhile what Spark raises becomes a `RunError`, whose message begins with `what`."""
    from py4j.protocol import Py4JJavaError  # see session.py
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise RunError(what + describe_failure(error)) from error


_OWN_ERROR = re.compile(r"^headrace\.[\w.]+: (.+)$", re.MULTILINE)
_PYTHON_ERROR = re.compile(r"^(\w[\w.]*(?:Error|Exception|Invalid)\b.*)$", re.MULTILINE)


def describe_failure(error: Exception) -> str:
    """What went wrong in a job: what headrace or Python said in a worker, or else what Spark says first."""
    text = str(error)
    own = _OWN_ERROR.findall(text)
    if own or "Traceback (most recent call last)" not in text:
        return str(own[-1]) if own else first_sentence(error)
    python = _PYTHON_ERROR.findall(text[text.rindex("Traceback (most recent call last)") :])
    return str(python[0]) if python else first_sentence(error)


def first_sentence(error: Exception) -> str:
    """What Spark says first, without the stack traces that follow."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith("Caused by:")]
    text = causes[-1].removeprefix("Caused by:").strip() if causes else (lines[0] if lines else repr(error))
    return text.split(" SQLSTATE")[0]


def _flat(frame: DataFrame) -> DataFrame:
    """Columns that CSV can hold: a struct becomes a column per field (window_start), other nested types JSON."""
    from pyspark.sql import functions, types  # see session.py

    columns = []
    for field in frame.schema.fields:
        column = frame[f"`{field.name}`"]
        if isinstance(field.dataType, types.StructType):
            columns += [column[name].alias(f"{field.name}_{name}") for name in field.dataType.names]
        elif isinstance(field.dataType, (types.ArrayType, types.MapType)):
            columns.append(functions.to_json(column).alias(field.name))
        elif isinstance(field.dataType, types.BinaryType):
            columns.append(functions.hex(column).alias(field.name))
        else:
            columns.append(column)
    return frame.select(columns)


class _Folder:
    """A folder on any file system that Spark reaches, through Hadoop's own interface."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self._spark = spark
        jvm: Any = spark._jvm
        conf = spark._jsparkSession.sessionState().newHadoopConf()
        place = jvm.org.apache.hadoop.fs.Path(path)
        self._files = place.getFileSystem(conf)
        self._place = self._files.makeQualified(place)
        self.path = str(self._place.toString())
        self.name = str(self._place.getName())

    def sibling(self, name: str) -> _Folder:
        return _Folder(self._spark, f"{self._place.getParent().toString()}/{name}")

    def exists(self) -> bool:
        """Whether something is there; an empty folder counts as nothing."""
        return bool(self._files.exists(self._place)) and (
            not self._files.getFileStatus(self._place).isDirectory()
            or len(self._files.listStatus(self._place)) > 0
        )

    def delete(self) -> None:
        self._files.delete(self._place, True)

    def replace(self, target: _Folder) -> None:
        """Become `target`: what was there steps aside first and comes back if the last rename fails."""
        old = target.sibling(f".{target.name}.old-{uuid.uuid4().hex[:8]}")
        had_old = bool(self._files.exists(target._place))
        if had_old and not self._files.rename(target._place, old._place):
            raise OutputError(f"cannot move what is at '{target.path}' aside")
        if not self._files.rename(self._place, target._place):
            if had_old:
                self._files.rename(old._place, target._place)
            raise OutputError(f"cannot rename '{self.path}' to '{target.path}'")
        if had_old:
            old.delete()
