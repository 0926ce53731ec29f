"""The scans of a partition's segments: each segment is walked once for everything that a plan needs.

A plan needs three things that follow from the entries of a segment: which bytes stay, what a broker would keep, and the
content of the side files. One walk computes those of them that will be needed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from seglog_format.codec.decoders import first_bytes
from seglog_format.model import INT32_MAX
from seglog_format.recovery.broker_scan import BrokerScanner
from seglog_format.recovery.entry_walk import walk_entries
from seglog_format.recovery.indexed_broker_scan import broker_scan_from
from seglog_format.recovery.open_transactions import OpenTransactions
from seglog_format.recovery.segment_files import SideFilesBuilder, side_files_from, side_files_of
from seglog_format.recovery.segment_scan import SegmentScan, SegmentScanner, scan_segment

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.engine.protocols import IndexedLog, RecoveryKernels
    from seglog_format.errors import FormatError
    from seglog_format.log.listing import NamedFile
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import Tail
    from seglog_format.recovery.broker_scan import BrokerScan
    from seglog_format.recovery.broker_transactions import BrokerTransactions
    from seglog_format.recovery.entry_walk import EntryConsumer, WalkedEntry
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.recovery.segment_files import SegmentSideFiles

MAX_REMEMBERED: Final = 64 * 2**20
"""Maximum bytes of cached side files, enough for about 12 GB of logs. Beyond it they are computed again."""


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
    """

    def __init__(
        self,
        segments: Sequence[LogSegment],
        snapshots: Sequence[NamedFile],
        settings: IndexSettings,
        kernels: RecoveryKernels | None = None,
        *,
        imitated: BrokerTransactions | None = None,
        is_compared: bool = False,
    ) -> None:
        self._settings = settings
        self._kernels = kernels
        self._is_like_broker = imitated is not None
        self._is_compared = is_compared
        self._open_transactions = imitated or OpenTransactions(segments, snapshots)
        self._scans: dict[int, SegmentScan] = {}
        self._broker_scans: dict[tuple[int, int], BrokerScan] = {}
        self._side_files: dict[tuple[int, int], SegmentSideFiles] = {}
        self._bytes_left = MAX_REMEMBERED

    def scan(self, segment: LogSegment) -> SegmentScan:
        """Return which bytes of a segment stay, as `scan_segment` does."""
        base_offset = segment.base_offset
        if base_offset not in self._scans:
            if self._kernels is None:
                self._walk(segment, segment.source.size, is_scanned=True, is_imitated=self._is_compared)
            else:
                self._scans[base_offset] = self._scan_by_kernels(segment, self._kernels)
        return self._scans[base_offset]

    def has_overflow(self, segment: LogSegment) -> bool:
        """Return whether an entry of a kept segment ends too far above its base offset (SEG-LOG-009)."""
        return self.scan(segment).next_offset - 1 - segment.base_offset > INT32_MAX

    def broker_scan(self, segment: LogSegment, size: int) -> BrokerScan:
        """Scan the first bytes of a segment as a broker does; the result is without index entries."""
        key = segment.base_offset, size
        if key not in self._broker_scans and not self._imitate_by_kernels(segment, size):
            self._walk(segment, size, is_scanned=False, is_imitated=True)
        return self._broker_scans[key]

    def side_files(self, segment: LogSegment, end: int) -> SegmentSideFiles:
        """Return the side files for the first bytes of a segment, as `side_files_of` does."""
        base_offset = segment.base_offset
        known = self._side_files.pop((base_offset, end), None)
        if known is not None:
            return known
        transactions = self._open_transactions.at(base_offset)
        found = side_files_of(
            segment.source,
            base_offset,
            self._settings,
            transactions=transactions,
            end=end,
            path=segment.path,
            kernels=self._kernels,
        )
        self._open_transactions.carry_on(segment.allowed.last + 1, transactions)
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
            self._scans[base_offset] = scanner.result()
        if is_imitated:
            self._remember_broker(segment, size, broker.result())
        if leader in consumers:
            self._remember_side_files((base_offset, leader.position), builder.result())
            self._open_transactions.carry_on(segment.allowed.last + 1, transactions)

    def _remember_broker(self, segment: LogSegment, size: int, found: BrokerScan) -> None:
        """Cache a broker's scan without its index entries, which a plan does not need."""
        lean = replace(found, offset_entries=(), time_entries=(), aborted=())
        self._broker_scans[segment.base_offset, size] = lean

    def _remember_side_files(self, key: tuple[int, int], found: SegmentSideFiles) -> None:
        size = len(found.offset_index) + len(found.time_index) + len(found.transaction_index)
        if size <= self._bytes_left:
            self._side_files[key] = found
            self._bytes_left -= size

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
        if self._kernels is None or size < segment.source.size or segment.base_offset in self._scans:
            return False  # after a scan of the whole segment: that scan has already tried this
        indexed = self._sound_index(segment, self._kernels)
        if indexed is None or not self._imitate(segment, indexed):
            return False
        self._remember_indexed(segment, indexed)
        return True

    def _sound_index(self, segment: LogSegment, kernels: RecoveryKernels) -> IndexedLog | None:
        interval, is_first = self._settings.interval_bytes, self._settings.stores_first_offset
        return kernels.sound_index(segment.source, segment.base_offset, interval, stores_first_offset=is_first)

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
        self._remember_side_files((segment.base_offset, indexed.end), side_files_from(indexed, transactions))
        self._open_transactions.carry_on(segment.allowed.last + 1, transactions)
