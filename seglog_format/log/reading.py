"""Finding the first entry for an offset or a time, and delivering records from there on (chapter 60)."""

from __future__ import annotations

from bisect import bisect_right
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property, partial
from operator import index
from typing import TYPE_CHECKING, Final, Literal, SupportsIndex, TypeAlias

from seglog_format import engine
from seglog_format.codec.framing import decoders_of
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.log.entry_table import overlap_of
from seglog_format.log.segment import offset_up_to_timestamp, starts_at
from seglog_format.model import GREATEST_OFFSET, INT64_MAX, NO_TIMESTAMP, Frame, RecordBatchHeader, TimestampOffset
from seglog_format.schema.fixed_fields import RECORD_BATCH_MAGIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seglog_format.codec.decode import StreamedBatch
    from seglog_format.log.gaps import AtBorder
    from seglog_format.log.search import Wanted
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.storage.byte_source import Buffer

    FindRecord: TypeAlias = Callable[[Buffer, int, int, int], int | None]
    from seglog_format.model import BatchHeader, Message, Record, RecordBatch


QUICK_SIZE: Final = 2**16
"""Minimum size of a log in which lookups decode one record, and load compiled code for that."""

MAX_LONE_SIZE: Final = 2**20
"""Maximum size of a batch of which one record is decoded."""

Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]

READ_UNCOMMITTED: Final = "read_uncommitted"
READ_COMMITTED: Final = "read_committed"
ISOLATIONS: Final = (READ_UNCOMMITTED, READ_COMMITTED)


def is_committed_only(isolation: str) -> bool:
    """Return whether an isolation level leaves out uncommitted and aborted records.

    Raises:
        UsageError: there is no such level.
    """
    if isolation not in ISOLATIONS:
        msg = f"isolation is {' or '.join(ISOLATIONS)}, not {isolation!r}"
        raise UsageError(msg)
    return isolation == READ_COMMITTED


@dataclass(frozen=True, slots=True)
class Fetch:
    """Result of one read.

    Attributes:
        batches: the entries read, whole and as stored; the first may start below the requested offset.
        records: the records of these entries that a consumer gets: no control records, none below the requested offset
            or the log start offset, none that the isolation level leaves out.
        next_offset: the offset to resume from.
    """

    batches: tuple[RecordBatch, ...]
    records: tuple[Record | Message, ...]
    next_offset: int


class Borders:
    """Calls a function at each border between segments at which offsets are missing.

    Attributes:
        reached: the first offset after the entries that were read of the segment; the reader updates it.
        left_at: position of the bytes that follow these entries and are no whole entry; None if none do. The reader
            updates it.
    """

    __slots__ = ("_at_border", "_base_offset", "_start", "left_at", "reached")

    def __init__(self, start: int, at_border: AtBorder | None) -> None:
        """Begin before the first segment.

        Args:
            start: the first offset to read; missing offsets below are not reported.
            at_border: called with the base offset of the segment before a gap, the first offset after the entries read
                of it, and the base offset of the next segment, which is None after the last; then also with `left_at`.
                None to call nothing.
        """
        self._start = start
        self._at_border = at_border
        self._base_offset: int | None = None
        self.reached = start
        self.left_at: int | None = None

    def come_to(self, base_offset: int) -> None:
        """Record that reading comes to a segment, or to another part of the same segment."""
        before, self._base_offset = self._base_offset, base_offset
        if self._at_border is None or before is None or before == base_offset:
            return
        reached = max(self.reached, self._start)
        if reached < base_offset:
            self._at_border(before, reached, base_offset, None)

    def overlap(self, base_offset: int, overlap: tuple[int, int, int]) -> None:
        """Report an entry of a segment that begins below the end of the entry before it; it is an `Overlap`."""
        position, first, end = overlap
        if self._at_border is not None and end > self._start:
            self._at_border(base_offset, end, max(first, self._start), position)

    def left_out(self, base_offset: int, position: int, header: BatchHeader) -> bool:
        """Report an entry of a segment whose records readers leave out, although it may hold data (SEG-CTL-001).

        Returns:
            False if it is not reported: no function is called at borders.
        """
        first = header.base_offset
        if self._at_border is None or first is None:
            return False
        if header.next_offset > self._start:
            self._at_border(base_offset, max(first, self._start), header.next_offset, position)
        return True

    def come_to_end(self) -> None:
        """Record that reading has passed the last segment."""
        if self._at_border is not None and self._base_offset is not None:
            self._at_border(self._base_offset, max(self.reached, self._start), None, self.left_at)


