"""A broker's scan of an undamaged segment, from what compiled code found in it (chapter 71)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.recovery.broker_scan import BrokerScan, Outcome

if TYPE_CHECKING:
    from seglog_format.engine.protocols import IndexedLog
    from seglog_format.log.transactions import Transactions


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
