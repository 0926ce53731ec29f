"""The content of the files that recovery writes beside a `.log` file: its indexes, and leader epochs of its batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.log.index_file import (
    IndexBuilder,
    encode_offset_index,
    encode_time_index,
)
from seglog_format.model import NO_PRODUCER_ID, RecordBatchHeader
from seglog_format.record_model import EpochStart
from seglog_format.recovery.entry_walk import WalkedEntry, recoverable_frames
from seglog_format.recovery.index_settings import IndexSettings, is_indexable
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY
from seglog_format.storage.byte_source import FirstBytes, source_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.engine import IndexedLog, RecoveryKernels
    from seglog_format.log.transactions import Transactions
    from seglog_format.model import AbortedTxn, BatchHeader
    from seglog_format.storage.byte_source import Readable


@dataclass(frozen=True, slots=True)
class SegmentSideFiles:
    """The side files of a log.

    Attributes:
        offset_index: the bytes of the offset index.
        time_index: the bytes of the time index.
        transaction_index: the bytes of the transaction index; empty if no aborted transaction ends in the log.
        epoch_starts: where each leader epoch begins that is greater than all earlier ones.
    """

    offset_index: bytes
    time_index: bytes
    transaction_index: bytes
    epoch_starts: tuple[EpochStart, ...]


def side_files_of(  # noqa: PLR0913 - all that the side files depend on
    data: Readable,
    base_offset: int,
    settings: IndexSettings,
    *,
    transactions: Transactions,
    end: int | None = None,
    path: str = "",
    kernels: RecoveryKernels | None = None,
) -> SegmentSideFiles:
    """Compute the side files of a segment from its log (SEG-RCV-025).

    Args:
        data: the bytes of the `.log` file.
        base_offset: of the segment.
        settings: of the indexes.
        transactions: those open where the segment begins; they are updated.
        end: end of the log; by default the end of the data, in any case before the first bytes that are no entry.
        path: file name for locations.
        kernels: the fast path; the result is the same without it.
    """
    source = source_of(data, path)
    if kernels is not None:
        part = source if end is None else FirstBytes(source, end)
        interval, is_first = settings.interval_bytes, settings.stores_first_offset
        found = kernels.indexed(part, base_offset, interval, stores_first_offset=is_first)
        if found is not None and not any(recoverable_frames(source, end, path, start=found.end)):
            return side_files_from(found, transactions)
    builder = SideFilesBuilder(base_offset, settings, transactions)
    for frame in recoverable_frames(source, end, path):
        builder.take(WalkedEntry(frame, path))
    return builder.result()


class SideFilesBuilder:
    """Builds the side files of a log during a walk over its entries.

    Args:
        base_offset: of the segment.
        settings: of the indexes.
        transactions: those open where the segment begins; they are updated.
    """

    def __init__(self, base_offset: int, settings: IndexSettings, transactions: Transactions) -> None:
        self._base_offset = base_offset
        self._needs_first_offset = settings.stores_first_offset
        self._indexes = IndexBuilder(settings.interval_bytes, settings.indexed_offset)
        self._transactions = transactions
        self._known_aborts = len(transactions.aborted)
        self._is_in_range = True
        self._epochs: list[EpochStart] = []

    def take(self, entry: WalkedEntry) -> None:
        """Add the next entry."""
        row = entry.row(has_first_offset=self._needs_first_offset)
        is_indexed = is_indexable(row, self._base_offset, stores_first_offset=self._needs_first_offset)
        self._is_in_range = self._is_in_range and is_indexed
        if self._is_in_range:
            self._indexes.add(row)
        _add_epoch(self._epochs, entry.header)
        if entry.header.producer_id > NO_PRODUCER_ID:
            self._transactions.add(entry.header, entry.readable_marker())

    def result(self) -> SegmentSideFiles:
        """Return the side files for the entries added so far."""
        built = self._indexes.finish()
        return SegmentSideFiles(
            encode_offset_index(built.offset_entries, self._base_offset),
            encode_time_index(built.time_entries, self._base_offset),
            encode_transaction_index(self._transactions.aborted[self._known_aborts :]),
            tuple(self._epochs),
        )


def side_files_from(found: IndexedLog, transactions: Transactions) -> SegmentSideFiles:
    """Return the side files of a log that compiled code covers to its end; transactions are updated."""
    known_aborts = len(transactions.aborted)
    transactions.replay(found.transaction_events())
    return SegmentSideFiles(
        found.offset_index,
        found.time_index,
        encode_transaction_index(transactions.aborted[known_aborts:]),
        tuple(EpochStart(*start) for start in found.epoch_starts),
    )


def _add_epoch(epochs: list[EpochStart], header: BatchHeader) -> None:
    if not isinstance(header, RecordBatchHeader) or header.base_offset < 0:
        return
    if header.partition_leader_epoch > (epochs[-1].epoch if epochs else -1):
        epochs.append(EpochStart(header.partition_leader_epoch, header.base_offset))


def encode_transaction_index(entries: Iterable[AbortedTxn]) -> bytes:
    """Encode a transaction index (SEG-TXN-009)."""
    return b"".join(
        TRANSACTION_INDEX_ENTRY.pack(
            entry.version, entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
        )
        for entry in entries
    )
