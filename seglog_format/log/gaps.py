"""Offsets that are missing between segments, and why (chapter 10).

The offsets of a log have no gaps, unless compaction has removed records. If there is a gap at the border of two
segments, this module finds what explains it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seglog_format.errors import (
    CorruptRecordError,
    FormatError,
    Location,
    MissingOffsetsWarning,
    warn_caller,
)
from seglog_format.log.entry_table import DISORDER
from seglog_format.log.index_file import OffsetIndex, TimeIndex, readable
from seglog_format.log.listing import (
    DELETED,
    SegmentFiles,
    checkpointed_offset,
    greatest,
    leader_epochs,
    list_partition,
    reached_offsets,
)
from seglog_format.log.segment import LogSegment
from seglog_format.model import INT32_MAX, INT64_MAX, CompressionCodec, MessageHeader, MissingOffsets, TailKind
from seglog_format.names import CONSUMER_OFFSETS, METADATA_TOPICS, TRANSACTION_STATE, FileKind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from seglog_format.log.entry_table import Overlap
    from seglog_format.log.listing import NamedFile, PartitionListing
    from seglog_format.model import Frame, OffsetPosition, TimestampOffset
    from seglog_format.storage.log_storage import LogStorage

    OnGap: TypeAlias = Callable[["Gap"], None]
    OnCorrupt: TypeAlias = Callable[[FormatError], None]
    AtBorder: TypeAlias = Callable[[int, int, int | None, int | None], None]


INDEXES: Final[dict[FileKind, type[OffsetIndex | TimeIndex]]] = {
    FileKind.OFFSET_INDEX: OffsetIndex,
    FileKind.TIME_INDEX: TimeIndex,
}
ROOM_BYTES: Final = 1 << 20
"""Bytes of an append at an indexed position: the default of `message.max.bytes`. A byte has room for one offset."""
USUAL_SEGMENT_BYTES: Final = 1 << 30
"""The default of `segment.bytes`: a time index names no position."""


class GapKind(Enum):
    """The explanation of a gap."""

    BETWEEN_SEGMENTS = "between segments"
    """No explanation: every existing file is whole."""
    MISSING_LOG = "missing log"
    """The `.log` file of a segment is missing, but other files of that segment exist."""
    CUT_SEGMENT = "cut segment"
    """The segment before the gap was longer: its file ends inside an entry, or its indexes name missing entries."""
    DAMAGED = "damaged"
    """The segment before the gap has an entry after which no other can be found."""
    SNAPSHOT = "producer snapshot"
    """The log ends below a producer snapshot, which a broker writes when the log has reached it (SEG-PSN-008)."""
    REPLACED = "replaced log"
    """A log that a `.swap` file replaces has these offsets, and no replacement has offsets so high (SEG-PDR-025)."""
    EPOCH = "leader epoch"
    """The log ends below its last leader epoch, which begins at the end that the log had (SEG-APP-016)."""
    LOG_END = "log end"
    """The log ends below its offset in a checkpoint (SEG-CKP-012)."""
    UNREADABLE = "nothing readable"
    """The last segment holds bytes, but does not begin with a whole entry: it may be encrypted or compressed."""
    TIERED = "tiered"
    """The log begins in a remote store: the first segment here starts above the log start offset."""
    HIDDEN = "hidden entries"
    """Damage of the last segment hides entries: intact ones may follow one that is cut short (SEG-LOG-004)."""
    OVERLAP = "overlapping entries"
    """Entries are there, but begin below the end of the entry before them, so readers skip records (SEG-LOG-007)."""
    CONTROL_BIT = "control bit without control records"
    """Entries are there, but have a control bit, and keys of no control record: readers skip them (SEG-CTL-001)."""
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
        error: what hides the offsets of the last segment; None for any other gap.
    """

    first_offset: int
    next_offset: int
    kind: GapKind
    path: str
    position: int = 0
    error: FormatError | None = None

    @property
    def missing(self) -> MissingOffsets:
        """The missing offsets."""
        return MissingOffsets(self.first_offset, self.next_offset)

    @property
    def is_loss(self) -> bool:
        """Whether nothing known holds the offsets: a remote store holds those of a tiered log."""
        return self.kind is not GapKind.TIERED

    def as_object(self) -> dict[str, int | str]:
        """Return it for JSON."""
        return {**self.missing.as_object(), "reason" if self.is_loss else "where": self.kind.value}

    @property
    def damage(self) -> FormatError | None:
        """The damage that explains the gap: a log that was cut, or an entry with a wrong size; None for any other gap.

        Only the last segment may end inside an entry. Any other segment that does so breaks SEG-PDR-024.
        """
        if self.kind is not GapKind.CUT_SEGMENT:
            return self.error
        at = Location(self.path, self.position, "offset")
        expected = f"offsets up to {self.next_offset - 1}, where the next segment begins"
        return CorruptRecordError(
            at, "SEG-PDR-024", expected=expected, found=f"no whole entry from {self.first_offset} on"
        )

    @property
    def undecided(self) -> CorruptRecordError:
        """The error for a reader of committed records, if a transaction was open where the offsets are missing."""
        at = Location(self.path, self.position, "offset")
        expected = "no transaction that is open where offsets are lost"
        return CorruptRecordError(at, "SEG-LKP-012", expected=expected, found=f"one before {self.missing}")

    def __str__(self) -> str:
        return f"{self.path}: {self.span_text}"

    @property
    def span_text(self) -> str:
        """The offsets and what explains their absence, as a short text."""
        if not self.is_loss:
            return f"{self.first_offset} to {self.next_offset - 1} not here: {self.kind.value}"
        return f"{self.missing} ({self.kind.value})"


