"""Files that are not of this format, and how to know them: by their names, and by their first bytes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

FIRST_SIZE: Final = 8
"""Number of first bytes that show the kind of a file."""

NAMES: Final = (
    (re.compile(r"\d+\.kafka"), "a log of Kafka 0.7, whose format is another one"),
    (re.compile(r"\d+-\d+-v\d+\.log"), "a segment of Redpanda, whose format is another one"),
)
PACKED: Final = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
)
"""What files begin with that a program has compressed whole, and the program. No log begins so: its first 8 bytes are
an offset, which would be far above any that was written."""
PACKED_ENDINGS: Final = {".gz": "gzip", ".tgz": "gzip", ".zst": "zstd", ".lz4": "lz4", ".xz": "xz", ".bz2": "bzip2"}


def foreign_kind(name: str, first: bytes = b"") -> str | None:
    """Return what a file is that is not of this format; None if neither name nor content shows it.

    Args:
        name: of the file, without its directory.
        first: its first bytes, `FIRST_SIZE` or more; empty if they are not known: then the ending of the name counts.
    """
    for pattern, text in NAMES:
        if pattern.fullmatch(name):
            return text
    for magic, program in PACKED:
        if first.startswith(magic):
            return f"compressed with {program}: unpack it first"
    by_name = next((program for ending, program in PACKED_ENDINGS.items() if name.endswith(ending)), None)
    return None if by_name is None or first else f"compressed with {by_name}: unpack it first"


def foreign_at(path: Path) -> str | None:
    """Return what a file is that is not of this format; None if nothing shows it, or it cannot be read."""
    try:
        with path.open("rb") as file:
            first = file.read(FIRST_SIZE)
    except OSError:
        first = b""
    return foreign_kind(path.name, first)
