"""Compiled code that is kept for the next process."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

MODULE = """
import numba
import headrace.kernel

@numba.njit(cache=True)
def double(value):
    return {} * value
"""
CALLS = "import doubling; print([doubling.double(1), doubling.double(1.5), doubling.double(1j)])"


def run(folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", CALLS], cwd=folder, stdout=subprocess.PIPE, text=True)


def test_processes_that_compile_at_a_time_and_a_new_version(tmp_path: Path) -> None:
    for factor in (2, 3):
        (tmp_path / "doubling.py").write_text(MODULE.format(factor))
        expected = f"{[factor * 1, factor * 1.5, factor * 1j]}\n"
        processes = [run(tmp_path) for _ in range(4)]
        assert [process.communicate(timeout=120)[0] for process in processes] == [expected] * 4
        assert (tmp_path / "__pycache__" / "headrace.lock").exists()