@dataclass(frozen=True, slots=True)
class SegmentEnd:
    """The end of a segment's log.

    Attributes:
        files: of the segment.
        next_offset: first offset after its last entry.
        has_tail: whether bytes that are no whole entry follow the last entry.
        is_zeros: whether these are all zeros, as in a file that was preallocated (SEG-LOG-005).
        position: where the last entry ends, in bytes; 0 if it is not known.
        damage: what hides the end; None if it is known.
    """

    files: SegmentFiles
    next_offset: int
    has_tail: bool = False
    position: int = 0
    damage: FormatError | None = None
    is_zeros: bool = False


def gap_after(listing: PartitionListing, end: SegmentEnd, following: int, log_start_offset: int = 0) -> Gap | None:
    """Return the gap between the end of a segment and the base offset of the next one; None if there is none.

    Args:
        listing: of the partition directory.
        end: of the segment.
        following: base offset of the next segment.
        log_start_offset: as checkpointed; offsets below were deleted, and are not missing.
    """
    first = max(end.next_offset, log_start_offset)
    if first >= following:
        return None
    offsets, position = range(first, following), 0
    orphan = _first_in(offsets, listing.orphans)
    if orphan is not None:
        kind, path = GapKind.MISSING_LOG, orphan.path
    elif end.has_tail or _last_indexed_offset(end.files, listing.storage) in offsets:
        kind, path, position = GapKind.CUT_SEGMENT, end.files.log, end.position
    else:
        kind, path = GapKind.BETWEEN_SEGMENTS, end.files.log
    return Gap(first, following, kind, str(path), position)


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


class EndProof(NamedTuple):
    """An offset that a log had reached, and the file that proves it.

    Attributes:
        offset: the first offset that is not known to have existed.
        kind: of the gap from the end of the log to this offset.
        path: of the file that proves it; None for a checkpoint of the log directory.
    """

    offset: int
    kind: GapKind
    path: Path | None = None


def end_proofs(listing: PartitionListing, epochs: Sequence[tuple[int, int]]) -> Iterator[EndProof]:
    """Yield the ends that a log had by its files: the last snapshot, the last leader epoch, and logs that are replaced.

    Args:
        listing: of the partition directory.
        epochs: as `leader_epochs` has read them before the log was read, unless its end is read again: a running broker
            appends, and then begins an epoch at the new end.
    """
    yield from (EndProof(each.base_offset, GapKind.SNAPSHOT, each.path) for each in listing.snapshots[-1:])
    for files in listing.replaced_logs:
        yield EndProof(end_in_range(files, listing.storage), GapKind.REPLACED, files.log)
    path = listing.text_files.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if all(one[0] < other[0] and one[1] <= other[1] for one, other in pairwise(epochs)):  # else it is damaged
        yield from (EndProof(start, GapKind.EPOCH, path) for _, start in epochs[-1:])


