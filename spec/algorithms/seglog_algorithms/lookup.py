"""Lookup and reading (chapter 60)."""

from __future__ import annotations

from collections import deque
from itertools import takewhile
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_algorithms import offset_index, time_index
from seglog_algorithms.damage import Damage
from seglog_algorithms.entries import LAST_OFFSET, NO_TIMESTAMP, Entry, check_crc
from seglog_algorithms.logs import before_damage, in_order, next_offset
from seglog_algorithms.records import first_offset, records_of
from seglog_algorithms.transactions import is_aborted, transactions_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_algorithms.logs import Log, Segment
    from seglog_algorithms.records import Record
    from seglog_algorithms.transactions import Transactions

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
OF_REMOTE: Final = {-5, -6}  # LATEST_TIERED, EARLIEST_PENDING_UPLOAD


def log_end_offset(log: Log) -> int:
    """Return the offset of the next record (SEG-LKP-015)."""
    if not log.segments:
        return log.start_offset
    trusted = trusted_entries(log.segments[-1], LAST_OFFSET) if log.trusts_indexes else []
    end = trusted[-1].last_offset + 1 if trusted else next_offset(log.segments[-1])
    return max(end, log.start_offset)


# From an offset to an entry


def segments_from(log: Log, offset: int) -> list[Segment]:
    """Return the segment that an offset belongs to (SEG-LKP-001), and those after it."""
    not_above = [segment for segment in log.segments if segment.base_offset <= offset]
    return [segment for segment in log.segments if not not_above or segment.base_offset >= not_above[-1].base_offset]


def find_entry(log: Log, segment: Segment, offset: int) -> Entry | None:
    """Return the first entry of a segment whose last offset is not below an offset (SEG-LKP-002)."""
    if log.trusts_indexes and (trusted := trusted_entry(segment, offset)) is not None:
        return trusted
    return next((entry for entry in in_order(segment) if entry.last_offset >= offset), None)


def find_offset(log: Log, offset: int) -> Entry | None:
    """Return the first entry of a log whose last offset is not below an offset; None also if no segment is so low."""
    if not log.segments or offset < log.segments[0].base_offset:
        return None
    found = (find_entry(log, segment, offset) for segment in segments_from(log, offset))
    return next((entry for entry in found if entry is not None), None)


def check_range(log: Log, offset: int) -> None:
    """Refuse an offset that the log does not have (SEG-LKP-004)."""
    if offset < log.start_offset:
        raise Damage("SEG-LKP-004", text=f"offset {offset} is below {log.start_offset}")
    end = log_end_offset(log)
    if log.segments and offset >= end and offset >= log.segments[-1].base_offset:
        entries, damage = before_damage(log.segments[-1])
        if entries:
            check_crc(entries[-1])  # SEG-LKP-017
        if damage is not None:
            raise damage
    if offset > end and (not log.segments or offset >= log.segments[-1].base_offset):
        raise Damage("SEG-LKP-004", text=f"offset {offset} is above {end}")


def check_gap(log: Log, offset: int) -> None:
    """Verify the checksum of the entry before a missing offset (SEG-LKP-017)."""
    segment = segments_from(log, offset)[0]
    for entry in deque(takewhile(lambda each: each.last_offset < offset, in_order(segment)), maxlen=1):
        check_crc(entry)


# What one read answers


class Fetch(NamedTuple):
    """The result of a read: the records that a consumer gets, and the offset of the next read."""

    records: list[Record]
    next_offset: int


def fetch(log: Log, offset: int, max_bytes: int, *, at_least_one: bool = True, is_committed: bool = False) -> Fetch:
    """Return what one read answers."""
    transactions = transactions_of(log) if is_committed else None
    check_range(log, offset)
    end = LAST_OFFSET + 2 if transactions is None else transactions.last_stable_offset  # SEG-LKP-012
    records: list[Record] = []
    following = offset  # SEG-LKP-005
    try:
        for entry in fitting(log, offset, end, max_bytes, at_least_one=at_least_one):
            found = read_entry(log, entry)
            if following == offset and first_offset(entry, log.decompress) > offset:
                check_gap(log, offset)
            records += delivered(entry, found, offset, end, transactions)
            following = entry.last_offset + 1  # SEG-LKP-007
    except Damage:
        if following == offset:  # SEG-LKP-014
            raise
    if following == offset and transactions is not None and transactions.damage is not None and offset >= end:
        raise transactions.damage  # it may hide the end of a transaction
    return Fetch(records, following)


def fitting(log: Log, offset: int, end: int, max_bytes: int, *, at_least_one: bool) -> Iterator[Entry]:
    """Yield the entries of one segment within the byte limit."""
    start: int | None = None
    for segment in segments_from(log, offset):
        for entry in entries_from(log, segment, offset, end):
            is_first = start is None
            start = entry.position if start is None else start
            if entry.end - start > max_bytes and not (at_least_one and is_first):  # SEG-LKP-006
                return
            yield entry
            if entry.end - start >= max_bytes or entry.last_offset + 1 >= end:
                return
        if start is not None:  # SEG-LKP-007
            return


def entries_from(log: Log, segment: Segment, offset: int, end: int) -> Iterator[Entry]:
    """Yield the entries of a segment from the one for an offset on, up to the first that starts at an end."""
    is_below = max(offset, segment.base_offset) < end  # a compressed wrapper does not state its first offset
    first = find_entry(log, segment, offset) if is_below else None
    for entry in in_order(segment, first.position) if first is not None else ():
        if entry.first_offset is not None and entry.first_offset >= end:
            return
        yield entry


