"""Checks of chapter 10: names, files that belong together, the order of segments, and what is missing between them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Finding, Problem, checks, findings_of
from seglog_format.errors import FormatError, Location
from seglog_format.log.gaps import (
    Gap,
    GapKind,
    SegmentEnd,
    end_proofs,
    gap_after,
    gap_at_end,
    gap_before,
    greatest_proofs,
    overreach,
    shows_compaction,
    with_snapshot,
)
from seglog_format.log.segment import LogSegment
from seglog_format.model import TailKind
from seglog_format.names import (
    EARLY_METADATA_TOPIC,
    MAX_TOPIC_SIZE,
    FileKind,
    FileName,
    PartitionDirectoryName,
    is_legal_topic,
    is_usual_unique,
    printable,
)
from seglog_format.recovery.start_problems import StartEffect, without_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_format.checks.text_files import LogEnds
    from seglog_format.log.gaps import EndProof
    from seglog_format.log.listing import PartitionListing, SegmentFiles
    from seglog_format.log.remote_store import KnowsTiered, RemoteOffsets
    from seglog_format.model import MissingOffsets


@dataclass(frozen=True, slots=True)
class NumberedName:
    """A file whose name has an offset."""

    path: str
    name: FileName

    def problem(self, expected: str, found: object) -> Problem:
        """Return a problem with the name."""
        return Problem(Location(self.path, field="name"), expected, found)


@dataclass(frozen=True, slots=True)
class DirectoryName:
    """A partition directory and its parsed name."""

    path: str
    name: PartitionDirectoryName


@dataclass(frozen=True, slots=True)
class SegmentState:
    """A segment of a partition: its files, and where its log ends.

    Attributes:
        path: of the log.
        base_offset: from the file name.
        next_offset: the first offset after its last intact entry; the base offset without one.
        missing: kinds of missing index files.
        is_end_known: whether the last entry is intact, and the bytes after it cannot be another.
        has_tail: whether bytes that are not a whole entry follow the last one.
    """

    path: str
    base_offset: int
    next_offset: int
    missing: tuple[str, ...] = ()
    is_end_known: bool = True
    has_tail: bool = False


@dataclass(frozen=True, slots=True)
class Orphan:
    """An index file without a log.

    Attributes:
        path: of the file.
        missing: offsets that no other segment holds; None if another one does, or another file reports them.
    """

    path: str
    missing: MissingOffsets | None = None


@dataclass(frozen=True, slots=True)
class PartitionState:
    """The content of a partition directory.

    Attributes:
        path: of the directory.
        segments: by ascending base offset.
        orphans: index files without a log.
        has_metadata_snapshot: whether it has a metadata snapshot.
    """

    path: str
    segments: tuple[SegmentState, ...]
    orphans: tuple[Orphan, ...]
    has_metadata_snapshot: bool = False


@checks("SEG-PDR-002")
def legal_topic(directory: DirectoryName) -> Iterator[Problem]:
    """Report an illegal topic name, which brokers check only when a topic is created."""
    if not is_legal_topic(directory.name.topic) and directory.name.topic != EARLY_METADATA_TOPIC:
        expected = f"a topic of 1 to {MAX_TOPIC_SIZE} of the characters a-z A-Z 0-9 . _ -"
        yield Problem(Location(directory.path, field="topic"), expected, printable(directory.name.topic))


@checks("SEG-PDR-004")
def usual_unique_part(directory: DirectoryName) -> Iterator[Problem]:
    """Report an unusual unique part of a renamed directory's name."""
    name = directory.name
    if name.state and not is_usual_unique(name.unique):
        location = Location(directory.path, field="unique")
        yield Problem(location, "32 lower-case hexadecimal digits", printable(name.unique))


@checks("SEG-PDR-017")
def plain_partition(directory: DirectoryName) -> Iterator[Problem]:
    """Report a partition number in a form that brokers accept but do not write."""
    if not directory.name.has_plain_partition:
        location = Location(directory.path, field="partition")
        yield Problem(location, str(directory.name.partition), printable(directory.name.digits))


