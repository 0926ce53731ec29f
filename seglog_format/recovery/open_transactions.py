"""The transactions that are open where a segment begins; its transaction index depends on them (chapters 42 and 71)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.log.producer_snapshot import newest_readable_snapshot
from seglog_format.log.transactions import Transactions
from seglog_format.recovery.entry_walk import WalkedEntry, recoverable_frames

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_format.log.listing import NamedFile
    from seglog_format.log.producer_snapshot import ProducerSnapshot
    from seglog_format.log.segment import LogSegment


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
