"""Copies of files into a new directory: by shared blocks if the file system can share them; times are preserved."""

from __future__ import annotations

import os
import shutil
import sys
from typing import TYPE_CHECKING, Final

from seglog_format.errors import write_errors

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.storage.byte_source import SourceFile

FICLONE: Final = 0x40049409
"""The `ioctl` request of Linux that makes a file share the blocks of another file (a reflink)."""


PIECE_SIZE: Final = 4 << 20
"""Maximum bytes of an open file that are written at once."""


def pieces_of(source: SourceFile) -> Iterator[memoryview]:
    """Yield all bytes of an open file, in order, and close it."""
    with source:
        source.expect(0, None)
        for start in range(0, source.size, PIECE_SIZE):
            yield source.view(start, min(start + PIECE_SIZE, source.size))


def copy_file(source: Path, target: Path) -> None:
    """Copy a file; if the file system can, the copy shares its blocks until one of the two is written.

    Args:
        source: a regular file, or a link to one.
        target: must not exist.

    Raises:
        WriteError: the copy could not be made.
    """
    with write_errors("copying"):
        with source.open("rb") as old, target.open("xb") as new:
            if not _shares_blocks(old.fileno(), new.fileno()):
                shutil.copyfileobj(old, new, 1 << 20)
        status = source.stat()
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _shares_blocks(source: int, target: int) -> bool:
    if sys.platform == "win32":
        return False
    try:
        fcntl.ioctl(target, FICLONE, source)
    except OSError:
        return False
    return True


def link_file(source: Path, target: Path) -> None:
    """Give a file a second name (a hard link). A write through one name changes the file under both.

    Raises:
        WriteError: the names would be on different file systems, or the file system has no links.
    """
    with write_errors("linking"):
        os.link(source, target)
