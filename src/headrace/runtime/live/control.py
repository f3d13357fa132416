"""Changes from outside the run's process: requests in its checkpoint, and a folder of `*.sql` that it watches."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from headrace.errors import HeadraceError, RunError
from headrace.runtime.live.files import Folder

if TYPE_CHECKING:
    from headrace.runtime.live.run import LiveRun

_EVERY_S = 0.25
_PATIENCE_S = 30.0
logger = logging.getLogger("headrace.live")

ReadTexts = Callable[[Path], Iterator[tuple[str, str]]]
"""Name and text of each query in a folder."""


class Controller:
    """Looks for changes now and then, in a thread of its own."""

    def __init__(self, run: LiveRun, checkpoint: Folder, watch: Path | None, read: ReadTexts) -> None:
        self._run = run
        self._requests = (checkpoint / "control" / "requests").make()
        self._replies = (checkpoint / "control" / "replies").make()
        self._watch = watch
        self._read = read
        self._seen: dict[str, str] = dict(read(watch)) if watch is not None else {}
        self._stamp = self._stamps()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look, name="headrace-control", daemon=True)
        self.refused: dict[str, str] = {}
        """Queries of the watched folder that could not be added, and why."""

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def close(self) -> None:
        """Look no more."""
        self._ended.set()
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_PATIENCE_S)

    def _look(self) -> None:
        while not self._ended.wait(_EVERY_S):
            for name in self._requests.names():
                self._answer(name)
            if self._watch is not None and self._stamps() != self._stamp:
                self._stamp = self._stamps()
                self._follow(self._watch)

    def _answer(self, name: str) -> None:
        try:
            request = json.loads(self._requests.read(name))
            if request["do"] == "add":
                self._run.add(request["name"], request["text"], backfill=request.get("backfill", False))
            else:
                self._run.remove(request["name"])
            reply: dict[str, object] = {"done": True}
        except (HeadraceError, ValueError, KeyError) as error:
            reply = {"done": False, "error": str(error)}
        self._replies.put(name, json.dumps(reply).encode())
        self._requests.delete(name)

    def _stamps(self) -> dict[str, tuple[int, int]]:
        if self._watch is None:
            return {}
        files = sorted(self._watch.glob("*.sql"))
        return {file.name: (stat.st_mtime_ns, stat.st_size) for file in files if (stat := _stat(file)) is not None}

    def _follow(self, folder: Path) -> None:
        """Have the queries that are in the folder now; one whose text has changed leaves, and joins again."""
        try:
            there = dict(self._read(folder)) if any(folder.glob("*.sql")) else {}
        except HeadraceError as error:
            logger.error("the watched folder: %s", error)
            return
        # First those that come: one query has to be there at all times.
        for name in [name for name in there if self._seen.get(name) != there[name]]:
            self._change(name, there[name])
        for name in [name for name in self._seen if name not in there]:
            self._change(name, None)

    def _change(self, name: str, text: str | None) -> None:
        try:
            if text is None:
                self._run.remove(name)
                del self._seen[name]
            else:
                (self._run.replace if name in self._seen else self._run.add)(name, text)
                self._seen[name] = text
            self.refused.pop(name, None)
        except HeadraceError as error:
            self.refused[name] = str(error)
            logger.error("query '%s' of the watched folder was refused: %s", name, error)


def ask(checkpoint: Folder, request: dict[str, object]) -> None:
    """Ask the run of a checkpoint for a change, and wait until it is made; raises `RunError` with its answer."""
    control = checkpoint / "control"
    if not control.has("requests"):
        raise RunError(f"there is no run with the checkpoint '{checkpoint.uri}'")
    name = f"{time.time_ns()}-{uuid.uuid4().hex[:8]}.json"
    (control / "requests").put(name, json.dumps(request).encode())
    until = time.monotonic() + _PATIENCE_S
    while not (control / "replies").has(name):
        if time.monotonic() > until:
            (control / "requests").delete(name)
            raise RunError(f"the run did not answer within {_PATIENCE_S:.0f} seconds; is it still going?")
        time.sleep(_EVERY_S / 5)
    reply = json.loads((control / "replies").read(name))
    (control / "replies").delete(name)
    if not reply["done"]:
        raise RunError(reply["error"])


def _stat(file: Path) -> os.stat_result | None:
    try:
        return file.stat()
    except FileNotFoundError:
        return None