def read_entry(log: Log, entry: Entry) -> tuple[Record, ...]:
    """Verify an entry, and return its records."""
    check_crc(entry)
    records = records_of(entry, log.decompress)
    if any(record.offset > LAST_OFFSET for record in records):
        raise Damage("SEG-LOG-013", entry.position, "offset of a record")
    return records


def delivered(
    entry: Entry, records: Iterable[Record], start: int, end: int, transactions: Transactions | None
) -> list[Record]:
    """Return the records of an entry that a consumer gets."""
    if entry.is_control:  # SEG-CTL-009
        return []
    if transactions is not None and is_aborted(transactions.aborted, entry):  # SEG-LKP-011
        return []
    return [record for record in records if start <= record.offset < end]  # SEG-LKP-003, SEG-LKP-010, SEG-LKP-012


def read_all(log: Log, *, is_committed: bool = False) -> tuple[list[Record], Damage | None]:
    """Return the records of a log up to the first damage, and that damage (SEG-LKP-014)."""
    records: list[Record] = []
    try:
        transactions = transactions_of(log) if is_committed else None
        check_range(log, log.start_offset)
        end = LAST_OFFSET + 2 if transactions is None else transactions.last_stable_offset
        offset = log.start_offset
        for segment in segments_from(log, offset):
            for entry in entries_from(log, segment, offset, end):
                found = read_entry(log, entry)
                records += delivered(entry, found, log.start_offset, end, transactions)
                offset = entry.last_offset + 1
        if transactions is not None and transactions.damage is not None:
            raise transactions.damage
    except Damage as damage:
        return records, damage
    return records, None


# Indexes are hints


def trusted_entry(segment: Segment, offset: int) -> Entry | None:
    """Return the entry for an offset by the offset index; None in any doubt (SEG-IDX-009)."""
    found = next((entry for entry in trusted_entries(segment, offset) if entry.last_offset >= offset), None)
    return found if found is not None and found.least_offset <= offset else None


def trusted_entries(segment: Segment, offset: int) -> list[Entry]:
    """Return the entries from the one in the index on, up to that for an offset; none in any doubt (SEG-IDX-009)."""
    start = offset_index.lookup(segment.offset_index, segment.base_offset, offset).position
    found: list[Entry] = []
    try:
        for entry in in_order(segment, start) if start > 0 else ():
            found.append(entry)
            if entry.last_offset >= offset:
                break
        if found:
            check_crc(found[0])
    except Damage:
        return []
    return found if found and segment.base_offset <= found[0].least_offset <= offset else []


# From a timestamp to an offset


class Found(NamedTuple):
    """The result of a timestamp lookup."""

    timestamp_ms: int
    offset: int


def find_timestamp(log: Log, timestamp_ms: int) -> Found | None:
    """Return the first record that is not earlier than a timestamp, or what a special timestamp requests."""
    if timestamp_ms == LATEST:  # SEG-LKP-009
        return Found(NO_TIMESTAMP, log_end_offset(log))
    if timestamp_ms in {EARLIEST, EARLIEST_LOCAL}:  # SEG-LKP-009
        return Found(NO_TIMESTAMP, log.start_offset)
    if timestamp_ms in OF_REMOTE:  # no segment is in remote storage
        return None
    return latest(log) if timestamp_ms == MAX_TIMESTAMP else first_not_earlier(log, timestamp_ms)


def first_not_earlier(log: Log, timestamp_ms: int) -> Found | None:
    """Return the first record whose timestamp is not less (SEG-LKP-008)."""
    for segment in segments_from(log, log.start_offset):
        if is_older(log, segment, timestamp_ms):
            continue
        for entry in _not_before(log, segment, timestamp_ms):
            if entry.last_offset < log.start_offset:
                continue
            check_crc(entry)  # the header may hide a result
            if entry.max_timestamp_ms < timestamp_ms:
                continue
            for record in read_entry(log, entry):  # SEG-LKP-018: control records count
                if record.offset >= log.start_offset and record.timestamp_ms >= timestamp_ms:
                    return Found(record.timestamp_ms, record.offset)
    return None


def is_older(log: Log, segment: Segment, timestamp_ms: int) -> bool:
    """Return whether a segment that is not the last has earlier records only, by its time index if that is trusted."""
    is_closed = log.trusts_indexes and segment is not log.segments[-1]
    times = time_index.entries_of(segment.time_index, segment.base_offset) if is_closed else []
    return bool(times) and times[-1].timestamp_ms < timestamp_ms


def _not_before(log: Log, segment: Segment, timestamp_ms: int) -> Iterator[Entry]:
    """Yield the entries of a segment from one on that is not after the record, by the time index if it is trusted."""
    if log.trusts_indexes and segment.time_index:
        start = time_index.lookup(segment.time_index, segment.base_offset, timestamp_ms - 1).offset  # SEG-TIX-008
        entry = trusted_entry(segment, start)
        if entry is not None:
            return in_order(segment, entry.position)
    return in_order(segment)


def latest(log: Log) -> Found | None:
    """Return the first record with the largest timestamp (SEG-LKP-013)."""
    entries = [entry for segment in segments_from(log, log.start_offset) for entry in in_order(segment)]
    entries = [entry for entry in entries if entry.last_offset >= log.start_offset]
    for entry in entries:
        check_crc(entry)
    found: list[Found] = []
    for entry in sorted(entries, key=lambda each: -each.max_timestamp_ms):
        if found and entry.max_timestamp_ms < max(found).timestamp_ms:
            break
        records = (record for record in read_entry(log, entry) if record.offset >= log.start_offset)
        found += [Found(one.timestamp_ms, one.offset) for one in records if one.timestamp_ms != NO_TIMESTAMP]
    return max(found, key=lambda each: (each.timestamp_ms, -each.offset), default=None)
