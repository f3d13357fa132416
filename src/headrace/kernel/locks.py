"""Locks of files, for processes that share a folder; a lock goes when its file is closed."""

from __future__ import annotations

from types import ModuleType
from typing import IO, Any

fcntl: ModuleType | None
try:
    import fcntl
except ImportError:  # not a Unix
    fcntl = None


def can_lock() -> bool:
    """Whether this system has such locks."""
    return fcntl is not None


def lock(file: IO[Any], *, alone: bool, wait: bool = False) -> bool:
    """Hold a file, `alone` or with others; whether it is held now, where one does not `wait`."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(file, (fcntl.LOCK_EX if alone else fcntl.LOCK_SH) | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    return True
