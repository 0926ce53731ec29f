"""Transaction index (chapter 42)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seglog_algorithms.control_records import ABORT, Marker, marker_of
from seglog_algorithms.damage import Damage, or_none
from seglog_algorithms.entries import NO_PRODUCER, Entry
from seglog_algorithms.offset_index import Slots
from seglog_format.schema.transaction_index import TransactionIndexEntry

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seglog_algorithms.records import Decompress


class AbortedTransaction(NamedTuple):
    """An entry of a transaction index."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def entries_of(index: bytes) -> list[AbortedTransaction]:
    """Return the entries of a transaction index."""
    found = []
    for number, entry in enumerate(Slots(TransactionIndexEntry, index)):  # SEG-TXN-001, SEG-TXN-009
        if entry.version != 0:  # SEG-TXN-002
            raise Damage("SEG-TXN-002", number * TransactionIndexEntry.sizeof(), f"version {entry.version}")
        found.append(
            AbortedTransaction(entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset)
        )
    return found


def as_bytes(entries: Iterable[AbortedTransaction]) -> bytes:
    """Return the bytes of a transaction index (SEG-TXN-009)."""
    return b"".join(TransactionIndexEntry.build({"version": 0, **entry._asdict()}) for entry in entries)


def aborted_in_range(indexes: Sequence[bytes], start: int, end: int) -> tuple[list[AbortedTransaction], bool]:
    """Return the aborted transactions of a range, and whether the indexes suffice to know all of them (SEG-TXN-007).

    Args:
        indexes: of the segment that contains the start, and of the segments after it.
        start: first offset of the range.
        end: offset after the range.
    """
    found = []
    for index in indexes:
        for entry in entries_of(index):
            if entry.last_offset >= start and entry.first_offset < end:
                found.append(entry)
            if entry.last_stable_offset >= end:
                return found, True
    return found, False


def after_entry(
    open_offsets: Mapping[int, int], entry: Entry, marker: Marker | None
) -> tuple[Mapping[int, int], AbortedTransaction | None]:
    """Return the transactions that are open after an entry of a log, and the one that it aborts (SEG-LKP-016).

    Args:
        open_offsets: first offsets of the transactions that are open before it, by producer id.
        entry: the entry.
        marker: the end marker in it.
    """
    id_, offset = entry.producer_id, entry.first_offset
    if marker is None or offset is None:
        if not entry.is_transactional or entry.is_control or offset is None:
            return open_offsets, None
        return {id_: offset, **open_offsets}, None  # an open transaction keeps its first offset
    others = {each: first for each, first in open_offsets.items() if each != id_}
    if marker.type != ABORT or id_ not in open_offsets:  # SEG-TXN-006
        return others, None
    stable = min(others.values(), default=offset + 1)  # SEG-TXN-008
    return others, AbortedTransaction(id_, open_offsets[id_], offset, stable)


def build(entries: Iterable[Entry], open_offsets: Mapping[int, int], decompress: Decompress) -> bytes:
    """Return the transaction index of a log (SEG-RCV-025); empty if no aborted transaction ends in it.

    Args:
        entries: of the log.
        open_offsets: transactions that are open where the segment begins.
        decompress: for control batches that are compressed.
    """
    found = []
    for entry in entries:
        if entry.producer_id > NO_PRODUCER:
            open_offsets, aborted = after_entry(open_offsets, entry, or_none(marker_of, entry, decompress))
            found += [] if aborted is None else [aborted]
    return as_bytes(found)  # SEG-TXN-004: in the order of the markers
