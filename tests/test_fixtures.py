"""`fixtures/` is complete, unchanged and small, and its descriptions name real requirements."""

from __future__ import annotations

import hashlib
import subprocess
import sys

import pytest
from support import REPOSITORY, bundled, bundled_cases, bundled_description, bundled_directory, bundled_expected

from seglog_format.requirements import requirements

VERSIONS = ["0.8.2.2", "0.10.2.2", "1.1.1", "2.8.2", "3.9.1", "4.3.0"]
KINDS = ["plain", "one", "empty", "root", "segs-fine", "compact"]


def test_manifest_agrees_and_sizes_are_within_limits() -> None:
    command = [sys.executable, str(REPOSITORY / "tools" / "fixtures.py"), "check"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (result.returncode, result.stdout) == (0, "fixtures/ agrees with its manifest\n")


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_has_the_basic_cases_and_a_crash(version: str) -> None:
    names = [name.removeprefix(f"{version}/") for name in bundled_cases() if name.startswith(f"{version}/")]
    assert set(KINDS) <= set(names)
    assert any(name.startswith("crash-") for name in names)


@pytest.mark.parametrize("name", bundled_cases())
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