@checks("SEG-PDR-005")
def twenty_digits(file: NumberedName) -> Iterator[Problem]:
    """Report an offset without exactly 20 digits: a broker opens the 20-digit name, and creates that file."""
    if not file.name.has_twenty_digits:
        yield file.problem("an offset in 20 digits", printable(file.name.digits))


@checks("SEG-PDR-006")
def ascii_digits(file: NumberedName) -> Iterator[Problem]:
    """Report digits other than ASCII; brokers write them under some locales."""
    if not file.name.has_ascii_digits:
        yield file.problem("ASCII digits", printable(file.name.digits))


@checks("SEG-PDR-008")
def index_has_log(partition: PartitionState) -> Iterator[Problem]:
    """Report an index without a log; brokers delete such an index."""
    for orphan in partition.orphans:
        yield Problem(Location(orphan.path), "a .log file of the same base offset", "none", orphan.missing)


@checks("SEG-PDR-012")
def index_files_exist(partition: PartitionState) -> Iterator[Problem]:
    """Report a missing index; a broker may create it later, or rebuild it."""
    for segment in partition.segments:
        if segment.missing:
            yield Problem(Location(segment.path), "index files beside it", f"no {' and no '.join(segment.missing)}")


@checks("SEG-PDR-013")
def segments_do_not_overlap(partition: PartitionState) -> Iterator[Problem]:
    """Report a segment whose offsets reach into the next."""
    for segment, following in pairwise(partition.segments):
        if segment.next_offset > following.base_offset:
            expected = f"offsets below {following.base_offset}, where the next segment begins"
            yield Problem(Location(segment.path, field="offset"), expected, segment.next_offset - 1)


@checks("SEG-PDR-016")
def segments_exist(partition: PartitionState) -> Iterator[Problem]:
    """Report a directory without a segment, unless its node was formatted but never started."""
    if not partition.segments and not partition.has_metadata_snapshot:
        yield Problem(Location(partition.path), "a .log file", "none")


# -- checks of chapters 10, 50 and 51 about missing offsets: between segments, and at the end of the log --------------


@dataclass(frozen=True, slots=True)
class FoundGap:
    """A gap before, between or after segments, and the facts that may explain it.

    Attributes:
        gap: the gap.
        is_compacted: whether compaction may have made it.
        remote: the remote segments with its offsets; None if no remote store is known.
    """

    gap: Gap
    is_compacted: bool
    remote: RemoteOffsets | None = None

    @property
    def bound(self) -> tuple[str, int]:
        """What is expected of an offset that the log has reached, and that offset."""
        return f"at most {self.gap.first_offset}, the log end offset", self.gap.next_offset

    def problem(self, expected: str, found: str, *, is_explained: bool = False) -> Problem:
        """Return a problem located in the file that shows the gap."""
        return Problem(Location(self.gap.path, field="offset"), expected, found, self.gap.missing, is_explained)


@checks("SEG-PDR-014")
def segments_join(found: FoundGap) -> Iterator[Problem]:
    """Report offsets that are missing between segments; only compaction removes such offsets."""
    if found.gap.kind is GapKind.BETWEEN_SEGMENTS:
        expected = f"the next segment to begin at {found.gap.first_offset}"
        yield found.problem(expected, f"one that begins at {found.gap.next_offset}", is_explained=found.is_compacted)


@checks("SEG-PDR-024")
def side_files_know_no_more(found: FoundGap) -> Iterator[Problem]:
    """Report an index that names missing offsets; compaction rewrites the indexes as well."""
    if found.gap.kind is GapKind.CUT_SEGMENT:
        expected = f"offsets up to {found.gap.next_offset - 1}, where the next segment begins"
        yield found.problem(expected, f"the end of the file after {found.gap.first_offset - 1}")
    elif found.gap.kind is GapKind.MISSING_LOG:
        yield found.problem("a segment with the offset in the name of this file", "none")


