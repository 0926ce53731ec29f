"""Known bytes for tests: byte vectors, bundled fixtures, and directories that real brokers wrote."""

from __future__ import annotations

import atexit
import gzip
import json
import os
import shutil
import tempfile
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from seglog_conformance.toolchains import complaints

from proofs.unpacking import unpack_archive

if TYPE_CHECKING:
    from collections.abc import Iterable

REPOSITORY = Path(__file__).resolve().parents[2]
FIXTURES = REPOSITORY / "fixtures"
AUTHENTIC = Path(os.environ.get("SEGLOG_AUTHENTIC", REPOSITORY.parent / "shared" / "authentic"))
"""Every authentic case, where they are at hand. `FIXTURES` holds a selection of them, always."""


@cache
def vectors() -> dict[str, bytes]:
    """Return the byte vectors V-01 to V-26, observed from Kafka 4.1.1; parts of a vector are joined."""
    text = (FIXTURES / "vectors" / "vectors.json").read_text(encoding="utf-8")
    return {name: bytes.fromhex(entry["hex"]) for name, entry in json.loads(text).items()}


def vector(name: str) -> bytes:
    return vectors()[name]


@cache
def run_directory() -> Path:
    """Directory of this process for what is unpacked once and read by many tests; removed when the process ends.

    A process that is killed leaves its directory, up to 1 GB: the next run removes those whose process is gone.
    """
    for left in Path(tempfile.gettempdir()).glob("seglog-tests-*"):
        if not _runs(int(left.name.split("-")[2])):
            shutil.rmtree(left, ignore_errors=True)
    directory = tempfile.mkdtemp(prefix=f"seglog-tests-{os.getpid()}-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _runs(process_id: int) -> bool:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def authentic_names() -> list[str]:
    """Names such as ``4.3.0/txn`` of every authentic case: the bundled ones, and all others beside a checkout."""
    others = (str(path.relative_to(AUTHENTIC))[: -len(".tar.gz")] for path in AUTHENTIC.glob("*/*.tar.gz"))
    return sorted({*bundled_cases(), *others})


def bundled_cases() -> list[str]:
    """Names such as ``4.3.0/txn`` of the authentic cases that the repository holds itself."""
    found = FIXTURES.glob("kafka-*/*/case.toml")
    return sorted(f"{path.parent.parent.name.removeprefix('kafka-')}/{path.parent.name}" for path in found)


def bundled_directory(name: str) -> Path:
    """Return where `fixtures/` keeps a bundled case: archive, expected lines and ``case.toml``."""
    return FIXTURES / f"kafka-{name}"


@cache
def bundled_description(name: str) -> dict[str, Any]:
    """Return the ``case.toml`` of a bundled case."""
    return tomllib.loads((bundled_directory(name) / "case.toml").read_text(encoding="utf-8"))


@cache
def _unpacked(archive: Path, name: str) -> Path:
    target = run_directory() / name
    unpack_archive(archive, target)
    return target


@cache
def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def bundled(name: str) -> Path:
    """Directory with the files of one bundled case, unpacked once; read it, do not change it."""
    return _unpacked(bundled_directory(name) / "files.tar.gz", name)


def bundled_expected(name: str) -> list[dict[str, Any]]:
    """Return what Kafka's own classes read from that case."""
    return _lines(bundled_directory(name) / "expected.jsonl.gz")


def handbook(name: str) -> Path:
    """Directory with the files of an example from the articles: ``segments`` or ``listing``."""
    return FIXTURES / "handbook" / name / "files"


@cache
def handbook_lookups(name: str) -> dict[str, Any]:
    """Return what lookups in that example answer: by Kafka's rules, and by those of the articles."""
    lookups: dict[str, Any] = json.loads((FIXTURES / "handbook" / name / "lookups.json").read_text(encoding="utf-8"))
    return lookups


def handbook_expected(name: str) -> list[dict[str, Any]]:
    """Return the lines of that example's files."""
    text = (FIXTURES / "handbook" / name / "expected.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def authentic(name: str) -> Path:
    """Directory with the files of one authentic case, unpacked once; the test is skipped where it is not at hand."""
    if bundled_directory(name).is_dir():
        return bundled(name)
    _skip_without(name)
    return _unpacked(AUTHENTIC / f"{name}.tar.gz", name)


def states(case: Path) -> list[Path]:
    """Return the log directories of a case: one, or those before and after a broker's recovery."""
    return sorted(case / name for name in ("before", "after") if (case / name).is_dir()) or [case]


def authentic_expected(name: str) -> list[dict[str, Any]]:
    """Return what Kafka's own classes read from that case."""
    if bundled_directory(name).is_dir():
        return bundled_expected(name)
    _skip_without(name)
    return _lines(AUTHENTIC / f"{name}.expected.jsonl.gz")


def need(needed_by: str, programs: Iterable[str]) -> None:
    """Skip a test whose tool chain is not on this machine or does not work, in CI too; one that works has to do."""
    if unusable := complaints(programs):
        pytest.skip(f"{needed_by} needs {'; '.join(unusable)}")


def _skip_without(name: str) -> None:
    if not (AUTHENTIC / f"{name}.tar.gz").is_file():
        pytest.skip(f"{name} is not bundled, and the full collection of broker directories is not at {AUTHENTIC}")
