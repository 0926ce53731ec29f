"""Compaction: which segments, records and batches a pass keeps, and the segments that it writes (chapter 73)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seglog_algorithms import retention, transaction_index
from seglog_algorithms.building import build_batch
from seglog_algorithms.control_records import ABORT, marker_of
from seglog_algorithms.damage import Damage
from seglog_algorithms.directory import (
    CLEANED,
    INDEX,
    LOG,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    base_offsets,
    file_name,
)
from seglog_algorithms.entries import MOST_AHEAD, NO_PRODUCER, NO_TIMESTAMP, walk
from seglog_algorithms.index_settings import Settings
from seglog_algorithms.indexes import indexes_of
from seglog_algorithms.producers import DAY_MS, Producers
from seglog_algorithms.records import records_of
from seglog_algorithms.transactions import is_aborted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_algorithms.building import Compress
    from seglog_algorithms.control_records import Marker
    from seglog_algorithms.directory import Directory
    from seglog_algorithms.entries import Entry
    from seglog_algorithms.records import Decompress, Record
    from seglog_algorithms.retention import Segment
    from seglog_algorithms.transaction_index import AbortedTransaction

KNOWN_BITS: Final = 0b111111
CODEC_BITS: Final = 0b111
DELETE_HORIZON_BIT: Final = 0b1000000


@dataclass(frozen=True, slots=True)
class Options:
    """Settings of a log and of its broker, by Kafka's names and with its defaults.

    Attributes:
        most_keys: keys that fit into the memory of a pass.
    """

    segment_bytes: int = 2**30
    segment_index_bytes: int = 10 * 2**20
    index_interval_bytes: int = 4096
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = 2**63 - 1
    min_cleanable_dirty_ratio: float = 0.5
    delete_retention_ms: int = DAY_MS
    producer_id_expiration_ms: int = DAY_MS
    most_keys: int = 128 * 2**20 // 24 * 9 // 10


@dataclass(frozen=True, slots=True)
class Log:
    """What compaction has to know of a log.

    Attributes:
        segments: oldest first; the last one is active.
        cleaner_offset: as checkpointed; None if there is none.
        last_stable_offset: not above the high watermark.
    """

    segments: Sequence[Segment]
    now_ms: int
    log_start_offset: int
    last_stable_offset: int
    cleaner_offset: int | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """Which segments a pass rewrites.

    Attributes:
        first_dirty_offset: everything below is clean.
        first_uncleanable_offset: the base offset from which on all segments stay.
        end_offset: where the pass stops.
        groups: base offsets of the segments that become one.
        is_due: whether a broker would begin the pass now.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    end_offset: int
    groups: tuple[tuple[int, ...], ...]
    is_due: bool


# Which segments


def plan_compaction(log: Log, options: Options, keys_end: int | None = None) -> Plan:
    """Decide which segments a pass rewrites.

    Args:
        log: its segments and offsets.
        options: the settings.
        keys_end: the offset at which the memory was full; None if the keys of the dirty part fit.
    """
    first_dirty = first_dirty_offset(log)
    limit = first_uncleanable_offset(log, options, first_dirty)
    end = limit if keys_end is None else min(keys_end, limit)
    dirty_size = sum(one.size for one in holding(log.segments, first_dirty, limit))
    rewritten = [one for one in log.segments if one.base_offset < end] if dirty_size else []
    groups = tuple(grouped(rewritten, limit, options))
    return Plan(first_dirty, limit, end, groups, is_due(log, options, first_dirty, dirty_size))


def first_dirty_offset(log: Log) -> int:
    """Return where the dirty part begins (SEG-CMP-001)."""
    start, offset = max(log.log_start_offset, log.segments[0].base_offset), log.cleaner_offset
    is_inside = offset is not None and start <= offset <= log.segments[-1].next_offset
    return offset if offset is not None and is_inside else start


def holding(segments: Sequence[Segment], start: int, end: int) -> Sequence[Segment]:
    """Return the segments below a base offset, from the one that holds an offset on."""
    below = [one for one in segments if one.base_offset < end]
    before = sum(one.base_offset <= start for one in below)
    return below[max(before - 1, 0) :] if start < end else []


