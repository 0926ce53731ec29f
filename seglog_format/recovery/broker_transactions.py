"""The transactions that a broker knows where it begins to scan a segment (chapter 71, "What brokers do").

A broker loads the newest readable producer snapshot above the log start offset, and then reads the batches after it
without checking their checksums, even in segments that it does not scan. If that walk ends with an error, the broker
does not start.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError, Location, UnreadableError
from seglog_format.log.producer_snapshot import newest_readable_snapshot, without_strays
from seglog_format.log.transactions import Transactions
from seglog_format.model import Frame, RecordBatchHeader
from seglog_format.recovery.broker_end import BrokerStopError, entries_passed, searched
from seglog_format.recovery.broker_scan import EndOfScanError, apply_producer
from seglog_format.recovery.entry_walk import WalkedEntry, recoverable_frame_at
from seglog_format.recovery.open_transactions import OpenTransactions, open_in
from seglog_format.recovery.segment_scan import Remark

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.log.listing import NamedFile
    from seglog_format.log.segment import LogSegment

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
