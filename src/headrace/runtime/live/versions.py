"""Versions of a plan, kept beside the log: whoever starts again goes on with the last one."""

from __future__ import annotations

import json
import pickle
import zlib
from collections.abc import Collection
from importlib import metadata

from headrace.errors import LogError
from headrace.runtime.live.files import Folder
from headrace.runtime.live.version import Version

_RELEASE = metadata.version("headrace")


class Versions:
    """All versions that some partial in the log was made by, and the last one."""

    def __init__(self, folder: Folder) -> None:
        self._folder = folder
        self._known: dict[int, Version] = {}

    def latest(self) -> Version | None:
        """The last version; None where there is none yet."""
        numbers = self._numbers()
        return self[numbers[-1]] if numbers else None

    def __getitem__(self, number: int) -> Version:
        if number not in self._known:
            self._known[number] = self._read(number)
        return self._known[number]

    def texts(self) -> dict[str, str]:
        """The queries of the last version, without the rest of it."""
        numbers = self._numbers()
        if not numbers:
            return {}
        line, _, _ = self._folder.read(_name(numbers[-1])).partition(b"\n")
        texts: dict[str, str] = json.loads(line)["queries"]
        return texts

    def put(self, version: Version) -> None:
        """Keep a version; from now on it is the last one, also for whoever starts again."""
        from pyspark import cloudpickle  # see session.py

        body = cloudpickle.dumps(version)  # type: ignore[no-untyped-call]
        texts = {name: query.source.original.text for name, query in version.queries.items()}
        head = {"headrace": _RELEASE, "crc": zlib.crc32(body), "queries": texts}
        self._folder.put(_name(version.number), json.dumps(head).encode() + b"\n" + body)
        self._known[version.number] = version

    def forget(self, needed: Collection[int]) -> None:
        """Remove those that nobody needs any more; the last one stays."""
        for number in self._numbers()[:-1]:
            if number not in needed:
                self._folder.delete(_name(number))
                self._known.pop(number, None)

    def _numbers(self) -> list[int]:
        return [int(name.removesuffix(".plan")) for name in self._folder.names()]

    def _read(self, number: int) -> Version:
        data = self._folder.read(_name(number))
        line, _, body = data.partition(b"\n")
        try:
            head = json.loads(line)
        except ValueError as error:
            raise LogError(f"the plan of version {number} is damaged: {error}") from error
        if head["headrace"] != _RELEASE:
            raise LogError(
                f"the run was begun by headrace {head['headrace']}, and this is {_RELEASE}; "
                "go on with that one, or begin a new run with another checkpoint"
            )
        if zlib.crc32(body) != head["crc"]:
            raise LogError(f"the plan of version {number} is damaged: its checksum does not match")
        version: Version = pickle.loads(body)
        return version


def _name(number: int) -> str:
    return f"{number:08}.plan"