def first_uncleanable_offset(log: Log, options: Options, first_dirty: int) -> int:
    """Return the base offset from which on all segments stay unchanged."""
    active = log.segments[-1].base_offset
    recent = (
        one.base_offset
        for one in holding(log.segments, first_dirty, active)
        if 0 < options.min_compaction_lag_ms > log.now_ms - one.age_from_ms  # SEG-CMP-004
    )
    least = min(active, log.last_stable_offset, *recent)  # SEG-CMP-002, SEG-CMP-003
    offset = max(first_dirty, least)
    bases = [one.base_offset for one in log.segments]
    return max((base for base in bases if base <= offset), default=bases[0])


def is_due(log: Log, options: Options, first_dirty: int, dirty_size: int) -> bool:
    """Return whether a log should be compacted now."""
    clean_size = sum(one.size for one in log.segments if one.base_offset < first_dirty)
    ratio = dirty_size / (clean_size + dirty_size) if dirty_size else 0.0
    dirty = holding(log.segments, first_dirty, log.segments[-1].base_offset)
    oldest = min((one.first_timestamp_ms for one in dirty if one.first_timestamp_ms > 0), default=log.now_ms)
    is_late = log.now_ms - oldest > options.max_compaction_lag_ms  # SEG-CMP-025
    return dirty_size > 0 and (is_late or ratio > options.min_cleanable_dirty_ratio)  # SEG-CMP-005


def grouped(segments: Sequence[Segment], limit: int, options: Options) -> Iterator[tuple[int, ...]]:
    """Yield the base offsets of adjacent segments that become one (SEG-CMP-006)."""
    group: list[Segment] = []
    bases = [*(one.base_offset for one in segments), limit]
    for segment, end in zip(segments, bases[1:], strict=True):
        together = [*group, segment]
        fits = (
            sum(one.size for one in together) <= options.segment_bytes
            and sum(one.offset_index_size for one in together) <= options.segment_index_bytes
            and sum(one.time_index_size for one in together) <= options.segment_index_bytes
            and (segment.size == 0 or end - 1 - together[0].base_offset <= MOST_AHEAD)
        )
        if group and not fits:
            yield tuple(one.base_offset for one in group)
            group = []
        group.append(segment)
    if group:
        yield tuple(one.base_offset for one in group)


def keys_of(work: Work, start: int, end: int) -> tuple[dict[bytes, int], int]:
    """Return the newest offset of each key from an offset up to a base offset, and where the pass stops."""
    newest, stop = dict[bytes, int](), start
    bases = [one.base_offset for one in work.log.segments]
    for base, above in zip(bases, [*bases[1:], end], strict=True):
        if base >= end or above <= start:
            continue
        for entry in work.entries(base):
            if entry.last_offset < start:
                continue
            if not entry.is_control and not is_aborted(work.aborted, entry):  # SEG-CMP-013
                for record in records_of(entry, work.decompress):
                    if record.key is None or record.offset < start:
                        continue
                    if len(newest) >= work.options.most_keys:  # SEG-CMP-007
                        return newest, stop
                    newest[record.key], stop = record.offset, record.offset + 1
            stop = entry.last_offset + 1
        stop = min(above, end)
    return newest, stop


# Which records


@dataclass(slots=True)
class Work:
    """A log during a pass.

    Attributes:
        modified_ms: when each file was last written.
        aborted: the aborted transactions that follow from the log (chapter 42).
        producers: those that are active.
        newest: offset of each key in the dirty part.
        open: ids of producers with a batch of a transaction since their last marker, in the batches read so far.
        index: entries of the transaction index of the segment that is being written.
    """

    directory: Directory
    log: Log
    options: Options
    decompress: Decompress
    aborted: Sequence[AbortedTransaction]
    producers: Producers
    newest: dict[bytes, int] = field(default_factory=dict)
    plan: Plan = field(init=False)
    open: set[int] = field(default_factory=set)
    index: list[AbortedTransaction] = field(default_factory=list)

    def entries(self, base: int) -> Iterator[Entry]:
        """Yield the entries of a segment."""
        yield from walk(self.directory[file_name(base, LOG)])


def stays(record: Record, entry: Entry, work: Work, *, is_unneeded: bool, is_expired: bool) -> bool:
    """Return whether a record stays."""
    if entry.is_control:
        return not (is_unneeded and is_expired)  # SEG-CMP-014, SEG-CMP-026
    if is_aborted(work.aborted, entry):  # SEG-CMP-013
        return False
    if record.offset >= work.plan.end_offset:  # SEG-CMP-028
        return True
    if record.key is None:  # SEG-CMP-009
        return False
    if record.offset < work.newest.get(record.key, -1):  # SEG-CMP-008
        return False
    return record.value is not None or not is_expired  # SEG-CMP-010, SEG-CMP-012


