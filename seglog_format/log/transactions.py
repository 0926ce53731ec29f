"""Transactions derived from the log itself: the aborted ones, and those still open (chapter 60).

The transaction index also lists aborted transactions, but it may be missing, outdated or wrong. So headers and markers
decide: a transactional batch begins or continues its producer's transaction, and an end marker of that producer ends
it, whatever their epochs (SEG-LKP-016). If compaction left only the marker, the transaction is empty and not listed.

For remote segments, see `scan_transactions`.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from seglog_format.codec.control_record import end_marker_of
from seglog_format.codec.decode import verify_checksum
from seglog_format.errors import FormatError, Location
from seglog_format.log.index_file import TransactionIndex
from seglog_format.model import END_MARKER_TYPES, NO_PRODUCER_ID, AbortedTxn, BatchHeader, ControlRecordType, Frame
from seglog_format.names import FileKind, segment_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from seglog_format.log.gaps import Gap
    from seglog_format.log.segment import LogSegment

    LostBefore = Callable[[int, int], Gap | None]
    """Finds what is lost before a segment, by its base offset and the offset that was reached before it."""

VERSION: Final = 0
"""Version of a transaction index entry."""


@dataclass(slots=True)
class Transactions:
    """The transactions of a log, as far as it was read.

    Attributes:
        aborted: in the order of their markers, as a transaction index would list them all.
        open_offsets: first offset of each transaction without an end marker, by producer id.
        end_offset: the offset up to which entries were applied.
        damage: the error that ended reading the log early; None if it was read to its end.
    """

    aborted: list[AbortedTxn] = field(default_factory=list)
    open_offsets: dict[int, int] = field(default_factory=dict)
    end_offset: int = 0
    damage: FormatError | None = None
    _markers: dict[int, list[AbortedTxn]] = field(default_factory=dict)
    _listed: dict[tuple[int, int], AbortedTxn] = field(default_factory=dict)

    @property
    def last_stable_offset(self) -> int:
        """The first offset of any open transaction (SEG-LKP-012); `end_offset` if none is open."""
        return min(self.open_offsets.values(), default=self.end_offset)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Return whether a batch belongs to an aborted transaction (SEG-LKP-011)."""
        return self.aborted_with(header) is not None

    def aborted_with(self, header: BatchHeader) -> AbortedTxn | None:
        """Return the aborted transaction that a batch belongs to; None if it belongs to none."""
        if not header.is_transactional or header.is_control:
            return None
        of_producer = self._markers.get(header.producer_id, [])
        index = bisect_right(of_producer, header.last_offset, key=attrgetter("last_offset"))
        is_inside = index < len(of_producer) and of_producer[index].first_offset <= header.last_offset
        return of_producer[index] if is_inside else None

    def add(self, header: BatchHeader, marker: ControlRecordType | None) -> None:
        """Apply the next entry; ``marker`` is the kind of its end marker, if it has one."""
        self.end_offset = header.next_offset
        if marker is not None:
            assert header.base_offset is not None
            self._close(header.producer_id, header.base_offset, is_abort=marker is ControlRecordType.ABORT)
        elif header.is_transactional and not header.is_control and header.base_offset is not None:
            self._open(header.producer_id, header.base_offset)

    def replay(self, events: Iterable[tuple[int, int, int, int]]) -> None:
        """Apply many entries: those that begin, continue or end a transaction.

        Args:
            events: for each entry: producer id, type of the end marker (any other number for data), base offset and
                last offset.
        """
        for producer_id, kind, base_offset, last_offset in events:
            self.end_offset = last_offset + 1
            if kind in END_MARKER_TYPES:
                self._close(producer_id, base_offset, is_abort=kind == ControlRecordType.ABORT)
            else:
                self._open(producer_id, base_offset)

    def _open(self, producer_id: int, base_offset: int) -> None:
        """Begin or continue a producer's transaction; a batch without a producer is in none, as for brokers."""
        if producer_id > NO_PRODUCER_ID:
            self.open_offsets.setdefault(producer_id, base_offset)

    def _close(self, producer_id: int, marker: int, *, is_abort: bool) -> None:
        """End a producer's transaction, and list it if it was aborted.

        Args:
            producer_id: of the producer.
            marker: offset of the end marker.
            is_abort: whether it is an ABORT marker.
        """
        first = self.open_offsets.pop(producer_id, None)
        listed = self._listed.get((producer_id, marker))
        if listed is not None and is_abort:
            first = listed.first_offset if first is None else min(first, listed.first_offset)
        if first is None or not is_abort:
            return
        stable = min(self.open_offsets.values(), default=marker + 1)
        self.add_aborted(AbortedTxn(VERSION, producer_id, first, marker, stable))

    def add_aborted(self, transaction: AbortedTxn) -> None:
        """Add an aborted transaction after those that ended before it."""
        self.aborted.append(transaction)
        self._markers.setdefault(transaction.producer_id, []).append(transaction)

    def expect(self, listed: Iterable[AbortedTxn]) -> None:
        """Store transactions that began before `end_offset` and end at it or above, as indexes list them.

        Args:
            listed: entries of the transaction indexes of the segments after `end_offset`.
        """
        began = (each for each in listed if each.first_offset < self.end_offset <= each.last_offset)
        self._listed |= {(each.producer_id, each.last_offset): each for each in began}


