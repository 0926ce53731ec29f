"""What is committed (chapter 60)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seglog_algorithms.control_records import marker_of
from seglog_algorithms.damage import Damage
from seglog_algorithms.entries import check_crc
from seglog_algorithms.gaps import is_lost
from seglog_algorithms.logs import in_order
from seglog_algorithms.transaction_index import AbortedTransaction, after_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_algorithms.entries import Entry
    from seglog_algorithms.logs import Log, Segment


class Transactions(NamedTuple):
    """The transactions of a log.

    Attributes:
        aborted: in the order of their markers.
        last_stable_offset: where `read_committed` ends.
        damage: what ended reading the log early.
    """

    aborted: list[AbortedTransaction]
    last_stable_offset: int
    damage: Damage | None


def transactions_of(log: Log) -> Transactions:
    """Return the transactions of a log, from its headers and markers alone (SEG-LKP-016)."""
    aborted: list[AbortedTransaction] = []
    open_offsets: Mapping[int, int] = {}
    end = log.start_offset
    for before, segment in zip([None, *log.segments], log.segments, strict=False):
        try:
            if before is not None and open_offsets and segment.base_offset > log.start_offset:
                check_decided(log, before, range(end, segment.base_offset))
            for entry in in_order(segment):
                check_crc(entry)
                open_offsets, ended = after_entry(open_offsets, entry, marker_of(entry, log.decompress))
                aborted += [] if ended is None else [ended]
                end = entry.last_offset + 1
        except Damage as damage:
            if segment.end > log.start_offset:
                return Transactions(aborted, last_stable_offset(open_offsets, end, log.start_offset), damage)
    return Transactions(aborted, last_stable_offset(open_offsets, end, log.start_offset), None)


def check_decided(log: Log, before: Segment, missing: range) -> None:
    """Refuse to go on where transactions that are open may have ended among offsets that are lost."""
    if is_lost(log, before, missing):
        raise Damage("SEG-LKP-012", text=f"offsets {missing.start} to {missing.stop - 1} are lost")


def last_stable_offset(open_offsets: Mapping[int, int], end: int, start: int) -> int:
    """Return the first offset of the first open transaction, else the log end offset (SEG-LKP-012)."""
    return max(min(open_offsets.values(), default=end), start)


def is_aborted(aborted: Iterable[AbortedTransaction], entry: Entry) -> bool:
    """Return whether an entry belongs to an aborted transaction (SEG-LKP-011)."""
    if not entry.is_transactional or entry.is_control:
        return False
    ends = (each for each in aborted if each.producer_id == entry.producer_id and each.last_offset > entry.last_offset)
    next_end = next(ends, None)
    return next_end is not None and next_end.first_offset <= entry.last_offset
