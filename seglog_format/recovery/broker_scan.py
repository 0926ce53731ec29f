"""A broker's recovery of one segment, including its faults (chapter 71, "What brokers do").

`segment_scan` does what recovery should do; this module does what brokers since 2.0 do. They detect offsets out of
order only where an index entry is due, and then empty the whole segment. They keep a control batch whose end marker
they cannot read, and truncate after it. On some entries they fail, and do not start.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.codec.control_record import lacks_end_marker
from seglog_format.codec.decode import decode_under_outer_checksum
from seglog_format.errors import FormatError, Location, UnreadableError
from seglog_format.log.index_file import IndexBuilder
from seglog_format.log.transactions import Transactions
from seglog_format.model import (
    INT32_MAX,
    NO_PRODUCER_ID,
    AbortedTxn,
    ControlRecordType,
    Frame,
    OffsetPosition,
    RecordBatchHeader,
    StoredFrame,
    Tail,
    TimestampOffset,
)
from seglog_format.recovery.entry_walk import walk_entries
from seglog_format.recovery.index_settings import IndexSettings
from seglog_format.recovery.segment_scan import UNREADABLE_MARKER_PREFIXES, Remark
from seglog_format.schema.fixed_fields import ENTRY_PREFIX, RECORD_BATCH_HEADER, RECORD_BATCH_MAGIC, batch_field_span
from seglog_format.storage.byte_source import ByteSource, Readable, source_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.engine import IndexedLog
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.entry_walk import WalkedEntry
    from seglog_format.recovery.segment_scan import Split


DEFAULT_SETTINGS: Final = IndexSettings()


class Outcome(Enum):
    """How a broker's scan of a segment ends."""

    RECOVERED = "recovered"
    """Valid bytes stay, and the rest is removed."""

    INVALID_OFFSET = "invalid offset"
    """An index entry would be out of order: the segment is emptied."""

    OVERFLOW = "overflow"
    """An offset is too far above the base offset: the segment is split, or the broker does not start."""

    FAILURE = "failure"
    """The broker does not start."""


@dataclass(frozen=True, slots=True)
class BrokerScan:
    """The result of a broker's scan of a segment.

    Attributes:
        outcome: how it ended; if not with `RECOVERED`, the other fields describe the entries before that point.
        valid_size: valid bytes, which stay.
        next_offset: the first offset after the segment, for brokers up to 4.0.
        next_offset_since_4_1: the same for brokers since 4.1, which determine it in another way; None if they do not
            start because they cannot decompress an entry on the way.
        offset_entries: of the rebuilt offset index.
        time_entries: of the rebuilt time index.
        aborted: entries of the rebuilt transaction index.
        requirements: ids of the rules that the bytes break at which the scan ended; empty at the end of the file.
        reason: what is wrong there, as text.
    """

    outcome: Outcome
    valid_size: int
    next_offset: int
    next_offset_since_4_1: int | None
    offset_entries: tuple[OffsetPosition, ...] = ()
    time_entries: tuple[TimestampOffset, ...] = ()
    aborted: tuple[AbortedTxn, ...] = ()
    requirements: tuple[str, ...] = ()
    reason: str = ""


