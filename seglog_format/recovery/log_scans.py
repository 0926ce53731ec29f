"""The scans of a partition's segments: each segment is walked once for everything that a plan needs.

A plan needs three things that follow from the entries of a segment: which bytes stay, what a broker would keep, and the
content of the side files. One walk computes those of them that will be needed.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seglog_format.codec.framing import first_bytes
from seglog_format.errors import FormatError, Location, UnreadableError
from seglog_format.log.index_file import newest_readable_snapshot, without_strays
from seglog_format.log.transactions import Transactions
from seglog_format.model import INT32_MAX, Frame, RecordBatchHeader, Tail
from seglog_format.recovery.broker_scan import (
    BrokerScanner,
    BrokerStopError,
    EndOfScanError,
    apply_producer,
    broker_scan_from,
    entries_passed,
    searched,
)
from seglog_format.recovery.entry_walk import WalkedEntry, recoverable_frame_at, recoverable_frames, walk_entries
from seglog_format.recovery.segment_scan import (
    Remark,
    SegmentScan,
    SegmentScanner,
    SideFilesBuilder,
    scan_segment,
    side_files_from,
    side_files_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_format.engine import IndexedLog, RecoveryKernels
    from seglog_format.log.index_file import ProducerSnapshot
    from seglog_format.log.listing import NamedFile
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.broker_scan import BrokerScan
    from seglog_format.recovery.entry_walk import EntryConsumer
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.recovery.segment_scan import SegmentSideFiles


# -- the transactions that are open where a segment begins -------------------------------------------------------------


def transactions_before(offset: int, segments: Iterable[LogSegment], snapshots: Sequence[NamedFile]) -> Transactions:
    """Return the transactions open at an offset, from the newest readable snapshot and the entries after it.

    Args:
        offset: base offset of a segment.
        segments: of the partition, in order; only those below the offset are read, up to damage in each.
        snapshots: of the partition, ascending.
    """
    transactions = _from_snapshot(offset, snapshots)
    start = transactions.end_offset
    for segment in segments:
        if segment.base_offset >= offset:
            break
        if segment.allowed.last >= start:
            for frame in recoverable_frames(segment.source, path=segment.path):
                if frame.header.last_offset >= start:
                    transactions.add(frame.header, WalkedEntry(frame, segment.path).readable_marker())
    transactions.aborted.clear()
    return transactions


class OpenTransactions:
    """The transactions that are open where segments begin.

    The state at the end of a segment is stored for the next one, so nothing is read twice.

    Args:
        segments: of the partition, in order.
        snapshots: of the partition, ascending.
    """

    def __init__(self, segments: Sequence[LogSegment], snapshots: Sequence[NamedFile]) -> None:
        self._segments = segments
        self._snapshots = snapshots
        self._known: tuple[int, Transactions] | None = None

    def at(self, base_offset: int) -> Transactions:
        """Return the transactions that are open where a segment begins; the caller may update them."""
        if self._known is None or self._known[0] != base_offset:
            self._known = base_offset, transactions_before(base_offset, self._segments, self._snapshots)
        known = self._known[1]
        return Transactions(open_offsets=dict(known.open_offsets), end_offset=known.end_offset)

    def carry_on(self, next_base_offset: int, transactions: Transactions) -> None:
        """Store the transactions that are open at the end of a segment, after all of its entries."""
        self._known = next_base_offset, transactions


def _from_snapshot(offset: int, snapshots: Sequence[NamedFile]) -> Transactions:
    found = newest_readable_snapshot(file.path for file in snapshots if file.base_offset <= offset)
    return Transactions() if found is None else open_in(found)


def open_in(snapshot: ProducerSnapshot) -> Transactions:
    """Return the transactions that a snapshot lists as open."""
    first_offsets = {
        producer.producer_id: producer.current_txn_first_offset
        for producer in snapshot.producers
        if producer.current_txn_first_offset >= 0
    }
    return Transactions(open_offsets=first_offsets, end_offset=snapshot.offset)


# -- the scans of a partition's segments -------------------------------------------------------------------------------


MAX_REMEMBERED: Final = 64 * 2**20
"""Maximum bytes of cached side files, enough for about 12 GB of logs. Beyond it they are computed again."""
SETTLED_NS: Final = 2 * 10**9
"""Age of a log from which on every change gives it another time, on any file system."""


@dataclass(slots=True)
class _Found:
    """What was found in a segment.

    Attributes:
        key: all that it depends on.
        scan: which bytes stay.
        broker_scans: by the number of bytes.
        side_files: by the number of bytes.
        after: the transactions that are open after the segment; None if they are not known.
    """

    key: tuple[object, ...]
    scan: SegmentScan | None = None
    broker_scans: dict[int, BrokerScan] = field(default_factory=dict)
    side_files: dict[int, SegmentSideFiles] = field(default_factory=dict)
    after: Transactions | None = None


def _state_of(path: str) -> object:
    """Return what changes with a log; of one that was written lately, whose changes may not show, a unique object."""
    with suppress(OSError):
        found = os.stat(path)  # noqa: PTH116 - a string
        if time.time_ns() - found.st_mtime_ns > SETTLED_NS:
            return path, found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
    return object()


class _KeptEntries:
    """Passes on the entries that an earlier scan in the same walk has kept."""

    def __init__(self, scanner: SegmentScanner | BrokerScanner, builder: SideFilesBuilder) -> None:
        self._scanner = scanner
        self._builder = builder

    def take(self, entry: WalkedEntry) -> bool:
        is_kept = self._scanner.position == entry.end
        if is_kept:
            self._builder.take(entry)
        return is_kept

    def end(self, found: Tail | FormatError) -> None:
        """Do nothing: no kept entry follows."""


class LogScans:
    """Scans segments on demand, and caches the results.

    Args:
        segments: of the partition, in order.
        snapshots: of the partition, ascending.
        settings: of the indexes.
        kernels: the fast path; results are the same without it.
        imitated: the transactions that a broker knows, to imitate it; then `broker_scan` may be called, `scan` may not.
        is_compared: whether both `scan` and `broker_scan` will be called.
        earlier: of an earlier plan for the same directory and options: what it found in a log that is still the same is
            not read again.

    Attributes:
        found: in each segment that was scanned, by base offset.
        bytes_left: bytes of side files that may still be cached.
    """

    def __init__(  # noqa: PLR0913 - all that a scan depends on
        self,
        segments: Sequence[LogSegment],
        snapshots: Sequence[NamedFile],
        settings: IndexSettings,
        kernels: RecoveryKernels | None = None,
        *,
        imitated: BrokerTransactions | None = None,
        is_compared: bool = False,
        earlier: LogScans | None = None,
    ) -> None:
        self._settings = settings
        self._kernels = kernels
        self._is_like_broker = imitated is not None
        self._is_compared = is_compared
        self._open_transactions = imitated or OpenTransactions(segments, snapshots)
        self.found: dict[int, _Found] = {}
        self._earlier = {} if earlier is None else earlier.found
        self.bytes_left: int = MAX_REMEMBERED if earlier is None else earlier.bytes_left

    def _of(self, segment: LogSegment) -> _Found:
        """Return what is known of a segment."""
        base_offset = segment.base_offset
        if base_offset not in self.found:
            before, known = self._open_transactions.at(base_offset), self._earlier.get(base_offset)
            key = _state_of(segment.path), self._settings, before.open_offsets, before.end_offset
            if known is None or known.key != key:
                known = _Found(key)
            elif known.after is not None:
                self._open_transactions.carry_on(segment.allowed.last + 1, known.after)
            self.found[base_offset] = known
        return self.found[base_offset]

    def scan(self, segment: LogSegment) -> SegmentScan:
        """Return which bytes of a segment stay, as `scan_segment` does."""
        known = self._of(segment)
        if known.scan is None:
            if self._kernels is None:
                self._walk(segment, segment.source.size, is_scanned=True, is_imitated=self._is_compared)
            else:
                known.scan = self._scan_by_kernels(segment, self._kernels)
        assert known.scan is not None
        return known.scan

    def has_overflow(self, segment: LogSegment) -> bool:
        """Return whether an entry of a kept segment ends too far above its base offset (SEG-LOG-009)."""
        return self.scan(segment).next_offset - 1 - segment.base_offset > INT32_MAX

    def broker_scan(self, segment: LogSegment, size: int) -> BrokerScan:
        """Scan the first bytes of a segment as a broker does; the result is without index entries."""
        known = self._of(segment).broker_scans
        if size not in known and not self._imitate_by_kernels(segment, size):
            self._walk(segment, size, is_scanned=False, is_imitated=True)
        return known[size]

    def side_files(self, segment: LogSegment, end: int) -> SegmentSideFiles:
        """Return the side files for the first bytes of a segment, as `side_files_of` does."""
        base, known = segment.base_offset, self._of(segment).side_files
        if end in known:
            return known[end]
        after = self._open_transactions.at(base)
        found = side_files_of(
            segment.source, base, self._settings, transactions=after, end=end, path=segment.path, kernels=self._kernels
        )
        self._remember_side_files(segment, end, found, after)
        return found

    def _walk(self, segment: LogSegment, size: int, *, is_scanned: bool, is_imitated: bool) -> None:
        """Walk the first bytes of a segment for a scan, for a broker's scan or for both, and for its side files."""
        base_offset, path = segment.base_offset, segment.path
        source = segment.source if size == segment.source.size else first_bytes(segment.source, size)
        scanner = SegmentScanner(source, base_offset, path)
        broker = BrokerScanner(source, base_offset, self._settings, self._open_transactions.at(base_offset))
        transactions = self._open_transactions.at(base_offset)
        builder = SideFilesBuilder(base_offset, self._settings, transactions)
        leader = broker if self._is_like_broker else scanner
        consumers: list[EntryConsumer] = [scanner] if is_scanned else []
        consumers += [broker] if is_imitated else []
        consumers += [_KeptEntries(leader, builder)] if leader in consumers else []
        walk_entries(source, path, consumers)
        if is_scanned:
            self._of(segment).scan = scanner.result()
        if is_imitated:
            self._remember_broker(segment, size, broker.result())
        if leader in consumers:
            self._remember_side_files(segment, leader.position, builder.result(), transactions)

    def _remember_broker(self, segment: LogSegment, size: int, found: BrokerScan) -> None:
        """Cache a broker's scan without its index entries, which a plan does not need."""
        self._of(segment).broker_scans[size] = replace(found, offset_entries=(), time_entries=(), aborted=())

    def _remember_side_files(self, segment: LogSegment, end: int, found: SegmentSideFiles, after: Transactions) -> None:
        """Cache side files, and carry on with the transactions that are open after them."""
        known, size = self._of(segment), len(found.offset_index) + len(found.time_index) + len(found.transaction_index)
        if size <= self.bytes_left:
            known.side_files[end], known.after = found, after
            self.bytes_left -= size
        self._open_transactions.carry_on(segment.allowed.last + 1, after)

    def _scan_by_kernels(self, segment: LogSegment, kernels: RecoveryKernels) -> SegmentScan:
        """Scan a segment; if compiled code finds every entry sound, also cache its side files and broker's scan."""
        base_offset, source = segment.base_offset, segment.source
        indexed = self._sound_index(segment, kernels)
        if indexed is None:
            return scan_segment(source, base_offset, segment.path, kernels=kernels)
        if self._is_compared:
            self._imitate(segment, indexed)
        self._remember_indexed(segment, indexed)
        return SegmentScan(base_offset, indexed.last_offset + 1, None)

    def _imitate_by_kernels(self, segment: LogSegment, size: int) -> bool:
        """Imitate a broker's scan by compiled code, and cache the side files; return whether that was possible."""
        if self._kernels is None or size < segment.source.size or self._of(segment).scan is not None:
            return False  # after a scan of the whole segment: that scan has already tried this
        indexed = self._sound_index(segment, self._kernels)
        if indexed is None or not self._imitate(segment, indexed):
            return False
        self._remember_indexed(segment, indexed)
        return True

    def _sound_index(self, segment: LogSegment, kernels: RecoveryKernels) -> IndexedLog | None:
        interval, is_first = self._settings.interval_bytes, self._settings.stores_first_offset
        return kernels.indexed(
            segment.source, segment.base_offset, interval, stores_first_offset=is_first, is_sound=True
        )

    def _imitate(self, segment: LogSegment, indexed: IndexedLog) -> bool:
        """Cache a broker's scan of a sound segment; return whether the result of compiled code is enough for that."""
        size, base_offset = segment.source.size, segment.base_offset
        found = broker_scan_from(indexed, size, self._open_transactions.at(base_offset))
        if found is not None:
            self._remember_broker(segment, size, found)
        return found is not None

    def _remember_indexed(self, segment: LogSegment, indexed: IndexedLog) -> None:
        """Cache the side files of a whole segment."""
        transactions = self._open_transactions.at(segment.base_offset)
        self._remember_side_files(segment, indexed.end, side_files_from(indexed, transactions), transactions)


