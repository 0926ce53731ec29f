"""One pass of compaction over a log: the facts that it depends on, and the segments that it writes (chapter 73)."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final

from seglog_format.cleaning.compaction import CompactedSegment
from seglog_format.cleaning.compaction_rules import BatchAction, BatchFacts, NewestOffsets, fate_of
from seglog_format.codec.control_record import marker_in
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import CorruptRecordError, Location
from seglog_format.log.transactions import Transactions, end_marker
from seglog_format.model import AbortedTxn, ControlRecordType, MessageHeader, RecordBatch, RecordBatchHeader, TailKind
from seglog_format.recovery.segment_scan import encode_transaction_index, side_files_of
from seglog_format.state.producer_state import producers_at_end

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_format.cleaning.compaction_rules import BatchFate, Pass
    from seglog_format.log.listing import NamedFile, SegmentFiles
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.state.producer_state import Producer
    from seglog_format.storage.files import Files

MAX_KEYS: Final = 128 * 2**20 // 24 * 9 // 10
"""Default maximum number of keys in a broker's pass: 128 MiB, 24 bytes for each key, 90 % full (SEG-CMP-007)."""


def facts_of(segment: LogSegment, files: Files) -> CompactedSegment:
    """Return the facts about a segment that compaction needs before it reads records.

    Raises:
        FormatError: the log is damaged, or does not end with an entry.
    """
    check_whole(segment)
    first = next(iter(segment.frames()), None)
    index_sizes = [
        0 if path is None else files.size(path) for path in (segment.paths.offset_index, segment.paths.time_index)
    ]
    return CompactedSegment(
        base_offset=segment.base_offset,
        next_offset=segment.next_offset,
        size=segment.size,
        offset_index_size=index_sizes[0],
        time_index_size=index_sizes[1],
        first_timestamp_ms=-1 if first is None else first.header.max_timestamp_ms,
        largest_timestamp_ms=segment.largest_timestamp_ms,
        modified_ms=files.modified_ms(segment.paths.log),
    )


def check_whole(segment: LogSegment) -> None:
    """Refuse a log that needs recovery first.

    Raises:
        FormatError: the log is damaged, or does not end with an entry.
    """
    segment.entries  # noqa: B018 - the property walks the log
    segment.raise_damage()
    tail = segment.tail
    if tail is not None and tail.kind is not TailKind.NONE:
        at = Location(segment.path, tail.position)
        raise CorruptRecordError(at, tail.requirement, expected="the end of the file", found=f"{tail.size} bytes")


@dataclass(frozen=True, slots=True)
class LogState:
    """Facts about the whole log.

    Attributes:
        transactions: of the log up to the high watermark.
        last_stable_offset: of the log up to the high watermark.
        producers: the active producers, by id.
    """

    transactions: Transactions
    last_stable_offset: int
    producers: Mapping[int, Producer]


def transactions_of(segments: Sequence[LogSegment], high_watermark: int) -> tuple[Transactions, int]:
    """Return the transactions of a log and its last stable offset, ignoring entries above the high watermark.

    Raises:
        FormatError: an entry is damaged.
    """
    found, stable = Transactions(end_offset=segments[0].base_offset), high_watermark
    for segment in segments:
        for frame in segment.ordered_frames():
            is_below = frame.header.last_offset < high_watermark
            found.add(frame.header, end_marker(segment, frame))
            if is_below:
                stable = min([high_watermark, *found.open_offsets.values()])
    return found, stable


def active_producers(
    segments: Sequence[LogSegment], snapshots: Sequence[NamedFile], oldest_ms: int
) -> dict[int, Producer]:
    """Return the producer states of a log, from the newest readable snapshot and the entries after it.

    Args:
        segments: of the log, in order.
        snapshots: ascending.
        oldest_ms: producers without an open transaction are dropped if their last append is not after this.

    Raises:
        FormatError: a batch is damaged.
    """
    states = producers_at_end(segments, snapshots, segments[-1].next_offset)
    return {each.producer_id: each for each in states.producers if each.is_alive(oldest_ms)}


