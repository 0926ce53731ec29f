"""Known bytes for tests: byte vectors, bundled fixtures, and directories that real brokers wrote."""

from __future__ import annotations

import gzip
import json
import tarfile
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parent.parent
FIXTURES = REPOSITORY / "fixtures"
AUTHENTIC = REPOSITORY.parent / "shared" / "authentic"
"""Every authentic case; beside a checkout only. `FIXTURES` holds a selection of them, always."""


@cache
def vectors() -> dict[str, bytes]:
    """The byte vectors V-01 to V-26, observed from Kafka 4.1.1; parts of a vector are joined."""
    text = (FIXTURES / "vectors" / "vectors.json").read_text(encoding="utf-8")
    return {name: bytes.fromhex(entry["hex"]) for name, entry in json.loads(text).items()}


def vector(name: str) -> bytes:
    return vectors()[name]


@cache
def _unpacked_root() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="seglog-authentic-")


def authentic_names() -> list[str]:
    """Names such as ``4.3.0/txn`` of every authentic case; empty where they are not at hand."""
    return sorted(str(path.relative_to(AUTHENTIC))[: -len(".tar.gz")] for path in AUTHENTIC.glob("*/*.tar.gz"))


@cache
def authentic(name: str) -> Path:
    """Directory with the files of one authentic case, unpacked once."""
    target = Path(_unpacked_root().name) / name
    with tarfile.open(AUTHENTIC / f"{name}.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target


@cache
def authentic_expected(name: str) -> list[dict[str, Any]]:
    """What Kafka's own classes read from that case."""
    with gzip.open(AUTHENTIC / f"{name}.expected.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]