# -- the transactions that a broker knows where it begins to scan a segment (chapter 71, "What brokers do") ------------


READS_PRODUCERS: Final = "brokers do not start: they read the batches here for the state of producers"


class BrokerTransactions(OpenTransactions):
    """The transactions that are open where segments begin, as a broker finds them.

    Args:
        segments: of the partition, in order.
        snapshots: of the partition, ascending.
        log_start_offset: as checkpointed; 0 without a checkpoint.
    """

    def __init__(self, segments: Sequence[LogSegment], snapshots: Sequence[NamedFile], log_start_offset: int) -> None:
        super().__init__(segments, snapshots)
        self._log_start_offset = log_start_offset
        self._states: dict[int, Transactions] = {}
        self._files = {file.base_offset: file.path for file in snapshots}

    def at(self, base_offset: int) -> Transactions:
        """Return the transactions that are open where a segment begins; the caller may update them.

        Raises:
            BrokerStopError: a broker does not start.
        """
        if base_offset not in self._states:
            self._states[base_offset] = self._rebuilt(base_offset)
        return _copied(self._states[base_offset])

    def carry_on(self, next_base_offset: int, transactions: Transactions) -> None:
        """Store the state at the end of a segment: a broker takes a snapshot there, unless the log starts later."""
        if next_base_offset > self._log_start_offset:
            self._states[next_base_offset] = transactions

    def read_to_end(self, log_end_offset: int) -> None:
        """Read the batches after the newest snapshot, if there is one, as a broker does after a clean shutdown.

        Raises:
            BrokerStopError: a broker does not start.
        """
        bases = {segment.base_offset for segment in self._segments}
        kept = {file.base_offset for file in without_strays(self._snapshots, bases)}
        self._files = {offset: path for offset, path in self._files.items() if offset in kept}
        if self._files or self._states:
            self._log_start_offset = max(self._log_start_offset, min(bases))
            self._rebuilt(log_end_offset)

    def _rebuilt(self, offset: int) -> Transactions:
        """Return the transactions open at an offset; first drop the snapshots that a broker removes."""
        usable = range(self._log_start_offset + 1, offset + 1)
        self._files = {at: path for at, path in self._files.items() if at in usable}
        self._states = {at: state for at, state in self._states.items() if at in usable}
        transactions, start = self._loaded()
        for segment in self._segments:
            if segment.base_offset < offset and start < offset and segment.allowed.last >= start:
                _apply_batches(segment, start, transactions)
        transactions.aborted.clear()
        return transactions

    def _loaded(self) -> tuple[Transactions, int]:
        """Return the newest usable state, and the offset from which on to read batches."""
        known = max(self._states, default=self._log_start_offset)
        newer = (path for offset, path in sorted(self._files.items()) if offset not in self._states and offset > known)
        found = newest_readable_snapshot(newer)
        if found is not None:
            return open_in(found), found.offset
        return (_copied(self._states[known]) if known in self._states else Transactions()), known


