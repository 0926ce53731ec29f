"""Segments that are read by the declarations themselves, for `Engine.REFERENCE`: slowly, and with the same results."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.reference.decode import decode_frame, stream_records, verify_checksum
from seglog_format.codec.reference.framing import frame_at, walk
from seglog_format.errors import Location
from seglog_format.log.entry_table import EntryTable, check_offsets
from seglog_format.log.segment import LogSegment

if TYPE_CHECKING:
    from seglog_format.codec.framing import FrameWalk
    from seglog_format.log.open_segments import OpenSegments
    from seglog_format.model import Frame, Tail
    from seglog_format.record_model import RecordBatch
    from seglog_format.storage.byte_source import ByteSource


class DeclaredTable(EntryTable):
    """Where entries start, found by a walk that parses their headers with the declarations."""

    __slots__ = ()

    def _stride(self, source: ByteSource, target: int, end: int) -> None:
        """Leave all to the walk."""

    def _walk_from(self, source: ByteSource, position: int, path: str) -> FrameWalk:
        return walk(source, position, path=path)


class ReferenceSegment(LogSegment):
    """A segment whose entries are found and decoded by `seglog_format.codec.reference`."""

    records_of = staticmethod(stream_records)

    @classmethod
    def like(cls, segment: LogSegment, opened: OpenSegments) -> ReferenceSegment:
        """Return the segment of the same files, read by declaration.

        Args:
            segment: of a partition.
            opened: the segments of the partition that are open.
        """
        made = cls(segment.paths, limit=segment.limit, copy=segment.copy, opened=opened, storage=segment.storage)
        made.allowed = segment.allowed
        made._table = DeclaredTable(segment.allowed)
        return made

    def _grow(self, target: int) -> None:
        if self._table.has_to_grow(target):
            self._table.grow(self.source, self.path, target, self.forget_behind)

    def frames(self, from_position: int = 0) -> FrameWalk:
        """Walk the entries, as `LogSegment.frames`."""
        return walk(self.source, from_position, path=self.path)

    def frame_at(self, position: int) -> Frame | Tail:
        """Return the entry that starts at a position, as `LogSegment.frame_at`."""
        source = self.source
        return frame_at(source, position, source.size, self.path)

    def decode(self, frame: Frame) -> RecordBatch:
        """Decode an entry, as `LogSegment.decode`."""
        at = Location(self.path, frame.position)
        batch = decode_frame(frame, at=at, limit=self.limit)
        check_offsets(batch, at)
        return batch

    def verify_entry(self, number: int) -> Frame:
        """Return one entry, its checksum verified, as `LogSegment.verify_entry`."""
        frame = self.entry(number)
        verify_checksum(frame, Location(self.path, frame.position))
        return frame