class LogReader:
    """The segments of a log in order, read as one sequence of entries.

    Attributes:
        segments: by ascending base offset.
        trust_indexes: start at index entries that look right instead of proving them.
    """

    def __init__(self, segments: Sequence[LogSegment], *, trust_indexes: bool = False) -> None:
        self.segments = tuple(segments)
        self.trust_indexes = trust_indexes
        self._base_offsets = [segment.base_offset for segment in self.segments]
        self._last: tuple[LogSegment, RecordBatch] | None = None

    @cached_property
    def _find_record(self) -> FindRecord | None:
        return engine.record_finder()

    def floor(self, offset: int) -> int | None:
        """Return the number of the segment with the greatest base offset not above an offset (SEG-LKP-001)."""
        found = bisect_right(self._base_offsets, offset)
        return found - 1 if found else None

    def segments_from(self, offset: int) -> tuple[LogSegment, ...]:
        """Return the segments that may hold an offset or a greater one."""
        return self.segments[self.floor(offset) or 0 :]

    def frames_from(
        self, offset: int, end: int = INT64_MAX, at_border: AtBorder | None = None
    ) -> Iterator[tuple[LogSegment, Frame]]:
        """Walk the entries from the first that ends at or above an offset, across segments (SEG-LKP-002).

        Args:
            offset: where to start.
            end: stop before the first entry that starts at this offset or above.
            at_border: called at borders between segments; see `Borders`.

        Raises:
            FormatError: while iterating: at damage after which no entry can be found.
        """
        if offset >= end:
            return
        borders = Borders(offset, at_border)
        for segment in self.segments_from(offset):
            borders.come_to(segment.base_offset)
            borders.reached = segment.base_offset
            position = segment.position_of(offset, trust_index=self.trust_indexes)
            if position is None:
                borders.left_at = segment.left_after(segment.walked.position)
                continue
            end_position = position
            for frame in segment.ordered_frames(position):
                first = frame.header.base_offset
                if first is not None and first >= end:
                    if frame.position == position:
                        self.verify_gap(offset)
                    return
                decode = None if at_border is None else partial(self.decode, segment)
                if (overlap := overlap_of(frame, borders.reached, decode)) is not None:
                    borders.overlap(segment.base_offset, overlap)
                yield segment, frame
                if at_border is not None and segment.hidden_data(frame) is not None:
                    borders.left_out(segment.base_offset, frame.position, frame.header)
                borders.reached, end_position = frame.header.next_offset, frame.end
                if borders.reached >= end <= GREATEST_OFFSET:
                    return
            borders.left_at = segment.left_after(end_position)
        borders.come_to_end()

    def first_batch(self, segment: LogSegment, frame: Frame, offset: int) -> RecordBatch:
        """Decode the entry that a lookup of an offset found.

        If it starts above the offset, the entry before it is verified, which might hold the offset.

        Raises:
            FormatError: one of these entries is damaged.
        """
        batch = self.decode(segment, frame)
        if batch.base_offset > offset:
            self.verify_gap(offset)
        return batch

    def decode(self, segment: LogSegment, frame: Frame) -> RecordBatch:
        """Decode an entry; the last one is cached, because consecutive lookups often find the same entry.

        Raises:
            FormatError: it is damaged or refused.
        """
        if self._last is not None:
            last_segment, last = self._last
            if last_segment is segment and (last.position, last.header) == (frame.position, frame.header):
                return last
        batch = segment.decode(frame)
        self._last = segment, batch
        return batch

    def record_at(self, offset: int) -> Record | Message | None:
        """Return the record at an offset, decoded alone; None if the usual decoders must read it, or there is none."""
        number = self.floor(offset)
        if number is None:
            return None
        segment = self.segments[number]
        with suppress(FormatError):
            frame = segment.entry_with(offset, trust_index=self.trust_indexes) if _is_large(segment) else None
            if frame is not None and starts_at(frame) <= offset:
                is_message = frame.header.magic < RECORD_BATCH_MAGIC and not frame.header.codec_id
                return self.decode(segment, frame).records[0] if is_message else self._record_in(frame, offset)
        return None

    def _record_in(self, frame: Frame, offset: int, timestamp_ms: int = -INT64_MAX - 1) -> Record | None:
        """Return the first record of an entry from an offset on that is not older than a timestamp, decoded alone.

        None: there is no such record, or compiled code does not cover the entry or does not find it sound. It covers
        batches of data without compression that have a record for each of their offsets.
        """
        header, find = frame.header, self._find_record
        if find is None or not isinstance(header, RecordBatchHeader) or decoders_of(frame) is not None:
            return None
        if header.codec_id or header.is_control or header.size_in_bytes > MAX_LONE_SIZE:
            return None
        position = find(frame.data, header.base_offset, max(offset - header.base_offset, 0), timestamp_ms)
        if position is None:
            return None
        from seglog_format.codec.plain import decode_first_record  # noqa: PLC0415 - loaded with the first

        return decode_first_record(bytes(frame.data[position:]), header, Location())

    def first_not_older(
        self, segment: LogSegment, frame: Frame, timestamp_ms: int, offset: int
    ) -> TimestampOffset | None:
        """Return the first record of an entry, from an offset on, that is not older than a timestamp.

        Raises:
            FormatError: it is damaged or refused.
        """
        lone = self._record_in(frame, offset, timestamp_ms) if _is_large(segment) else None
        for record in self.decode(segment, frame).records if lone is None else (lone,):
            if record.offset >= offset and record.timestamp_ms >= timestamp_ms:
                return TimestampOffset(record.timestamp_ms, record.offset)
        return None

    def verify_gap(self, offset: int) -> None:
        """Verify the entry before a missing offset, as `LogSegment.verify_gap` does."""
        self.segments_from(offset)[0].verify_gap(offset)

    def fetch(
        self, offset: int, end: int, max_bytes: int, at_border: AtBorder, *, min_one_message: bool
    ) -> tuple[RecordBatch, ...]:
        """Decode the entries that fit one read (SEG-LKP-006, SEG-LKP-007), and report those that are left out.

        Raises:
            FormatError: the first entry is damaged or refused. A later such entry only ends the read.
        """
        batches: list[RecordBatch] = []
        borders = Borders(offset, at_border)
        try:
            for segment, frame in self._fitting(offset, end, max_bytes, min_one_message=min_one_message):
                reached = batches[-1].next_offset if batches else segment.base_offset
                batches.append(self.decode(segment, frame) if batches else self.first_batch(segment, frame, offset))
                if (overlap := overlap_of(frame, reached, partial(self.decode, segment))) is not None:
                    borders.overlap(segment.base_offset, overlap)
                if segment.hidden_data(frame, batches[-1]) is not None:
                    borders.left_out(segment.base_offset, frame.position, frame.header)
        except FormatError:
            if not batches:
                raise
        return tuple(batches)

    def _fitting(
        self, offset: int, end: int, max_bytes: int, *, min_one_message: bool
    ) -> Iterator[tuple[LogSegment, Frame]]:
        origin: tuple[LogSegment, int] | None = None
        for segment, frame in self.frames_from(offset, end):
            in_segment, start = origin or (segment, frame.position)
            is_given = origin is None and min_one_message
            if segment is not in_segment or (frame.end - start > max_bytes and not is_given):
                return
            yield segment, frame
            if frame.end - start >= max_bytes:
                return  # no next entry fits, and looking at it might fetch it from a remote store
            origin = in_segment, start

    def records(
        self, start: int, end: int, transactions: Transactions | None = None, at_border: AtBorder | None = None
    ) -> Iterator[Record | Message]:
        """Deliver the records of a range of offsets.

        Args:
            start: first offset; records below are dropped (SEG-LKP-003).
            end: end of the range, exclusive.
            transactions: leave out the records that are aborted according to these.
            at_border: as in `frames_from`.

        Raises:
            FormatError: while iterating: at the first entry that is damaged or refused (SEG-LKP-014).
        """
        return all_delivered(self.batches_to_deliver(start, end, at_border), start, end, transactions)

    def found(self, wanted: Wanted, start: int, end: int, at_border: AtBorder) -> Iterator[Record | Message]:
        """Yield the wanted records as `records` does; only batches that may hold one are decoded.

        Raises:
            FormatError: while iterating: at the first entry that is damaged or refused (SEG-LKP-014).
        """
        for number, (segment, frame) in enumerate(self.frames_from(start, end, at_border)):
            if not number:
                self.verify_gap(start)
            if wanted.may_be_in(frame, Location(segment.path, frame.position), segment.limit):
                batch = self._to_deliver(segment, frame, None, end)
                yield from filter(wanted.accepts, delivered(batch, start, end, None))

    def batches_to_deliver(
        self, start: int, end: int, at_border: AtBorder | None
    ) -> Iterator[RecordBatch | StreamedBatch]:
        """Decode the entries that hold a range of offsets; arguments and errors as those of `records`."""
        for number, (segment, frame) in enumerate(self.frames_from(start, end, at_border)):
            yield self._to_deliver(segment, frame, None if number else start, end)

    def _to_deliver(
        self, segment: LogSegment, frame: Frame, first: int | None, end: int
    ) -> RecordBatch | StreamedBatch:
        """Decode an entry; if it has very many records, decode them while they are delivered.

        Args:
            segment: that holds the entry.
            frame: the entry.
            first: the offset that was looked up, for the first entry of a read, as in `first_batch`; else None.
            end: end of the range to deliver, exclusive.

        Raises:
            FormatError: the entry is damaged or refused, or the entry before the first one is damaged.
        """
        from seglog_format.codec.decode import has_very_many_records, stream_frame  # noqa: PLC0415 - as above

        if not has_very_many_records(frame.header):
            return self.decode(segment, frame) if first is None else self.first_batch(segment, frame, first)
        at = Location(segment.path, frame.position)
        batch = stream_frame(frame, at=at, limit=segment.limit, to_offset=end)
        if first is not None and batch.base_offset > first:
            self.verify_gap(first)
        return batch


