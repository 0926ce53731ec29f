"""The file changes that carry out a recovery plan (chapter 71).

The order of the changes has one property: after a crash or a power cut at any moment, a new plan from the remaining
files finishes the work, and keeps the same records. So segments that a cut drops are removed before the cut is made.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, encode_leader_epoch_checkpoint
from seglog_format.errors import FormatError, Location, SeglogError
from seglog_format.log.index_file import ProducerSnapshot, encode_offset_index, encode_time_index, without_strays
from seglog_format.log.listing import CLEANED, DELETED, SWAP, SegmentFiles
from seglog_format.log.segment import LogSegment, OpenSegments
from seglog_format.names import (
    INDEX_KINDS,
    NUMBERED_KINDS,
    OFFSET_DIGITS,
    FileKind,
    parse_decimal,
    printable,
    segment_file_name,
)
from seglog_format.recovery.broker_scan import BrokerStopError, Outcome, broker_scan, trusted_end
from seglog_format.recovery.producer_states import forgets_producers, snapshot_steps
from seglog_format.recovery.segment_scan import Remark, removal_steps
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY
from seglog_format.state.producer_state import LeaderEpochs
from seglog_format.storage.byte_source import FileBytes, SourceFile, open_bytes, open_log, read_whole, starts_with
from seglog_format.storage.file_reader import FileReader
from seglog_format.storage.files import Remove, Rename, Replace, Truncate, settled
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.log.listing import NamedFile, PartitionListing
    from seglog_format.model import EpochStart
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.recovery.log_scans import LogScans
    from seglog_format.recovery.plan import Circumstances, RecoveryPlan
    from seglog_format.storage.files import FileStep
    from seglog_format.storage.log_storage import LogStorage


REBUILT: Final = "SEG-RCV-025"


@dataclass(frozen=True, slots=True)
class RecoveryWork:
    """A plan, and the values that it was made from.

    Attributes:
        listing: of the partition directory.
        segments: in order.
        circumstances: facts from the log directory.
        plan: the plan.
        settings: of the indexes.
        scans: of the segments.
        like_broker: create an empty time index for an unscanned segment without one, as brokers do.
        keeps_epochs: leave the leader epoch checkpoint unchanged.
    """

    listing: PartitionListing
    segments: Sequence[LogSegment]
    circumstances: Circumstances
    plan: RecoveryPlan
    settings: IndexSettings
    scans: LogScans
    like_broker: bool = False
    keeps_epochs: bool = False

    @property
    def directory(self) -> Path:
        """The partition directory."""
        return self.listing.path

    @property
    def kept(self) -> list[LogSegment]:
        """The segments that the plan keeps."""
        return [segment for segment in self.segments if segment.base_offset not in self.plan.dropped]

    def path_of(self, base_offset: int, kind: FileKind) -> Path:
        """Return the path of the file of one kind that belongs to a segment."""
        return self.directory / segment_file_name(base_offset, kind)

    def end_of(self, segment: LogSegment) -> int:
        """Return the number of bytes of a segment that stay."""
        cut = next((cut for cut in self.plan.cuts if cut.base_offset == segment.base_offset), None)
        return segment.source.size if cut is None else cut.position


def naming_steps(listing: PartitionListing) -> tuple[FileStep, ...]:
    """Give files in use the names that a broker opens (SEG-PDR-005)."""
    used: set[Path] = set()
    for files in listing.segments:
        companions = (files.log, files.offset_index, files.time_index, files.transaction_index, files.snapshot)
        used.update(path for path in companions if path is not None)
    in_use = [file for file in listing.files if file.path in used and not file.name.suffix]
    misnamed = [file for file in in_use if not file.name.is_canonical]
    targets = ((file.path, segment_file_name(file.base_offset, file.name.kind)) for file in misnamed)
    steps = (Rename(path, path.with_name(name), "SEG-PDR-005", replaces=False) for path, name in targets)
    return settled(steps, listing.path)


def recovery_steps(work: RecoveryWork) -> tuple[FileStep, ...]:
    """Drop and truncate segments, and make all other files agree with the logs."""
    written, epochs = _index_steps_and_epochs(work)
    removals = tuple(_snapshots(work))
    producers = tuple(_producers(work, removals))
    # a log that ends below its last base offset has this snapshot removed and written again at each start
    stays = {step.path for step in producers if step.path.exists() and _has_content(step.path, step.data)}
    return (
        *_drops(work),
        *_cuts(work),
        *_first_segment(work),
        *written,
        *settled((*_orphans(work), *(step for step in removals if step.path not in stays)), work.directory),
        *(step for step in producers if step.path not in stays),
        *_epoch_steps(work, epochs),
    )


def _drops(work: RecoveryWork) -> Iterator[FileStep]:
    """Remove the last segment first, and sync each removal before the next, so a power cut leaves no hole."""
    rule = "SEG-RCV-007" if work.plan.restarts else "SEG-RCV-004"
    for segment in reversed(work.segments):
        if segment.base_offset in work.plan.dropped:
            yield from settled(removal_steps(segment.paths, rule), work.directory)


def _cuts(work: RecoveryWork) -> Iterator[FileStep]:
    for cut in work.plan.cuts:
        if cut.base_offset not in work.plan.dropped:
            yield Truncate(work.path_of(cut.base_offset, FileKind.LOG), cut.position, cut.requirements[0])


def _first_segment(work: RecoveryWork) -> Iterator[FileStep]:
    if not work.kept:
        yield Replace(work.path_of(work.plan.log_end_offset, FileKind.LOG), b"", "SEG-RCV-030")


def _index_steps_and_epochs(work: RecoveryWork) -> tuple[list[FileStep], list[EpochStart]]:
    """Return the steps that write indexes, and the leader epochs of the changed segments."""
    steps: list[FileStep] = []
    epochs: list[EpochStart] = []
    changed = {*work.plan.scanned, *(cut.base_offset for cut in work.plan.cuts)}
    for segment in work.kept:
        lacks_time_index = work.settings.has_time_index and segment.paths.time_index is None
        if segment.base_offset not in changed and not lacks_time_index:
            continue
        paths = segment.paths
        rewrite = partial(_rewrite, work, segment.base_offset)
        if work.like_broker and segment.base_offset not in changed:
            steps += rewrite(FileKind.TIME_INDEX, paths.time_index, b"")
            continue
        found = work.scans.side_files(segment, work.end_of(segment))
        if segment.base_offset in changed:
            steps += rewrite(FileKind.OFFSET_INDEX, paths.offset_index, found.offset_index)
            if found.transaction_index or paths.transaction_index is not None:
                steps += rewrite(FileKind.TRANSACTION_INDEX, paths.transaction_index, found.transaction_index)
            epochs += found.epoch_starts
        if work.settings.has_time_index:
            steps += rewrite(FileKind.TIME_INDEX, paths.time_index, found.time_index)
    return steps, epochs


def _rewrite(work: RecoveryWork, base_offset: int, kind: FileKind, path: Path | None, data: bytes) -> list[FileStep]:
    if path is not None and path.exists() and _has_content(path, data):
        return []
    return [Replace(work.path_of(base_offset, kind), data, REBUILT)]


def _has_content(path: Path, data: bytes) -> bool:
    with open_bytes(path) as source:
        return source.size == len(data) and starts_with(source, data)


def _orphans(work: RecoveryWork) -> Iterator[FileStep]:
    for file in work.listing.orphans:
        yield Remove(file.path, "SEG-RCV-026")


def _snapshots(work: RecoveryWork) -> Iterator[Remove]:
    """Remove unreadable snapshots, those above the log end offset, and those at which no segment begins.

    The last snapshot stays if it is above all base offsets. Brokers remove that one also if it is not at the log end
    offset, where they write one after a scan. They also remove the snapshots at and below the log start offset,
    although the one at the first segment holds the transactions that are open there.
    """
    like_broker, end = work.like_broker, work.plan.log_end_offset
    bases = {segment.base_offset for segment in work.kept} or {work.plan.log_end_offset}
    present = _present_snapshots(work)
    kept = without_strays(present, bases)
    if like_broker and max(bases) in work.plan.scanned:
        kept = [file for file in kept if file.base_offset in {*bases, end}]
    start = max(min(bases), work.circumstances.log_start_offset) if like_broker else -1
    for file in present:
        if not start < file.base_offset <= end or not _is_readable(file.path):
            yield Remove(file.path, "SEG-RCV-027")
        elif file not in kept:
            yield Remove(file.path, "SEG-RCV-035")


def _present_snapshots(work: RecoveryWork) -> list[NamedFile]:
    """Return the snapshots that are not removed with their segment."""
    dropped = {segment.paths.snapshot for segment in work.segments if segment.base_offset in work.plan.dropped}
    return [file for file in work.listing.snapshots if file.path not in dropped]


def _producers(work: RecoveryWork, removals: Iterable[Remove]) -> Iterator[Replace]:
    """Write a snapshot of the producers if none remains, and a broker would forget them (SEG-PSN-010).

    A broker that is imitated writes one only if it knows the producers: it forgets those of a log without a snapshot.
    """
    remains = {file.path for file in _present_snapshots(work)} - {step.path for step in removals}
    if remains or not work.circumstances.has_clean_shutdown:
        return
    if work.like_broker and forgets_producers(work.segments, work.listing.snapshots, work.circumstances):
        return
    ends = [(segment, work.end_of(segment)) for segment in work.kept]
    path = work.path_of(work.plan.log_end_offset, FileKind.PRODUCER_SNAPSHOT)
    yield from snapshot_steps(path, ends, work.circumstances.log_start_offset)


def _is_readable(path: Path) -> bool:
    try:
        ProducerSnapshot.open(path)
    except FormatError:
        return False
    return True


def _epoch_steps(work: RecoveryWork, found: Sequence[EpochStart]) -> Iterator[FileStep]:
    """Drop epochs from the log end offset on (SEG-RCV-028), add those that the scan found (SEG-RCV-036).

    Brokers first add the epochs of the file one by one, so an epoch out of order replaces those that contradict it.
    Then they add the epochs that the scan found, and only then drop: as long as an epoch that they will drop is there,
    they add no lower one, so only a second recovery adds the lower ones.

    If all remaining epochs begin below the log start offset, the last one is kept, so a second plan has nothing to do.
    Its start offset becomes the log start offset (SEG-RCV-037).
    """
    path = work.directory / FileKind.LEADER_EPOCH_CHECKPOINT.value
    known = read_leader_epochs(path)
    if known is None or work.keeps_epochs:
        return
    epochs = LeaderEpochs(() if work.like_broker else known)
    for start in known if work.like_broker else ():
        epochs.assign(*start)
    loaded = epochs.entries
    log_start_offset = work.circumstances.log_start_offset
    all_below = bool(found) and work.plan.log_end_offset == log_start_offset
    end = work.plan.log_end_offset + all_below
    if not work.like_broker:
        epochs.truncate_to(end)
    highest = max((entry.epoch for entry in epochs.entries), default=-1)
    for start in found:
        if start.epoch > highest:
            epochs.assign(*start)
            highest = start.epoch
    epochs.truncate_to(end)  # an earlier segment may hold offsets above the log end offset
    epochs.start_at(log_start_offset)
    if work.plan.restarts:
        epochs.clear()
    is_kept = work.like_broker and epochs.entries == loaded and not _begins_by(log_start_offset, loaded)
    if epochs.entries != known and not is_kept:
        rule = "SEG-RCV-007" if work.plan.restarts else _rule_of_change(known, epochs.entries, work.plan.log_end_offset)
        yield Replace(path, encode_leader_epoch_checkpoint(epochs.entries), rule)


def _begins_by(offset: int, epochs: Sequence[EpochStart]) -> bool:
    """Return whether an epoch begins at an offset or below; only then brokers write the file again (SEG-RCV-037)."""
    return any(start.start_offset <= offset for start in epochs)


def _rule_of_change(before: Sequence[EpochStart], after: Sequence[EpochStart], log_end_offset: int) -> str:
    """Return the first rule that requires a leader epoch checkpoint other than the existing one."""
    if any(start.start_offset >= log_end_offset for start in {*before}.difference(after)):
        return "SEG-RCV-028"
    known = {start.epoch for start in before}
    return "SEG-RCV-037" if all(start.epoch in known for start in after) else "SEG-RCV-036"


def read_leader_epochs(path: Path) -> tuple[EpochStart, ...] | None:
    """Read a leader epoch checkpoint; return no entries if there is no file, None if it cannot be read."""
    if not path.is_file():
        return ()
    with suppress(SeglogError):
        return decode_leader_epoch_checkpoint(read_whole(path), Location(str(path))).entries
    return None


# -- completion of interrupted replacements and removals in a partition directory (chapters 10, 71) --------------------


TEMPORARY: Final = ".tmp"
METADATA_SNAPSHOT_DELETED: Final = FileKind.METADATA_SNAPSHOT.value + DELETED


def leftover_steps(listing: PartitionListing, *, like: BrokerFiles | None = None) -> tuple[FileStep, ...]:
    """Finish or undo interrupted replacements and removals (SEG-RCV-020, SEG-RCV-021).

    Args:
        listing: of the partition directory.
        like: a broker's view of the directory, to do what a broker does when it starts: remove the files that an
            earlier run renamed for removal, and create the missing index of a replacement. The files that this run
            renames stay until the next start. None not to imitate a broker.
    """
    set_aside = {file.path for file in listing.set_aside}
    aside = [file for file in listing.files if file.path in set_aside]
    swaps = [file for file in listing.files if file.name.suffix == SWAP and file.path not in set_aside]
    deleted = _deleted(listing) if like and like.is_first_round else ()
    created = like.index_steps() if like else ()
    # A `.cleaned` file shows that the `.swap` files above it are incomplete, so it is removed after them.
    unfinished = [file for file in aside if file.name.suffix == SWAP]
    cleaned = [file for file in aside if file.name.suffix == CLEANED or (file.name.suffix == TEMPORARY and not like)]
    replaced = [file for file in aside if not file.name.suffix]
    return (
        *deleted,
        *settled(_removals(unfinished, "SEG-RCV-021"), listing.path),
        *settled(_removals(cleaned, "SEG-RCV-020"), listing.path),
        *settled(created, listing.path),
        *settled(_removals(replaced, "SEG-RCV-021"), listing.path),
        *settled((*_renames(swaps), *_renamed(created)), listing.path),
    )


def _deleted(listing: PartitionListing) -> tuple[FileStep, ...]:
    """Remove every file whose name ends in `.deleted`, as brokers do, except snapshots of the metadata log."""
    paths = [*(file.path for file in listing.set_aside), *listing.others]
    gone = [p for p in paths if p.name.endswith(DELETED) and not p.name.endswith(METADATA_SNAPSHOT_DELETED)]
    return tuple(Remove(path, "SEG-RCV-020") for path in sorted(gone))


def _removals(files: Iterable[NamedFile], requirement: str) -> list[FileStep]:
    return [Remove(file.path, requirement) for file in files]


def _renames(swaps: Iterable[NamedFile]) -> list[FileStep]:
    """Rename in ascending order, each log before its indexes, so no remaining `.swap` file replaces a renamed one."""
    ordered = sorted(swaps, key=lambda file: (file.base_offset, file.name.kind is not FileKind.LOG))
    return [
        Rename(file.path, file.path.with_name(segment_file_name(file.base_offset, file.name.kind)), "SEG-RCV-021")
        for file in ordered
    ]


def _renamed(created: Iterable[FileStep]) -> list[FileStep]:
    return [Rename(step.path, step.path.with_suffix(""), "SEG-RCV-021") for step in created]


# -- the files of a partition that a broker opens, for a recovery that imitates one (chapters 10 and 71) ---------------


SEGMENT_INDEX_BYTES: Final = 10 * 1024 * 1024 // OFFSET_INDEX_ENTRY.size * OFFSET_INDEX_ENTRY.size
"""Size of an index that a broker creates: the default of `segment.index.bytes`, in whole entries."""
NUMBERED: Final = tuple(kind.value for kind in NUMBERED_KINDS)
INDEXES: Final = tuple(kind.value for kind in INDEX_KINDS)


class CreatedSegment(LogSegment):
    """An empty segment that a broker creates."""

    @property
    def source(self) -> SourceFile:
        """An empty source."""
        if self._bytes is None:
            nothing = FileReader(self.path, os.open(os.devnull, os.O_RDONLY), 0)
            self._bytes = FileBytes(self.path, 0, nothing)
        return self._bytes


def broker_file_name(offset: int, ending: str) -> str:
    """Return the name under which a broker opens a file; the sign of a negative offset precedes the 20 digits."""
    return f"{'-' * (offset < 0)}{abs(offset):0{OFFSET_DIGITS}d}{ending}"


def end_of_swap(path: Path) -> int:
    """Return the first offset after a ``.log.swap`` file as a broker finds it; an empty file ends at its base offset.

    An entry at which the broker stops is ignored here; the plan reports it.
    """
    base_offset = parse_decimal(path.name.partition(".")[0], bits=64) or 0
    index = path.with_name(path.name.replace(FileKind.LOG.value, FileKind.OFFSET_INDEX.value))
    with LogSegment(SegmentFiles(base_offset, path, index if index.exists() else None)) as segment:
        try:
            return trusted_end(segment)
        except BrokerStopError:
            return base_offset


def _is_brokers_name(path: Path, offset: int) -> bool:
    return path.name.removesuffix(SWAP) == broker_file_name(offset, path.suffixes[0])


def unreadable_epochs(directory: Path) -> Remark | None:
    """Return why brokers do not start if they cannot read the leader epoch checkpoint; None if they can."""
    path = directory / FileKind.LEADER_EPOCH_CHECKPOINT.value
    try:
        entries = (
            decode_leader_epoch_checkpoint(read_whole(path), Location(str(path))).entries if path.is_file() else ()
        )
    except FormatError as error:
        text = f"brokers do not start: {error.location.field}: expected {error.expected}, found {error.found}"
        return Remark(error.location, error.requirements, text)
    for epoch, start_offset in entries:
        if epoch < 0 or start_offset < 0:
            text = f"brokers do not start: epoch {epoch} begins at offset {start_offset}"
            return Remark(Location(str(path)), ("SEG-CKP-007",), text)
    return None


@dataclass(frozen=True)
class BrokerFiles:
    """A broker's view of the names in a partition directory.

    Attributes:
        listing: of the directory.
        is_first_round: whether a broker still has to create missing files, and to remove files that are due for
            removal. It does so once, before it recovers anything.
    """

    listing: PartitionListing
    is_first_round: bool = True

    @cached_property
    def _offsets(self) -> dict[str, int | None]:
        """The number in each name that a broker parses, None if there is no number; in the order of the names."""
        names = sorted(path.name for path in self.listing.path.iterdir() if path.is_file())
        parsed = [name for name in names if name.endswith((*NUMBERED, SWAP, CLEANED))]
        return {name: parse_decimal(name.partition(".")[0], bits=64) for name in parsed}

    @cached_property
    def _created(self) -> tuple[int, ...]:
        """Offsets of logs that exist only under names that a broker does not open."""
        if not self.is_first_round:
            return ()
        logs = {offset for name, offset in self._offsets.items() if offset is not None and name.endswith(".log")}
        opened = {files.base_offset for files in self._opened}
        return tuple(sorted(o for o in logs - opened if broker_file_name(o, ".log") not in self._offsets))

    @cached_property
    def _opened(self) -> list[SegmentFiles]:
        """Segments whose log a broker opens, each with the indexes that the broker opens."""
        return [
            self._with_indexes(files)
            for files in self.listing.segments
            if files.is_replacement or _is_brokers_name(files.log, files.base_offset)
        ]

    def _with_indexes(self, files: SegmentFiles) -> SegmentFiles:
        base, log, *companions = files
        index, *others = (each if each and _is_brokers_name(each, base) else None for each in companions)
        if files.is_replacement and (index is None or not index.name.endswith(SWAP)):
            index = self._swap_index_path(base)
        return SegmentFiles(base, log, index, *others)

    def _swap_index_path(self, base_offset: int) -> Path:
        return self.listing.path / broker_file_name(base_offset, FileKind.OFFSET_INDEX.value + SWAP)

    def listed(self) -> PartitionListing:
        """Return the listing of the files that a broker opens, including those that it first creates."""
        created = [SegmentFiles(o, self.listing.path / broker_file_name(o, ".log")) for o in self._created if o >= 0]
        segments = tuple(sorted((*self._opened, *created)))
        return self.listing._replace(segments=segments, base_offsets=tuple(files.base_offset for files in segments))

    def segment_type(self, files: SegmentFiles) -> type[LogSegment]:
        """Return the class that opens a segment of `listed`."""
        return CreatedSegment if files.base_offset in self._created else LogSegment

    def failure(self) -> Remark | None:
        """Return why nothing may be done; None if there is no such reason.

        The reasons: a name has no number, a broker does not open the name of a replacement, or it cannot read the
        leader epochs. Beside a replacement that it does not open, a broker creates an empty one, which replaces the
        existing files.
        """
        for name, offset in self._offsets.items():
            if offset is None:
                return self._remark(name, "brokers do not start: they find no number before the first full stop")
            plain = name.removesuffix(SWAP)
            if name != plain and plain.endswith(NUMBERED) and not _is_brokers_name(self.listing.path / name, offset):
                return self._remark(name, "nothing is done: brokers put an empty file in the place of this replacement")
        return unreadable_epochs(self.listing.path)

    def _remark(self, name: str, text: str) -> Remark:
        return Remark(Location(str(self.listing.path / printable(name)), field="base_offset"), ("SEG-PDR-005",), text)

    def index_steps(self) -> tuple[FileStep, ...]:
        """Create the missing index of each finished replacement: zeros, which a broker takes for entries."""
        zeros = [self._swap_index_path(files.base_offset) for files in self._opened if files.is_replacement]
        missing = [path for path in zeros if not path.exists()]
        data = bytes(SEGMENT_INDEX_BYTES) if missing else b""
        return tuple(Replace(path, data, "SEG-PDR-010") for path in missing)

    def naming_steps(self, settings: IndexSettings) -> tuple[FileStep, ...]:
        """Create logs, remove indexes without a log, and handle segments below offset 0."""
        return settled(
            (*self._removals(), *self._empty_logs(), *self._negative_offset_steps(settings)), self.listing.path
        )

    def _removals(self) -> Iterator[FileStep]:
        known = {file.path.name for file in self.listing.files}
        removed = {file.path.name for file in (*self.listing.orphans, *self.listing.set_aside)}
        for name, offset in self._offsets.items():
            path = self.listing.path / name
            is_orphan = name.endswith(INDEXES) and broker_file_name(offset or 0, ".log") not in self._offsets
            if name.endswith(CLEANED) and name not in known:
                yield Remove(path, "SEG-RCV-020")
            elif is_orphan and name not in removed:
                yield Remove(path, "SEG-RCV-026")

    def _empty_logs(self) -> Iterator[FileStep]:
        for offset in self._created:
            yield Replace(self.listing.path / broker_file_name(offset, ".log"), b"", "SEG-PDR-005")

    def _negative_offset_steps(self, settings: IndexSettings) -> Iterator[FileStep]:
        """Index the segments below offset 0 that have no index, and truncate their damage."""
        below = {offset for offset in self._offsets.values() if offset is not None and offset < 0}
        for offset in sorted(below):
            log, index, times = (
                self.listing.path / broker_file_name(offset, ending) for ending in (".log", ".index", ".timeindex")
            )
            if offset in self._created:
                yield from (Replace(index, b"", "SEG-PDR-007"), Replace(times, b"", "SEG-PDR-007"))
            elif log.name in self._offsets and index.name not in self._offsets:
                with open_log(log) as file:
                    scan = broker_scan(file, offset, str(log), settings=settings)
                    size = file.size
                if scan.outcome is Outcome.RECOVERED:
                    yield from (Truncate(log, scan.valid_size, "SEG-PDR-007"),) if scan.valid_size < size else ()
                    yield Replace(index, encode_offset_index(scan.offset_entries, offset), "SEG-PDR-007")
                    yield Replace(times, encode_time_index(scan.time_entries, offset), "SEG-PDR-007")


@contextmanager
def opened_segments(
    listing: PartitionListing, *, broker: BrokerFiles | None = None, storage: LogStorage = LOCAL
) -> Iterator[list[LogSegment]]:
    """Open the segments of a partition, and close them at the end of the block.

    The logs are read through windows, and only one log is open at a time. So memory use does not depend on their size,
    and a failing disk causes an exception instead of a signal.

    Args:
        listing: of the partition directory.
        broker: the files that an imitated broker opens; None to open all.
        storage: the storage to read them through.
    """
    bases = [*listing.base_offsets, None]
    opened = OpenSegments(1)
    type_of = broker.segment_type if broker else lambda _: LogSegment

    def segment(files: SegmentFiles, following: int | None) -> LogSegment:
        made = type_of(files)
        return made(files, next_base_offset=following, opened=opened, storage=storage)

    with ExitStack() as stack:
        yield [
            stack.enter_context(segment(files, following))
            for files, (_, following) in zip(listing.segments, pairwise(bases), strict=True)
        ]
