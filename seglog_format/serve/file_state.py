"""A cheap fingerprint of a directory or of a log's last file, which shows changes."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.errors import UsageError
from seglog_format.storage.file_reader import unreadable

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seglog_format.log.partition import Partition

FileState: TypeAlias = tuple[int, ...]

REREAD_SECONDS: Final = 5.0
"""Interval at which a log with a damaged entry is listed and read again."""


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


def look_at_size(partition: Partition, offset: int, refresh: Callable[[bool], bool]) -> None:
    """Compare the size of the file for an offset with its size when it was walked.

    Args:
        partition: as it was listed.
        offset: any offset.
        refresh: lists the directory again if it has changed, or if the argument is true; returns whether it did.

    Raises:
        UsageError: the file does not exist.
        UnreadableError: it was cut in place, so a reader would pass over what is cut off (SEG-PDR-022).
    """
    segments = partition.segments
    index = bisect_left(segments, offset, key=lambda segment: segment.allowed.last)
    segment = segments[index] if index < len(segments) else None
    if segment is None or segment.is_tiered or (tail := segment.walked.tail) is None:
        return
    size, known = segment.storage.status(segment.paths.log).size, tail.position + tail.size
    is_restored = size > known and segment is not segments[-1]
    if (is_restored or size < known) and not refresh(is_restored):
        raise unreadable(segment.path, size, known - size, None)
