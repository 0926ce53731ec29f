"""The transactions of a whole log, part of which may be in a remote store (chapters 46 and 60).

For remote segments the transaction indexes decide, as for a broker: to read their headers, whole logs would have to be
fetched. A broker copies a segment only after all transactions with a record in it have ended. But they may have ended
in a later segment, which can be lost. So at the end of the last remote segment, and before a gap, the producer snapshot
that is stored with a segment shows which transactions were open at its end. Without a snapshot, headers are read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.errors import FormatError
from seglog_format.log.transaction_index import TransactionIndex
from seglog_format.log.transactions import Transactions, read_on, read_transactions
from seglog_format.names import FileKind, segment_file_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seglog_format.log.segment import LogSegment
    from seglog_format.model import AbortedTxn


def scan_transactions(segments: Sequence[LogSegment], log_start_offset: int = 0) -> Transactions:
    """Read the headers and end markers of a log from its first entry to its end, or to the first damage.

    Every checksum is verified: a damaged header would change which transactions are open. Of remote segments only the
    transaction indexes are read, and of the last one before a gap the producer snapshot. If one of these files is lost,
    the log is read.

    Args:
        segments: in order.
        log_start_offset: records below are hidden, and so is damage in segments that end below it.

    Raises:
        UsageError: a remote store does not answer, or a decryption key is missing.
    """
    local = local_segments(segments)
    if len(local) < len(segments):
        found = indexed_transactions(segments, log_start_offset)
        if found.damage is not None or read_on(found, local, log_start_offset, needs_index=True):
            return found
    return read_transactions(segments, log_start_offset)


def indexed_transactions(segments: Sequence[LogSegment], log_start_offset: int = 0) -> Transactions:
    """Return the transactions of the remote segments that a log begins with, by their transaction indexes.

    Args:
        segments: of the log, in order.
        log_start_offset: segments that end below it are skipped.

    Returns:
        The transactions up to the first local segment. Those that are open there are included, as far as a snapshot or
        a header shows them, and so is what the indexes of local segments list about transactions that began before.

    Raises:
        UsageError: a remote store does not answer, or a decryption key is missing.
    """
    found = Transactions(end_offset=log_start_offset)
    local = local_segments(segments)
    for number, segment in enumerate(segments[: len(segments) - len(local)]):
        if segment.allowed.last < log_start_offset:
            continue
        _apply_segment(found, segment, log_start_offset)
        if found.damage is None and not _is_followed(segments, number):
            _add_open(found, _open_at_end(segments[: number + 1], log_start_offset))
        if found.damage is not None:
            return found
        found.end_offset = segment.next_offset if segment is segments[-1] else segment.allowed.last + 1
    if local:
        border = local[0]
        _add_open(found, Transactions(open_offsets=_open_at(border, border.base_offset) or {}))
        found.end_offset = border.base_offset
        found.expect(each for segment in local for each in _listed_in(segment))
    return found


def _apply_segment(found: Transactions, segment: LogSegment, log_start_offset: int) -> None:
    """Apply the index of a remote segment, or its log if a transaction from before a gap may end in it."""
    if found.open_offsets:
        _apply_log(found, segment, log_start_offset)
        return
    try:
        for each in _aborted_in(segment):
            found.add_aborted(each)
    except FormatError as error:
        found.damage = error.with_traceback(None)


def _apply_log(found: Transactions, segment: LogSegment, log_start_offset: int) -> None:
    """Apply the entries of a remote segment; if all transactions open before it end in it, indexes suffice again."""
    before = dict(found.open_offsets)
    found.end_offset = segment.base_offset
    found.expect(_listed_in(segment))
    read_on(found, (segment,), log_start_offset)
    if found.damage is None and before.items().isdisjoint(found.open_offsets.items()):
        found.open_offsets.clear()


def _is_followed(segments: Sequence[LogSegment], number: int) -> bool:
    """Return whether the next segment begins where a remote one ends."""
    following = segments[number + 1 : number + 2]
    return bool(following) and following[0].base_offset == _tiered_end(segments[number])


def _tiered_end(segment: LogSegment) -> int:
    """Return the offset after a remote segment, as recorded in the store or the metadata topic."""
    end = segment.storage.tiered_end(segment.paths.log)
    assert end is not None
    return end


def _add_open(found: Transactions, at_end: Transactions) -> None:
    """Add the transactions that are open at the end of a segment, and the damage that ended reading before it."""
    for producer_id, first_offset in at_end.open_offsets.items():
        found.open_offsets.setdefault(producer_id, first_offset)
    if at_end.damage is not None:
        found.damage, found.end_offset = at_end.damage, at_end.end_offset


def _open_at_end(segments: Sequence[LogSegment], log_start_offset: int) -> Transactions:
    """Return the transactions open at the end of remote segments, from the last snapshot and the headers after it."""
    known: Mapping[int, int] | None = None
    first = len(segments)
    while first and known is None:
        first -= 1
        known = _open_at(segments[first], _tiered_end(segments[first]))
    found = Transactions(open_offsets=dict(known or {}))
    read_on(found, segments[first + (known is not None) :], log_start_offset)
    return found


def _open_at(segment: LogSegment, offset: int) -> dict[int, int] | None:
    """Return the open transactions in the producer snapshot of an offset; None if there is no readable snapshot.

    Args:
        segment: whose storage and directory hold the snapshot.
        offset: in the name of the snapshot.
    """
    from seglog_format.log.producer_snapshot import ProducerSnapshot  # noqa: PLC0415 - only for remote segments

    path = segment.paths.log.with_name(segment_file_name(offset, FileKind.PRODUCER_SNAPSHOT))
    storage = segment.storage
    if path.name not in storage.entries(path.parent).files or not storage.status(path).size:
        return None
    try:
        snapshot = ProducerSnapshot.open(path, storage=storage)
    except FormatError:
        return None  # a broker ignores it (SEG-PSN-005)
    opened = ((each.producer_id, each.current_txn_first_offset) for each in snapshot.producers)
    return {producer_id: first for producer_id, first in opened if 0 <= first < offset}


def _aborted_in(segment: LogSegment) -> list[AbortedTxn]:
    """Return the aborted transactions that end in the part of a remote segment that counts.

    Raises:
        FormatError: the index is damaged, or the object that stores it.
    """
    path = segment.paths.transaction_index
    if path is None:
        return []
    found = TransactionIndex.open(path, segment.base_offset, storage=segment.storage)
    return [each for each in found.entries if each.last_offset <= segment.allowed.last]


def _listed_in(segment: LogSegment) -> tuple[AbortedTxn, ...]:
    return segment.transaction_index.entries if segment.transaction_index else ()


def local_segments(segments: Sequence[LogSegment]) -> Sequence[LogSegment]:
    """Return the segments after the last remote one."""
    count = next((number for number, each in enumerate(reversed(segments)) if each.is_tiered), len(segments))
    return segments[len(segments) - count :]
