"""What a leader and a follower check and write (chapter 70)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from seglog_algorithms.building import build_message, sole, with_fields
from seglog_algorithms.control_records import marker_of
from seglog_algorithms.damage import Damage
from seglog_algorithms.entries import LAST_OFFSET, NO_TIMESTAMP, Entry, check_crc, check_offsets, walk
from seglog_algorithms.producers import NONE, Batch, Producer, Producers
from seglog_algorithms.records import NO_CODEC, records_of, sequence_of
from seglog_format.schema.message_set import MESSAGES, MessageV0Header

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_algorithms.building import Compress
    from seglog_algorithms.control_records import Marker
    from seglog_algorithms.records import Decompress, Record
    from seglog_algorithms.transaction_index import AbortedTransaction

CLIENT: Final = "client"
REPLICATION: Final = "replication"
"""Origins of an append, beside a transaction coordinator."""

EARLY: Final = ("0.8", "0.10.1", "0.11")
"""First versions of brokers before 2.0 that write the same files for the same appends."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Kafka's settings that appends depend on.

    Attributes:
        generation: first version of the brokers whose files to write: 0.8, 0.10.1, 0.11, 2.0, 3.7 or 4.1.
    """

    segment_bytes: int = 1 << 30
    segment_ms: int = 7 * 24 * 60 * 60 * 1000
    segment_jitter_ms: int = 0
    segment_index_bytes: int = 10 << 20
    index_interval_bytes: int = 4096
    max_message_bytes: int = (1 << 20) + 12
    max_compaction_lag_ms: int = 2**63 - 1
    is_compacted: bool = False
    is_log_append_time: bool = False
    message_timestamp_before_max_ms: int = 2**63 - 1
    message_timestamp_after_max_ms: int = 60 * 60 * 1000
    flush_messages: int = 2**63 - 1
    flush_ms: int = 2**63 - 1
    preallocate: bool = False
    generation: str = "4.1"


@dataclass(frozen=True, slots=True)
class Appended:
    """An entry to write: with its first offset, its largest timestamp, and the offset of that in a time index."""

    entry: Entry
    first_offset: int
    largest_ms: int
    largest_offset: int
    marker: Marker | None


def as_leader(  # noqa: PLR0913 - all that a leader knows
    data: bytes,
    settings: Settings,
    *,
    end: int,
    leader_epoch: int,
    now_ms: int,
    origin: str,
    decompress: Decompress,
    compress: Compress,
) -> list[Appended]:
    """Return what a leader writes for the bytes that a producer or coordinator sends.

    Raises:
        Damage: the bytes are damaged, or a rule of the chapter refuses them.
    """
    sent = list(walk(data))  # SEG-APP-005
    check_form(sent, settings, origin)
    appended = []
    for entry in sent:
        records = check_entry(entry, settings, now_ms, origin, decompress)
        last = end + len(records) - 1  # SEG-APP-001
        if last > LAST_OFFSET:
            raise Damage("SEG-LOG-013", text=f"last offset {last}")
        written = stamped(placed(entry, records, end, leader_epoch, decompress, compress), records, settings, now_ms)
        appended.append(
            Appended(written, end, *largest_of(written, records, settings, end), marker_of(entry, decompress))
        )
        end = last + 1
    check_total(appended, settings)
    return appended


# What a leader does


def placed(
    entry: Entry, records: Sequence[Record], end: int, leader_epoch: int, decompress: Decompress, compress: Compress
) -> Entry:
    """Return an entry with the offsets that a leader assigns."""
    if entry.is_batch:  # SEG-APP-003, SEG-APP-018, SEG-APP-019, SEG-APP-020
        return with_fields(entry, base_offset=end, partition_leader_epoch=leader_epoch)
    if entry.codec == NO_CODEC or has_right_offsets(entry, records, end, decompress):
        return with_fields(entry, offset=end + len(records) - 1)  # SEG-APP-003
    first = end if entry.magic == 0 else 0  # SEG-MSG-011, SEG-MSG-012
    inner = [
        {"offset": first + at, "attributes": 0, "timestamp_ms": one.timestamp_ms} for at, one in enumerate(records)
    ]
    messages = [build_message(entry.magic, each, one.key, one.value) for each, one in zip(inner, records, strict=True)]
    value = compress(entry.codec, b"".join(messages), entry.magic)
    largest = max(record.timestamp_ms for record in records)
    wrapper = {"offset": end + len(records) - 1, "attributes": entry.codec, "timestamp_ms": largest}
    return sole(build_message(entry.magic, wrapper, None, value))


def has_right_offsets(entry: Entry, records: Sequence[Record], end: int, decompress: Decompress) -> bool:
    """Return whether a wrapper can stay: the offsets inside are absolute in magic 0, and 0, 1, 2, ... in magic 1."""
    inner = decompress(entry.codec, MESSAGES[entry.magic].parse(entry.data).value, entry.magic)
    stored = MessageV0Header.parse(inner).offset
    is_dense = all(record.offset == records[0].offset + at for at, record in enumerate(records))
    return is_dense and stored == (end if entry.magic == 0 else 0)


def stamped(entry: Entry, records: Sequence[Record], settings: Settings, now_ms: int) -> Entry:
    """Return an entry with the timestamp that a leader writes into its header."""
    bit = 8 if settings.is_log_append_time else 0
    timestamp = now_ms if bit else max(record.timestamp_ms for record in records)  # SEG-APP-010, SEG-APP-026
    attributes = entry.header.attributes
    if entry.magic == 0 or (attributes & 8 == bit and entry.max_timestamp_ms == timestamp):
        return entry
    kept = attributes & (0x77 if entry.is_batch else 0x07) | bit  # bits without a meaning are cleared
    name = "max_timestamp_ms" if entry.is_batch else "timestamp_ms"
    return with_fields(entry, seals=True, **{"attributes": kept, name: timestamp})


def largest_of(entry: Entry, records: Sequence[Record], settings: Settings, end: int) -> tuple[int, int]:
    """Return the largest timestamp of an entry and its offset in a time index (SEG-APP-015)."""
    is_plain = entry.is_batch and entry.codec == NO_CODEC and not settings.is_log_append_time
    if settings.generation not in {*EARLY, "2.0"} or not is_plain:
        return entry.max_timestamp_ms, entry.last_offset
    stamps = [record.timestamp_ms for record in records]
    return entry.max_timestamp_ms, end + stamps.index(max(stamps))


# What a leader refuses


def check_form(sent: Sequence[Entry], settings: Settings, origin: str) -> None:
    """Check number, magic and size of the entries of an append."""
    if not sent:
        raise Damage("SEG-APP-005", text="no whole entry")
    if (origin == CLIENT and sent[0].is_batch and len(sent) > 1) or len({entry.magic for entry in sent}) > 1:
        raise Damage("SEG-APP-004", text=f"{len(sent)} entries")
    for entry in sent:
        if len(entry.data) > settings.max_message_bytes:
            raise Damage("SEG-APP-006", entry.position, f"{len(entry.data)} bytes")


def check_total(appended: Sequence[Appended], settings: Settings) -> None:
    """Check the size of an append (SEG-APP-021)."""
    size = sum(len(each.entry.data) for each in appended)
    if size > settings.segment_bytes:
        raise Damage("SEG-APP-021", text=f"{size} bytes")


def check_entry(entry: Entry, settings: Settings, now_ms: int, origin: str, decompress: Decompress) -> Sequence[Record]:
    """Check an entry that a producer or coordinator sends; return its records."""
    check_crc(entry)
    records, at = records_of(entry, decompress), entry.position
    if entry.is_log_append_time:
        raise Damage("SEG-APP-011", at, "LogAppendTime")
    if entry.is_batch:
        check_batch(entry, records, origin)
    if settings.is_compacted and any(record.key is None for record in records):
        raise Damage("SEG-APP-012", at, "null key")
    earliest = now_ms - settings.message_timestamp_before_max_ms
    latest = now_ms + settings.message_timestamp_after_max_ms
    for record in records:
        is_late = record.timestamp_ms != NO_TIMESTAMP and not earliest <= record.timestamp_ms <= latest
        if is_late and not settings.is_log_append_time:
            raise Damage("SEG-APP-024", at, f"timestamp {record.timestamp_ms}")
    return records


def check_batch(entry: Entry, records: Sequence[Record], origin: str) -> None:
    """Check a batch against its records (SEG-APP-004)."""
    header, at = entry.header, entry.position
    offsets = [record.offset for record in records]
    if not records or offsets != [*range(header.base_offset, entry.last_offset + 1)]:
        raise Damage("SEG-APP-004", at, f"{len(records)} records")
    if origin == CLIENT and (header.base_offset or entry.is_control):
        raise Damage("SEG-APP-004", at, "base offset, or control batch")
    if origin == CLIENT and header.producer_id >= 0 and header.base_sequence < 0:
        raise Damage("SEG-APP-007", at, f"base sequence {header.base_sequence}")


def duplicate_of(entry: Entry, producers: Producers) -> Batch | None:
    """Return the batch that a producer sends again (SEG-APP-008)."""
    known = producers.get(entry.producer_id)
    if known is None or entry.is_control or known.producer_epoch != entry.header.producer_epoch:
        return None
    base, delta = entry.header.base_sequence, entry.header.last_offset_delta
    sequences = base, sequence_of(base, delta)
    return next((each for each in known.batches if (each.first_sequence, each.last_sequence) == sequences), None)


def check_producer(appended: Appended, before: Producers, producers: Producers, origin: str) -> None:
    """Refuse an entry that its producer may not append now.

    Args:
        appended: the entry.
        before: the producers before this append.
        producers: after its earlier entries.
        origin: of the append.
    """
    entry, header, marker = appended.entry, appended.entry.header, appended.marker
    known = producers.get(entry.producer_id, Producer(entry.producer_id))
    if entry.producer_id < 0 or (entry.is_control and marker is None):
        return
    if origin != REPLICATION and header.producer_epoch < known.producer_epoch:
        raise Damage("SEG-APP-009", text=f"epoch {header.producer_epoch} after {known.producer_epoch}")
    if marker is not None:
        if origin != REPLICATION and marker.coordinator_epoch < known.coordinator_epoch:
            raise Damage("SEG-APP-022", text=f"coordinator epoch {marker.coordinator_epoch}")
        return
    if origin == CLIENT and (entry.producer_id in before or known.batches):
        last = (
            known.batches[-1].last_sequence if known.batches and header.producer_epoch == known.producer_epoch else NONE
        )
        if header.base_sequence != (last + 1) % 2**31:
            raise Damage("SEG-APP-007", text=f"sequence {header.base_sequence} after {last}")
    if known.current_txn_first_offset != NONE and not entry.is_transactional:
        raise Damage("SEG-APP-023", text="outside of the open transaction")


def applied(appended: Sequence[Appended], before: Producers, origin: str) -> tuple[Producers, list[AbortedTransaction]]:
    """Return the producers after an append, and the transactions that it aborts."""
    producers, aborted = Producers(before), []
    for each in appended:
        check_producer(each, before, producers, origin)
        ended = producers.add(each.entry, each.marker)
        aborted += [] if ended is None else [ended]
    return producers, aborted


# What a follower does


def as_follower(
    data: bytes, settings: Settings, *, end: int, leader_epoch: int | None, decompress: Decompress
) -> list[Appended]:
    """Return what a follower writes for the bytes that it fetches.

    Raises:
        Damage: the bytes are damaged, or offsets do not follow the log end offset (SEG-APP-002).
    """
    fetched = list(walk(data))
    check_form(fetched[:1], Settings(max_message_bytes=2**31), REPLICATION)
    greatest = 2**31 - 1 if leader_epoch is None else leader_epoch
    taken = list(takewhile(lambda entry: entry.leader_epoch <= greatest, fetched))  # SEG-APP-014
    for entry in taken:
        check_crc(entry)
    last = end - 1
    for number, entry in enumerate(taken):
        first = entry.last_offset if number else entry.least_offset
        if first <= last or entry.last_offset <= last:
            raise Damage("SEG-APP-002", entry.position, f"offset {first} after {last}")
        if entry.last_offset > LAST_OFFSET:
            raise Damage("SEG-LOG-013", entry.position, f"last offset {entry.last_offset}")
        last = entry.last_offset
    appended = [copied(entry, decompress) for entry in taken]
    check_total(appended, settings)
    return appended


def copied(entry: Entry, decompress: Decompress) -> Appended:
    """Return an entry as its leader wrote it."""
    if entry.is_batch:
        check_offsets(entry)
    return Appended(entry, entry.least_offset, entry.max_timestamp_ms, entry.last_offset, marker_of(entry, decompress))
