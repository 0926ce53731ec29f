"""The checks of a leader before it appends: of the entries as a whole, and of each record (chapter 70).

The checks take time for each record. They need no data from the log, so the log need not be locked meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.codec.build import MAGIC_2, build_batch
from seglog_format.codec.compression import DEFAULT_OUTPUT_LIMIT
from seglog_format.codec.decode import decode_frame
from seglog_format.codec.encode import encode_batch
from seglog_format.codec.framing import walk
from seglog_format.errors import AppendError, Location
from seglog_format.model import NO_PRODUCER_ID, NO_TIMESTAMP, Frame, RecordBatchHeader, TimestampType
from seglog_format.record_model import Record, RecordBatch
from seglog_format.state.producer_state import Origin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.state.config import LogConfig
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
