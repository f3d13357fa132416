"""Imports go one way, and the front end does without PySpark."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parents[1] / "src" / "headrace"
ORDER = ["query", "algebra", "plan", "kernel", "generate", "sources", "runtime", "bench", "cli"]
"""Each folder may import from those before it, and from `errors` and `machine`."""


def imported(file: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.startswith("headrace.")}


@pytest.mark.parametrize("folder", ORDER)
def test_imports_go_one_way(folder: str) -> None:
    allowed = {"errors", "machine", folder, *ORDER[: ORDER.index(folder)]}
    if folder in ("bench", "cli"):
        allowed.add("workload")
    wrong = {
        f"{file.relative_to(SRC)} imports {name}"
        for file in (SRC / folder).rglob("*.py")
        for name in imported(file)
        if name.split(".")[1] not in allowed
    }
    assert not wrong


@pytest.mark.parametrize(
    "module",
    [
        "headrace.query",
        "headrace.algebra.states",
        "headrace.algebra.bag",
        "headrace.kernel.table",
        "headrace.generate",
        "headrace.sources",
        "headrace.cli.app",
    ],
)
def test_importing_does_not_import_pyspark(module: str) -> None:
    program = f"import sys, {module}; sys.exit('pyspark' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_modules_stay_readable() -> None:
    long = {str(f.relative_to(SRC)): n for f in SRC.rglob("*.py") if (n := len(f.read_text().splitlines())) > 450}
    assert not long
