"""What the demo keeps for its next run."""

from __future__ import annotations

from pathlib import Path

import pytest
import spark_demo


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Where classes are kept, on a machine with a Java of its own."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setattr(spark_demo, "KEPT", tmp_path / "kept")
    return tmp_path / "kept"


def _run(*, can_keep: bool = True) -> str:
    with spark_demo.kept_classes() as options:
        option, _, path = options.rpartition(" ")[2].partition("=")
        if option == "-XX:ArchiveClassesAtExit" and can_keep:
            Path(path).touch()
    return option


def _fail() -> None:
    with spark_demo.kept_classes() as options:
        Path(options.rpartition("=")[2]).touch()
        raise KeyError


def test_classes_are_kept_for_the_next_run_of_the_same_java(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _run() == "-XX:ArchiveClassesAtExit"
    (archive,) = kept.iterdir()
    assert _run() == "-XX:SharedArchiveFile"
    assert list(kept.iterdir()) == [archive]
    monkeypatch.setattr(spark_demo, "version", lambda _: "another")
    assert _run() == "-XX:ArchiveClassesAtExit"
    (other,) = kept.iterdir()
    assert other != archive


def test_a_java_that_keeps_nothing_and_a_run_that_fails(kept: Path) -> None:
    assert _run(can_keep=False) == _run(can_keep=False) == "-XX:ArchiveClassesAtExit"
    with pytest.raises(KeyError):
        _fail()
    assert not list(kept.iterdir())
