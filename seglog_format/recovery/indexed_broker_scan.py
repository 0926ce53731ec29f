"""A broker's scan of a segment without any damage, by compiled code (chapter 71)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.model import OffsetPosition, TimestampOffset
from seglog_format.recovery.broker_scan import BrokerScan, Outcome
from seglog_format.recovery.segment_files import indexed_by
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY

if TYPE_CHECKING:
    from seglog_format.engine.protocols import IndexedLog, RecoveryKernels
    from seglog_format.log.transactions import Transactions
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.storage.byte_source import ByteSource


def broker_scan_from(indexed: IndexedLog, size: int, base_offset: int, transactions: Transactions) -> BrokerScan | None:
    """Return a broker's scan of a segment whose entries compiled code found sound; None if it has to be walked.

    Args:
        indexed: the facts for the indexes from compiled code.
        size: bytes of the log.
        base_offset: of the segment.
        transactions: those open where the segment begins; they are updated.
    """
    if indexed.end < size or indexed.has_wrappers or not _keeps_transactions_apart(indexed, transactions):
        return None
    known_aborts = len(transactions.aborted)
    transactions.replay(indexed.transaction_events())
    offsets, times = OFFSET_INDEX_ENTRY.iter_unpack, TIME_INDEX_ENTRY.iter_unpack
    return BrokerScan(
        Outcome.RECOVERED,
        size,
        indexed.last_offset + 1,
        indexed.last_offset + 1,
        tuple(OffsetPosition(base_offset + offset, position) for offset, position in offsets(indexed.offset_index)),
        tuple(TimestampOffset(time, base_offset + offset) for time, offset in times(indexed.time_index)),
        tuple(transactions.aborted[known_aborts:]),
    )


def sound_index(
    kernels: RecoveryKernels,
    source: ByteSource,
    base_offset: int,
    settings: IndexSettings,
    *,
    is_known_sound: bool = False,
) -> IndexedLog | None:
    """Return the facts for the indexes of a log from compiled code; None unless it finds every entry sound.

    Args:
        kernels: compiled code.
        source: bytes of the log.
        base_offset: of the segment.
        settings: of the indexes.
        is_known_sound: whether compiled code has found every entry sound before.
    """
    if not source.size:
        return None
    if not is_known_sound:
        end, _ = kernels.sound_entries(source, base_offset).after(0, base_offset - 1)
        if end < source.size:
            return None
    return indexed_by(kernels, source, base_offset, settings)


def _keeps_transactions_apart(indexed: IndexedLog, transactions: Transactions) -> bool:
    """Return whether no producer with an open transaction appends outside of it, on which brokers fail."""
    outside = indexed.producers_outside()
    inside = {event[0] for event in indexed.transaction_events()} if outside else set()
    return outside.isdisjoint(inside | transactions.open_offsets.keys())