def greatest_proofs(proofs: Iterable[EndProof], reached: int, is_compacted: Callable[[], bool]) -> list[EndProof]:
    """Return the proofs of the greatest end above the offset that a log has reached; none if it had no greater end.

    The last epoch proves nothing of a compacted log: a follower stores it before its first batch, which may begin above
    the end.

    Args:
        proofs: of ends that the log had.
        reached: the log end offset, or a greater one that is accounted for.
        is_compacted: asked only if an epoch begins above that.
    """
    above = [proof for proof in proofs if proof.offset > reached]
    if any(proof.kind is GapKind.EPOCH for proof in above) and is_compacted():
        above = [proof for proof in above if proof.kind is not GapKind.EPOCH]
    greatest = max((proof.offset for proof in above), default=reached)
    return [proof for proof in above if proof.offset == greatest]


def overreach(listing: PartitionListing) -> Gap | None:
    """Return the offsets of replaced logs above the replacements, if one of these ends above all logs that it replaces.

    Compaction and a split give no entry a new offset. Here the offset of an entry is damaged, and its file covers
    segments that it was not made of (SEG-PDR-010).
    """
    replaced, new = listing.replaced_logs, [files for files in listing.segments if files.is_replacement]
    if not replaced or not new:
        return None
    removed = (file for file in listing.set_aside if file.name.suffix == DELETED and file.name.kind is FileKind.LOG)
    old = (*replaced, *(SegmentFiles(file.base_offset, file.path) for file in removed))
    limit = max(end_in_range(files, listing.storage) for files in old)
    reached = max(_end_up_to(files, limit - 1, listing.storage) for files in new)
    if reached >= limit or max(_end_up_to(files, INT64_MAX, listing.storage) for files in new) <= limit:
        return None
    return Gap(reached, limit, GapKind.REPLACED, str(new[0].log))


def end_in_range(files: SegmentFiles, storage: LogStorage) -> int:
    """Return the end of a log; an entry that no index of its segment can name is damaged, and proves nothing."""
    return _end_up_to(files, files.base_offset + INT32_MAX, storage)


def _end_up_to(files: SegmentFiles, last_offset: int, storage: LogStorage) -> int:
    """Return the first offset after the entries of a log that end at an offset at most; its base offset without any."""
    reached = files.base_offset
    with suppress(FormatError), LogSegment(files, storage=storage) as segment:
        for frame in segment.frames():
            if frame.header.last_offset <= last_offset:
                reached = max(reached, frame.header.next_offset)
    return reached


def skipped_gap(path: str, reached: int, following: int, position: int) -> Gap:
    """Return the offsets of an entry of a log that readers skip; arguments as of `GapWatch.at_border`."""
    kind = GapKind.OVERLAP if following < reached else GapKind.CONTROL_BIT
    return Gap(min(reached, following), max(reached, following), kind, path, position)


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
    """Yield the offset in the last entry of each offset and time index that the log had room for.

    An entry that names a higher offset is damaged, so it proves nothing.
    """
    for kind, path, base_offset in indexes:
        if kind not in INDEXES:
            continue
        opener: Callable[[Path, int], OffsetIndex | TimeIndex] = partial(INDEXES[kind].open, storage=storage)
        if (index := readable(opener, path, base_offset)) is None:
            continue
        with index:
            entries: Sequence[OffsetPosition | TimestampOffset] = index.raw_entries()
            for entry in reversed(entries):
                if entry.offset - base_offset < ROOM_BYTES + getattr(entry, "position", USUAL_SEGMENT_BYTES):
                    yield entry.offset
                    break


# -- signs that a log is compacted; compaction explains missing offsets (SEG-PDR-023) ----------------------------------


COMPACTED_TOPICS: Final = frozenset({CONSUMER_OFFSETS, TRANSACTION_STATE})
"""Topics that brokers create with ``cleanup.policy=compact``; all their other topics have ``delete``."""


