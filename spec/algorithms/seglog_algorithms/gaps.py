"""Offsets that are missing between segments (chapters 10 and 60)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from seglog_algorithms.damage import Damage
from seglog_algorithms.entries import check_crc, walk
from seglog_algorithms.logs import before_damage
from seglog_algorithms.offset_index import Slots
from seglog_algorithms.records import records_of
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.time_index import TimeIndexEntry

if TYPE_CHECKING:
    from seglog_algorithms.entries import Entry
    from seglog_algorithms.logs import Log, Segment


def is_lost(log: Log, before: Segment, missing: range) -> bool:
    """Return whether offsets are missing after a segment that compaction has not removed (SEG-LKP-019)."""
    missing = missing[max(before.base_offset - missing.start, 0) :]
    entries, _ = before_damage(before)
    has_tail = before.log[entries[-1].end if entries else 0 :] != b""
    last_indexed = max(
        _last_offset(OffsetIndexEntry, before.offset_index, before.base_offset),
        _last_offset(TimeIndexEntry, before.time_index, before.base_offset),
    )
    existed = any(offset in missing for offset in [last_indexed, *log.orphans])  # SEG-PDR-024
    return bool(missing) and (has_tail or existed or not shows_compaction(log))


def _last_offset(declaration: Any, index: bytes, base_offset: int) -> int:  # noqa: ANN401 - construct is untyped
    """Return the offset in the last slot of an index that does not hold zeros only, or -1."""
    slots = Slots(declaration, index)
    used = [number for number in range(len(slots)) if any(index[number * slots.size :][: slots.size])]
    return base_offset + int(slots[used[-1]].relative_offset) if used else -1


def shows_compaction(log: Log) -> bool:
    """Return whether a log is known as compacted, or offsets are missing inside its segments (SEG-PDR-023)."""
    return log.is_compacted or any(_has_inner_gap(log, segment) for segment in log.segments)


def _has_inner_gap(log: Log, segment: Segment) -> bool:
    following = segment.base_offset
    with suppress(Damage):
        for entry in walk(segment.log):
            if not _is_dense(log, entry, following):
                return True
            following = entry.last_offset + 1
    return False


def _is_dense(log: Log, entry: Entry, following: int) -> bool:
    """Return whether an entry holds a record for each offset from an offset to its last."""
    if entry.first_offset is not None:
        count = entry.header.records_count if entry.is_batch else 1
        return entry.first_offset <= following and count > entry.last_offset - entry.first_offset
    try:
        check_crc(entry)
        offsets = [record.offset for record in records_of(entry, log.decompress)]
    except Damage:
        return True
    return offsets[0] <= following and len(offsets) > offsets[-1] - offsets[0]
