"""Offsets that are missing between segments, and why (chapter 10).

The offsets of a log have no gaps, unless compaction has removed records. If there is a gap at the border of two
segments, this module finds what explains it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Final

from seglog_format.codec.plain.checkpoints import simple_epochs
from seglog_format.errors import CorruptRecordError, Location, SeglogError
from seglog_format.log.index_file import readable
from seglog_format.log.offset_index import OffsetIndex
from seglog_format.log.time_index import TimeIndex
from seglog_format.model import MissingOffsets
from seglog_format.names import METADATA_TOPICS, FileKind
from seglog_format.storage.log_storage import read_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.log.listing import NamedFile, PartitionListing, SegmentFiles
    from seglog_format.storage.log_storage import LogStorage

INDEXES: Final[dict[FileKind, type[OffsetIndex | TimeIndex]]] = {
    FileKind.OFFSET_INDEX: OffsetIndex,
    FileKind.TIME_INDEX: TimeIndex,
}


class GapKind(Enum):
    """The explanation of a gap."""

    BETWEEN_SEGMENTS = "between segments"
    """No explanation: every existing file is whole."""
    MISSING_LOG = "missing log"
    """The `.log` file of a segment is missing, but other files of that segment exist."""
    CUT_SEGMENT = "cut segment"
    """The segment before the gap was longer: its file ends inside an entry, or its indexes name missing entries."""
    LOG_END = "log end"
    """The log ends below its checkpointed high watermark."""
    UNREADABLE = "nothing readable"
    """The last segment holds bytes, but does not begin with a whole entry: it may be encrypted or compressed."""
    TIERED = "tiered"
    """The log begins in a remote store: the first segment here starts above the log start offset."""
    NO_SNAPSHOT = "no snapshot"
    """A metadata log begins above 0, and no snapshot reaches its first offset (SEG-PDR-029)."""


@dataclass(frozen=True, slots=True)
class Gap:
    """Offsets that are missing from a log.

    Attributes:
        first_offset: the first missing offset.
        next_offset: base offset of the next segment; at the end of the log, the first offset that is not known to have
            existed.
        kind: what explains the gap.
        path: of the file that shows the gap: the log before it, or a file whose log is missing.
        position: end of the last whole entry in a log that was cut, in bytes; 0 if it is not known.
    """

    first_offset: int
    next_offset: int
    kind: GapKind
    path: str
    position: int = 0

    @property
    def missing(self) -> MissingOffsets:
        """The missing offsets."""
        return MissingOffsets(self.first_offset, self.next_offset)

    @property
    def damage(self) -> CorruptRecordError | None:
        """The damage that explains the gap: a log that was cut, or an entry with a wrong size; None for any other gap.

        Only the last segment may end inside an entry. Any other segment that does so breaks SEG-PDR-024.
        """
        if self.kind is not GapKind.CUT_SEGMENT:
            return None
        at = Location(self.path, self.position, "offset")
        expected = f"offsets up to {self.next_offset - 1}, where the next segment begins"
        return CorruptRecordError(
            at, "SEG-PDR-024", expected=expected, found=f"no whole entry from {self.first_offset} on"
        )

    def __str__(self) -> str:
        return f"{self.path}: {self.span_text}"

    @property
    def span_text(self) -> str:
        """The offsets and what explains their absence, as a short text."""
        if self.kind is GapKind.TIERED:
            return f"{self.first_offset} to {self.next_offset - 1} not here: {self.kind.value}"
        return f"{self.missing} ({self.kind.value})"


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """The end of a segment's log.

    Attributes:
        files: of the segment.
        next_offset: first offset after its last entry.
        has_tail: whether bytes that are no whole entry follow the last entry.
        position: where the last entry ends, in bytes; 0 if it is not known.
    """

    files: SegmentFiles
    next_offset: int
    has_tail: bool = False
    position: int = 0


def gap_after(listing: PartitionListing, end: SegmentEnd, following: int) -> Gap | None:
    """Return the gap between the end of a segment and the base offset of the next one; None if there is none.

    Args:
        listing: of the partition directory.
        end: of the segment.
        following: base offset of the next segment.
    """
    if end.next_offset >= following:
        return None
    offsets, position = range(end.next_offset, following), 0
    orphan = _first_in(offsets, listing.orphans)
    if orphan is not None:
        kind, path = GapKind.MISSING_LOG, orphan.path
    elif end.has_tail or _last_indexed_offset(end.files, listing.storage) in offsets:
        kind, path, position = GapKind.CUT_SEGMENT, end.files.log, end.position
    else:
        kind, path = GapKind.BETWEEN_SEGMENTS, end.files.log
    return Gap(end.next_offset, following, kind, str(path), position)


def gap_before(listing: PartitionListing, log_start_offset: int) -> Gap | None:
    """Return the gap before the first segment; None if there is none.

    Args:
        listing: of the partition directory.
        log_start_offset: as checkpointed; offsets below are not reported.
    """
    if not listing.segments:
        return None
    orphan = _first_in(range(log_start_offset, listing.base_offsets[0]), listing.orphans)
    if orphan is None:
        return unsnapshotted_gap(listing) or tiered_gap(listing, log_start_offset)
    return Gap(orphan.base_offset, listing.base_offsets[0], GapKind.MISSING_LOG, str(orphan.path))


def unsnapshotted_gap(listing: PartitionListing) -> Gap | None:
    """Return the offsets before a metadata log that no snapshot replaces; None if there are none (SEG-PDR-029)."""
    if not _is_metadata(listing) or not listing.base_offsets or not listing.base_offsets[0]:
        return None
    first = listing.base_offsets[0]
    if any(snapshot.base_offset >= first for snapshot in listing.metadata_snapshots):
        return None
    return Gap(0, first, GapKind.NO_SNAPSHOT, str(listing.path))


def _is_metadata(listing: PartitionListing) -> bool:
    return listing.name is not None and listing.name.topic in METADATA_TOPICS


def tiered_gap(listing: PartitionListing, log_start_offset: int) -> Gap | None:
    """Return the offsets that are only in a remote store; None if there are none (SEG-PDR-028).

    They begin at the first leader epoch or at the checkpointed log start offset, whichever is greater: leader epochs
    cover a log from its start, also the part that is remote.

    Args:
        listing: of the partition directory.
        log_start_offset: as checkpointed, else 0.
    """
    if not listing.segments or not listing.base_offsets[0] or _is_metadata(listing):
        return None
    first, start = listing.base_offsets[0], log_start_offset
    epochs = leader_epochs(listing)
    if epochs:
        start = max(start, epochs[0][1])
    is_known = bool(epochs) or start > 0
    return Gap(start, first, GapKind.TIERED, str(listing.path)) if is_known and start < first else None


def leader_epochs(listing: PartitionListing) -> Sequence[tuple[int, int]]:
    """Return leader epochs and their first offsets; none if their checkpoint is missing or cannot be read."""
    path = listing.text_files.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if path is None:
        return ()
    try:
        data = read_file(listing.storage, path)
        found = simple_epochs(data)
        return _decoded_epochs(data, path) if found is None else found
    except SeglogError:
        return ()


def _decoded_epochs(data: bytes, path: Path) -> Sequence[tuple[int, int]]:
    from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint  # noqa: PLC0415 - loads declarations

    return decode_leader_epoch_checkpoint(data, Location(str(path))).entries


def gap_at_end(listing: PartitionListing, log_end_offset: int) -> Gap | None:
    """Return the gap after the last segment, if index files without a log show one; None if there is none.

    The gap ends after the greatest offset in these indexes; the lost segments may have held more.
    """
    orphans = [file for file in listing.orphans if file.base_offset >= log_end_offset]
    if not orphans:
        return None
    files = ((file.name.kind, file.path, file.base_offset) for file in orphans)
    reached = [offset + 1 for offset in _indexed_offsets(files, listing.storage)]
    end = max(*reached, *(file.base_offset for file in orphans), log_end_offset)
    return Gap(log_end_offset, end, GapKind.MISSING_LOG, str(orphans[0].path))


def with_snapshot(listing: PartitionListing, gap: Gap) -> Gap:
    """Return a gap with the kind `MISSING_LOG` if there is a producer snapshot in it, else the same gap.

    A broker writes a snapshot where a segment begins. Call this only for logs that are not compacted: brokers before
    2.8 keep the snapshots of merged segments. The snapshot of an existing empty segment does not count.
    """
    first = gap.first_offset + (gap.first_offset in listing.base_offsets)
    snapshot = _first_in(range(first, gap.next_offset), listing.snapshots)
    if snapshot is None or gap.kind is not GapKind.BETWEEN_SEGMENTS:
        return gap
    return replace(gap, kind=GapKind.MISSING_LOG, path=str(snapshot.path))


def _first_in(offsets: range, files: Sequence[NamedFile]) -> NamedFile | None:
    return next((file for file in files if file.base_offset in offsets), None)


def _last_indexed_offset(files: SegmentFiles, storage: LogStorage) -> int:
    indexes = ((FileKind.OFFSET_INDEX, files.offset_index), (FileKind.TIME_INDEX, files.time_index))
    present = ((kind, path, files.base_offset) for kind, path in indexes if path is not None)
    return max(_indexed_offsets(present, storage), default=-1)


def _indexed_offsets(indexes: Iterable[tuple[FileKind, Path, int]], storage: LogStorage) -> Iterator[int]:
    """Yield the offset in the last entry of each offset and time index."""
    for kind, path, base_offset in indexes:
        index: OffsetIndex | TimeIndex | None = None
        if kind is FileKind.OFFSET_INDEX:
            index = readable(partial(OffsetIndex.open, storage=storage), path, base_offset)
        elif kind is FileKind.TIME_INDEX:
            index = readable(partial(TimeIndex.open, storage=storage), path, base_offset)
        if index is None:
            continue
        with index:
            entries = index.raw_entries()
            if entries:
                yield entries[-1].offset
