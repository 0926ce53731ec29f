"""One entry of a log to a `RecordBatch`, by declaration: checksum, header rules, decompression, records or messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.compression import DEFAULT_OUTPUT_LIMIT
from seglog_format.codec.decode import records_section, refuse_tail, require_crc
from seglog_format.codec.message_set import read_message_entry
from seglog_format.codec.reference.checksum import crc32, crc32c
from seglog_format.codec.reference.framing import frame_at
from seglog_format.codec.reference.message_set import BY_DECLARATION
from seglog_format.codec.reference.records import decode_records, read_records
from seglog_format.errors import Location
from seglog_format.model import Frame, RecordBatchHeader
from seglog_format.record_model import RecordBatch
from seglog_format.schema.fields import position_of
from seglog_format.schema.message_set import MessageV0Header
from seglog_format.schema.record_batch import RecordBatchHeader as RecordBatchHeaderSchema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.record_model import Message, Record
    from seglog_format.storage.byte_source import Buffer


def decode_batch(data: Buffer, *, at: Location | None = None, limit: int = DEFAULT_OUTPUT_LIMIT) -> RecordBatch:
    """Decode the entry at the start of some bytes, as `seglog_format.codec.decode.decode_batch` does.

    Args:
        data: bytes that start with the entry; more may follow.
        at: where the bytes stand, for errors.
        limit: bytes that decompression may produce at most.

    Raises:
        TruncatedError: the bytes end before the entry does.
        FormatError: the entry is damaged, of an unknown version, or refused at the limit.
    """
    where = at or Location()
    view = memoryview(data).cast("B")
    frame = frame_at(view, 0, len(view), where.path)
    if not isinstance(frame, Frame):
        refuse_tail(frame, where)
    return decode_frame(frame, at=where, limit=limit)


def decode_frame(frame: Frame, *, at: Location, limit: int = DEFAULT_OUTPUT_LIMIT) -> RecordBatch:
    """Decode an entry that a walk by declaration has found.

    Args:
        frame: the entry.
        at: where it stands; its position is the frame's.
        limit: bytes that decompression may produce at most.

    Raises:
        FormatError: the entry is damaged or refused.
    """
    verify_checksum(frame, at)
    return RecordBatch(frame.position, frame.header, _decoded(frame, at, limit))


def stream_records(frame: Frame, header: RecordBatchHeader, at: Location, limit: int) -> Iterator[Record]:
    """Read the records of a batch one after the other, its checksum verified, as `decode_frame` gives them.

    Raises:
        FormatError: the entry is damaged or refused; for its records, while iterating.
    """
    verify_checksum(frame, at)
    return read_records(*records_section(frame, header, at, limit))


def verify_checksum(frame: Frame, at: Location) -> None:
    """Refuse an entry whose stored and computed checksum do not agree.

    Raises:
        CorruptRecordError: SEG-BAT-003 or SEG-MSG-004.
    """
    require_crc(frame, computed_crc(frame), at)


def _decoded(frame: Frame, at: Location, limit: int) -> tuple[Record | Message, ...]:
    if isinstance(frame.header, RecordBatchHeader):
        return decode_records(*records_section(frame, frame.header, at, limit))
    return read_message_entry(frame, at=at, limit=limit, reader=BY_DECLARATION).messages


def computed_crc(frame: Frame) -> int:
    """Return the checksum that an entry should carry: CRC-32C in magic 2, CRC-32 below (SEG-BAT-003, SEG-MSG-004)."""
    if isinstance(frame.header, RecordBatchHeader):
        start, extend = position_of(RecordBatchHeaderSchema, "attributes"), crc32c
    else:
        start, extend = position_of(MessageV0Header, "magic"), crc32
    checksum = 0
    for piece in frame.pieces(start):
        checksum = extend(piece, checksum)
    return checksum
