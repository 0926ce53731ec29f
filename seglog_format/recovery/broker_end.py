"""The end of a segment that a broker does not scan: it finds it by the index (chapter 60, "What brokers do")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.errors import Location
from seglog_format.model import NO_PRODUCER_ID, OffsetPosition
from seglog_format.recovery.segment_scan import Remark
from seglog_format.schema.fixed_fields import ENTRY_PREFIX, RECORD_BATCH_HEADER, RECORD_BATCH_MAGIC, batch_field_span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.segment_split import Split

OFFSET_AND_SIZE: Final = 12
MIN_SIZE: Final = 14
"""Smaller sizes end a broker's walk with an error, whatever the magic."""
WARM_SLOTS: Final = 1024
"""Number of slots at the end of an index that a broker searches first."""
DELTA_POSITION, DELTA_SIZE = batch_field_span("last_offset_delta")
PRODUCER_POSITION, PRODUCER_SIZE = batch_field_span("producer_id")
WALKS_TO_END: Final = "brokers do not start: they walk to here for the log end offset"


class BrokerStopError(Exception):
    """A broker stops loading a log: it does not start, or it splits a segment and begins again."""

    def __init__(self, failure: Remark | None = None, split: Split | None = None) -> None:
        super().__init__()
        self.failure = failure
        self.split = split


def trusted_end(segment: LogSegment) -> int:
    """Return the first offset after a segment that a broker does not scan (SEG-LKP-015, "What brokers do").

    A broker looks up the offset in the last slot of the index, and walks from there to the end of the file. If no entry
    on the way ends at that offset or above, it takes the segment for empty.

    Raises:
        BrokerStopError: the size of an entry on the way ends the walk with an error.
    """
    slots = () if segment.offset_index is None else segment.offset_index.slots()
    wanted = slots[-1].offset if slots else segment.base_offset
    end, is_found = segment.base_offset, False
    position = max(searched(slots, wanted, segment.base_offset).position, 0)
    for _, end, _ in entries_passed(segment, position, WALKS_TO_END):
        is_found = is_found or end > wanted
    return end if is_found else segment.base_offset


def searched(slots: Sequence[OffsetPosition], offset: int, base_offset: int) -> OffsetPosition:
    """Search an index as a broker does, whether or not its slots are in order."""
    first_warm = max(len(slots) - 1 - WARM_SLOTS, 0)
    is_warm = bool(slots) and slots[first_warm].offset < offset
    low, high = (first_warm, len(slots) - 1) if is_warm else (0, first_warm)
    if not slots or slots[low].offset > offset:
        return OffsetPosition(base_offset, 0)
    while low < high:
        middle = (low + high + 1) // 2
        if slots[middle].offset > offset:
            high = middle - 1
        elif slots[middle].offset < offset:
            low = middle
        else:
            return slots[middle]
    return slots[low]


class PassedEntry(NamedTuple):
    """The fields that a broker reads of an entry while it walks to the end of a segment."""

    position: int
    next_offset: int
    producer_id: int


def entries_passed(segment: LogSegment, position: int, failure: str) -> Iterator[PassedEntry]:
    """Walk the entries from a position to the end of the log; check only what a broker checks on this walk.

    Args:
        segment: the segment to walk.
        position: where a broker begins.
        failure: text of the remark if a size is invalid: what the broker does then.

    Raises:
        BrokerStopError: a size is invalid, or the file ends in the fixed fields of a batch.
    """
    source = segment.source
    while position < source.size - ENTRY_PREFIX.size:
        first, data = source.window(position, PRODUCER_POSITION + PRODUCER_SIZE)
        offset, size, _, magic = ENTRY_PREFIX.unpack_from(data, position - first)
        if size < MIN_SIZE:
            raise BrokerStopError(Remark(Location(segment.path, position, "size", 4), ("SEG-LOG-003",), failure))
        following = position + OFFSET_AND_SIZE + size
        if following > source.size:
            return
        if magic >= RECORD_BATCH_MAGIC:
            if position + RECORD_BATCH_HEADER.size > source.size:
                raise BrokerStopError(Remark(Location(segment.path, position, "size", 4), ("SEG-BAT-002",), failure))
            delta = data[position - first + DELTA_POSITION :][:DELTA_SIZE]
            producer_id = data[position - first + PRODUCER_POSITION :][:PRODUCER_SIZE]
            last = offset + int.from_bytes(delta, "big", signed=True)
            yield PassedEntry(position, last + 1, int.from_bytes(producer_id, "big", signed=True))
        else:
            yield PassedEntry(position, offset + 1, NO_PRODUCER_ID)
        position = following
