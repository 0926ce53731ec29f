"""Lookups of offsets by timestamp (chapter 60).

Every record counts, also those of control batches (SEG-LKP-018). A lookup skips entries by the largest timestamp in
their headers. The checksum covers that field, so it is verified for each skipped entry: else a damaged header could
hide the right record. So a segment is read from its start, by the engine that is chosen for its size. A time index is
used only if indexes are trusted.
"""

from __future__ import annotations

from enum import IntEnum
from operator import index
from typing import TYPE_CHECKING, SupportsIndex

from seglog_format.errors import UsageError
from seglog_format.log.reading import Borders
from seglog_format.log.segment import offset_up_to_timestamp
from seglog_format.model import NO_TIMESTAMP, Frame, TimestampOffset

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.gaps import AtBorder
    from seglog_format.log.reading import LogReader
    from seglog_format.log.segment import LogSegment


class OffsetSpec(IntEnum):
    """Special values for the timestamp of a lookup, with the numbers of Kafka's protocol.

    Examples:
        >>> from seglog_format import OffsetSpec, open_partition
        >>> with open_partition("demo/kafka-4.3.0/segs-0") as log:
        ...     print(log.offset_for_timestamp(OffsetSpec.LATEST).offset)
        450
    """

    LATEST = -1
    """The log end offset."""
    EARLIEST = -2
    """The log start offset."""
    MAX_TIMESTAMP = -3
    """The first record with the largest timestamp."""
    EARLIEST_LOCAL = -4
    """The first offset that is stored locally: for a directory, the log start offset."""
    LATEST_TIERED = -5
    """The last offset in tiered storage; a directory does not show it."""
    EARLIEST_PENDING_UPLOAD = -6
    """The first offset that is not in tiered storage yet; a directory does not show it."""


def require_timestamp(timestamp_ms: object) -> None:
    """Refuse a value that is neither a timestamp in milliseconds, 0 or more, nor an `OffsetSpec`.

    Raises:
        UsageError: the value is neither.
    """
    if not isinstance(timestamp_ms, int | SupportsIndex):
        msg = f"a timestamp is a number of milliseconds since 1970, not {timestamp_ms!r}"
        raise UsageError(msg)
    if index(timestamp_ms) < OffsetSpec.EARLIEST_PENDING_UPLOAD:
        msg = f"timestamp {timestamp_ms} has no meaning: give 0 or more, or an OffsetSpec (-1 to -6)"
        raise UsageError(msg)


def first_offset(reader: LogReader, log_start_offset: int, spec: int) -> TimestampOffset:
    """Return the log start offset, or for `EARLIEST_LOCAL` the first one that may be read without a remote store."""
    if spec == OffsetSpec.EARLIEST_LOCAL and any(segment.is_tiered for segment in reader.segments):
        local = (segment.base_offset for segment in reader.segments if not segment.is_tiered)
        log_start_offset = max(next(local, reader.segments[-1].next_offset), log_start_offset)
    return TimestampOffset(NO_TIMESTAMP, log_start_offset)


def first_not_older(reader: LogReader, timestamp_ms: int, log_start_offset: int) -> TimestampOffset | None:
    """Return the first record, in offset order, that is not older than a timestamp (SEG-LKP-008).

    Args:
        reader: the log.
        timestamp_ms: milliseconds since 1970, 0 or greater.
        log_start_offset: records below are hidden.

    Raises:
        FormatError: there is damage before such a record.
    """
    for segment in reader.segments_from(log_start_offset):
        is_last = segment is reader.segments[-1]
        if reader.trust_indexes and not is_last and is_older(segment, timestamp_ms):
            continue
        candidates = (
            _trusted_candidates(segment, timestamp_ms, log_start_offset)
            if reader.trust_indexes and segment.time_index is not None and len(segment.time_index.raw_entries())
            else _proven_candidates(segment, timestamp_ms, log_start_offset)
        )
        for frame in candidates:
            found = reader.first_not_older(segment, frame, timestamp_ms, log_start_offset)
            if found is not None:
                return found
    return None


