"""The segments of a log as a reader sees them (chapters 20 and 60)."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_algorithms.damage import Damage
from seglog_algorithms.directory import (
    INDEX,
    INDEXES,
    LOG,
    TIME_INDEX,
    base_offsets,
    file_name,
    files_that_count,
    offsets_of,
)
from seglog_algorithms.entries import LAST_OFFSET, Entry, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_algorithms.directory import Directory
    from seglog_algorithms.records import Decompress


@dataclass(frozen=True, slots=True)
class Segment:
    """A segment of a log.

    Attributes:
        base_offset: in the names of its files.
        log: bytes of its `.log` file.
        end: base offset of the next segment; for the last one, the greatest log end offset.
        offset_index: bytes of its offset index; empty if it has none.
        time_index: bytes of its time index; empty if it has none.
    """

    base_offset: int
    log: bytes
    end: int
    offset_index: bytes
    time_index: bytes


@dataclass(frozen=True, slots=True)
class Log:
    """A log as a reader sees it.

    Attributes:
        segments: in order.
        start_offset: log start offset.
        decompress: of compressed entries.
        trusts_indexes: whether lookups start at index entries that look right.
        orphans: offsets in the names of indexes that belong to no log.
        is_compacted: whether the topic's name or the cleaner's checkpoint shows it.
    """

    segments: tuple[Segment, ...]
    start_offset: int
    decompress: Decompress
    trusts_indexes: bool = False
    orphans: tuple[int, ...] = ()
    is_compacted: bool = False


def open_log(
    directory: Directory,
    decompress: Decompress,
    *,
    checkpointed_start: int = 0,
    trusts_indexes: bool = False,
    is_compacted: bool = False,
) -> Log:
    """Return the log in a partition directory; its log start offset may be checkpointed."""
    files = files_that_count(directory)
    bases = base_offsets(files)
    segments = tuple(
        Segment(
            base,
            files[file_name(base, LOG)],
            end,
            files.get(file_name(base, INDEX), b""),
            files.get(file_name(base, TIME_INDEX), b""),
        )
        for base, end in pairwise([*bases, LAST_OFFSET + 1])
    )
    start = max([checkpointed_start, *bases[:1]])  # SEG-CKP-010
    orphans = {offset for kind in INDEXES for offset in offsets_of(files, kind)}.difference(bases)
    return Log(segments, start, decompress, trusts_indexes, tuple(orphans), is_compacted)


def in_order(segment: Segment, start: int = 0) -> Iterator[Entry]:
    """Yield the entries of a segment from a position on, as long as their offsets are possible (SEG-LKP-014)."""
    last = segment.base_offset - 1
    for entry in walk(segment.log, start):
        if entry.first_offset is not None and entry.first_offset < segment.base_offset:
            raise Damage("SEG-LOG-008", entry.position, f"offset {entry.first_offset}")
        if entry.last_offset <= last:
            raise Damage("SEG-LOG-006", entry.position, f"last offset {entry.last_offset}")
        if entry.last_offset > LAST_OFFSET:
            raise Damage("SEG-LOG-013", entry.position, f"last offset {entry.last_offset}")
        if entry.last_offset >= segment.end:
            raise Damage("SEG-PDR-013", entry.position, f"last offset {entry.last_offset}")
        yield entry
        last = entry.last_offset


def before_damage(segment: Segment) -> tuple[list[Entry], Damage | None]:
    """Return the entries of a segment, and the damage that ends them early."""
    found: list[Entry] = []
    try:
        for entry in in_order(segment):
            found.append(entry)  # noqa: PERF402 - kept when the next one raises
    except Damage as damage:
        return found, damage
    return found, None


def next_offset(segment: Segment) -> int:
    """Return the first offset after the last entry of a segment, or its base offset."""
    entries, _ = before_damage(segment)
    return entries[-1].last_offset + 1 if entries else segment.base_offset
