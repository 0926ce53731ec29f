"""A broker's recovery of one segment, including its faults (chapter 71, "What brokers do").

`segment_scan` does what recovery should; this does what brokers since 2.0 do. They detect offsets out of order only
where an index entry is due, and then drop the whole segment; they keep a control batch whose marker they cannot
read, and truncate after it; with some entries they do not start.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Final

from seglog_format.codec.decode import decode_under_outer_checksum
from seglog_format.codec.end_marker import lacks_end_marker
from seglog_format.errors import FormatError, Location, UnreadableError
from seglog_format.log.transactions import Transactions
from seglog_format.model import (
    INT32_MAX,
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
from seglog_format.recovery.segment_scan import UNREADABLE_MARKER_PREFIXES
from seglog_format.state.index_build import IndexBuilder
from seglog_format.storage.byte_source import source_of

if TYPE_CHECKING:
    from seglog_format.model import AbortedTxn
    from seglog_format.recovery.entry_walk import WalkedEntry
    from seglog_format.storage.byte_source import ByteSource, Readable

DEFAULT_SETTINGS: Final = IndexSettings()


class Outcome(Enum):
    """The end of a broker's scan of a segment."""

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
        outcome: how it ended; if that is not `RECOVERED`, the other fields describe what was found before.
        valid_size: valid bytes, which stay.
        next_offset: the first offset after the segment, for brokers up to 4.0.
        next_offset_since_4_1: the same for later ones, which determine it otherwise; None if they do not start,
            because they cannot decompress an entry on the way.
        offset_entries: of the rebuilt offset index.
        time_entries: of the rebuilt time index.
        aborted: entries of the rebuilt transaction index.
        requirements: ids that the bytes which ended the scan break; empty at the end of the file.
        reason: the same as text.
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
    """Ends the scan; `RECOVERED` if the broker takes the cause for damage."""

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
        settings: of the indexes: what is detected depends on where entries are due.
        transactions: those open where the segment begins; none by default. They are updated.
    """
    source = source_of(data, path)
    scanner = BrokerScanner(source, base_offset, settings, transactions or Transactions())
    walk_entries(source, path, [scanner])
    return scanner.result()


class _Indexes(IndexBuilder):
    """The indexes of a segment as a broker fills them, with its checks."""

    def add_offset_entry(self, entry: OffsetPosition) -> None:
        """Refuse an offset that is not above the last one."""
        if self.offset_entries and entry.offset <= self.offset_entries[-1].offset:
            _refuse(entry.offset, self.offset_entries[-1].offset)
        super().add_offset_entry(entry)

    def add_time_entry(self, largest: TimestampOffset) -> None:
        """Refuse an offset below the last one, even if no entry is due."""
        if self.time_entries and largest.offset < self.time_entries[-1].offset:
            _refuse(largest.offset, self.time_entries[-1].offset)
        super().add_time_entry(largest)


def _refuse(offset: int, last: int) -> None:
    reason = f"offset {offset} of an index entry after {last}"
    raise EndOfScanError(Outcome.INVALID_OFFSET, ("SEG-LOG-006",), reason)


class BrokerScanner:
    """Decides, in a walk over the entries of a segment, which of them a broker keeps.

    Args:
        source: bytes of the log.
        base_offset: of the segment.
        settings: of the indexes.
        transactions: those open where the segment begins; they are updated.

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
            self._take_over(entry)
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
            raise EndOfScanError(Outcome.RECOVERED, (requirement,), "crc: it does not agree")
        last = _int64(entry.header.last_offset)
        if not 0 <= last - self._base_offset <= INT32_MAX:
            requirement = "SEG-LOG-009" if last > self._base_offset else "SEG-LOG-008"
            reason = f"last offset {last} in a segment from {self._base_offset} on"
            raise EndOfScanError(Outcome.OVERFLOW, (requirement,), reason)

    def _take_over(self, entry: WalkedEntry) -> None:
        """Apply leader epoch and transactions of a valid entry."""
        header = entry.header
        if not isinstance(header, RecordBatchHeader):
            return
        if header.partition_leader_epoch > self._latest_epoch:
            self._latest_epoch = header.partition_leader_epoch
            if header.base_offset < 0:
                raise EndOfScanError(Outcome.FAILURE, ("SEG-BAT-005",), "a leader epoch that starts below 0")
        if header.producer_id >= 0:
            apply_producer(self._transactions, entry, header)
            self._check_aborts()

    def _check_aborts(self) -> None:
        aborted = self._transactions.aborted
        if len(aborted) > self._known_aborts + 1 and aborted[-1].last_offset <= aborted[-2].last_offset:
            raise EndOfScanError(Outcome.FAILURE, ("SEG-TXN-004",), "an abort before the one that was listed last")

    def result(self) -> BrokerScan:
        """Return the result of the walk; indexing the end of the valid entries may still fail."""
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
            self._broken(),
            "" if self._stop is None else self._stop.reason,
        )

    def _broken(self) -> tuple[str, ...]:
        """Return what the bytes break that ended the walk."""
        if self._stop is not None:
            return self._stop.requirements
        return () if self._tail is None else (self._tail.requirement,)


def apply_producer(transactions: Transactions, entry: WalkedEntry, header: RecordBatchHeader) -> None:
    """Apply a batch of a producer as a broker does.

    Raises:
        EndOfScanError: it fails, or takes the batch for damage.
    """
    is_open = header.producer_id in transactions.open_offsets
    if is_open and not header.is_control and not header.is_transactional:
        raise EndOfScanError(Outcome.FAILURE, ("SEG-CTL-007",), "a batch outside of its producer's transaction")
    transactions.add(header, _marker(entry))


def _marker(entry: WalkedEntry) -> ControlRecordType | None:
    try:
        marker = entry.end_marker()
    except UnreadableError:
        raise
    except FormatError as error:
        if error.requirements[0].startswith(UNREADABLE_MARKER_PREFIXES):
            raise EndOfScanError(Outcome.FAILURE, error.requirements, "an end marker of no known form") from None
        raise _damage(error) from None
    if lacks_end_marker(entry.header, marker):
        raise EndOfScanError(Outcome.FAILURE, ("SEG-CTL-003",), "a control batch of a producer, and no end marker")
    return None if marker is None else marker.kind


class _SegmentEnd:
    """Finds the first offset after a segment as a broker does: from the last index entry it walks on.

    Since 4.1 it compares base offsets on the way, and decompresses wrappers to know them. It finds nothing if the
    last entries all begin below the wanted offset, and the very last also ends below it; then it uses the base
    offset of the segment.
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
    """Wrap a sum to a 64-bit integer."""
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)