def newest_offsets(
    segments: Sequence[LogSegment],
    first_dirty_offset: int,
    end_offset: int,
    transactions: Transactions,
    max_keys: int = MAX_KEYS,
) -> NewestOffsets:
    """Find the newest record of each key in the dirty part of a log (SEG-CMP-007, SEG-CMP-008, SEG-CMP-013).

    Args:
        segments: of the log, in order.
        first_dirty_offset: where the dirty part begins.
        end_offset: where the dirty part ends; a base offset.
        transactions: of the log; records of aborted transactions are ignored.
        max_keys: maximum number of keys to keep in memory; the search ends before more are needed.

    Raises:
        FormatError: a batch is damaged or refused.
    """
    found = NewestOffsets(end_offset=first_dirty_offset)
    dirty = [one for one in segments if one.base_offset < end_offset and one.allowed.last >= first_dirty_offset]
    for segment in dirty:
        for frame in segment.ordered_frames():
            header = frame.header
            if header.last_offset < first_dirty_offset:
                continue
            is_counted = not header.is_control and not transactions.is_aborted(header)
            if is_counted and not _add_keys(found, segment.decode(frame), first_dirty_offset, max_keys):
                return found
            found.end_offset = header.next_offset
        found.end_offset = min(segment.allowed.last + 1, end_offset)
    return found


def _add_keys(found: NewestOffsets, batch: RecordBatch, first_dirty_offset: int, max_keys: int) -> bool:
    """Add the keys of a batch; return whether the memory was sufficient for all."""
    for record in batch.records:
        if record.key is not None and record.offset >= first_dirty_offset:
            if len(found.by_key) >= max_keys:
                return False
            found.by_key[record.key] = record.offset
            found.end_offset = record.offset + 1
    return True


@dataclass(frozen=True, slots=True)
class CleanedSegment:
    """A segment that replaces one or more others.

    Attributes:
        base_offset: of the first replaced segment.
        sources: the files of the replaced segments, in order.
        modified_ms: when the last replaced segment was written.
        log: the bytes of its log.
        offset_index: the bytes of its offset index.
        time_index: the bytes of its time index.
        transaction_index: the bytes of its transaction index; empty if it has none.
    """

    base_offset: int
    sources: tuple[SegmentFiles, ...] = field(repr=False)
    modified_ms: int
    log: bytes = field(repr=False)
    offset_index: bytes = field(repr=False)
    time_index: bytes = field(repr=False)
    transaction_index: bytes = field(repr=False)