def read_transactions(
    segments: Sequence[LogSegment], log_start_offset: int = 0, lost_before: LostBefore | None = None
) -> Transactions:
    """Return the transactions of segments from their logs alone; remote logs are also read whole."""
    found = Transactions(end_offset=log_start_offset)
    read_on(found, segments, log_start_offset, lost_before=lost_before)
    return found


def read_on(
    found: Transactions,
    segments: Sequence[LogSegment],
    log_start_offset: int,
    *,
    needs_index: bool = False,
    lost_before: LostBefore | None = None,
) -> bool:
    """Apply the entries of segments, up to the first damage.

    Args:
        found: the transactions of the log before the segments; entries are applied to it.
        segments: in order.
        log_start_offset: damage in segments that end below it is ignored.
        needs_index: stop at an ABORT marker in a segment whose transaction index is lost.
        lost_before: finds what is lost before a segment, where a transaction that is open may have ended; None to take
            every such transaction for one that goes on.

    Returns:
        False if reading stopped at such a marker.
    """
    for segment in segments:
        try:
            if lost_before is not None and found.open_offsets:
                gap = lost_before(segment.base_offset, found.end_offset)
                if gap is not None:
                    raise gap.undecided
            segment.source.expect(0, None)
            for frame in segment.ordered_frames():
                marker = end_marker(segment, frame)
                if needs_index and lacks_index(segment, marker):
                    return False
                found.add(frame.header, marker)
                segment.release_before(frame.end)
            segment.forget()
        except FormatError as error:
            if segment.allowed.last >= log_start_offset:
                found.damage = error.with_traceback(None)
                break
    return True


def lacks_index(segment: LogSegment, marker: ControlRecordType | None) -> bool:
    """Return whether a marker ends an aborted transaction in a segment whose transaction index is lost."""
    return marker is ControlRecordType.ABORT and segment.transaction_index is None


def end_marker(segment: LogSegment, frame: Frame) -> ControlRecordType | None:
    """Verify an entry, and return the kind of its end marker; None if it has none.

    Raises:
        FormatError: the entry is damaged.
    """
    at = Location(segment.path, frame.position)
    verify_checksum(frame, at)
    marker = end_marker_of(frame, at)
    return None if marker is None else marker.kind


# -- the transactions of a whole log, part of which may be in a remote store (chapters 46 and 60) ----------------------


def scan_transactions(
    segments: Sequence[LogSegment], log_start_offset: int = 0, lost_before: LostBefore | None = None
) -> Transactions:
    """Read the headers and end markers of a log from its first entry to its end, or to the first damage.

    Every checksum is verified: a damaged header would change which transactions are open. Of remote segments only the
    transaction indexes are read, and of the last one before a gap the producer snapshot. If one of these files is lost,
    the log is read. Reading also ends at lost offsets in which a transaction may have ended.

    Args:
        segments: in order.
        log_start_offset: records below are hidden, and so is damage in segments that end below it.
        lost_before: as for `read_on`.

    Raises:
        UsageError: a remote store does not answer, or a decryption key is missing.
    """
    local = local_segments(segments)
    if len(local) < len(segments):
        found = indexed_transactions(segments, log_start_offset)
        if found.damage is not None or read_on(
            found, local, log_start_offset, needs_index=True, lost_before=lost_before
        ):
            return found
    return read_transactions(segments, log_start_offset, lost_before)


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
    from seglog_format.log.index_file import ProducerSnapshot  # noqa: PLC0415 - only for remote segments

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
