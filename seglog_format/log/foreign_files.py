"""Files that are not of this format, and how to know them: by their names, and by their first bytes."""

from __future__ import annotations

import re
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.framing import frame_at
from seglog_format.errors import SeglogError
from seglog_format.model import Frame
from seglog_format.names import STANDARD_INPUT
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from pathlib import Path

FIRST_SIZE: Final = 8
"""Number of first bytes that show the kind of a file."""

UNKNOWN: Final = "of no known kind: neither its name nor its first bytes are those of a file of this format"

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


def foreign_kind(name: str, first: bytes = b"", *, path: str = "") -> str | None:
    """Return what a file is that is not of this format; None if neither name nor content shows it.

    Args:
        name: of the file, without its directory.
        first: its first bytes, `FIRST_SIZE` or more; empty if they are not known: then the ending of the name counts.
        path: of the file, for the command that unpacks it; by default the name.
    """
    for pattern, text in NAMES:
        if pattern.fullmatch(name):
            return text
    for magic, program in PACKED:
        if first.startswith(magic):
            return _packed_text(program, path or name)
    if name.endswith(".tar") and not first.startswith(b"\0"):  # a log begins with an offset, an archive with a name
        return f"an archive: unpack it first: tar -xf {_quoted(path or name)}"
    by_name = next((program for ending, program in PACKED_ENDINGS.items() if name.endswith(ending)), None)
    return None if by_name is None or first else _packed_text(by_name, path or name)


def _packed_text(program: str, path: str) -> str:
    """Return what a packed file is, and the command that reads it; an archive may hold many files."""
    unpack = "unzip -p" if program == "zip" else f"{program} -dc"
    is_archive = path.endswith(".tgz") or ".tar." in path
    if path.rpartition("/")[2] == STANDARD_INPUT:
        return f"compressed with {program}: unpack it first: {unpack} | seglog dump {STANDARD_INPUT}"
    command = f"tar -xf {_quoted(path)}" if is_archive else f"{unpack} {_quoted(path)} | seglog dump {STANDARD_INPUT}"
    return f"compressed with {program}: unpack it first: {command}"


def _quoted(path: str) -> str:
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def foreign_at(path: Path) -> str | None:
    """Return what a file is that is not of this format; None if nothing shows it, or it cannot be read."""
    try:
        with path.open("rb") as file:
            first = file.read(FIRST_SIZE)
    except OSError:
        first = b""
    return foreign_kind(path.name, first, path=str(path))


def unnamed_base_offset(path: Path) -> int | None:
    """Return the base offset of a log whose name has none: its first offset, or 0 if only decompression shows that.

    None if the file does not begin with an entry that has a right checksum: nothing shows that it is a log. Standard
    input always counts as one.
    """
    with suppress(SeglogError), LOCAL.open(path) as source:
        frame = frame_at(source, 0, source.size, path.name)
        if isinstance(frame, Frame) and checksum_is_valid(frame):
            return max(frame.header.base_offset or 0, 0)
    return 0 if path.name == STANDARD_INPUT else None
