"""A tool chain that is missing or does not work is told apart from one that works and builds nothing."""

from __future__ import annotations

import os
import shlex
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY, need
from seglog_conformance.registry import AdapterError, Builder, Listed, UnavailableError, listed, read_adapter
from seglog_conformance.toolchains import complaints

if TYPE_CHECKING:
    from pathlib import Path

NO_DEFAULT = "error: rustup could not choose a version of cargo to run, because one wasn't specified explicitly"
ADAPTERS = sorted(
    path.parent
    for root in ("conformance/adapters", "conformance/templates", "conformance/planted", "tests/serve_clients")
    for path in (REPOSITORY / root).glob("*/adapter.toml")
)
RUNTIMES = {
    "C": "python3",
    "Cython": "python3",
    "Go": "go",
    "Java": "java",
    "JavaScript": "node",
    "Python": "python3",
    "Rust": "cargo",
}
"""The program whose version decides whether an adapter in a language builds."""
EVERYWHERE = {"cp", "mkdir", "sh"}
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


def refusal(tmp_path: Path, toolchain: list[str], step: str = "exit 3") -> AdapterError:
    """Return what building says of an adapter whose build fails."""
    directory = tmp_path / "mine"
    directory.mkdir(exist_ok=True)
    (directory / "adapter.toml").write_text(
        f'name = "mine"\nlanguage = "Rust"\nhomepage = "https://example.org/"\nversions = ["1"]\n'
        f'toolchain = {toolchain}\nrun = ["sh"]\n'
        f'build = [["sh", "-c", "echo begun; echo an error: no such crate; {step}"]]\n',
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
    assert str(error).startswith("it does not build: sh ends with 3: an error: no such crate; see ")


def test_a_build_that_does_not_end(tmp_path: Path, programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(programs / "cargo", "cargo 1.95.0")
    program(programs / "rustc", "rustc 1.95.0")
    monkeypatch.setattr("seglog_conformance.registry.BUILD_SECONDS", 0.5)
    error = refusal(tmp_path, ["cargo"], "exec sleep 60")
    assert str(error).startswith(
        "it does not build: sh did not end in 0.5 seconds; what it made stays for another try;"
    )


def test_a_test_is_skipped_with_the_reason(programs: Path) -> None:
    program(programs / "cargo", NO_DEFAULT, 1)
    with pytest.raises(pytest.skip.Exception, match=r"^rskafka needs cargo, which does not work \(error: rustup"):
        need("rskafka", ["cargo"])
    with pytest.raises(pytest.skip.Exception, match=r"^mine needs no-such-compiler, which is not on the PATH$"):
        need("mine", ["no-such-compiler"])
    need("mine", ["sh"])


@pytest.mark.parametrize("directory", ADAPTERS, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_an_adapter_names_what_it_needs_before_it_builds(directory: Path, tmp_path: Path, programs: Path) -> None:
    """Without versions in `toolchain`, each of them built with a program that is too old, and failed in its log."""
    adapter = read_adapter(directory)
    runtime = RUNTIMES[adapter.language]
    words = {command[0] for command in (*adapter.build, adapter.run)} - EVERYWHERE
    started = {word for word in words if "/" not in word and not word.startswith("{")}
    assert started <= {entry.split()[0] for entry in adapter.toolchain}
    for name in {runtime, "rustc"}:  # cargo needs rustc, which may not work on this machine
        program(programs / name, f"{name} 0.9.1")
    with pytest.raises(UnavailableError) as caught:
        Builder(tmp_path / "build").testee(Listed(adapter.name, adapter.versions[0], adapter))
    said = str(caught.value)
    assert said.startswith(f"{adapter.name} needs ")
    assert f"{runtime} >= " in said
    assert ", and the PATH has 0.9.1" in said
    assert "\n" not in said
    assert not (tmp_path / "build").exists()


def test_there_are_adapters_of_all_kinds() -> None:
    assert len(ADAPTERS) >= 35
    assert {read_adapter(path).language for path in ADAPTERS} == set(RUNTIMES)


@pytest.mark.parametrize(
    ("entry", "release", "expected"),
    [
        ("node >= 18", "", []),
        ("node >= 20.3", "", ["node >= 20.3, and the PATH has 20.2.9"]),
        ("node >= 20.2.9, < 20.3", "", []),
        ("node >= 18, < 20.2.9", "", ["node >= 18, < 20.2.9, and the PATH has 20.2.9"]),
        ("node < 20 for < 1.3", "", []),
        ("node < 20 for < 1.3", "1.3.0", []),
        ("node < 20 for < 1.3", "v1.2.9", ["node < 20 for releases < 1.3, and the PATH has 20.2.9"]),
        ("node < 20 for >= 1.2, < 1.3", "1.10.0", []),
        ("no-such-program >= 3", "", ["no-such-program >= 3, which is not on the PATH"]),
        ("node => 3", "", ["'node => 3', which is no program with its versions"]),
    ],
)
def test_versions_of_programs(entry: str, release: str, expected: list[str], programs: Path) -> None:
    program(programs / "node", "v20.2.9")
    assert complaints([entry], release) == expected


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        ('openjdk version "11.0.2" 2019-01-15', ["java >= 17, and the PATH has 11.0.2"]),
        ('java version "1.8.0_392"', ["java >= 17, and the PATH has 1.8.0"]),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx400m\nopenjdk version "11.0.2"', ["java >= 17, and the PATH has 11.0.2"]),
        ('openjdk version "21" 2023-09-19', []),
        ("a stub", ["java >= 17, and the PATH has one that prints no version"]),
    ],
)
def test_the_version_is_what_a_program_prints(says: str, expected: list[str], programs: Path) -> None:
    program(programs / "java", says)
    assert complaints(["java >= 17"]) == expected


def test_an_old_release_names_the_python_that_has_a_wheel_for_it(tmp_path: Path, programs: Path) -> None:
    """It failed with `bin/pip ends with 1`: confluent-kafka 1.1.0 has no wheel for Python 3.8 and later."""
    program(programs / "python3", "Python 3.11.7")
    adapter = listed("librdkafka").adapter
    assert adapter is not None
    with pytest.raises(UnavailableError) as caught:
        Builder(tmp_path / "build").testee(listed("librdkafka@1.1.0"))
    assert "python3 < 3.8 for releases < 1.3, and the PATH has 3.11.7" in str(caught.value)
    assert complaints(adapter.toolchain, adapter.versions[0]) == []


def test_a_version_that_cannot_be_read_is_refused_with_the_description(tmp_path: Path) -> None:
    error = refusal(tmp_path, ["node => 3"])
    assert not isinstance(error, UnavailableError)
    assert "adapter.toml: " in str(error)
    assert "node => 3" in str(error)
