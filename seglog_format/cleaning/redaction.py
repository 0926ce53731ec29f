"""Records that a copy of a log must not hold: removed as compaction would, or left with their keys alone."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seglog_format.cleaning.compaction_rules import emptied, rewritten
from seglog_format.codec.compression import DEFAULT_OUTPUT_LIMIT
from seglog_format.codec.decode import decode_frame
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import Location
from seglog_format.model import RecordBatchHeader
from seglog_format.record_model import Message

if TYPE_CHECKING:
    from collections.abc import Collection

    from seglog_format.model import Frame
    from seglog_format.record_model import Record
    from seglog_format.storage.byte_source import Buffer


@dataclass(frozen=True, slots=True)
class Redaction:
    """The records that are redacted, by offset and by key.

    Attributes:
        offsets: of records.
        keys: of records.
        keeps_keys: whether a record keeps its offset, timestamp and key, and loses its value and headers; else it is
            removed, and its batch keeps its offsets, as compaction leaves it (SEG-CMP-018).
        limit: maximum bytes that one batch may decompress to.
        redacted: the offsets of the records that were found, and those of the keys that they have.
    """

    offsets: frozenset[int] = frozenset()
    keys: frozenset[bytes] = frozenset()
    keeps_keys: bool = False
    limit: int = DEFAULT_OUTPUT_LIMIT
    redacted: set[int | bytes] = field(default_factory=set)

    def of(self, frame: Frame) -> Buffer:
        """Return the bytes of an entry without what is redacted: those of the entry if it has nothing of it.

        A message of magic 0 or 1 becomes a batch of magic 2, which no broker before 0.11 reads.

        Raises:
            FormatError: the entry cannot be decoded, so what it holds is not known.
        """
        if frame.header.is_control:
            return frame.data
        batch = decode_frame(frame, at=Location(position=frame.position), limit=self.limit)
        found = {each.offset for each in batch.records if each.offset in self.offsets or each.key in self.keys}
        if not found:
            return frame.data
        self.redacted.update(found, self.keys.intersection(each.key for each in batch.records))
        whole = batch if isinstance(batch.header, RecordBatchHeader) else rewritten(batch, batch.records)
        kept = [_named(each) if each.offset in found else each for each in whole.records]
        if not self.keeps_keys:
            kept = [each for each in whole.records if each.offset not in found]
        return encode_batch(rewritten(whole, kept, batch.header.delete_horizon_ms) if kept else emptied(whole))


def _named(record: Record | Message) -> Record | Message:
    """Return a record without its value and its headers; a message has none."""
    return replace(record, value=None) if isinstance(record, Message) else replace(record, value=None, headers=())


def redaction_of(records: Collection[int | bytes], *, keeps_keys: bool = False) -> Redaction | None:
    """Return the redaction of records by offset and by key; None if there are none."""
    offsets = frozenset(each for each in records if isinstance(each, int))
    keys = frozenset(each for each in records if isinstance(each, bytes))
    return Redaction(offsets, keys, keeps_keys) if records else None
