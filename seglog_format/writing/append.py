"""Preparation of entries before they are appended: offsets, timestamps and checks (chapter 70).

A leader assigns offsets and timestamps to checked entries; a follower appends the entries of its leader unchanged. All
of this is done before a byte is written. The checks of records take time and need no data from the log, so the log need
not be locked meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.codec.build import (
    MAGIC_2,
    build_batch,
    build_message_entry,
    new_record,
    with_offset,
    with_timestamps,
)
from seglog_format.codec.control_record import EndMarker, end_marker_of
from seglog_format.codec.decode import check_header, decode_frame, verify_checksum
from seglog_format.codec.encode import codec_named, encode_batch
from seglog_format.codec.framing import walk
from seglog_format.errors import AppendError, Location
from seglog_format.model import (
    DEFAULT_OUTPUT_LIMIT,
    GREATEST_OFFSET,
    INT32_MAX,
    NO_PRODUCER_ID,
    NO_TIMESTAMP,
    BatchHeader,
    CompressionCodec,
    Frame,
    Message,
    Record,
    RecordBatch,
    RecordBatchHeader,
    TimestampOffset,
    TimestampType,
)
from seglog_format.state.config import EARLY, BrokerGeneration, LogConfig, TimeIndexOffset
from seglog_format.state.producer_state import Origin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.storage.byte_source import Buffer


APPENDED: Final = "append"
"""Used in place of a file's path in errors about appended bytes."""


class AppendLimits(NamedTuple):
    """Limits on checking one batch; a batch beyond them is refused.

    Attributes:
        output_size: maximum number of bytes that the records of the batch may decompress to.
        parts: maximum number of records and record headers together; None for no limit.
    """

    output_size: int = DEFAULT_OUTPUT_LIMIT
    parts: int | None = None


NO_LIMITS: Final = AppendLimits()


class CheckedEntry(NamedTuple):
    """A checked entry: its bytes and its decoded form."""

    frame: Frame
    batch: RecordBatch


class Checked(NamedTuple):
    """Checked entries, to be appended at once.

    Attributes:
        entries: in order.
        origin: the kind of client that appends them.
    """

    entries: tuple[CheckedEntry, ...]
    origin: Origin


def check_as_leader(
    data: Buffer, config: LogConfig, *, now_ms: int, origin: Origin = Origin.CLIENT, limits: AppendLimits = NO_LIMITS
) -> Checked:
    """Check the entries that a producer or coordinator sends.

    Args:
        data: one record batch, or messages of magic 0 or 1; bytes after the last whole entry are left out.
        config: of the log.
        now_ms: the current time.
        origin: the kind of client that sends them.
        limits: limits on the check.

    Raises:
        RefusedError: the check would exceed the limits.
        FormatError: the bytes are damaged.
        AppendError: the entries may not be appended.
    """
    frames = entries_of(data)
    _check_form(frames, config, origin)
    entries = [CheckedEntry(frame, _accepted(frame, config, now_ms, origin, limits)) for frame in frames]
    return Checked(tuple(entries), origin)


def encoded(records: Buffer | RecordBatch | Sequence[Record]) -> Buffer:
    """Return the bytes to append; records are encoded as one batch."""
    if isinstance(records, bytes | bytearray | memoryview):
        return records
    return encode_batch(records if isinstance(records, RecordBatch) else build_batch(records))


def entries_of(data: Buffer) -> list[Frame]:
    """Return the whole entries that bytes begin with.

    Raises:
        AppendError: there is no whole entry (SEG-APP-005).
    """
    frames = list(walk(data, path=APPENDED))
    if not frames:
        msg = "there is no whole entry to append"
        raise AppendError(msg, "SEG-APP-005")
    return frames


def _check_form(frames: Sequence[Frame], config: LogConfig, origin: Origin) -> None:
    """Check number, magic and size of the entries, which needs no decoding."""
    first = frames[0].header
    if origin is Origin.CLIENT and first.magic == MAGIC_2 and len(frames) > 1:
        msg = f"a producer appends one batch at a time, not {len(frames)}"
        raise AppendError(msg, "SEG-APP-004")
    if any(frame.header.magic != first.magic for frame in frames):
        msg = "entries of different magic cannot be appended at once"
        raise AppendError(msg, "SEG-APP-004")
    for frame in frames:
        size = len(frame.data)
        if size > config.max_message_bytes:
            msg = f"an entry of {size} bytes is larger than max.message.bytes, {config.max_message_bytes}"
            raise AppendError(msg, "SEG-APP-006")


def _accepted(frame: Frame, config: LogConfig, now_ms: int, origin: Origin, limits: AppendLimits) -> RecordBatch:
    batch = _decoded(frame, limits)
    header = batch.header
    if header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        msg = "only the broker sets timestamp type LogAppendTime"
        raise AppendError(msg, "SEG-APP-011")
    if isinstance(header, RecordBatchHeader):
        _check_batch(batch, header, origin)
    _check_records(batch, config, now_ms)
    return batch


