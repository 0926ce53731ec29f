"""Which transactions are open where a segment begins: what its transaction index depends on (chapters 42 and 71)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from seglog_format.codec.end_marker import end_marker_of
from seglog_format.errors import FormatError, Location, SeglogError
from seglog_format.log.producer_snapshot import ProducerSnapshot
from seglog_format.log.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seglog_format.log.listing import NamedFile
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import ControlRecordType, Frame


def transactions_before(offset: int, segments: Iterable[LogSegment], snapshots: Sequence[NamedFile]) -> Transactions:
    """The transactions that are open at an offset, from the newest readable snapshot and the entries after it.

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
            with suppress(FormatError):
                for frame in segment.frames():
                    if frame.header.last_offset >= start:
                        transactions.add(frame.header, end_marker_in(frame, segment.path))
    transactions.aborted.clear()
    return transactions


def carried_on(at: Callable[[int], Transactions]) -> Callable[[int, int], Transactions]:
    """Where segments follow each other, the transactions at the end of one are those at the start of the next.

    Args:
        at: works out the transactions that are open at an offset.

    Returns:
        A function of the base offset of a segment and that of the next; it takes for granted that the caller adds the
        entries of the segment to what it answers.
    """
    last: list[tuple[int, Transactions]] = []

    def of(base_offset: int, next_base_offset: int) -> Transactions:
        transactions = last[0][1] if last and last[0][0] == base_offset else at(base_offset)
        last[:] = [(next_base_offset, transactions)]
        return transactions

    return of


def _from_snapshot(offset: int, snapshots: Sequence[NamedFile]) -> Transactions:
    for file in reversed(snapshots):
        if file.base_offset <= offset:
            with suppress(SeglogError):
                found = ProducerSnapshot.open(file.path)
                first_offsets = {
                    producer.producer_id: producer.current_txn_first_offset
                    for producer in found.producers
                    if producer.current_txn_first_offset >= 0
                }
                return Transactions(open_offsets=first_offsets, end_offset=file.base_offset)
    return Transactions()


def end_marker_in(frame: Frame, path: str) -> ControlRecordType | None:
    """Whether the end marker in an entry says `ABORT` or `COMMIT`; None if it holds none that can be read."""
    with suppress(FormatError):
        marker = end_marker_of(frame, Location(path, frame.position))
        return None if marker is None else marker.kind
    return None
