"""The process that Spark forks Python workers from, with all that they need loaded: new ones are there at once."""

from __future__ import annotations

import ctypes
import gc
import importlib
from collections.abc import Callable
from socket import socket

from pyspark import daemon

from headrace.kernel.compiled import load_kernels

_TRIM, _TOP_PAD, _MAPPED = -1, -2, -4
"""What glibc's `mallopt` can be told about."""
_MOST_KEPT = 1 << 30
"""Bytes that a process keeps, at most: about what a worker of the usual budget comes to hold."""
MOST_BYTES = (1 << 31) - 1
"""More than that cannot be asked for."""


def keep_memory(most_bytes: int = _MOST_KEPT) -> None:
    """Have memory that tables leave stay in the process, for the next ones.

    Else it goes back to the system, which clears each page when it is wanted again: that took up to a fifth of a
    task's time. Where there is no glibc, memory is managed as it is.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_MAPPED, 0)  # large tables too come from what is kept: none is mapped, and unmapped, by itself
        mallopt(_TRIM, most_bytes)
        mallopt(_TOP_PAD, 1 << 26)


Worker = Callable[[socket, bool], int]


def quietly(worker: Worker) -> Worker:
    """A worker that ends in silence where Spark has let it go, as it does after a minute without work.

    Over a Unix socket it finds that nobody listens any more, and would say so in a page.
    """

    def work(sock: socket, authenticated: bool) -> int:
        try:
            return worker(sock, authenticated)
        except BrokenPipeError:
            return 1

    return work


if __name__ == "__main__":
    keep_memory()
    for module in ("pyspark.worker", "headrace.runtime.worker", "headrace.runtime.source"):
        importlib.import_module(module)
    load_kernels()
    gc.freeze()  # what is here stays, and its pages are shared with all workers
    daemon.worker = quietly(daemon.worker)  # type: ignore[assignment]  # the manager calls it by this name
    daemon.manager()
