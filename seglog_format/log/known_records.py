"""Lookups of single records from recently decoded batches (chapter 60)."""

from __future__ import annotations

from bisect import bisect_left
from operator import lt
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError
from seglog_format.model import Frame, RecordBatchHeader

if TYPE_CHECKING:
    from seglog_format.log.segment import LogSegment
    from seglog_format.record_model import Message, Record, RecordBatch

MAX_KNOWN_SIZE: Final = 2**25
"""Approximate maximum of bytes of memory for decoded batches."""
MAX_KNOWN_RECORDS: Final = 2**16
"""Maximum number of records of a batch that is decoded whole to look up one of them."""
MAX_WRAPPER_SIZE: Final = 2**20
"""Maximum size of a wrapper that is decompressed to look up one message: its header has no count of messages."""
OBJECT_SIZE: Final = 256
"""Approximate bytes of memory that a record object takes besides its key, value and headers."""

Known = tuple["Record | Message", ...]
"""The records of an entry by ascending offset; empty if the entry must be read by the usual decoders."""
NOTHING: Final[Known] = ()


class KnownRecords:
    """A cache of the batches that the last lookups decoded, except those that the usual decoders must read."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Known] = {}
        self._size = 0

    def find(self, segment: LogSegment, offset: int, *, trust_index: bool = False) -> Record | Message | None:
        """Return the record at an offset; None if there is none, or if only the usual decoders can find it.

        Args:
            segment: the segment that may hold the record.
            offset: absolute.
            trust_index: start at an index entry that looks right, as `LogSegment.position_of` does.
        """
        try:
            position = segment.position_of(offset, trust_index=trust_index)
        except FormatError:
            return None
        return None if position is None else self.find_at(segment, position, offset)

    def find_at(self, segment: LogSegment, position: int, offset: int) -> Record | Message | None:
        """Return the same as `find`, given the position of the only entry that can hold the offset."""
        key = segment.base_offset, position
        known = self._known.get(key)
        if known is None:
            known = self._keep(key, _decoded(segment, position))
        number = bisect_left(known, offset, key=_offset)
        return known[number] if number < len(known) and known[number].offset == offset else None

    def _keep(self, key: tuple[int, int], known: Known) -> Known:
        size = _memory(known)
        if size <= MAX_KNOWN_SIZE:
            self._known[key] = known
            self._size += size
        while self._size > MAX_KNOWN_SIZE:
            self._size -= _memory(self._known.pop(next(iter(self._known))))
        return known


def _memory(known: Known) -> int:
    return OBJECT_SIZE + sum(OBJECT_SIZE + record.size_in_bytes for record in known)


def _offset(record: Record | Message) -> int:
    return record.offset


def _decoded(segment: LogSegment, position: int) -> Known:
    try:
        frame = segment.frame_at(position)
        if not isinstance(frame, Frame) or not _is_small(frame):
            return NOTHING
        batch = segment.decode(frame)
    except FormatError:
        return NOTHING
    if not _offsets_match_header(batch):
        return NOTHING
    return batch.records


def _is_small(frame: Frame) -> bool:
    """Return whether an entry may hold data records, and is small enough to decode whole to look up one."""
    header = frame.header
    if not isinstance(header, RecordBatchHeader):
        return not header.codec_id or header.size_in_bytes <= MAX_WRAPPER_SIZE
    return not header.is_control and (header.records_count or 0) <= MAX_KNOWN_RECORDS


def _offsets_match_header(batch: RecordBatch) -> bool:
    """Return whether offsets increase, up to the header's last offset: if not, a later lookup might miss records."""
    offsets = [record.offset for record in batch.records]
    return all(map(lt, offsets, [*offsets[1:], batch.header.next_offset]))
