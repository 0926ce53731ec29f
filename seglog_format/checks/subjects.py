"""Subjects of the checks of entries: a decoded entry with its location."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.codec.decode import decode_frame, verify_checksum
from seglog_format.codec.message_set import read_message_entry
from seglog_format.codec.record_stream import has_very_many_records, stream_frame
from seglog_format.model import CompressionCodec, MessageHeader, RecordBatchHeader
from seglog_format.record_model import Record, RecordBatch

if TYPE_CHECKING:
    from seglog_format.codec.message_set import MessageEntry
    from seglog_format.errors import Location
    from seglog_format.model import BatchHeader, Frame


@dataclass(frozen=True, slots=True)
class Entry:
    """An intact entry in its segment.

    Attributes:
        at: its location.
        batch: header and records.
        segment_base_offset: from the file name.
        previous_last_offset: of the intact entry before it in the same segment; None for the first.
    """

    at: Location
    batch: RecordBatch
    segment_base_offset: int
    previous_last_offset: int | None

    @property
    def header(self) -> BatchHeader:
        """Header fields as stored."""
        return self.batch.header


@dataclass(frozen=True, slots=True)
class Batch:
    """An intact entry of magic 2."""

    at: Location
    frame: Frame
    header: RecordBatchHeader
    records: tuple[Record, ...]

    @property
    def is_partly_checked(self) -> bool:
        """Return whether the batch has too many records: only the first were decoded, and no check of records runs."""
        return not self.records and has_very_many_records(self.header)

    def to_record_batch(self) -> RecordBatch:
        """Convert it to the model of the rest of the package."""
        return RecordBatch(self.at.position, self.header, self.records)


@dataclass(frozen=True, slots=True)
class Messages:
    """An intact entry of magic 0 or 1: a plain message, or a wrapper with the messages inside."""

    at: Location
    frame: Frame
    header: MessageHeader
    contents: MessageEntry

    @property
    def is_wrapper(self) -> bool:
        """Return whether the messages are compressed."""
        return self.header.codec_id != CompressionCodec.NONE

    def to_record_batch(self) -> RecordBatch:
        """Convert it to the model of the rest of the package."""
        return RecordBatch(self.at.position, self.header, self.contents.messages)


def decode_subject(frame: Frame, at: Location, limit: int) -> Batch | Messages:
    """Decode an entry to the subject of its checks.

    Of a batch with very many records only the first are decoded, and no records are returned: see
    `Batch.is_partly_checked`.

    Raises:
        FormatError: the entry is damaged or refused.
    """
    header = frame.header
    if isinstance(header, MessageHeader):
        verify_checksum(frame, at)
        return Messages(at, frame, header, read_message_entry(frame, at=at, limit=limit))
    if has_very_many_records(header):
        stream_frame(frame, at=at, limit=limit)
        return Batch(at, frame, header, ())
    records = decode_frame(frame, at=at, limit=limit).records
    return Batch(at, frame, header, tuple(record for record in records if isinstance(record, Record)))
