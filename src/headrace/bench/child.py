"""A contestant in a process of its own: no other engine's threads, and its memory can be told apart."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from typing import Any

from headrace.bench.check import Check
from headrace.bench.contest import Asked, Task, Timing
from headrace.bench.memory import MemoryWatch
from headrace.errors import BenchError

_PATIENCE_S = 30


class Child:
    """The parent's end: one engine, asked in one variant.

    Each of its turns has a new process, so that no engine has to do with the memory that another has left: some
    need half of a machine. Once awake, a new process was found as fast as one that has answered before.
    """

    def __init__(self, task: Task, engine: str, variant: str) -> None:
        self.engine = engine
        self._task = task
        self._variant = variant
        self._turn: _Turn | None = None

    @property
    def label(self) -> str:
        """The engine and how it is asked."""
        return f"{self.engine} ({self._variant})"

    def warm_up(self) -> Mapping[str, Check]:
        """One untimed round, with its checks."""
        checks: Mapping[str, Check] = self._begin().call("check")
        self.close()
        return checks

    def wake(self) -> None:
        """Begin a turn, and let it answer one question, or one group of them."""
        self._begin().call("wake")

    def measure(self) -> Sequence[Timing]:
        """One timed round, the end of a turn; the child holds the watch, so that the pipe is not timed."""
        turn = self._turn or self._begin()
        with MemoryWatch(turn.pid) as memory:
            seconds: float = turn.call("run")
        self.close()
        return [Timing(self._variant, seconds, memory.peak_mb)]

    def close(self) -> None:
        """End its process, if there is one."""
        if self._turn is not None:
            self._turn.end()
        self._turn = None

    def _begin(self) -> _Turn:
        self.close()
        self._turn = _Turn(self._task, self.engine, self._variant, self.label)
        return self._turn


class _Turn:
    """A process that answers until its turn ends."""

    def __init__(self, task: Task, engine: str, variant: str, label: str) -> None:
        self._label = label
        context = multiprocessing.get_context("spawn")  # a fork would copy Spark's threads half
        self._connection, far = context.Pipe()
        self._process = context.Process(target=_serve, args=(far, task, engine, variant), daemon=True)
        self._process.start()
        far.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def call(self, word: str) -> Any:
        """What it says to a word; raises `BenchError` if it is gone."""
        try:
            self._connection.send(word)
            return self._connection.recv()
        except (EOFError, BrokenPipeError, ConnectionResetError) as error:
            self._process.join(_PATIENCE_S)
            code = self._process.exitcode
            reason = f"was ended by signal {-code}; out of memory?" if code is not None and code < 0 else "failed"
            raise BenchError(
                f"{self._label} {reason} (what it said is above); try fewer --rows, or leave it out of --engines"
            ) from error

    def end(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.join(_PATIENCE_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()


def _serve(connection: Connection, task: Task, engine: str, variant: str) -> None:
    os.environ["POLARS_MAX_THREADS"] = str(task.cores)
    asked = ask_engine(task, engine, variant)
    while True:
        try:
            word = connection.recv()
        except EOFError:
            return
        begin = time.perf_counter()
        if word == "wake":
            asked.run(1)
        elif word == "run" or engine != "chdb":  # chdb keeps no answers, so that its check computes them
            asked.run()
        seconds = time.perf_counter() - begin
        connection.send(asked.check() if word == "check" else seconds)
        asked.clear()


def ask_engine(task: Task, engine: str, variant: str) -> Asked:
    """The engine itself; only here is its package imported."""
    match engine:
        case "polars":
            from headrace.bench.in_polars import InPolars

            return InPolars(task.data, task.questions, variant)
        case "duckdb":
            from headrace.bench.in_duckdb import InDuckDB

            return InDuckDB(task.data, task.questions, variant, task.cores)
        case "chdb":
            from headrace.bench.in_chdb import InChdb

            return InChdb(task.data, task.questions, variant, task.cores)
        case _:
            raise ValueError(f"no engine '{engine}'")