class EndOfScanError(Exception):
    """Ends the scan; the outcome is `RECOVERED` if the broker takes the cause for damage."""

    def __init__(self, outcome: Outcome, requirements: tuple[str, ...], reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.requirements = requirements
        self.reason = reason


def broker_scan(
    data: Readable,
    base_offset: int,
    path: str = "",
    *,
    settings: IndexSettings = DEFAULT_SETTINGS,
    transactions: Transactions | None = None,
) -> BrokerScan:
    """Scan a segment as brokers do when they start after a crash.

    Args:
        data: the bytes of the `.log` file.
        base_offset: of the segment.
        path: file name for locations.
        settings: of the indexes; a broker detects some errors only where an index entry is due.
        transactions: those open where the segment begins; none by default. The scan updates them.
    """
    source = source_of(data, path)
    scanner = BrokerScanner(source, base_offset, settings, transactions or Transactions())
    walk_entries(source, path, [scanner])
    return scanner.result()


class _Indexes(IndexBuilder):
    """The indexes of a segment as a broker fills them, with its checks."""

    def add_offset_entry(self, entry: OffsetPosition) -> None:
        """Refuse an offset that is not above that of the last entry."""
        if self.offset_entries and entry.offset <= self.offset_entries[-1].offset:
            _refuse(entry.offset, self.offset_entries[-1].offset)
        super().add_offset_entry(entry)

    def add_time_entry(self, largest: TimestampOffset) -> None:
        """Refuse an offset below that of the last entry, even if no entry is due."""
        if self.time_entries and largest.offset < self.time_entries[-1].offset:
            _refuse(largest.offset, self.time_entries[-1].offset)
        super().add_time_entry(largest)


def _refuse(offset: int, last: int) -> None:
    reason = f"offset {offset} of an index entry after {last}"
    raise EndOfScanError(Outcome.INVALID_OFFSET, ("SEG-LOG-006",), reason)


class BrokerScanner:
    """Decides which entries of a segment a broker keeps, during a walk over them.

    Args:
        source: bytes of the log.
        base_offset: of the segment.
        settings: of the indexes.
        transactions: those open where the segment begins; the scan updates them.

    Attributes:
        position: end of the valid entries.
    """

    def __init__(
        self, source: ByteSource, base_offset: int, settings: IndexSettings, transactions: Transactions
    ) -> None:
        self.position = 0
        self._base_offset = base_offset
        self._needs_first_offset = settings.stores_first_offset
        self._indexes = _Indexes(settings.interval_bytes, settings.indexed_offset)
        self._transactions = transactions
        self._known_aborts = len(transactions.aborted)
        self._latest_epoch = -1
        self._ends = _SegmentEnd(base_offset, source)
        self._stop: EndOfScanError | None = None
        self._tail: Tail | None = None

    def take(self, entry: WalkedEntry) -> bool:
        """Check an entry; return whether the broker continues after it."""
        try:
            self._check(entry)
            indexed = len(self._indexes.offset_entries)
            self._indexes.add(entry.row(has_first_offset=self._needs_first_offset))
            self.position = entry.end
            self._ends.add(entry.frame, self._indexes.offset_entries[indexed:])
            self._apply(entry)
        except EndOfScanError as stop:
            self._stop = stop
            return False
        return True

    def end(self, found: Tail | FormatError) -> None:
        """Record why no entry follows."""
        if isinstance(found, FormatError):
            self._stop = _damage(found)
        elif found.size:
            self._tail = found

    def _check(self, entry: WalkedEntry) -> None:
        if not entry.checksum_is_valid:
            requirement = "SEG-BAT-003" if isinstance(entry.header, RecordBatchHeader) else "SEG-MSG-004"
            raise EndOfScanError(Outcome.RECOVERED, (requirement,), "crc: not that of the entry's bytes")
        last = _int64(entry.header.last_offset)
        if not 0 <= last - self._base_offset <= INT32_MAX:
            requirement = "SEG-LOG-009" if last > self._base_offset else "SEG-LOG-008"
            reason = f"last offset {last} in a segment from {self._base_offset} on"
            raise EndOfScanError(Outcome.OVERFLOW, (requirement,), reason)

    def _apply(self, entry: WalkedEntry) -> None:
        """Apply the leader epoch of a valid entry, and its effect on transactions."""
        header = entry.header
        if not isinstance(header, RecordBatchHeader):
            return
        if header.partition_leader_epoch > self._latest_epoch:
            self._latest_epoch = header.partition_leader_epoch
            if header.base_offset < 0:
                raise EndOfScanError(Outcome.FAILURE, ("SEG-BAT-005",), "a leader epoch that starts below offset 0")
        if header.producer_id >= 0:
            apply_producer(self._transactions, entry, header)
            self._check_aborts()

    def _check_aborts(self) -> None:
        aborted = self._transactions.aborted
        if len(aborted) > self._known_aborts + 1 and aborted[-1].last_offset <= aborted[-2].last_offset:
            reason = "an aborted transaction that ends before the last one listed"
            raise EndOfScanError(Outcome.FAILURE, ("SEG-TXN-004",), reason)

    def result(self) -> BrokerScan:
        """Return the result of the walk; the last time index entry may still change the outcome."""
        if self._stop is None or self._stop.outcome is Outcome.RECOVERED:
            try:
                self._indexes.finish()
            except EndOfScanError as stop:
                self._stop = stop
        return BrokerScan(
            Outcome.RECOVERED if self._stop is None else self._stop.outcome,
            self.position,
            self._ends.next_offset,
            self._ends.next_offset_since_4_1,
            tuple(self._indexes.offset_entries),
            tuple(self._indexes.time_entries),
            tuple(self._transactions.aborted[self._known_aborts :]),
            self._broken_rules(),
            "" if self._stop is None else self._stop.reason,
        )

    def _broken_rules(self) -> tuple[str, ...]:
        """Return ids of the rules that the bytes break at which the walk ended."""
        if self._stop is not None:
            return self._stop.requirements
        return () if self._tail is None else (self._tail.requirement,)


def apply_producer(transactions: Transactions, entry: WalkedEntry, header: RecordBatchHeader) -> None:
    """Apply a batch of a producer as a broker does.

    Raises:
        EndOfScanError: the broker fails, or takes the batch for damage.
    """
    is_open = header.producer_id in transactions.open_offsets
    if is_open and not header.is_control and not header.is_transactional:
        raise EndOfScanError(Outcome.FAILURE, ("SEG-APP-023",), "a batch outside of its producer's open transaction")
    transactions.add(header, _marker(entry))


def _marker(entry: WalkedEntry) -> ControlRecordType | None:
    try:
        marker = entry.end_marker()
    except UnreadableError:
        raise
    except FormatError as error:
        if error.requirements[0].startswith(UNREADABLE_MARKER_PREFIXES):
            raise EndOfScanError(Outcome.FAILURE, error.requirements, "an end marker that cannot be decoded") from None
        raise _damage(error) from None
    if lacks_end_marker(entry.header, marker):
        raise EndOfScanError(Outcome.FAILURE, ("SEG-CTL-003",), "a producer's control batch without an end marker")
    return None if marker is None else marker.kind


class _SegmentEnd:
    """Finds the first offset after a segment as a broker does, which walks from the last index entry to the end.

    Brokers since 4.1 look for an entry that begins at the indexed offset or above, and decompress wrappers to know
    where they begin. If there is none, and the last entry ends below that offset, they use the base offset of the
    segment.
    """

    def __init__(self, base_offset: int, source: ByteSource) -> None:
        self.base_offset = base_offset
        self.next_offset = base_offset
        self._source = source
        self._target = base_offset
        self._passed: list[Frame] = []

    def add(self, frame: Frame, indexed: list[OffsetPosition]) -> None:
        self.next_offset = frame.header.next_offset
        if indexed:
            self._target = indexed[-1].offset
            self._passed.clear()
        self._passed.append(StoredFrame(frame.position, frame.header, self._source))  # without its bytes

    @property
    def next_offset_since_4_1(self) -> int | None:
        found = False
        for frame in self._passed:
            try:
                found = self._first_offset(frame) >= self._target
            except FormatError:
                return None
            if found:
                break
        if not found and self._passed:
            found = self._passed[-1].header.last_offset >= self._target
        return self.next_offset if found else self.base_offset

    def _first_offset(self, frame: Frame) -> int:
        header = frame.header
        if header.base_offset is not None:
            return header.base_offset
        return decode_under_outer_checksum(frame, at=Location(self._source.path, frame.position)).base_offset


def _damage(error: FormatError) -> EndOfScanError:
    reason = f"{error.location.field}: expected {error.expected}, found {error.found}"
    return EndOfScanError(Outcome.RECOVERED, error.requirements, reason)


def _int64(value: int) -> int:
    """Wrap a number to a signed 64-bit integer, as a sum of Java's long values."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


# -- a broker's scan of an undamaged segment, from what compiled code found in it (chapter 71) -------------------------


def broker_scan_from(indexed: IndexedLog, size: int, transactions: Transactions) -> BrokerScan | None:
    """Return a broker's scan of a segment whose entries compiled code found sound; None if they have to be walked.

    The scan holds no index entries: `indexed` holds them, as the bytes of the files.

    Args:
        indexed: what compiled code found in the log.
        size: bytes of the log.
        transactions: those open where the segment begins; they are updated.
    """
    if indexed.end < size or indexed.has_wrappers or not _keeps_transactions_apart(indexed, transactions):
        return None
    known_aborts = len(transactions.aborted)
    transactions.replay(indexed.transaction_events())
    end = indexed.last_offset + 1
    return BrokerScan(Outcome.RECOVERED, size, end, end, aborted=tuple(transactions.aborted[known_aborts:]))


def _keeps_transactions_apart(indexed: IndexedLog, transactions: Transactions) -> bool:
    """Return whether no producer appends outside of its open transaction: brokers fail on that."""
    outside = indexed.producers_outside()
    inside = {event[0] for event in indexed.transaction_events()} if outside else set()
    return outside.isdisjoint(inside | transactions.open_offsets.keys())


# -- the end of a segment that a broker does not scan: it finds it by the index (chapter 60, "What brokers do") --------


OFFSET_AND_SIZE: Final = 12
MIN_SIZE: Final = 14
"""Smaller sizes end a broker's walk with an error, whatever the magic."""
WARM_SLOTS: Final = 1024
"""Number of slots at the end of an index that a broker searches first."""
DELTA_POSITION, DELTA_SIZE = batch_field_span("last_offset_delta")
PRODUCER_POSITION, PRODUCER_SIZE = batch_field_span("producer_id")
WALKS_TO_END: Final = "brokers do not start: they walk to here for the log end offset"


class BrokerStopError(Exception):
    """A broker stops loading a log: it does not start, or it splits a segment and begins again."""

    def __init__(self, failure: Remark | None = None, split: Split | None = None) -> None:
        super().__init__()
        self.failure = failure
        self.split = split


def trusted_end(segment: LogSegment) -> int:
    """Return the first offset after a segment that a broker does not scan (SEG-LKP-015, "What brokers do").

    A broker looks up the offset in the last slot of the index, and walks from there to the end of the file. If no entry
    on the way ends at that offset or above, it takes the segment for empty.

    Raises:
        BrokerStopError: the size of an entry on the way ends the walk with an error.
    """
    slots = () if segment.offset_index is None else segment.offset_index.slots()
    wanted = slots[-1].offset if slots else segment.base_offset
    end, is_found = segment.base_offset, False
    position = max(searched(slots, wanted, segment.base_offset).position, 0)
    for _, end, _ in entries_passed(segment, position, WALKS_TO_END):
        is_found = is_found or end > wanted
    return end if is_found else segment.base_offset


def searched(slots: Sequence[OffsetPosition], offset: int, base_offset: int) -> OffsetPosition:
    """Search an index as a broker does, whether or not its slots are in order."""
    first_warm = max(len(slots) - 1 - WARM_SLOTS, 0)
    is_warm = bool(slots) and slots[first_warm].offset < offset
    low, high = (first_warm, len(slots) - 1) if is_warm else (0, first_warm)
    if not slots or slots[low].offset > offset:
        return OffsetPosition(base_offset, 0)
    while low < high:
        middle = (low + high + 1) // 2
        if slots[middle].offset > offset:
            high = middle - 1
        elif slots[middle].offset < offset:
            low = middle
        else:
            return slots[middle]
    return slots[low]


class PassedEntry(NamedTuple):
    """The fields that a broker reads of an entry while it walks to the end of a segment."""

    position: int
    next_offset: int
    producer_id: int


def entries_passed(segment: LogSegment, position: int, failure: str) -> Iterator[PassedEntry]:
    """Walk the entries from a position to the end of the log; check only what a broker checks on this walk.

    Args:
        segment: the segment to walk.
        position: where a broker begins.
        failure: text of the remark if a size is invalid: what the broker does then.

    Raises:
        BrokerStopError: a size is invalid, or the file ends in the fixed fields of a batch.
    """
    source = segment.source
    while position < source.size - ENTRY_PREFIX.size:
        first, data = source.window(position, PRODUCER_POSITION + PRODUCER_SIZE)
        offset, size, _, magic = ENTRY_PREFIX.unpack_from(data, position - first)
        if size < MIN_SIZE:
            raise BrokerStopError(Remark(Location(segment.path, position, "size", 4), ("SEG-LOG-003",), failure))
        following = position + OFFSET_AND_SIZE + size
        if following > source.size:
            return
        if magic >= RECORD_BATCH_MAGIC:
            if position + RECORD_BATCH_HEADER.size > source.size:
                raise BrokerStopError(Remark(Location(segment.path, position, "size", 4), ("SEG-BAT-002",), failure))
            delta = data[position - first + DELTA_POSITION :][:DELTA_SIZE]
            producer_id = data[position - first + PRODUCER_POSITION :][:PRODUCER_SIZE]
            last = offset + int.from_bytes(delta, "big", signed=True)
            yield PassedEntry(position, last + 1, int.from_bytes(producer_id, "big", signed=True))
        else:
            yield PassedEntry(position, offset + 1, NO_PRODUCER_ID)
        position = following
