"""Opening of files for `lines_of`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.lines.sources import SourceKind
from seglog_format.storage.byte_source import source_of
from seglog_format.storage.file_bytes import MAX_WHOLE_SIZE, open_bytes, open_index, open_log, refuse_beyond

if TYPE_CHECKING:
    from seglog_format.lines.sources import Source
    from seglog_format.storage.byte_source import Readable
    from seglog_format.storage.file_bytes import FileBytes


def opened(source: Source, *, copy: bool) -> FileBytes:
    """Open a file; refuse a log or an index larger than Kafka allows.

    Args:
        source: the file.
        copy: read it through windows instead of mapping it.

    Raises:
        UsageError: it does not exist, or is no regular file.
        UnreadableError: it may not be read, or the disk refuses it (SEG-PDR-022).
        RefusedError: it is too large (SEG-LOG-010, SEG-PDR-020).
    """
    if source.kind is SourceKind.LOG:
        return open_log(source.path, copy=copy)
    if source.kind in {SourceKind.OFFSET_INDEX, SourceKind.TIME_INDEX}:
        return open_index(source.path, copy=copy)
    return open_bytes(source.path, copy=copy)


def whole(data: Readable, name: str) -> memoryview:
    """Return all bytes of a file that is decoded at once.

    Raises:
        RefusedError: the file is too large (SEG-PDR-020).
    """
    stored = source_of(data)
    refuse_beyond(MAX_WHOLE_SIZE, stored.size, name)
    return stored.view(0, stored.size)
