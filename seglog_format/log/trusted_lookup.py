"""Lookups that start at an index entry that looks right, instead of proving it (chapter 60).

At an index entry's position there must be an intact entry of a fitting offset, and the walk from it must lead
to the wanted offset. That it is an entry of the log cannot be proven: the bytes may belong to a record's value. On
any doubt the answer is None, and the caller walks from the start of the segment.

An index is first searched unchecked. To find which entries are in order it has to be read whole, which costs more
than all the rest of a lookup: so is done only if the first search leads to nothing that fits.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Protocol

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.errors import FormatError
from seglog_format.model import INT64_MAX, Frame

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.offset_index import OffsetIndex
    from seglog_format.log.time_index import TimeIndex
    from seglog_format.model import OffsetPosition, Tail, TimestampOffset


class IndexedSegment(Protocol):
    """A log with its indexes, as far as a lookup reads them."""

    @property
    def base_offset(self) -> int:
        """The offset in the file names."""

    @property
    def offset_index(self) -> OffsetIndex | None:
        """The offset index; None if there is none that can be read."""

    @property
    def time_index(self) -> TimeIndex | None:
        """The time index; None if there is none that can be read."""

    def frame_at(self, position: int) -> Frame | Tail:
        """Return the entry that starts at a position.

        Raises:
            FormatError: no entry can start there.
        """

    def ordered_frames(self, from_position: int = 0) -> Iterator[Frame]:
        """Walk the entries undecoded as long as their offsets are possible.

        Raises:
            FormatError: while iterating: at an entry after which nothing can be found, or whose offset is wrong.
        """


def trusted_position(segment: IndexedSegment, offset: int) -> int | None:
    """Return the start of the first entry whose last offset is not below an offset; None on any doubt.

    An offset that is missing in the log is a doubt as well.
    """
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
    """Yield where to start looking for an offset: by all slots of an index, and by those that are in order."""
    entries = () if index is None else index.raw_entries()
    number = bisect_right(entries, offset, key=_offset)
    if number:
        assert index is not None
        searched = entries[number - 1].position
        yield searched
        if (proven := index.lookup(offset).position) != searched:
            yield proven


def trusted_next_offset(segment: IndexedSegment) -> int | None:
    """Return the first offset after the last whole entry of a segment; None on any doubt."""
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


def offset_not_younger(segment: IndexedSegment, timestamp_ms: int) -> int:
    """Return the offset up to which no record of a segment is later than a timestamp, by its time index.

    The entry found is trusted if the log has an entry with exactly that timestamp at its offset; else those that are
    in order decide (SEG-TIX-008, SEG-TIX-009).

    Args:
        segment: with or without a time index.
        timestamp_ms: milliseconds since 1970; any integer.

    Returns:
        An absolute offset; the base offset of the segment if its index has nothing so old.
    """
    index = segment.time_index
    entries = () if index is None else index.raw_entries()
    number = bisect_right(entries, timestamp_ms, key=_timestamp_ms)
    if not number:
        return segment.base_offset
    assert index is not None
    return entries[number - 1].offset if _holds(segment, entries[number - 1]) else index.lookup(timestamp_ms).offset


def _holds(segment: IndexedSegment, noted: TimestampOffset) -> bool:
    position = trusted_position(segment, noted.offset)
    found = None if position is None else segment.frame_at(position)
    return isinstance(found, Frame) and found.header.max_timestamp_ms == noted.timestamp_ms


def _offset(entry: OffsetPosition) -> int:
    return entry.offset


def _timestamp_ms(entry: TimestampOffset) -> int:
    return entry.timestamp_ms


def _frames(segment: IndexedSegment, position: int, offset: int) -> Iterator[Frame]:
    """Yield the entries from a position on, if an intact one is there that does not start above an offset."""
    found = segment.frame_at(position) if position > 0 else None
    if isinstance(found, Frame) and segment.base_offset <= starts_at(found) <= offset and checksum_is_valid(found):
        yield from segment.ordered_frames(position)


def starts_at(frame: Frame) -> int:
    """Return the base offset; for a wrapper, which must be decompressed to find it, its last offset."""
    first = frame.header.base_offset
    return frame.header.last_offset if first is None else first