def shows_compaction(listing: PartitionListing, cleaned_to: int | None) -> bool:
    """Return whether there is a sign that a log is compacted (SEG-PDR-023).

    The signs are the topic's name, an entry in the cleaner's checkpoint, and an offset that is missing inside a
    segment, which only compaction causes. To find such an offset, headers are walked, and compressed wrappers of magic
    0 or 1 are decoded.

    Args:
        listing: of the partition directory.
        cleaned_to: the partition's offset in ``cleaner-offset-checkpoint``; None if it is not listed.
    """
    topic = None if listing.name is None else listing.name.topic
    if cleaned_to is not None or topic in COMPACTED_TOPICS:
        return True
    damaged = overreach(listing) is not None
    kept = tuple(files for files in listing.segments if not (damaged and files.is_replacement))
    return any(map(_has_inner_gap, _segments(listing._replace(segments=kept))))


def _segments(listing: PartitionListing) -> Iterator[LogSegment]:
    for files in listing.segments:
        with LogSegment(files, storage=listing.storage) as segment:
            yield segment


def _has_inner_gap(segment: LogSegment) -> bool:
    next_offset = segment.base_offset
    try:
        for frame in segment.frames():
            if not _is_dense(segment, frame, next_offset):
                return True
            next_offset = frame.header.next_offset
    except FormatError:
        return False  # entries after the damage are unknown
    return False


def _is_dense(segment: LogSegment, frame: Frame, next_offset: int) -> bool:
    """Return whether an entry begins at an offset and holds a record for each offset up to its last."""
    header = frame.header
    if not isinstance(header, MessageHeader):
        return header.base_offset <= next_offset and header.records_count > header.last_offset_delta
    if header.codec_id == CompressionCodec.NONE:
        return header.last_offset <= next_offset
    try:
        offsets = [message.offset for message in segment.decode(frame).records]
    except FormatError:
        return True
    return not offsets or (offsets[0] <= next_offset and len(offsets) > offsets[-1] - offsets[0])


# -- reports of offsets that are missing between the segments of a partition, made to a reader that passes them --------


