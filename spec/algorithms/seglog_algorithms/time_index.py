"""Time index (chapter 41)."""

from __future__ import annotations

from typing import NamedTuple

from seglog_algorithms.entries import NO_TIMESTAMP
from seglog_algorithms.offset_index import Slots
from seglog_format.schema.time_index import TimeIndexEntry


class TimestampOffset(NamedTuple):
    """An entry of a time index, with its absolute offset."""

    timestamp_ms: int
    offset: int


def entries_of(index: bytes, base_offset: int) -> list[TimestampOffset]:
    """Return the entries of a time index."""
    found: list[TimestampOffset] = []
    last = TimestampOffset(NO_TIMESTAMP, base_offset)
    for slot in Slots(TimeIndexEntry, index):  # SEG-TIX-001, SEG-TIX-010: complete entries count
        entry = TimestampOffset(slot.timestamp_ms, base_offset + slot.relative_offset)
        if entry.timestamp_ms <= last.timestamp_ms or entry.offset < last.offset:  # SEG-TIX-009, SEG-TIX-007
            break
        found.append(entry)
        last = entry
    return found


def lookup(index: bytes, base_offset: int, timestamp_ms: int) -> TimestampOffset:
    """Return the last entry that is not above a timestamp (SEG-TIX-008)."""
    not_above = [entry for entry in entries_of(index, base_offset) if entry.timestamp_ms <= timestamp_ms]
    return not_above[-1] if not_above else TimestampOffset(NO_TIMESTAMP, base_offset)
