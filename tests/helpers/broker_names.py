"""Every file name and small text that brokers left in the authentic directories, as Kafka's own classes list them."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from helpers.support import AUTHENTIC, authentic_names, bundled_cases, bundled_directory

if TYPE_CHECKING:
    from pathlib import Path


def _expected_files() -> list[Path]:
    bundled = set(bundled_cases())
    others = [name for name in authentic_names() if name not in bundled]
    return [
        *(bundled_directory(name) / "expected.jsonl.gz" for name in sorted(bundled)),
        *(path for name in others if (path := AUTHENTIC / f"{name}.expected.jsonl.gz").is_file()),
    ]


@cache
def broker_files() -> dict[PurePosixPath, list[str | None]]:
    """Path in its archive, and for a text file each content that some case has."""
    found: dict[PurePosixPath, list[str | None]] = {}
    for path in _expected_files():
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            for line in lines:
                if line.startswith(('{"type":"file"', '{"type":"text"')):
                    entry = json.loads(line)
                    found.setdefault(PurePosixPath(entry["file"]), []).append(entry.get("text"))
    return found


@cache
def file_names() -> tuple[str, ...]:
    return tuple(sorted({path.name for path in broker_files()}))


@cache
def directory_names() -> tuple[str, ...]:
    names = {path.parent.name for path in broker_files()}
    return tuple(sorted(names - {"", "before", "after"}))


def texts(*names: str) -> list[tuple[str, str]]:
    """Path and content of every text file of that name, each content once."""
    return sorted(
        {
            (path.name, text)
            for path, found in broker_files().items()
            if path.name in names
            for text in found
            if text is not None
        }
    )
