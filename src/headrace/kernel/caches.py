"""Numba's caches of compiled code, one process at a time.

Numba writes which file has what, and then the file. Who reads in between gets what the file had before: code of
another version, or for other types. Two that write at a time may give two kinds of code the same name. Both
happen where several workers meet a new version together.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from numba.core.caching import IndexDataCacheFile

from headrace.kernel.locks import lock


def guard_caches() -> None:
    """Have every process wait while another one reads or writes a cache of the same folder."""
    if not hasattr(IndexDataCacheFile.load, "__wrapped__"):
        IndexDataCacheFile.load = _alone(IndexDataCacheFile.load)  # type: ignore[method-assign]
        IndexDataCacheFile.save = _alone(IndexDataCacheFile.save)  # type: ignore[method-assign]


def _alone(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def alone(cache: Any, *arguments: Any) -> Any:
        with _locked(cache._cache_path):
            return method(cache, *arguments)

    return alone


@contextlib.contextmanager
def _locked(folder: str) -> Iterator[None]:
    try:
        file = (Path(folder) / "headrace.lock").open("a")
    except OSError:  # the folder cannot be written: nobody writes to it
        yield
        return
    with file:
        lock(file, alone=True, wait=True)  # where there are no locks, caches are as Numba has them
        yield
