"""The end of a segment that a broker does not scan: where its index leads it (chapter 60, "What brokers do")."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.errors import Location
from seglog_format.model import OffsetPosition
from seglog_format.recovery.segment_scan import Remark
from seglog_format.schema.fixed_fields import ENTRY_PREFIX, RECORD_BATCH_MAGIC, batch_field_span

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.segment_split import Split

OFFSET_AND_SIZE: Final = 12
MIN_SIZE: Final = 14
"""Smaller sizes end a broker's walk with an error, whatever the magic."""
WARM_SLOTS: Final = 1024
"""Slots at the end of an index that a broker searches first."""
DELTA_POSITION, DELTA_SIZE = batch_field_span("last_offset_delta")


class BrokerStopError(Exception):
    """A broker stops: it does not start, or it splits a segment first."""

    def __init__(self, failure: Remark | None = None, split: Split | None = None) -> None:
        super().__init__()
        self.failure = failure
        self.split = split


def trusted_end(segment: LogSegment) -> int:
    """Return the first offset after a segment that a broker does not scan (SEG-LKP-015, "What brokers do").

    It looks the offset in the last slot of the index up, and walks from there to the end of the file. If nothing on
    the way ends at that offset or above, the segment counts as empty.

    Raises:
        BrokerStopError: there is a size on the way that ends the walk with an error.
    """
    slots = () if segment.offset_index is None else segment.offset_index.slots()
    wanted = slots[-1].offset if slots else segment.base_offset
    end, is_found = segment.base_offset, False
    for end in _ends(segment, max(searched(slots, wanted, segment.base_offset).position, 0)):
        is_found = is_found or end > wanted
    return end if is_found else segment.base_offset


def searched(slots: Sequence[OffsetPosition], offset: int, base_offset: int) -> OffsetPosition:
    """Search an index as a broker does, in order or not."""
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


def _ends(segment: LogSegment, position: int) -> Iterator[int]:
    """Yield the first offset after each entry, by the few fields that a broker checks.

    Raises:
        BrokerStopError: a size is invalid.
    """
    source = segment.source
    while position < source.size - ENTRY_PREFIX.size:
        first, data = source.window(position, DELTA_POSITION + DELTA_SIZE)
        offset, size, _, magic = ENTRY_PREFIX.unpack_from(data, position - first)
        if size < MIN_SIZE:
            text = "brokers do not start: they walk to here for the log end offset"
            raise BrokerStopError(Remark(Location(segment.path, position, "size", 4), ("SEG-LOG-003",), text))
        following = position + OFFSET_AND_SIZE + size
        if following > source.size:
            return
        delta = data[position - first + DELTA_POSITION :][:DELTA_SIZE]
        is_batch = magic >= RECORD_BATCH_MAGIC
        yield offset + (int.from_bytes(delta, "big", signed=True) if is_batch else 0) + 1
        position = following
