"""What tells, without reading anything, whether a directory or the last file of its log has changed."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.log.partition import Partition

FileState: TypeAlias = tuple[int, ...]


def state_of(path: Path) -> FileState:
    """What changes whenever a file does, or a directory.

    Raises:
        UsageError: it is gone.
    """
    try:
        status = path.stat()
    except OSError as error:
        msg = f"{path}: {error.strerror}"
        raise UsageError(msg) from error
    return status.st_ino, status.st_size, status.st_mtime_ns


def last_state(partition: Partition) -> FileState:
    """The same of the last file of a log; nothing where it has none."""
    return state_of(partition.segments[-1].paths.log) if partition.segments else ()