def delivered(
    batch: RecordBatch | StreamedBatch, start: int, end: int, transactions: Transactions | None
) -> Iterator[Record | Message]:
    """Yield the records of a batch that a consumer gets (SEG-LKP-003, SEG-LKP-010, SEG-LKP-011, SEG-CTL-009)."""
    if batch.header.is_control or (transactions is not None and transactions.is_aborted(batch.header)):
        return
    for record in batch.records:
        if start <= record.offset < end:
            yield record


def all_delivered(
    batches: Iterable[RecordBatch | StreamedBatch], start: int, end: int, transactions: Transactions | None
) -> Iterator[Record | Message]:
    """Yield the records of batches as `delivered` does, each offset once."""
    for batch in batches:
        yield from delivered(batch, start, end, transactions)
        start = max(start, batch.next_offset)


def _is_large(segment: LogSegment) -> bool:
    """Return whether lookups in a segment are worth compiled code."""
    return segment.source.size >= QUICK_SIZE


# -- lookups of offsets by timestamp -----------------------------------------------------------------------------------
#
# Every record counts, also those of control batches (SEG-LKP-018). A lookup skips entries by the largest timestamp in
# their headers. The checksum covers that field, so it is verified for each skipped entry: else a damaged header could
# hide the right record. So a segment is read from its start, by the engine that is chosen for its size. A time index is
# used only if indexes are trusted.


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
