"""The walk over the entries of a log during a recovery; one walk serves several consumers (chapter 71)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from seglog_format.codec.control_record import end_marker_of
from seglog_format.codec.decode import checksum_is_valid, decode_under_outer_checksum
from seglog_format.codec.framing import frame_at, whole_frame
from seglog_format.errors import FormatError, Location, UnreadableError, UnsupportedVersionError
from seglog_format.log.index_file import IndexedRow
from seglog_format.model import Frame, Tail
from seglog_format.storage.byte_source import source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.codec.control_record import EndMarker
    from seglog_format.model import BatchHeader, ControlRecordType
    from seglog_format.storage.byte_source import ByteSource, Readable


def recoverable_frame_at(data: Readable, position: int, path: str = "") -> Frame | Tail:
    """Return the entry at a position; an entry with a magic above 2 counts as a record batch, as for brokers.

    Raises:
        FormatError: its size is not valid, or its magic is below 0.
    """
    source = source_of(data)
    try:
        return frame_at(source, position, source.size, path)
    except UnsupportedVersionError:
        return whole_frame(source, position, 2, Location(path, position))


def recoverable_frames(data: Readable, end: int | None = None, path: str = "", *, start: int = 0) -> Iterator[Frame]:
    """Yield the whole entries of a log, up to a position or to the first bytes that are no entry.

    Checksums are not checked.

    Args:
        data: the bytes of the `.log` file.
        end: where to stop; by default the end of the data.
        path: file name for locations.
        start: position of an entry.

    Raises:
        UnreadableError: while iterating: the disk refuses an entry's fixed fields (SEG-PDR-022).
    """
    source = source_of(data, path)
    position, stop = start, source.size if end is None else end
    while position < stop:
        frame = _entry_at(source, position, path)
        if not isinstance(frame, Frame) or frame.end > stop:
            return
        yield frame
        position = frame.end


def _entry_at(source: ByteSource, position: int, path: str) -> Frame | Tail | FormatError:
    try:
        return recoverable_frame_at(source, position, path)
    except UnreadableError:
        raise
    except FormatError as error:
        return error


class WalkedEntry:
    """An entry in a walk. Its checksum and its end marker are computed once, when first needed.

    Args:
        frame: the entry.
        path: file name for locations.
    """

    __slots__ = ("_checksum_is_valid", "_marker", "at", "frame")

    def __init__(self, frame: Frame, path: str) -> None:
        self.frame = frame
        self.at = Location(path, frame.position)
        self._checksum_is_valid: bool | None = None
        self._marker: tuple[EndMarker | None] | None = None

    @property
    def header(self) -> BatchHeader:
        """The header fields of the entry."""
        return self.frame.header

    @property
    def end(self) -> int:
        """Position of the byte after the entry."""
        return self.frame.end

    @property
    def checksum_is_valid(self) -> bool:
        """Return whether the stored checksum is equal to the computed one."""
        if self._checksum_is_valid is None:
            self._checksum_is_valid = checksum_is_valid(self.frame)
        return self._checksum_is_valid

    def end_marker(self) -> EndMarker | None:
        """Read the end marker in the entry, as `end_marker_of` does.

        Raises:
            FormatError: the control record cannot be read.
        """
        if self._marker is None:
            self._marker = (end_marker_of(self.frame, self.at),)
        return self._marker[0]

    def readable_marker(self) -> ControlRecordType | None:
        """Return the kind of the end marker in the entry; None without a readable end marker."""
        with suppress(FormatError):
            marker = self.end_marker()
            return None if marker is None else marker.kind
        return None

    def row(self, *, has_first_offset: bool) -> IndexedRow:
        """Return the values that indexing needs, as `row_of` does."""
        return row_of(self.frame, self.at.path, has_first_offset=has_first_offset)


class EntryConsumer(Protocol):
    """Takes the entries of a log, in file order."""

    def take(self, entry: WalkedEntry) -> bool:
        """Take the next entry; return False to get no more entries."""

    def end(self, found: Tail | FormatError) -> None:
        """Receive what follows the last whole entry: the end of the log, or why no entry can start there."""


def walk_entries(
    source: ByteSource, path: str, consumers: Sequence[EntryConsumer], *, pass_over: Callable[[int], int] | None = None
) -> None:
    """Walk a log once, until no consumer takes more entries.

    Args:
        source: the bytes of the `.log` file.
        path: file name for locations.
        consumers: each entry is passed to them in this order.
        pass_over: called with the position of each entry; returns the position to continue at.

    Raises:
        UnreadableError: the disk refuses bytes that a consumer needs (SEG-PDR-022).
    """
    position = 0
    while consumers:
        found = _entry_at(source, position if pass_over is None else pass_over(position), path)
        if not isinstance(found, Frame):
            for consumer in consumers:
                consumer.end(found)
            return
        entry = WalkedEntry(found, path)
        consumers = [consumer for consumer in consumers if consumer.take(entry)]
        position = found.end


def row_of(frame: Frame, path: str = "", *, has_first_offset: bool = False) -> IndexedRow:
    """Return the values of an entry that indexing needs.

    Args:
        frame: the entry.
        path: file name for locations.
        has_first_offset: decompress a wrapper to find its first offset; if false, its last offset takes the place.
    """
    header = frame.header
    first = _first_offset(frame, path) if has_first_offset else header.base_offset
    first = header.last_offset if first is None else first
    return IndexedRow(frame.position, header.size_in_bytes, first, header.last_offset, header.max_timestamp_ms)


def indexed_rows(
    data: Readable, end: int | None = None, path: str = "", *, has_first_offsets: bool = False
) -> Iterator[IndexedRow]:
    """Yield the rows of the entries that `recoverable_frames` finds, as `row_of` makes them."""
    for frame in recoverable_frames(data, end, path):
        yield row_of(frame, path, has_first_offset=has_first_offsets)


def _first_offset(frame: Frame, path: str) -> int | None:
    if frame.header.base_offset is not None:
        return frame.header.base_offset
    try:
        return decode_under_outer_checksum(frame, at=Location(path, frame.position)).base_offset
    except FormatError:
        return None
