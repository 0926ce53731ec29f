"""The number of bytes of logs to read, on which the choice of an engine depends."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from operator import attrgetter
from typing import TYPE_CHECKING

from seglog_format.errors import SeglogError
from seglog_format.log.listing import list_log_directory, list_partition
from seglog_format.log.path_kind import PathKind, path_kind
from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.log.listing import SegmentFiles
    from seglog_format.log.reading import LogReader
    from seglog_format.log.segment import LogSegment


def size_of_logs(path: Path) -> int:
    """Return the number of bytes of the logs at a path; a directory that cannot be listed counts as 0.

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
    """Return the number of bytes of the logs of segments; a log that was removed meanwhile counts as 0."""
    return sum(files.log.stat().st_size for files in segments if files.log.is_file())


def size_from(reader: LogReader, offset: int, enough: int, end: int = INT64_MAX) -> int:
    """Estimate the number of bytes of the entries in a range of offsets; stop counting beyond ``enough``.

    The offset indexes show what the first segment holds before the range and the last one after it; those bytes do not
    count. So looking up a record never loads the columnar engine. A wrong index makes reading slower, nothing else.

    Args:
        reader: of the log.
        offset: first offset of the range.
        enough: number of bytes above which the exact count makes no difference.
        end: end of the range, exclusive.
    """
    total = 0
    for number, segment in enumerate(reader.segments_from(offset)):
        if segment.base_offset >= end:
            break
        size = segment.size
        if total + size > enough:
            first = _indexed_position(segment, offset, 0) if number == 0 else 0
            last = size if end > segment.allowed.last else _indexed_position(segment, end, 1)
            size = max(last - first, 0)
        total += size
        if total > enough:
            break
    return total


def _indexed_position(segment: LogSegment, offset: int, following: int) -> int:
    """Return the position in the last index entry up to an offset, or in the entry ``following`` entries after it.

    Without such an entry, it is the start of the log if ``following`` is 0, else its end. The result is a position in
    the log even if the index holds another one.
    """
    with suppress(SeglogError):
        entries = () if segment.offset_index is None else segment.offset_index.raw_entries()
        number = bisect_right(entries, offset, key=attrgetter("offset")) - 1 + following
        if 0 <= number < len(entries):
            return min(max(entries[number].position, 0), segment.size)
    return segment.size if following else 0
