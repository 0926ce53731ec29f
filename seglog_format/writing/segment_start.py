"""The content of a segment when a writer opens it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.model import NO_TIMESTAMP

if TYPE_CHECKING:
    from seglog_format.model import TimestampOffset


@dataclass(frozen=True, slots=True)
class SegmentStart:
    """The content of a segment when it is opened for writing; a new segment is empty.

    Attributes:
        size: number of bytes of whole entries in the log.
        first_timestamp_ms: largest timestamp of the first entry, or -1.
        largest: largest timestamp, with the offset that the time index stores; None if there is none.
        offset_entry_count: number of entries of the offset index.
        time_entry_count: number of entries of the time index.
        last_time_entry_ms: timestamp of the last time index entry, or -1.
    """

    size: int = 0
    first_timestamp_ms: int = NO_TIMESTAMP
    largest: TimestampOffset | None = None
    offset_entry_count: int = 0
    time_entry_count: int = 0
    last_time_entry_ms: int = NO_TIMESTAMP