def _copied(transactions: Transactions) -> Transactions:
    return Transactions(open_offsets=dict(transactions.open_offsets), end_offset=transactions.end_offset)


def _apply_batches(segment: LogSegment, start: int, transactions: Transactions) -> None:
    """Apply the batches of a segment, beginning with the first that ends at an offset or above.

    Raises:
        BrokerStopError: a broker does not start.
    """
    start = max(start, segment.base_offset)
    slots = () if segment.offset_index is None else segment.offset_index.slots()
    position = max(searched(slots, start, segment.base_offset).position, 0)
    is_found = False
    for passed in entries_passed(segment, position, READS_PRODUCERS):
        is_found = is_found or passed.next_offset > start
        if is_found and passed.producer_id >= 0:
            _apply_batch(segment, passed.position, transactions)


def _apply_batch(segment: LogSegment, position: int, transactions: Transactions) -> None:
    try:
        frame = recoverable_frame_at(segment.source, position, segment.path)
        if isinstance(frame, Frame) and isinstance(frame.header, RecordBatchHeader):
            apply_producer(transactions, WalkedEntry(frame, segment.path), frame.header)
    except UnreadableError:
        raise
    except EndOfScanError as stop:
        where = Location(segment.path, position)
        raise BrokerStopError(Remark(where, stop.requirements, f"{READS_PRODUCERS}: {stop.reason}")) from None
    except FormatError:
        return  # too small for its fields: a broker reads on in the next entry
