"""A cheap fingerprint of a directory or of a log's last file, which shows changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.log.partition import Partition

FileState: TypeAlias = tuple[int, ...]


def state_of(path: Path) -> FileState:
    """Return values of `stat` that change whenever a file or a directory does.

    Raises:
        UsageError: the path does not exist.
    """
    try:
        status = path.stat()
    except OSError as error:
        msg = f"{path}: {error.strerror}"
        raise UsageError(msg) from error
    return status.st_ino, status.st_size, status.st_mtime_ns


def last_state(partition: Partition) -> FileState:
    """Return the fingerprint of a log's last local file; empty if there is none."""
    last = partition.segments[-1] if partition.segments else None
    return () if last is None or last.is_tiered else state_of(last.paths.log)
