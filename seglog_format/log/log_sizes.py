"""Number of bytes of logs to read: what the choice of an engine depends on."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from seglog_format.errors import SeglogError
from seglog_format.log.listing import list_log_directory, list_partition
from seglog_format.log.path_kind import PathKind, path_kind

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.log.listing import SegmentFiles
    from seglog_format.log.reading import LogReader
    from seglog_format.log.segment import LogSegment


def size_of_logs(path: Path) -> int:
    """Return the bytes of the logs that a path names; what cannot be listed counts as nothing.

    Args:
        path: a file, a partition directory or a log directory.

    Raises:
        UsageError: it is nothing of Kafka's; see `path_kind`.
    """
    kind = path_kind(path)
    if kind is PathKind.FILE:
        return path.stat().st_size
    if kind is PathKind.PARTITION:
        return _size_of_partition(path)
    return sum(_size_of_partition(entry.path) for entry in list_log_directory(path).partitions)


def _size_of_partition(path: Path) -> int:
    with suppress(SeglogError, OSError):
        return size_of_segments(list_partition(path).segments)
    return 0


def size_of_segments(segments: Iterable[SegmentFiles]) -> int:
    """Return the bytes of the logs of some segments; a log that is gone meanwhile counts as nothing."""
    return sum(files.log.stat().st_size for files in segments if files.log.is_file())


def size_from(reader: LogReader, offset: int, enough: int) -> int:
    """Return the bytes of entries from an offset on, at least; no more than ``enough`` and a segment are counted.

    What the first segment holds before the offset does not count, as far as its offset index says: a wrong index
    makes reading slower, and nothing else. So a lookup near the end of a large log never loads the engine.
    """
    total = 0
    for number, segment in enumerate(reader.segments_from(offset)):
        total += segment.size
        if total > enough and number == 0:
            total -= min(max(_index_floor(segment, offset), 0), segment.size)
        if total > enough:
            break
    return total


def _index_floor(segment: LogSegment, offset: int) -> int:
    from seglog_format.log.quick_lookup import index_floor  # noqa: PLC0415 - only for large segments

    return index_floor(segment, offset)
