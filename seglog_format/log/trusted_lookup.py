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
from seglog_format.model import INT64_MAX, Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.index_file import OffsetIndex, TimeIndex
    from seglog_format.model import Tail, TimestampOffset


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

    def ordered_frames(self, from_position: int = 0) -> Iterator[Frame]:
        """Walk the entries undecoded as long as their offsets are possible.

        Raises:
            FormatError: while iterating: at an entry after which no other can be found, or with an impossible offset.
        """


def trusted_position(segment: IndexedSegment, offset: int) -> int | None:
    """Return the start of the first entry whose last offset is not below an offset; None in any doubt.

    The result is also None if the offset is missing in the log.
    """
    with suppress(UnreadableError):  # brokers cut indexes when they roll
        for position in _positions(segment.offset_index, offset):
            try:
                frames = _frames(segment, position, offset)
                found = next((frame for frame in frames if frame.header.last_offset >= offset), None)
            except FormatError:
                continue
            if found is not None and starts_at(found) <= offset:
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
            try:
                found = max((frame.header.next_offset for frame in _frames(segment, position, INT64_MAX)), default=None)
            except FormatError:
                continue
            if found is not None:
                return found
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


def _frames(segment: IndexedSegment, position: int, offset: int) -> Iterator[Frame]:
    """Yield the entries from a position on, if an intact entry starts there, and not above an offset."""
    found = segment.frame_at(position) if position > 0 else None
    if isinstance(found, Frame) and segment.base_offset <= starts_at(found) <= offset and checksum_is_valid(found):
        yield from segment.ordered_frames(position)


def starts_at(frame: Frame) -> int:
    """Return the base offset; for a wrapper, which must be decompressed to find it, its last offset."""
    first = frame.header.base_offset
    return frame.header.last_offset if first is None else first
