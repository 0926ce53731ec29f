"""`fixtures/` is complete, unchanged and small, and its descriptions name real requirements."""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest
from helpers.support import (
    AUTHENTIC,
    FIXTURES,
    REPOSITORY,
    bundled,
    bundled_cases,
    bundled_description,
    bundled_directory,
    bundled_expected,
)
from helpers.walking import each_of

from seglog_format.requirements import requirements

if TYPE_CHECKING:
    from pathlib import Path

VERSIONS = sorted({name.split("/")[0] for name in bundled_cases()})
KINDS = ["plain", "one", "empty", "root", "segs-fine", "compact"]


def test_manifest_agrees_and_sizes_are_within_limits() -> None:
    command = [sys.executable, "-m", "tools.fixtures", "check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "fixtures/ agrees with its manifest\n")


@each_of("version", VERSIONS)
def test_every_version_has_the_basic_cases_and_a_crash(version: str) -> None:
    names = [name.removeprefix(f"{version}/") for name in bundled_cases() if name.startswith(f"{version}/")]
    assert set(KINDS) <= set(names)
    assert any(name.startswith("crash-") for name in names)


@each_of("name", bundled_cases())
def test_description_names_real_requirements_and_the_right_sums(name: str) -> None:
    description = bundled_description(name)
    assert description["requirements"]
    assert set(description["requirements"]) <= requirements().keys()
    for file, expected in description["sha256"].items():
        assert hashlib.sha256((bundled_directory(name) / file).read_bytes()).hexdigest() == expected


@pytest.mark.parametrize("name", ["0.8.2.2/plain", "2.8.2/txn", "4.3.0/root"])
def test_unpacked_files_are_those_of_the_expected_lines(name: str) -> None:
    root = bundled(name)
    stated = {line["file"]: line["sha256"] for line in bundled_expected(name) if line["type"] == "file"}
    present = {path.relative_to(root).as_posix(): path for path in root.rglob("*") if path.is_file()}
    assert stated == {file: hashlib.sha256(path.read_bytes()).hexdigest() for file, path in present.items()}


def test_bundled_cases_are_those_of_the_selection() -> None:
    selection = tomllib.loads((FIXTURES / "selection.toml").read_text(encoding="utf-8"))
    selected = {f"{version}/{name}" for version, names in selection["cases"].items() for name in names}
    found = {name for name in bundled_cases() if name.split("/")[0] not in selection["lines"]}
    assert found == selected
    assert {name.split("/")[0] for name in bundled_cases()} == {*selection["cases"], *selection["lines"]}


@pytest.mark.skipif(not AUTHENTIC.is_dir(), reason=f"the full collection is not at {AUTHENTIC}")
def test_bundled_archives_are_those_of_the_collection() -> None:
    for name in (name for name in bundled_cases() if (AUTHENTIC / name.split("/")[0]).is_dir()):
        assert (bundled_directory(name) / "files.tar.gz").read_bytes() == (AUTHENTIC / f"{name}.tar.gz").read_bytes()


def test_the_handbook_examples_can_be_built_again(tmp_path: Path) -> None:
    program = "import sys, pathlib, handbook_fixtures; handbook_fixtures.build(pathlib.Path(sys.argv[1]))"
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], cwd=REPOSITORY / "tools", check=True)
    assert tree(tmp_path / "handbook") == tree(FIXTURES / "handbook")


def tree(root: Path) -> dict[str, bytes]:
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()}