class GapWatch:
    """Reports missing offsets between the segments of a partition to its readers.

    A reader calls `at_border` only if the next segment does not begin with the next offset. Only then are the files
    read that explain the gap.

    Attributes:
        listing: of the partition directory.
    """

    def __init__(self, listing: PartitionListing, *, log_start_offset: int, checkpointed_end: int) -> None:
        """Watch a partition.

        Args:
            listing: of the directory.
            log_start_offset: as checkpointed, else 0; offsets below are not reported.
            checkpointed_end: the greatest offset that the log had reached by any checkpoint; 0 without.
        """
        self.listing = listing
        self._log_start_offset = log_start_offset
        self._checkpointed_end = checkpointed_end

    def at_start(self, on_gap: OnGap, from_offset: int | None = None, to_offset: int = INT64_MAX) -> None:
        """Report what is missing before the first segment, or in a log without any, or because of a replacement.

        Args:
            on_gap: called with each gap.
            from_offset: first offset to read, not below the first segment; None to read from the start of the log.
            to_offset: first offset not to read.
        """
        if not self.listing.segments:
            _report(on_gap, self._gap_at_end(self._log_start_offset, self.listing.path))
            return
        if from_offset is None:
            _report(on_gap, gap_before(self.listing, self._log_start_offset))
        gap, first = self._overreach, from_offset or 0
        if gap is not None and first < gap.next_offset and gap.first_offset < to_offset:
            on_gap(replace(gap, first_offset=max(gap.first_offset, first)))

    @cached_property
    def _overreach(self) -> Gap | None:
        return overreach(self.listing)

    def inside(
        self, on_gap: OnGap, base_offset: int, reached: int, following: int | None, left_at: int | None = None
    ) -> None:
        """Report offsets that readers skip although an entry of a segment has them; arguments as of `at_border`."""
        if following is not None and left_at is not None:
            on_gap(skipped_gap(str(self._files_of(base_offset).log), reached, following, left_at))

    def at_border(
        self, on_gap: OnGap, base_offset: int, reached: int, following: int | None, left_at: int | None = None
    ) -> None:
        """Report offsets that are missing after a segment, or that readers skip although an entry of it has them.

        Args:
            on_gap: called with the gap.
            base_offset: of the segment.
            reached: first offset after the entries that were read of the segment.
            following: base offset of the next segment; None if there is none. With `left_at`, of the next entry of the
                same segment, which overlaps those before it; or the first offset after an entry that begins at
                `reached`, and whose control bit hides its records.
            left_at: position of the bytes after these entries, if there are any and no segment follows; of the entry
                that overlaps, or whose records are hidden.
        """
        if following is not None and left_at is not None:
            self.inside(on_gap, base_offset, reached, following, left_at)
            return
        error = None if left_at is None else self._hiding(left_at)
        if error is not None:
            end_offset = self._proved_end(reached).offset
            _report(on_gap, Gap(reached, end_offset, GapKind.HIDDEN, error.location.path, left_at or 0, error))
            return
        is_empty = reached <= base_offset
        is_last = following is None and not self.listing.orphans
        if is_last and reached >= self._proved_end(reached).offset and not is_empty:
            return
        end = self._end_of(base_offset, reached)
        if (damage := end.damage) is not None:
            if end.next_offset < (following or 0) and DISORDER.isdisjoint(damage.requirements):
                position = damage.location.position
                _report(on_gap, Gap(end.next_offset, following or 0, GapKind.DAMAGED, str(end.files.log), position))
            return
        if following is None:
            _report(on_gap, self._gap_at_end(end.next_offset, end.files.log) or _unreadable(end))
            return
        gap = gap_after(self.listing, end, following, self._log_start_offset)
        if gap is not None and gap.kind is GapKind.BETWEEN_SEGMENTS:
            gap = None if self.is_compacted else with_snapshot(self.listing, gap)
        _report(on_gap, gap)

    def lost_before(self, base_offset: int, reached: int) -> Gap | None:
        """Return what is lost before a segment; None if nothing above the log start is, or if compaction removed it.

        Args:
            base_offset: of the segment.
            reached: first offset after the entries that were read before it.
        """
        found: list[Gap] = []
        if reached < base_offset > self._log_start_offset and base_offset > self.listing.base_offsets[0]:
            before = self.listing.base_offsets.index(base_offset) - 1
            self.at_border(found.append, self.listing.base_offsets[before], reached, base_offset)
        return next((gap for gap in found if gap.is_loss), None)

    def gaps(self, reached: Mapping[int, int], overlaps: Mapping[int, Sequence[Overlap]] | None = None) -> list[Gap]:
        """Return the offsets that are missing before the first segment, and inside and after some of the segments.

        Args:
            reached: by base offset of a segment, the first offset after the entries that were read of it; its own base
                offset if none was.
            overlaps: by base offset of a segment, its overlapping entries; None to walk over the headers for them.
        """
        found: list[Gap] = []
        self.at_start(found.append)
        for (base_offset, *_), following in self.listing.with_following:
            if base_offset not in reached:
                continue
            found += self.overlaps(base_offset, None if overlaps is None else overlaps[base_offset])
            if following is None or reached[base_offset] < following:
                self.at_border(found.append, base_offset, reached[base_offset], following)
        return found

    def overlaps(self, base_offset: int, known: Sequence[Overlap] | None = None) -> list[Gap]:
        """Return the offsets that overlapping entries of a segment hide; without known ones, look for them."""
        found: list[Gap] = []
        if known is None:
            with LogSegment(self._files_of(base_offset), storage=self.listing.storage) as segment:
                known = tuple(segment.decoded_overlaps())
        for position, first, end in known:
            self.at_border(found.append, base_offset, end, first, position)
        return found

    def behind_damage(self) -> Iterator[Gap]:
        """Yield what damage of the last segment's headers hides, a gap of unknown size."""
        for base in self.listing.base_offsets[-1:]:
            end = self._end_of(base, base)
            if (error := end.damage or self._hiding(end.position)) is not None:
                yield Gap(end.next_offset, end.next_offset, GapKind.HIDDEN, str(end.files.log), end.position, error)

    def _hiding(self, position: int) -> FormatError | None:
        """Return the error of the last log if intact entries follow one that is cut short; the reader has any other."""
        with LogSegment(self.listing.segments[-1], storage=self.listing.storage) as segment:
            try:
                segment.refuse_hidden_entries(position)
            except FormatError as error:
                return error if error.requirements == ("SEG-LOG-004",) else None
        return None

    def _files_of(self, base_offset: int) -> SegmentFiles:
        return self.listing.segments[self.listing.base_offsets.index(base_offset)]

    def _end_of(self, base_offset: int, reached: int) -> SegmentEnd:
        """Return where a segment ends, or where damage hides its end."""
        files = self._files_of(base_offset)
        with LogSegment(files, storage=self.listing.storage) as segment:
            tail, next_offset = segment.tail, max(reached, segment.next_offset)
            if tail is None:
                return SegmentEnd(files, next_offset, damage=segment.damage)
            has_tail, is_zeros = tail.kind is not TailKind.NONE, tail.kind is TailKind.ZEROS
            return SegmentEnd(files, next_offset, has_tail, tail.position, is_zeros=is_zeros)

    def _gap_at_end(self, log_end_offset: int, path: Path) -> Gap | None:
        gap = gap_at_end(self.listing, log_end_offset)
        end, kind, proof = self._proved_end(log_end_offset)
        if gap is None:
            is_lost = end > log_end_offset and end > self._end_now()
            return Gap(log_end_offset, end, kind, str(proof or path)) if is_lost else None
        return replace(gap, next_offset=max(gap.next_offset, end))

    def _end_now(self) -> int:
        """Return the end of the last log of the directory as it is now; 0 without a log.

        After the directory was listed, a broker that is running may have appended to the last log, begun another, and
        stored the high watermark that it then had. A log that is listed after that file was read holds these offsets.
        """
        listing = list_partition(self.listing.path, self.listing.storage)
        last = listing._replace(segments=listing.segments[-1:])
        return max((segment.next_offset for segment in _segments(last)), default=0)

    @cached_property
    def _end_proofs(self) -> Sequence[EndProof]:
        """The ends that the log had reached by its checkpoints, and by files beside it, other than indexes."""
        end, epochs = EndProof(self._checkpointed_end, GapKind.LOG_END), leader_epochs(self.listing)
        return (end, *end_proofs(self.listing, epochs))

    def _proved_end(self, reached: int) -> EndProof:
        """Return the first of the greatest proofs; the offset that is reached if none is above it."""
        above = greatest_proofs(self._end_proofs, reached, lambda: self.is_compacted)
        return above[0] if above else EndProof(reached, GapKind.LOG_END)

    @cached_property
    def is_compacted(self) -> bool:
        """Return whether the log is compacted, as far as that is known (SEG-PDR-023)."""
        cleaned_to = checkpointed_offset(self.listing, FileKind.CLEANER_OFFSET_CHECKPOINT)
        return shows_compaction(self.listing, cleaned_to)


