"""Lookups that start at an index entry that looks right, without a proof (chapter 60).

At the position in an index entry there must be an intact entry with a possible offset, and the walk from it must reach
the wanted offset. This is no proof that it is an entry of the log: the bytes may belong to a record's value. In any
doubt the result is None, and the caller walks from the start of the segment.

An index is first searched without checking its order: for that it has to be read whole, which costs more than the rest
of a lookup. Its order is checked only if the first search finds no such entry.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Protocol

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.errors import FormatError, UnreadableError
from seglog_format.log.entry_table import EntryTable
from seglog_format.model import INT64_MAX, Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.entry_table import OffsetRange
    from seglog_format.log.index_file import OffsetIndex, TimeIndex
    from seglog_format.model import Tail, TimestampOffset
    from seglog_format.storage.byte_source import SourceFile


class IndexedSegment(Protocol):
    """The attributes of a segment that a lookup needs."""

    @property
    def base_offset(self) -> int:
        """The offset in the file names."""

    @property
    def offset_index(self) -> OffsetIndex | None:
        """The offset index; None if it is missing or cannot be read."""

    @property
    def time_index(self) -> TimeIndex | None:
        """The time index; None if it is missing or cannot be read."""

    def frame_at(self, position: int) -> Frame | Tail:
        """Return the entry that starts at a position.

        Raises:
            FormatError: no entry can start there.
        """

    @property
    def source(self) -> SourceFile:
        """The open `.log` file."""

    @property
    def path(self) -> str:
        """Path of the `.log` file."""

    @property
    def allowed(self) -> OffsetRange:
        """Offsets that the segment can hold."""


def trusted_position(segment: IndexedSegment, offset: int) -> int | None:
    """Return the start of the first entry whose last offset is not below an offset; None in any doubt.

    The result is also None if the offset is missing in the log.
    """
    with suppress(UnreadableError):  # brokers cut indexes when they roll
        for position in _positions(segment.offset_index, offset):
            with suppress(FormatError):
                table = _walked_from(segment, position, offset)
                number = table.find(offset)
                found = None if number is None else segment.frame_at(table.positions[number])
                if isinstance(found, Frame) and starts_at(found) <= offset:
                    return found.position
    return None


def _positions(index: OffsetIndex | None, offset: int) -> Iterator[int]:
    """Yield where to start searching for an offset: by all slots of an index, then by those that are in order."""
    searched = None if index is None else index.searched(offset)
    if index is not None and searched is not None:
        yield searched.position
        if (ordered := index.lookup(offset).position) != searched.position:
            yield ordered


def trusted_next_offset(segment: IndexedSegment) -> int | None:
    """Return the first offset after the last whole entry of a segment; None in any doubt."""
    with suppress(UnreadableError):  # as above
        for position in _last_positions(segment.offset_index):
            with suppress(FormatError):
                table = _walked_from(segment, position, INT64_MAX)
                if table.positions:
                    return table.next_offset
    return None


def _last_positions(index: OffsetIndex | None) -> Iterator[int]:
    entries = () if index is None else index.raw_entries()
    if entries:
        assert index is not None
        yield entries[-1].position
        if index.entries and index.entries[-1].position != entries[-1].position:
            yield index.entries[-1].position


def offset_up_to_timestamp(segment: IndexedSegment, timestamp_ms: int) -> int:
    """Return the offset up to which no record of a segment is later than a timestamp, by its time index.

    The index entry that is found is trusted if the log has an entry with exactly its timestamp at its offset; else only
    the index entries that are in order count (SEG-TIX-008, SEG-TIX-009).

    Args:
        segment: with or without a time index.
        timestamp_ms: milliseconds since 1970; any integer.

    Returns:
        An absolute offset; the base offset of the segment if its index has no entry so old.
    """
    index = segment.time_index
    searched = None if index is None else index.searched(timestamp_ms)
    if index is None or searched is None:
        return segment.base_offset
    return searched.offset if _is_in_log(segment, searched) else index.lookup(timestamp_ms).offset


def _is_in_log(segment: IndexedSegment, noted: TimestampOffset) -> bool:
    position = trusted_position(segment, noted.offset)
    found = None if position is None else segment.frame_at(position)
    return isinstance(found, Frame) and found.header.max_timestamp_ms == noted.timestamp_ms


def _walked_from(segment: IndexedSegment, position: int, offset: int) -> EntryTable:
    """Walk over headers up to an offset, from a position where an intact entry starts that is not above it.

    Returns:
        The entries from there on; none if no such entry starts there.

    Raises:
        FormatError: damage ends the walk before the offset.
    """
    table = EntryTable(segment.allowed)
    found = segment.frame_at(position) if position > 0 else None
    if isinstance(found, Frame) and segment.base_offset <= starts_at(found) <= offset and checksum_is_valid(found):
        table.position = position
        table.grow(segment.source, segment.path, offset)
    if table.damage is not None:
        raise table.damage
    return table


def starts_at(frame: Frame) -> int:
    """Return the base offset; for a wrapper, which must be decompressed to find it, its last offset."""
    first = frame.header.base_offset
    return frame.header.last_offset if first is None else first
