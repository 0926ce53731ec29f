"""A tool chain that is missing or does not work is told apart from one that works and builds nothing."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import pytest
from helpers.support import need
from seglog_conformance.registry import AdapterError, Builder, UnavailableError, listed

if TYPE_CHECKING:
    from pathlib import Path

NO_DEFAULT = "error: rustup could not choose a version of cargo to run, because one wasn't specified explicitly"
JAVA = 'openjdk version "17.0.15"'
MAVEN = "Apache Maven 3.8.7\nJava version: 17.0.15, vendor: Debian, runtime: {home}"


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Provide an empty directory that comes first on the PATH."""
    directory = tmp_path / "bin"
    directory.mkdir()
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")
    return directory


def program(path: Path, says: str, status: int = 0) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\nprintf '%s\\n' {shlex.quote(says)} >&2\nexit {status}\n", encoding="utf-8")
    path.chmod(0o755)


def refusal(tmp_path: Path, toolchain: list[str]) -> AdapterError:
    """Return what building says of an adapter whose build fails."""
    directory = tmp_path / "mine"
    directory.mkdir(exist_ok=True)
    (directory / "adapter.toml").write_text(
        f'name = "mine"\nlanguage = "Rust"\nhomepage = "https://example.org/"\nversions = ["1"]\n'
        f'toolchain = {toolchain}\nbuild = [["sh", "-c", "exit 3"]]\nrun = ["sh"]\n',
        encoding="utf-8",
    )
    with pytest.raises(AdapterError) as caught:
        Builder(tmp_path / "build", strict=True).testee(listed(str(directory)))
    return caught.value


def test_cargo_without_a_default_tool_chain(tmp_path: Path, programs: Path) -> None:
    program(programs / "cargo", NO_DEFAULT, 1)
    error = refusal(tmp_path, ["cargo"])
    assert isinstance(error, UnavailableError)
    assert str(error) == f"mine needs cargo, which does not work ({NO_DEFAULT})"


def test_cargo_without_a_compiler(tmp_path: Path, programs: Path) -> None:
    program(programs / "cargo", "cargo 1.95.0")
    program(programs / "rustc", "", 7)
    assert str(refusal(tmp_path, ["cargo"])) == "mine needs cargo, which does not work (it ends with status 7)"


def test_go_that_does_not_tell_its_version(tmp_path: Path, programs: Path) -> None:
    program(programs / "go", "go: cannot find GOROOT directory: /usr/lib/go", 2)
    assert "go, which does not work (go: cannot find GOROOT" in str(refusal(tmp_path, ["go"]))


def test_maven_on_a_java_without_a_compiler(tmp_path: Path, programs: Path) -> None:
    home = tmp_path / "jre"
    program(programs / "java", JAVA)
    program(programs / "mvn", MAVEN.format(home=home))
    error = refusal(tmp_path, ["java", "mvn"])
    assert isinstance(error, UnavailableError)
    assert str(error) == f"mine needs mvn, which does not work ({home}/bin/javac: No such file or directory)"


def test_a_program_that_cannot_be_run(tmp_path: Path, programs: Path) -> None:
    (programs / "node").write_bytes(b"\x7fELF of another machine")
    (programs / "node").chmod(0o755)
    assert "node, which does not work (" in str(refusal(tmp_path, ["node"]))


def test_a_tool_chain_that_works_has_to_build(tmp_path: Path, programs: Path) -> None:
    program(programs / "cargo", "cargo 1.95.0")
    program(programs / "rustc", "rustc 1.95.0")
    error = refusal(tmp_path, ["cargo"])
    assert not isinstance(error, UnavailableError)
    assert "it does not build" in str(error)


def test_a_test_is_skipped_with_the_reason(programs: Path) -> None:
    program(programs / "cargo", NO_DEFAULT, 1)
    with pytest.raises(pytest.skip.Exception, match=r"^rskafka needs cargo, which does not work \(error: rustup"):
        need("rskafka", ["cargo"])
    with pytest.raises(pytest.skip.Exception, match=r"^mine needs no-such-compiler, which is not on the PATH$"):
        need("mine", ["no-such-compiler"])
    need("mine", ["sh"])
