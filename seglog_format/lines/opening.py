"""Opening of files for `lines_of`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from seglog_format.lines.sources import SourceKind
from seglog_format.storage.byte_source import source_of
from seglog_format.storage.file_bytes import MAX_LOG_SIZE, MAX_WHOLE_SIZE, refuse_beyond, refuse_large_log

if TYPE_CHECKING:
    from seglog_format.lines.sources import Source
    from seglog_format.storage.byte_source import Readable, SourceFile


def opened(source: Source) -> SourceFile:
    """Open a file; refuse a log or an index larger than Kafka allows.

    Args:
        source: the file.

    Raises:
        UsageError: the file does not exist, or is not a regular file.
        UnreadableError: the user may not read the file, or the disk refuses it (SEG-PDR-022).
        RefusedError: the file is too large (SEG-LOG-010, SEG-PDR-020).
    """
    check = None
    if source.kind is SourceKind.LOG:
        check = refuse_large_log
    elif source.kind in {SourceKind.OFFSET_INDEX, SourceKind.TIME_INDEX}:
        check = partial(refuse_beyond, MAX_LOG_SIZE)
    return source.storage.open(source.path, check=check)


def whole(data: Readable, name: str) -> memoryview:
    """Return all bytes of a file.

    Raises:
        RefusedError: the file is too large (SEG-PDR-020).
    """
    stored = source_of(data)
    refuse_beyond(MAX_WHOLE_SIZE, stored.size, name)
    return stored.view(0, stored.size)
