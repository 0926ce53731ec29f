"""A segment as the columnar engine reads it: its bytes, and the fallback decoder for its entries (chapter 60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seglog_format.codec.decode import decompressed_bytes
from seglog_format.errors import FormatError
from seglog_format.log.entry_table import in_order
from seglog_format.log.reading import delivered
from seglog_format.model import Frame, Tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.model import BatchHeader
    from seglog_format.record_model import Message, Record
    from seglog_format.storage.byte_source import Window


class FallbackEntry(NamedTuple):
    """An entry that the fallback decoder decoded: header, records to deliver, end position and last offset."""

    header: BatchHeader
    records: Sequence[Record | Message]
    end: int
    last_offset: int


class SegmentSource(NamedTuple):
    """A segment as the engine reads it.

    Attributes:
        segment: the segment to read.
        to_offset: end of the range to read, exclusive.
        transactions: leave out the records that are aborted according to these.
    """

    segment: LogSegment
    to_offset: int
    transactions: Transactions | None

    @property
    def path(self) -> str:
        """Path of the log."""
        return self.segment.path

    @property
    def size(self) -> int:
        """Size of the log in bytes."""
        return self.segment.source.size

    def view(self, start: int, end: int) -> memoryview:
        """Return bytes of the log, as `FileBytes.view` does."""
        return self.segment.source.view(start, end)

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part of the log, as `FileBytes.window` does."""
        return self.segment.source.window(position, at_least)

    @property
    def file(self) -> str:
        """Name of the log."""
        return self.segment.paths.log.name

    @property
    def allowed_offsets(self) -> tuple[int, int]:
        """Lowest and highest offset that the segment can hold."""
        return self.segment.allowed.first, self.segment.allowed.last

    def fallback(self, position: int, previous: int, floor: int) -> FallbackEntry | None:
        """Decode the entry at a position with the fallback decoder; return None at the end of what to read.

        Raises:
            FormatError: the entry is damaged or refused.
        """
        found = self.segment.frame_at(position)
        if isinstance(found, Tail):
            return None
        segment = self.segment
        (frame,) = in_order((found,), segment.path, segment.allowed, previous)
        first = frame.header.base_offset
        if first is not None and first >= self.to_offset:  # as in `LogReader.frames_from`: reading ends before it
            return FallbackEntry(frame.header, (), frame.end, self.to_offset - 1)
        batch = segment.decode(frame)
        records = tuple(delivered(batch, floor, self.to_offset, self.transactions))
        return FallbackEntry(frame.header, records, frame.end, batch.last_offset)

    def decompressed(self, position: int, limit: int) -> bytes | None:
        """Return the decompressed bytes of the entry at a position; None if it is damaged or exceeds the limit."""
        try:
            found = self.segment.frame_at(position)
        except FormatError:
            return None
        return decompressed_bytes(found, limit=limit) if isinstance(found, Frame) else None

    def end_of_damaged(self, position: int) -> int | None:
        """Return the position after a damaged entry; None if a wrong size or magic hides where it ends."""
        try:
            found = self.segment.frame_at(position)
        except FormatError:
            return None
        return None if isinstance(found, Tail) else found.end