class LogCleaner:
    """Rewrites the groups of a plan, in order.

    Args:
        segments: of the log.
        state: facts about the whole log.
        this_pass: parameters of this pass.
        old_tombstones_before_ms: tombstones of magic 0 and 1 are removed from segments last written at this time or
            before.
    """

    def __init__(
        self, segments: Sequence[LogSegment], state: LogState, this_pass: Pass, old_tombstones_before_ms: int
    ) -> None:
        self._segments = {segment.base_offset: segment for segment in segments}
        self._state = state
        self._pass = this_pass
        self._old_tombstones_before_ms = old_tombstones_before_ms
        self._in_transaction: set[int] = set()
        """Ids of producers with a transactional batch after their last end marker, in the batches read so far."""
        self._aborted: list[AbortedTxn] = []
        self._listed = _listed(segments)
        self._ended = {_key(entry): entry for entry in state.transactions.aborted}

    def fates(self, group: Sequence[CompactedSegment]) -> Iterator[BatchFate]:
        """Yield what happens to each batch of a group.

        Raises:
            FormatError: a batch is damaged or refused.
        """
        for one in group:
            keeps_old_tombstones = one.modified_ms > self._old_tombstones_before_ms
            for batch in self._segments[one.base_offset].batches():
                yield fate_of(batch, self._facts(batch, keeps_old_tombstones=keeps_old_tombstones), self._pass)

    def clean(self, group: Sequence[CompactedSegment], settings: IndexSettings) -> CleanedSegment:
        """Return the segment that replaces a group.

        Args:
            group: of the plan.
            settings: of the indexes of the new segment.

        Raises:
            FormatError: a batch is damaged or refused.
        """
        self._aborted = []
        log = b"".join(self._replacements(group))
        base_offset = group[0].base_offset
        side = side_files_of(memoryview(log), base_offset, settings, transactions=Transactions())
        sources = [self._segments[one.base_offset] for one in group]
        for source in sources:
            source.release()  # some systems cannot rename open files
        return CleanedSegment(
            base_offset,
            tuple(source.paths for source in sources),
            group[-1].modified_ms,
            log,
            side.offset_index,
            side.time_index,
            encode_transaction_index(self._aborted),
        )

    def _replacements(self, group: Sequence[CompactedSegment]) -> Iterator[bytes]:
        for fate in self.fates(group):
            replacement = fate.replacement
            if replacement is not None:
                yield self._bytes_of(fate.batch) if fate.action is BatchAction.COPY else encode_batch(replacement)

    def _bytes_of(self, batch: RecordBatch) -> bytes:
        """Return the bytes of an entry as stored in its segment."""
        holder = max(base for base in self._segments if base <= batch.base_offset)
        position = batch.position
        return bytes(self._segments[holder].source.view(position, position + batch.header.size_in_bytes))

    def _facts(self, batch: RecordBatch, *, keeps_old_tombstones: bool) -> BatchFacts:
        header = batch.header
        if isinstance(header, MessageHeader):
            return BatchFacts(keeps_old_tombstones=keeps_old_tombstones)
        is_last = self._is_last_of_producer(header)
        if header.is_control:
            return BatchFacts(is_unneeded_marker=self._is_unneeded(batch), is_last_of_producer=is_last)
        if header.is_transactional:
            self._in_transaction.add(header.producer_id)
        return BatchFacts(is_aborted=self._state.transactions.is_aborted(header), is_last_of_producer=is_last)

    def _is_last_of_producer(self, header: RecordBatchHeader) -> bool:
        """Return whether a batch is the last one of an active producer (SEG-CMP-015, SEG-CMP-027)."""
        producer = self._state.producers.get(header.producer_id)
        if producer is None:
            return False
        if producer.batches:
            return header.last_offset == producer.batches[-1].last_offset
        return header.is_control and header.producer_epoch == producer.producer_epoch

    def _is_unneeded(self, batch: RecordBatch) -> bool:
        """Return whether a control batch ends a transaction without batches in the log, or is empty (SEG-CMP-014)."""
        if not batch.records:
            return True
        marker, producer_id = marker_in(batch.records[0], Location(position=batch.position)), _header(batch).producer_id
        if marker is None:
            return False
        if producer_id not in self._in_transaction:
            return True
        self._in_transaction.remove(producer_id)
        if marker.kind is ControlRecordType.ABORT:
            self._aborted.extend(self._index_entry(producer_id, batch.base_offset))
        return False

    def _index_entry(self, producer_id: int, offset: int) -> Iterator[AbortedTxn]:
        """Yield the transaction index entry of an aborted transaction, as the old index or else the log has it.

        The entry of the old index is used unless it begins later than the transaction in the log.
        """
        ended, listed = self._ended.get((producer_id, offset)), self._listed.get((producer_id, offset))
        if ended is not None:
            yield listed if listed is not None and listed.first_offset <= ended.first_offset else ended


def _header(batch: RecordBatch) -> RecordBatchHeader:
    assert isinstance(batch.header, RecordBatchHeader)
    return batch.header


def _key(entry: AbortedTxn) -> tuple[int, int]:
    return entry.producer_id, entry.last_offset


def _listed(segments: Sequence[LogSegment]) -> dict[tuple[int, int], AbortedTxn]:
    indexes = (segment.transaction_index for segment in segments)
    return {
        _key(entry): entry for entry in chain.from_iterable(index.entries for index in indexes if index is not None)
    }