def _decoded(frame: Frame, limits: AppendLimits) -> RecordBatch:
    at = Location(APPENDED, frame.position)
    return decode_frame(frame, at=at, limit=limits.output_size, max_parts=limits.parts)


def _check_batch(batch: RecordBatch, header: RecordBatchHeader, origin: Origin) -> None:
    count, span = len(batch.records), header.last_offset_delta + 1
    deltas = [record.offset_delta for record in batch.records if isinstance(record, Record)]
    if not count or count != span or deltas != list(range(span)):
        msg = f"{count} records for {span} offsets: a new batch has one record for each offset"
        raise AppendError(msg, "SEG-APP-004")
    if origin is not Origin.CLIENT:
        return
    if header.base_offset:
        msg = f"base offset {header.base_offset} of a new batch: it has to be 0"
        raise AppendError(msg, "SEG-APP-004")
    if header.is_control:
        msg = "producers do not write control batches"
        raise AppendError(msg, "SEG-APP-004")
    if header.producer_id > NO_PRODUCER_ID and header.base_sequence < 0:
        msg = f"base sequence {header.base_sequence} of producer {header.producer_id}"
        raise AppendError(msg, "SEG-APP-007")


def _check_records(batch: RecordBatch, config: LogConfig, now_ms: int) -> None:
    if config.is_compacted and any(record.key is None for record in batch.records):
        msg = "a record of a compacted topic has a key"
        raise AppendError(msg, "SEG-APP-012")
    if config.message_timestamp_type is TimestampType.CREATE_TIME:
        _check_timestamps([record.timestamp_ms for record in batch.records], config, now_ms)


def _check_timestamps(timestamps: Sequence[int], config: LogConfig, now_ms: int) -> None:
    earliest = now_ms - config.message_timestamp_before_max_ms
    latest = now_ms + config.message_timestamp_after_max_ms
    for timestamp_ms in timestamps:
        if timestamp_ms != NO_TIMESTAMP and not earliest <= timestamp_ms <= latest:
            msg = f"timestamp {timestamp_ms} is not from {earliest} to {latest}"
            raise AppendError(msg, "SEG-APP-024")


class RollReason(Enum):
    """Reason to roll a log; if several hold, the first in this order is given."""

    SIZE = "size"
    """The segment would exceed `segment.bytes` (SEG-ROL-002)."""

    TIME = "time"
    """Its records would span more than `segment.ms` (SEG-ROL-003)."""

    OFFSET_INDEX_FULL = "offset index full"
    """The offset index has no free slot (SEG-ROL-005)."""

    TIME_INDEX_FULL = "time index full"
    """The time index has only the slot for its final entry (SEG-ROL-017)."""

    OFFSET_SPAN = "offset span"
    """An offset would be more than 2147483647 above the base offset (SEG-ROL-006)."""

    ASKED = "asked"
    """The caller requested it."""


@dataclass(frozen=True, slots=True)
class ActiveState:
    """The values that decide when a segment is rolled.

    Attributes:
        base_offset: of the segment.
        size: size of its log in bytes.
        first_timestamp_ms: largest timestamp of the first append; -1 if it has none.
        created_ms: time when the segment was opened.
        jitter_ms: how much earlier than `segment.ms` it is rolled.
        is_offset_index_full: whether the offset index has no free slot.
        is_time_index_full: whether the time index has at most one free slot.
    """

    base_offset: int
    size: int
    first_timestamp_ms: int
    created_ms: int
    jitter_ms: int = 0
    is_offset_index_full: bool = False
    is_time_index_full: bool = False


@dataclass(frozen=True, slots=True)
class Incoming:
    """The values of one append that the decision to roll needs.

    Attributes:
        size: of all entries, in bytes.
        max_timestamp_ms: largest timestamp, or -1.
        first_offset: first offset; for a wrapper on a follower, its stored offset, which needs no decompression.
        last_offset: offset of the last record.
        magic: of the first entry.
    """

    size: int
    max_timestamp_ms: int
    first_offset: int
    last_offset: int
    magic: int = 2


def roll_reason(state: ActiveState, incoming: Incoming, config: LogConfig, now_ms: int) -> RollReason | None:
    """Return why a segment must be rolled before an append; None if it need not (SEG-ROL-001).

    Args:
        state: of the active segment.
        incoming: the entries to append.
        config: of the log.
        now_ms: the current time.
    """
    if state.size > config.segment_bytes - incoming.size:
        return RollReason.SIZE
    if state.size > 0 and _span_ms(state, incoming, config, now_ms) > config.roll_ms - state.jitter_ms:
        return RollReason.TIME
    if state.is_offset_index_full:
        return RollReason.OFFSET_INDEX_FULL
    if state.is_time_index_full:
        return RollReason.TIME_INDEX_FULL
    if not 0 <= incoming.last_offset - state.base_offset <= INT32_MAX:
        return RollReason.OFFSET_SPAN
    return None