@checks("SEG-PDR-028")
def segments_begin_at_log_start(found: FoundGap) -> Iterator[Problem]:
    """Report that a log begins in a remote store; if the store is known, report offsets that are not in it."""
    gap, remote = found.gap, found.remote
    if gap.is_loss:
        return
    expected = f"a first segment that begins at {gap.first_offset}, the log start offset"
    begins = f"one that begins at {gap.next_offset}: the offsets before it are"
    if remote is None:
        yield Problem(Location(gap.path, field="offset"), expected, f"{begins} tiered")  # not known to be lost
        return
    for missing in remote.missing:
        offsets = f"a remote segment with the offsets {missing.first_offset} to {missing.next_offset - 1}"
        yield Problem(Location(gap.path, field="offset"), offsets, f"none in {remote.where}", missing)
    if not remote.missing:
        segments = f"{remote.segment_count} segment{'s' * (remote.segment_count != 1)}"
        yield found.problem(expected, f"{begins} in {segments} of {remote.where}", is_explained=True)


@checks("SEG-PDR-029")
def snapshot_reaches_metadata_log(found: FoundGap) -> Iterator[Problem]:
    """Report a metadata log whose first records are neither in it nor in a snapshot."""
    if found.gap.kind is GapKind.NO_SNAPSHOT:
        error = without_snapshot(found.gap)
        yield found.problem(error.expected, f"{error.found}: {StartEffect.REFUSES.value}")


@checks("SEG-PSN-008")
def snapshot_is_in_log(found: FoundGap) -> Iterator[Problem]:
    """Report a snapshot above the log end offset; a broker writes it when the log has reached its offset."""
    if found.gap.kind is GapKind.SNAPSHOT:
        yield Problem(Location(found.gap.path, field="name"), *found.bound, found.gap.missing)


@checks("SEG-CKP-012")
def epoch_is_in_log(found: FoundGap) -> Iterator[Problem]:
    """Report a last leader epoch above the log end offset; it begins at the end that the log had."""
    if found.gap.kind is GapKind.EPOCH:
        yield Problem(Location(found.gap.path, field="start_offset"), *found.bound, found.gap.missing)


@checks("SEG-PDR-025")
def replacement_reaches_as_far(found: FoundGap) -> Iterator[Problem]:
    """Report replacements that end early: compaction keeps the last segment, and a split drops nothing."""
    if found.gap.kind is GapKind.REPLACED:
        expected = f"replacements with offsets up to {found.gap.next_offset - 1}"
        yield found.problem(expected, f"none from {found.gap.first_offset} on")