def watch_over(listing: PartitionListing) -> GapWatch:
    """Return a watch over a partition that uses the checkpoints of the log directory above."""
    reached = reached_offsets(listing)
    start = reached[FileKind.LOG_START_OFFSET_CHECKPOINT] or 0
    return GapWatch(listing, log_start_offset=start, checkpointed_end=greatest(reached.values()))


def _unreadable(end: SegmentEnd) -> Gap | None:
    """Return a gap after a last segment that holds bytes, but no readable entry; None for any other segment."""
    base = end.files.base_offset
    if not end.has_tail or end.is_zeros or end.next_offset > base:
        return None
    return Gap(base, base, GapKind.UNREADABLE, str(end.files.log))


def reporting(on_gap: OnGap | None, on_corrupt: OnCorrupt | None) -> OnGap:
    """Return what to call with a gap: a warning by default, and `on_corrupt` first with the damage that explains it."""
    callback = warn_of_gap if on_gap is None else on_gap
    return callback if on_corrupt is None else partial(_report_both, on_corrupt, callback)


def _report_both(on_corrupt: OnCorrupt, on_gap: OnGap, gap: Gap) -> None:
    if (damage := gap.damage) is not None:
        on_corrupt(damage)
    if gap.kind is not GapKind.DAMAGED:  # the reader has got that damage
        on_gap(gap)


def _report(on_gap: OnGap, gap: Gap | None) -> None:
    if gap is not None:
        on_gap(gap)


def warn_of_gap(gap: Gap) -> None:
    """Raise a Python warning that points at the line of the caller outside of this package."""
    warn_caller(str(gap), MissingOffsetsWarning)