def _span_ms(state: ActiveState, incoming: Incoming, config: LogConfig, now_ms: int) -> int:
    """Return the time that the segment spans, by record timestamps or else by the clock (SEG-ROL-003, SEG-ROL-004)."""
    if config.generation.has_time_index and state.first_timestamp_ms >= 0:
        return incoming.max_timestamp_ms - state.first_timestamp_ms
    return now_ms - state.created_ms


def new_base_offset(next_offset: int, incoming: Incoming, generation: BrokerGeneration) -> int:
    """Return the base offset of the segment that receives an append (SEG-ROL-007).

    Args:
        next_offset: log end offset.
        incoming: the entries to append; on a leader they begin at the log end offset.
        generation: of brokers to write like.
    """
    if generation in {BrokerGeneration.V0_8, BrokerGeneration.V0_10_1}:
        return next_offset
    is_exact = incoming.magic >= 2 and generation not in EARLY  # noqa: PLR2004 - the rule is about this number
    first = incoming.first_offset if is_exact else incoming.last_offset - INT32_MAX
    return max(next_offset, first)


def jitter_ms(config: LogConfig, fraction: float) -> int:
    """Return how much earlier than `segment.ms` a segment is rolled (SEG-ROL-008).

    Args:
        config: of the log.
        fraction: a random number from 0 up to, not including, 1.
    """
    return int(fraction * min(config.segment_jitter_ms, config.roll_ms))


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry of a log, ready to be written.

    Attributes:
        data: the bytes of the entry.
        header: its header fields.
        first_offset: offset of its first record; for a wrapper that a follower appends, the stored offset.
        largest: its largest timestamp, and the offset that a time index stores for it.
        marker: the end marker in it, if any.
    """

    data: bytes
    header: BatchHeader
    first_offset: int
    largest: TimestampOffset
    marker: EndMarker | None = None

    @property
    def last_offset(self) -> int:
        """Offset of the last record of the entry."""
        return self.header.last_offset


@dataclass(frozen=True, slots=True)
class Assignment:
    """Fields of a batch that a leader assigns.

    Attributes:
        next_offset: first offset to assign: the log end offset.
        leader_epoch: of the leader, 0 or more.
        now_ms: the current time.
    """

    next_offset: int
    leader_epoch: int
    now_ms: int


def incoming(entries: Sequence[Entry]) -> Incoming:
    """Summarize entries for the decision whether to roll."""
    return Incoming(
        size=sum(len(entry.data) for entry in entries),
        max_timestamp_ms=max(entry.header.max_timestamp_ms for entry in entries),
        first_offset=entries[0].first_offset,
        last_offset=entries[-1].last_offset,
        magic=entries[0].header.magic,
    )


def as_leader(checked: Sequence[CheckedEntry], config: LogConfig, given: Assignment) -> tuple[Entry, ...]:
    """Assign offsets, leader epoch and timestamps to checked entries.

    Args:
        checked: the entries to append.
        config: of the log.
        given: the values that the leader assigns.

    Returns:
        The entries to write; their offsets have no gaps, from `given.next_offset` on.

    Raises:
        AppendError: the entries are too large, or no offsets are left.
    """
    entries = []
    next_offset = given.next_offset
    for frame, batch in checked:
        placed = replace(given, next_offset=next_offset)
        _check_end(next_offset, len(batch.records))
        entry = _entry(_assigned(frame, batch, config, placed), batch, config, placed)
        entries.append(entry)
        next_offset = entry.last_offset + 1
    _check_total(entries, config)
    return tuple(entries)


def as_follower(
    data: Buffer, config: LogConfig, *, next_offset: int, leader_epoch: int | None = None
) -> tuple[Entry, ...]:
    """Prepare entries as their leader wrote them.

    Args:
        data: entries in order; bytes after the last whole entry are left out.
        config: of the log.
        next_offset: log end offset.
        leader_epoch: the leader epoch under which they were fetched; the first batch of a later epoch is left out, and
            all that follow it (SEG-APP-014). None to take all.

    Raises:
        FormatError: the bytes are damaged.
        AppendError: offsets do not increase from the log end offset on (SEG-APP-002), or exceed the greatest offset
            (SEG-LOG-013).
    """
    frames = _until_epoch(entries_of(data), leader_epoch)
    for frame in frames:
        verify_checksum(frame, Location(APPENDED, frame.position))
    _check_order(frames, next_offset)
    entries = [_follower_entry(frame) for frame in frames]
    _check_total(entries, config)
    return tuple(entries)


def _until_epoch(frames: list[Frame], leader_epoch: int | None) -> list[Frame]:
    for number, frame in enumerate(frames):
        header = frame.header
        if leader_epoch is not None and header.magic == MAGIC_2 and header.partition_leader_epoch > leader_epoch:
            return frames[:number]
    return frames


def _check_order(frames: Sequence[Frame], next_offset: int) -> None:
    last = next_offset - 1
    for number, frame in enumerate(frames):
        header = frame.header
        first = header.last_offset if header.base_offset is None or number else header.base_offset
        if first <= last or header.last_offset <= last:
            msg = f"offset {first} of an entry is not above {last}, the last offset before it"
            raise AppendError(msg, "SEG-APP-002")
        if header.last_offset > GREATEST_OFFSET:
            msg = f"last offset {header.last_offset} of an entry is above {GREATEST_OFFSET}"
            raise AppendError(msg, "SEG-LOG-013")
        last = header.last_offset


def _follower_entry(frame: Frame) -> Entry:
    header, at = frame.header, Location(APPENDED, frame.position)
    if isinstance(header, RecordBatchHeader):
        check_header(header, at)
    first = header.last_offset if header.base_offset is None else header.base_offset
    largest = TimestampOffset(header.max_timestamp_ms, header.last_offset)
    return Entry(bytes(frame.data), header, first, largest, end_marker_of(frame, at))


def _check_end(next_offset: int, count: int) -> None:
    if next_offset + count - 1 > GREATEST_OFFSET:
        msg = f"there are fewer than {count} offsets from {next_offset} to {GREATEST_OFFSET}"
        raise AppendError(msg, "SEG-LOG-013")


def _check_total(entries: Sequence[Entry], config: LogConfig) -> None:
    size = sum(len(entry.data) for entry in entries)
    if size > config.segment_bytes:
        msg = f"{size} bytes do not fit into a segment of {config.segment_bytes}"
        raise AppendError(msg, "SEG-APP-021")


def _assigned(frame: Frame, batch: RecordBatch, config: LogConfig, given: Assignment) -> bytes:
    """Return the bytes of an entry with assigned offset, leader epoch and timestamp; the checksum is updated.

    The records of a batch of magic 2 do not change (SEG-APP-019).
    """
    last_offset = given.next_offset + len(batch.records) - 1
    if batch.header.magic == MAGIC_2:
        data = with_offset(frame.data, given.next_offset, given.leader_epoch)
    elif batch.header.codec_id and not _has_right_offsets(batch, given.next_offset):
        data = _reencoded(batch, given.next_offset)
    else:
        data = with_offset(frame.data, last_offset)
    if config.message_timestamp_type is TimestampType.LOG_APPEND_TIME:
        return with_timestamps(data, TimestampType.LOG_APPEND_TIME, given.now_ms)
    largest_ms = max(record.timestamp_ms for record in batch.records)
    return with_timestamps(data, TimestampType.CREATE_TIME, largest_ms)


def _has_right_offsets(batch: RecordBatch, base_offset: int) -> bool:
    """Return whether a wrapper's inner offsets are right: relative in magic 1, absolute in magic 0 (SEG-MSG-012)."""
    stored = [record.stored_offset for record in batch.records if isinstance(record, Message)]
    first = base_offset if batch.header.magic == 0 else 0
    return stored == list(range(first, first + len(stored)))