class CheckedGaps:
    """Finds the offsets that are missing before, between and after the segments of a partition.

    Attributes:
        log_end_offset: the first offset after the last segment; the log start offset without a segment; None if
            damage hides the end.
    """

    def __init__(
        self,
        listing: PartitionListing,
        states: Sequence[SegmentState],
        checkpointed: Mapping[FileKind, int],
        epochs: Sequence[tuple[int, int]],
        *,
        is_compacted: bool | None,
        remote: KnowsTiered | None = None,
    ) -> None:
        """Find the gaps.

        Args:
            listing: of the directory.
            states: of its segments.
            checkpointed: the partition's offsets in the checkpoints of the log directory.
            epochs: what `leader_epochs` returned before the segments were read.
            is_compacted: whether the log is compacted; None if unknown.
            remote: finds the remote segments of offsets that are not in the directory.
        """
        self._listing = listing
        self._remote = remote
        self._is_compacted = is_compacted
        self._checkpointed = checkpointed
        self._epochs = epochs
        self._log_start_offset = checkpointed.get(FileKind.LOG_START_OFFSET_CHECKPOINT, 0)
        known = [self._walked(files, state) for files, state in zip(listing.segments, states, strict=True)]
        self.log_end_offset = self._end(known)
        self._gaps = [gap for gap in self._found(known) if gap is not None]
        self._of_orphans = {gap.path: gap.missing for gap in self._gaps if gap.kind is GapKind.MISSING_LOG}

    def _walked(self, files: SegmentFiles, state: SegmentState) -> SegmentState:
        """Return a state with the end that readers find: of most damaged entries, the header says where they end."""
        if state.is_end_known:
            return state
        with suppress(FormatError), LogSegment(files, storage=self._listing.storage) as segment:
            if (tail := segment.tail) is not None:
                end, has_tail = segment.next_offset, tail.kind is not TailKind.NONE
                return replace(state, next_offset=end, has_tail=has_tail, is_end_known=True)
        return state

    def _end(self, states: Sequence[SegmentState]) -> int | None:
        if not states:
            return self._log_start_offset
        return states[-1].next_offset if states[-1].is_end_known else None

    def _found(self, states: Sequence[SegmentState]) -> Iterator[Gap | None]:
        yield gap_before(self._listing, self._log_start_offset)
        ends = zip(self._listing.segments, states, strict=True)
        for (files, state), following in zip(ends, states[1:], strict=False):
            if state.is_end_known:
                end = SegmentEnd(files, state.next_offset, has_tail=state.has_tail)
                yield gap_after(self._listing, end, following.base_offset, self._log_start_offset)
        yield overreach(self._listing)
        if self.log_end_offset is not None and (gap := gap_at_end(self._listing, self.log_end_offset)) is not None:
            proved = max((*self._checkpointed.values(), *(proof.offset for proof in self._end_proofs)), default=0)
            yield replace(gap, next_offset=max(gap.next_offset, proved))

    @property
    def orphans(self) -> tuple[Orphan, ...]:
        """The index files without a log; the first of each gap names the missing offsets."""
        paths = (str(file.path) for file in self._listing.orphans)
        return tuple(Orphan(path, self._of_orphans.get(path)) for path in paths)

    def findings(self) -> Iterator[Finding]:
        """Yield findings about gaps, except those that an index file without a log shows."""
        gaps = [gap for gap in self._gaps if gap.path not in self._of_orphans]
        is_compacted = any(gap.kind is GapKind.BETWEEN_SEGMENTS for gap in gaps) and self.is_compacted()
        for gap in gaps:
            found = gap if is_compacted else with_snapshot(self._listing, gap)
            yield from self._findings_of(FoundGap(found, is_compacted))
        if self.log_end_offset is not None:
            yield from self._end_findings(self.log_end_offset)

    def _findings_of(self, found: FoundGap) -> Iterator[Finding]:
        """Yield findings about a gap, and about the files that name its offsets."""
        if self._remote is not None and not found.gap.is_loss:
            try:
                found = replace(found, remote=self._remote.located(self._listing, found.gap.missing))
            except FormatError as error:
                yield Finding.of_error(error)
        yield from findings_of(found)

    def is_compacted(self) -> bool:
        """Return whether the log is compacted, as far as that is known (SEG-PDR-023)."""
        if self._is_compacted is not None:
            return self._is_compacted
        return shows_compaction(self._listing, self._checkpointed.get(FileKind.CLEANER_OFFSET_CHECKPOINT))

    def _end_findings(self, log_end_offset: int) -> Iterator[Finding]:
        """Yield a finding for each file that proves the greatest end of the log, unless a checkpoint proves it."""
        for proof in self._end_proofs:
            gap = Gap(log_end_offset, proof.offset, proof.kind, str(proof.path))
            for finding in findings_of(FoundGap(gap, is_compacted=False)):
                yield replace(finding, missing=None) if self._is_last_log_lost else finding

    @cached_property
    def _end_proofs(self) -> Sequence[EndProof]:
        reached = max((self.log_end_offset or 0, *self._checkpointed.values()))
        return greatest_proofs(end_proofs(self._listing, self._epochs), reached, self.is_compacted)

    @property
    def _is_last_log_lost(self) -> bool:
        """Whether an index file without a log names all that is missing at the end."""
        return any(gap.kind is GapKind.MISSING_LOG and gap.first_offset == self.log_end_offset for gap in self._gaps)

    @property
    def ends(self) -> LogEnds | None:
        """The log end offset, and the end that its checkpoints prove; None if damage hides the end."""
        end, proved = self.log_end_offset, max(self._checkpointed.values(), default=0)
        # with other proofs, or without the last log, another finding names the loss
        return None if end is None else (end, 0 if self._end_proofs or self._is_last_log_lost else proved)
