"""What the checks of entries look at: one entry of a log, decoded where that was possible, and its surroundings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.model import MessageHeader, Record, RecordBatchHeader

if TYPE_CHECKING:
    from seglog_format.errors import Location
    from seglog_format.model import BatchHeader, Message, RecordBatch


@dataclass(frozen=True, slots=True)
class Entry:
    """An intact entry in its segment.

    Attributes:
        at: where it stands.
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
        """Fixed fields as stored."""
        return self.batch.header


@dataclass(frozen=True, slots=True)
class Batch:
    """An intact entry of magic 2."""

    at: Location
    header: RecordBatchHeader
    records: tuple[Record, ...]


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """An intact entry of magic 0 or 1: a plain message, or a wrapper with the messages inside."""

    at: Location
    header: MessageHeader
    messages: tuple[Message, ...]

    @property
    def is_wrapper(self) -> bool:
        """Whether the messages were compressed."""
        return self.header.codec_id != 0


def narrowed(entry: Entry) -> Batch | MessageEntry:
    """The same entry as the kind that its magic says."""
    header, records = entry.header, entry.batch.records
    if isinstance(header, RecordBatchHeader):
        return Batch(entry.at, header, tuple(record for record in records if isinstance(record, Record)))
    return MessageEntry(entry.at, header, tuple(record for record in records if not isinstance(record, Record)))
