"""The decision which records and batches compaction keeps, and why (chapter 73).

Each decision is a function of one batch and of facts about the rest of the log: the newest offset of each key, whether
the batch's transaction was aborted, and whether its producer wrote anything after it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Final

from seglog_format.codec.build import MAGIC_2
from seglog_format.codec.decode import decode_frame
from seglog_format.codec.encode import encode_batch
from seglog_format.codec.plain import signed_64
from seglog_format.errors import Location
from seglog_format.model import (
    CODEC_MASK,
    CONTROL_BIT,
    DEFAULT_OUTPUT_LIMIT,
    DELETE_HORIZON_BIT,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    Frame,
    Message,
    MessageHeader,
    Record,
    RecordBatch,
    RecordBatchHeader,
    TimestampType,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from seglog_format.storage.byte_source import Buffer


KNOWN_BITS: Final = CODEC_MASK | TIMESTAMP_TYPE_BIT | TRANSACTIONAL_BIT | CONTROL_BIT
"""Attribute bits that a rewritten batch keeps; the delete horizon has its own rules."""


@dataclass(slots=True)
class NewestOffsets:
    """The newest record of each key in the dirty part of a log.

    Attributes:
        by_key: offset of the newest record, by key.
        end_offset: the keys of all records below this offset are included.
    """

    by_key: dict[bytes, int] = field(default_factory=dict)
    end_offset: int = 0


@dataclass(frozen=True, slots=True)
class Pass:
    """The parameters of one pass of compaction, which are the same for every batch.

    Attributes:
        newest: the newest record of each key.
        now_ms: time when the pass began.
        delete_retention_ms: how long tombstones and markers are kept after the first pass that could remove them.
        end_offset: where the pass stops; the batch that ends there is kept.
    """

    newest: NewestOffsets
    now_ms: int
    delete_retention_ms: int
    end_offset: int


@dataclass(frozen=True, slots=True)
class BatchFacts:
    """Facts about a batch from the rest of the log.

    Attributes:
        is_aborted: whether its transaction was aborted.
        is_unneeded_marker: whether it ends a transaction without batches in the log, or is empty.
        is_last_of_producer: whether it is the last batch of an active producer.
        keeps_old_tombstones: whether tombstones of magic 0 and 1 in its segment are not old enough to be removed.
    """

    is_aborted: bool = False
    is_unneeded_marker: bool = False
    is_last_of_producer: bool = False
    keeps_old_tombstones: bool = True


class RecordReason(Enum):
    """Why a record is kept or removed: a text, and the id of the rule."""

    NEWEST = "the newest of its key", "SEG-CMP-008"
    NOT_REACHED = "after the last key that could be remembered", "SEG-CMP-007"
    TOMBSTONE = "a tombstone that is still retained", "SEG-CMP-010"
    MARKER = "the end of a transaction", "SEG-CMP-014"
    SUPERSEDED = "a later record has its key", "SEG-CMP-008"
    NO_KEY = "it has no key", "SEG-CMP-009"
    EXPIRED_TOMBSTONE = "a tombstone past its retention", "SEG-CMP-010"
    ABORTED = "its transaction was aborted", "SEG-CMP-013"
    EXPIRED_MARKER = "the end marker of a transaction without records, past its retention", "SEG-CMP-014"

    @property
    def is_kept(self) -> bool:
        """Return whether the record is kept."""
        return self in KEPT


KEPT: Final = frozenset({RecordReason.NEWEST, RecordReason.NOT_REACHED, RecordReason.TOMBSTONE, RecordReason.MARKER})


@dataclass(frozen=True, slots=True)
class RecordFate:
    """The decision for one record."""

    record: Record | Message
    reason: RecordReason

    @property
    def explanation(self) -> str:
        """The reason, as text."""
        return f"offset {self.record.offset}: {'kept' if self.reason.is_kept else 'removed'}: {self.reason.value[0]}"

    @property
    def requirement(self) -> str:
        """Id of the rule."""
        return self.reason.value[1]


class BatchAction(Enum):
    """What compaction does with a batch."""

    COPY = "copied unchanged"
    REWRITE = "rewritten"
    EMPTY = "emptied"
    DROP = "removed"


@dataclass(frozen=True, slots=True)
class BatchFate:
    """The decision for one batch.

    Attributes:
        batch: the batch before compaction.
        action: what happens to it.
        records: the decision for each of its records.
        requirement: id of the rule that decides the action.
        delete_horizon_ms: delete horizon of the batch that replaces it; None if it has none.
    """

    batch: RecordBatch
    action: BatchAction
    records: tuple[RecordFate, ...]
    requirement: str
    delete_horizon_ms: int | None = None

    @property
    def explanation(self) -> tuple[str, ...]:
        """A line for the batch, and one for each record."""
        title = f"batch {self.batch.base_offset} to {self.batch.last_offset}"
        return (f"{title}: {self.action.value}", *(f"  {fate.explanation}" for fate in self.records))

    @property
    def replacement(self) -> RecordBatch | None:
        """The batch that replaces it; None if it is removed."""
        match self.action:
            case BatchAction.DROP:
                return None
            case BatchAction.COPY:
                return self.batch
            case BatchAction.EMPTY:
                return emptied(self.batch)
        return rewritten(self.batch, self.kept, self.delete_horizon_ms)

    @property
    def kept(self) -> tuple[Record | Message, ...]:
        """The kept records."""
        return tuple(fate.record for fate in self.records if fate.reason.is_kept)


def fate_of(batch: RecordBatch, facts: BatchFacts, this_pass: Pass) -> BatchFate:
    """Decide what happens to a batch.

    Args:
        batch: the batch in the log.
        facts: facts from the rest of the log.
        this_pass: parameters of the pass.
    """
    header = batch.header
    records = tuple(RecordFate(record, _reason(record, header, facts, this_pass)) for record in batch.records)
    kept = [fate.record for fate in records if fate.reason.is_kept]
    if not kept:
        requirement = _reason_to_stay(header, facts, this_pass)
        action = BatchAction.EMPTY if requirement else BatchAction.DROP
        return BatchFate(batch, action, records, requirement or "SEG-CMP-015")
    old_horizon = header.delete_horizon_ms
    if old_horizon is None and _expires_later(kept, facts):
        return BatchFate(
            batch, BatchAction.REWRITE, records, "SEG-CMP-011", this_pass.now_ms + this_pass.delete_retention_ms
        )
    if isinstance(header, RecordBatchHeader) and len(kept) == len(records):
        return BatchFate(batch, BatchAction.COPY, records, "SEG-CMP-017", old_horizon)
    return BatchFate(batch, BatchAction.REWRITE, records, "SEG-CMP-018", old_horizon)


def _reason(
    record: Record | Message, header: RecordBatchHeader | MessageHeader, facts: BatchFacts, this_pass: Pass
) -> RecordReason:
    is_expired = _is_expired(header, facts, this_pass)
    if header.is_control:
        return RecordReason.EXPIRED_MARKER if facts.is_unneeded_marker and is_expired else RecordReason.MARKER
    if facts.is_aborted:
        return RecordReason.ABORTED
    if record.offset >= this_pass.newest.end_offset:
        return RecordReason.NOT_REACHED
    return _reason_by_key(record, this_pass.newest, is_expired=is_expired)


def _reason_by_key(record: Record | Message, newest: NewestOffsets, *, is_expired: bool) -> RecordReason:
    if record.key is None:
        return RecordReason.NO_KEY
    if record.offset < newest.by_key.get(record.key, NO_OFFSET):
        return RecordReason.SUPERSEDED
    if record.value is not None:
        return RecordReason.NEWEST
    return RecordReason.EXPIRED_TOMBSTONE if is_expired else RecordReason.TOMBSTONE


NO_OFFSET: Final = -1


def _is_expired(header: RecordBatchHeader | MessageHeader, facts: BatchFacts, this_pass: Pass) -> bool:
    """Return whether the tombstones or marker of a batch are past their retention (SEG-CMP-010, SEG-CMP-012)."""
    if isinstance(header, MessageHeader):
        return not facts.keeps_old_tombstones
    horizon = header.delete_horizon_ms
    return horizon is not None and horizon <= this_pass.now_ms


def _expires_later(kept: Sequence[Record | Message], facts: BatchFacts) -> bool:
    """Return whether a later pass will remove a tombstone or the marker of a batch."""
    return facts.is_unneeded_marker or any(record.value is None for record in kept)


def _reason_to_stay(header: RecordBatchHeader | MessageHeader, facts: BatchFacts, this_pass: Pass) -> str:
    """Return the rule that keeps a batch without records; messages of magic 0 and 1 cannot be empty."""
    if isinstance(header, MessageHeader):
        return ""
    if facts.is_last_of_producer:
        return "SEG-CMP-015"
    return "SEG-CMP-016" if header.next_offset == this_pass.end_offset else ""


def emptied(batch: RecordBatch) -> RecordBatch:
    """Return a batch of magic 2 without its records (SEG-BAT-018)."""
    header = batch.header
    assert isinstance(header, RecordBatchHeader)
    bits = header.attributes & KNOWN_BITS & ~CODEC_MASK
    return RecordBatch(
        batch.position, replace(header, attributes=bits, base_timestamp_ms=NO_TIMESTAMP, records_count=0), ()
    )


def rewritten(
    batch: RecordBatch, kept: Sequence[Record | Message], delete_horizon_ms: int | None = None
) -> RecordBatch:
    """Return a batch of magic 2 with the kept records of a batch (SEG-CMP-018, SEG-CMP-019, SEG-CMP-020).

    Args:
        batch: the batch before compaction, of any magic.
        kept: the kept records; one or more.
        delete_horizon_ms: the delete horizon to store in place of the base timestamp; None to store none.
    """
    header = _header(batch, kept, delete_horizon_ms)
    return RecordBatch(batch.position, header, tuple(_placed(record, header) for record in kept))


def _header(batch: RecordBatch, kept: Sequence[Record | Message], delete_horizon_ms: int | None) -> RecordBatchHeader:
    old = batch.header
    horizon = delete_horizon_ms if delete_horizon_ms is not None and delete_horizon_ms >= 0 else None
    is_stamped = old.timestamp_type is TimestampType.LOG_APPEND_TIME
    largest_ms = max(NO_TIMESTAMP, *(record.timestamp_ms for record in kept))
    common = replace(
        old if isinstance(old, RecordBatchHeader) else _converted(old, kept),
        attributes=old.attributes & KNOWN_BITS | (0 if horizon is None else DELETE_HORIZON_BIT),
        base_timestamp_ms=kept[0].timestamp_ms if horizon is None else horizon,
        records_count=len(kept),
    )
    return common if is_stamped else replace(common, max_timestamp_ms=largest_ms)


def _converted(old: MessageHeader, kept: Sequence[Record | Message]) -> RecordBatchHeader:
    """Convert a header of magic 0 or 1 to magic 2; the new batch has no producer and no leader epoch."""
    return RecordBatchHeader(
        base_offset=kept[0].offset,
        batch_length=0,
        partition_leader_epoch=NO_PARTITION_LEADER_EPOCH,
        magic=MAGIC_2,
        crc=0,
        attributes=0,
        last_offset_delta=kept[-1].offset - kept[0].offset,
        base_timestamp_ms=NO_TIMESTAMP,
        max_timestamp_ms=old.timestamp_ms,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        records_count=0,
    )


def _placed(record: Record | Message, header: RecordBatchHeader) -> Record:
    return Record(
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
        headers=record.headers,
        sequence=record.sequence,
        timestamp_delta=signed_64(record.timestamp_ms - header.base_timestamp_ms),
        offset_delta=record.offset - header.base_offset,
        timestamp_type=header.timestamp_type,
    )


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