def is_past_horizon(entry: Entry, modified_ms: int, work: Work) -> bool:
    """Return whether tombstones and unneeded markers of an entry have been kept for long enough."""
    if entry.is_batch:  # SEG-CMP-010, SEG-CMP-026
        return entry.delete_horizon_ms is not None and entry.delete_horizon_ms <= work.log.now_ms
    clean = [one for one in work.log.segments if one.base_offset < work.plan.first_dirty_offset]
    return bool(clean) and modified_ms <= clean[-1].modified_ms - work.options.delete_retention_ms  # SEG-CMP-012


def is_unneeded_marker(entry: Entry, work: Work) -> bool:
    """Return whether the pass found no batch of the transaction that a control batch ends (SEG-CMP-014)."""
    if not entry.is_control:
        if entry.is_transactional:
            work.open.add(entry.producer_id)
        return False
    marker = marker_of(entry, work.decompress)
    if marker is None:
        return False
    if entry.producer_id not in work.open:
        return True
    work.open.remove(entry.producer_id)
    add_aborted(entry, marker, work)
    return False


def add_aborted(entry: Entry, marker: Marker, work: Work) -> None:
    """List the aborted transaction that a marker ends, as the old index does (SEG-CMP-021)."""
    if marker.type == ABORT:
        indexes = (data for name, data in work.directory.items() if name.endswith(TRANSACTION_INDEX))
        listed = [one for index in indexes for one in transaction_index.entries_of(index)]
        known = {(one.producer_id, one.last_offset): one for one in (*work.aborted, *listed)}
        work.index.append(known[entry.producer_id, entry.header.base_offset])


# Which batches


def cleaned(entry: Entry, modified_ms: int, work: Work, compress: Compress) -> bytes:
    """Return what a pass leaves of an entry; no bytes if it is removed."""
    records = records_of(entry, work.decompress)
    is_unneeded, is_expired = is_unneeded_marker(entry, work), is_past_horizon(entry, modified_ms, work)
    kept = [one for one in records if stays(one, entry, work, is_unneeded=is_unneeded, is_expired=is_expired)]
    if not kept:
        return emptied(entry, compress) if stays_empty(entry, work) else b""
    horizon = entry.delete_horizon_ms
    needs_horizon = horizon is None and (is_unneeded or any(one.value is None for one in kept))
    if needs_horizon:
        horizon = work.log.now_ms + work.options.delete_retention_ms  # SEG-CMP-011
    elif entry.is_batch and len(kept) == len(records):
        return entry.data  # SEG-CMP-017
    return rewritten(entry, kept, horizon, compress)


def stays_empty(entry: Entry, work: Work) -> bool:
    """Return whether a batch that loses all records stays without them."""
    if not entry.is_batch:
        return False
    if entry.last_offset + 1 == work.plan.first_uncleanable_offset:  # SEG-CMP-016
        return True
    producer = work.producers.get(entry.producer_id)
    if producer is None:
        return False
    if producer.batches:
        return entry.last_offset == producer.batches[-1].last_offset  # SEG-CMP-015
    return entry.is_control and entry.header.producer_epoch == producer.producer_epoch  # SEG-CMP-027


def emptied(entry: Entry, compress: Compress) -> bytes:
    """Return a batch without its records (SEG-CMP-029)."""
    attributes = entry.header.attributes & KNOWN_BITS & ~CODEC_BITS
    fields = {**entry.header, "attributes": attributes, "base_timestamp_ms": NO_TIMESTAMP}
    return build_batch(fields, (), compress)


def rewritten(entry: Entry, kept: Sequence[Record], horizon: int | None, compress: Compress) -> bytes:
    """Return a batch with the records that stay."""
    fields = dict(entry.header) if entry.is_batch else converted(entry, kept)  # SEG-CMP-018
    fields["attributes"] &= KNOWN_BITS  # SEG-CMP-018
    fields["base_timestamp_ms"] = kept[0].timestamp_ms  # SEG-CMP-019
    if not entry.is_log_append_time:
        fields["max_timestamp_ms"] = max(NO_TIMESTAMP, *(one.timestamp_ms for one in kept))  # SEG-CMP-019
    if horizon is not None:  # SEG-CMP-011
        fields["attributes"] |= DELETE_HORIZON_BIT
        fields["base_timestamp_ms"] = horizon
    return build_batch(fields, [replace(one, attributes=0) for one in kept], compress)  # SEG-CMP-018