def is_older(segment: LogSegment, timestamp_ms: int) -> bool:
    """Return whether a closed segment is older than a timestamp, by the last entry of its time index, as brokers do.

    The order of the index is not checked: with many segments, that would take most of the time.
    """
    entries = () if segment.time_index is None else segment.time_index.raw_entries()
    return bool(entries) and entries[-1].timestamp_ms < timestamp_ms


def start_not_older(reader: LogReader, offset: int, timestamp_ms: int, at_border: AtBorder | None) -> int:
    """Return where to begin to read the records, from an offset on, that are not older than a timestamp.

    Headers alone are read. What they prove is the largest timestamp of each entry, so entries before the first that may
    hold such a record are passed over, and their checksums are not verified, except that of the last of them. Damage
    that hides where an entry ends is not passed over. With trusted indexes, time indexes say which segments are older.

    Args:
        reader: the log.
        offset: the first offset wanted.
        timestamp_ms: milliseconds since 1970.
        at_border: called at the borders between segments that are passed over; see `Borders`.
    """
    borders, start = Borders(offset, at_border), offset
    for segment in reader.segments_from(offset):
        is_last = segment is reader.segments[-1]
        if reader.trust_indexes:
            start = max(offset, offset_up_to_timestamp(segment, timestamp_ms - 1)[0])
            if is_last or not is_older(segment, timestamp_ms):
                break
            continue
        borders.come_to(segment.base_offset)
        table = segment.entries
        start = max(offset, table.before_not_older(offset, timestamp_ms))
        if table.damage is not None or table.find(offset, timestamp_ms) is not None:
            break
        borders.reached = table.next_offset
    return start


def _proven_candidates(segment: LogSegment, timestamp_ms: int, log_start_offset: int) -> Iterator[Frame]:
    """Yield the entries that may hold the record by their headers; verify the checksums of all others."""
    table = segment.entries
    start = table.find(log_start_offset)
    if start is not None:
        for number in range(max(start, table.find_not_older(timestamp_ms)), len(table.positions)):
            if table.max_timestamps[number] >= timestamp_ms:
                segment.verify_entries(start, number)
                yield segment.entry(number)
        segment.verify_entries(start, len(table.positions))
    segment.raise_damage()


def _trusted_candidates(segment: LogSegment, timestamp_ms: int, log_start_offset: int) -> Iterator[Frame]:
    """Yield the entries that may hold the record, from the offset in the time index on; verify no others."""
    start, position = offset_up_to_timestamp(segment, timestamp_ms - 1)
    if position is None or start < log_start_offset:
        position = segment.position_of(max(start, log_start_offset), trust_index=True)
    if position is not None:
        for frame in segment.ordered_frames(position):
            if frame.header.max_timestamp_ms >= timestamp_ms:
                yield frame


def first_of_largest(reader: LogReader, log_start_offset: int) -> TimestampOffset | None:
    """Return the first of the records with the largest timestamp (SEG-LKP-013); None if no record has a timestamp.

    Args:
        reader: the log.
        log_start_offset: records below are hidden.

    Raises:
        FormatError: the log is damaged anywhere at or above the log start offset.
    """
    best: TimestampOffset | None = None
    for segment in reader.segments_from(log_start_offset):
        for frame in _latest_first(segment, log_start_offset):
            if best is not None and frame.header.max_timestamp_ms < best.timestamp_ms:
                break
            for record in reader.decode(segment, frame).records:
                found = TimestampOffset(record.timestamp_ms, record.offset)
                is_visible = found.offset >= log_start_offset and found.timestamp_ms != NO_TIMESTAMP
                if is_visible and (best is None or _rank(found) > _rank(best)):
                    best = found
    return best


def _rank(found: TimestampOffset) -> tuple[int, int]:
    return found.timestamp_ms, -found.offset


def _latest_first(segment: LogSegment, log_start_offset: int) -> Iterator[Frame]:
    """Verify all entries, then yield them by falling timestamp of their headers."""
    table = segment.entries
    start = table.find(log_start_offset)
    if start is not None:
        segment.verify_entries(start, len(table.positions))
    segment.raise_damage()
    numbers = range(len(table.positions) if start is None else start, len(table.positions))
    for number in sorted(numbers, key=lambda number: -table.max_timestamps[number]):
        yield segment.entry(number)