def _reencoded(batch: RecordBatch, base_offset: int) -> bytes:
    records = [
        new_record(key=record.key, value=record.value, timestamp_ms=record.timestamp_ms) for record in batch.records
    ]
    codec = codec_named(batch.header.codec_id)
    magic = batch.header.magic
    return encode_batch(build_message_entry(records, magic=magic, base_offset=base_offset, codec=codec))


def _entry(data: bytes, batch: RecordBatch, config: LogConfig, given: Assignment) -> Entry:
    (frame,) = walk(data)
    header = frame.header
    offset = _offset_of_largest(batch, header, config.generation, given.next_offset)
    largest = TimestampOffset(header.max_timestamp_ms, offset)
    return Entry(data, header, given.next_offset, largest, end_marker_of(frame, Location(APPENDED)))


def _offset_of_largest(batch: RecordBatch, header: BatchHeader, generation: BrokerGeneration, base_offset: int) -> int:
    """Return the offset that a time index stores for the largest timestamp of a batch (SEG-APP-015)."""
    is_plain = header.codec_id == CompressionCodec.NONE and header.timestamp_type is TimestampType.CREATE_TIME
    if generation.time_index_offset is TimeIndexOffset.BATCH or not is_plain or header.magic != MAGIC_2:
        return header.last_offset
    timestamps = [record.timestamp_ms for record in batch.records]
    return base_offset + timestamps.index(max(timestamps))