def converted(entry: Entry, kept: Sequence[Record]) -> dict[str, int]:
    """Return the header of a batch for the remaining messages of an entry of magic 0 or 1 (SEG-CMP-020)."""
    return {
        "base_offset": kept[0].offset,
        "partition_leader_epoch": -1,
        "attributes": entry.codec | (8 if entry.is_log_append_time else 0),
        "last_offset_delta": kept[-1].offset - kept[0].offset,
        "max_timestamp_ms": entry.max_timestamp_ms,
        "producer_id": NO_PRODUCER,
        "producer_epoch": -1,
        "base_sequence": -1,
    }


# The new segment


def segments_of(directory: Directory, modified_ms: Mapping[str, int]) -> list[Segment]:
    """Return what compaction has to know of each segment.

    Raises:
        Damage: the directory or a log has to be recovered first.
    """
    left = [name for name in directory if name.endswith((CLEANED, SWAP))]
    if left:
        raise Damage("SEG-PDR-010", text=left[0])
    found = retention.segments_of(directory, modified_ms)
    for one in found:
        end = max((entry.end for entry in walk(directory[file_name(one.base_offset, LOG)])), default=0)
        if end < one.size:
            raise Damage("SEG-LOG-004", end, "incomplete")
    return found


def transactions_of(
    directory: Directory, high_watermark: int, decompress: Decompress
) -> tuple[list[AbortedTransaction], int]:
    """Return the aborted transactions of a log, and its last stable offset (chapter 60)."""
    open_offsets: Mapping[int, int] = {}
    aborted, stable = [], high_watermark
    for base in base_offsets(directory):
        for entry in walk(directory[file_name(base, LOG)]):
            marker = marker_of(entry, decompress)
            open_offsets, ended = transaction_index.after_entry(open_offsets, entry, marker)
            aborted += [] if ended is None else [ended]
            if entry.last_offset < high_watermark:
                stable = min([high_watermark, *open_offsets.values()])
    return aborted, stable


def compact(
    directory: Directory, work: Work, modified_ms: Mapping[str, int], compress: Compress
) -> tuple[dict[str, bytes], dict[str, int]]:
    """Compact a log, whether or not that is due; return its files, and when each log was last written.

    Args:
        directory: of the partition.
        work: what is known of the log.
        modified_ms: when each file was last written.
        compress: compresses the records of batches that are rewritten.
    """
    work.plan = plan_compaction(work.log, work.options)
    if work.plan.groups:
        work.newest, stop = keys_of(work, work.plan.first_dirty_offset, work.plan.first_uncleanable_offset)
        work.plan = plan_compaction(work.log, work.options, stop)
    files, modified = dict(directory), dict(modified_ms)
    for group in work.plan.groups:
        files = replaced(files, group, new_segment(group, work, modified_ms, compress))
        modified[file_name(group[0], LOG)] = modified_ms.get(file_name(group[-1], LOG), 0)  # SEG-CMP-006
    return files, {name: modified.get(name, 0) for name in files if name.endswith(LOG)}


def new_segment(
    group: Sequence[int], work: Work, modified_ms: Mapping[str, int], compress: Compress
) -> dict[str, bytes]:
    """Return the files of the segment that replaces some others."""
    work.index = []
    log = b"".join(
        cleaned(entry, modified_ms.get(file_name(base, LOG), 0), work, compress)
        for base in group
        for entry in work.entries(base)
    )
    base = group[0]
    indexes = indexes_of(log, base, Settings(work.options.index_interval_bytes), work.decompress)
    files = {
        file_name(base, LOG): log,
        file_name(base, INDEX): indexes.offset,
        file_name(base, TIME_INDEX): indexes.time,
    }
    if work.index or (not log and file_name(base, TRANSACTION_INDEX) in work.directory):
        files[file_name(base, TRANSACTION_INDEX)] = transaction_index.as_bytes(work.index)  # SEG-CMP-021
    return files


def replaced(directory: Directory, group: Sequence[int], new: Directory) -> dict[str, bytes]:
    """Return a directory in which a new segment is in the place of others, whose files end in `.deleted`."""
    files = retention.without_segment(directory, group[0], keeps_snapshot=True)  # SEG-CMP-024
    for base in group[1:]:
        files = retention.without_segment(files, base)
    return {**files, **new}  # SEG-CMP-022
