"""Verification of one partition directory: segments in order, their side files, and other files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.checks.entries import LogSize
from seglog_format.checks.finding import Extent, Finding, findings_of
from seglog_format.checks.log_file import LogSummary, LogVerification, snapshot_ends_findings
from seglog_format.checks.partition_directory import (
    CheckedGaps,
    DirectoryName,
    NumberedName,
    PartitionState,
    SegmentState,
)
from seglog_format.checks.side_files import (
    OffsetIndexSubject,
    SnapshotSubject,
    TimeIndexSubject,
    TransactionIndexSubject,
    forgotten_producer_findings,
    snapshot_producer_findings,
)
from seglog_format.checks.text_files import epoch_findings, text_file_findings
from seglog_format.errors import FormatError, RefusedError, UnreadableError
from seglog_format.log.entry_table import EVERYTHING, WantedRange
from seglog_format.log.gaps import INDEXES
from seglog_format.log.index_file import OffsetIndex, ProducerSnapshot, TimeIndex, TransactionIndex
from seglog_format.log.listing import leader_epochs, list_partition
from seglog_format.model import INT64_MAX
from seglog_format.names import FileKind, parse_file_name
from seglog_format.storage.byte_source import MAX_WHOLE_SIZE, refuse_large_log
from seglog_format.storage.file_reader import read_uncut
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Mapping
    from pathlib import Path

    from seglog_format.checks.text_files import LogEnds
    from seglog_format.engine import MakePrefilter
    from seglog_format.log.listing import PartitionListing, SegmentFiles
    from seglog_format.log.remote_store import KnowsTiered
    from seglog_format.storage.log_storage import LogStorage

Index: TypeAlias = OffsetIndex | TimeIndex | TransactionIndex

INDEX_TYPES: Final[dict[FileKind, type[Index]]] = {**INDEXES, FileKind.TRANSACTION_INDEX: TransactionIndex}


@dataclass(frozen=True, slots=True)
class Options:
    """Options of a verification.

    Attributes:
        limit: maximum bytes that one entry may decompress to.
        advance: called with the size of checked entries.
        prefilter: skips entries for which no check can report a finding; None to check every entry.
        storage: opens the files, and decides which decoders parse them.
        is_compacted: whether compaction may cause gaps between segments; None if unknown.
        extent: counts the checked data.
        remote: finds the remote segments of offsets that are not in a directory; None without a remote store.
        base_offset: of a single log whose name has none; None for its first offset.
        wanted: what to check. If that is not everything, only batches of logs are checked.
    """

    limit: int
    advance: Callable[[int], None] | None = None
    prefilter: MakePrefilter | None = None
    storage: LogStorage = LOCAL
    is_compacted: bool | None = None
    extent: Extent = field(default_factory=Extent)
    remote: KnowsTiered | None = None
    base_offset: int | None = None
    wanted: WantedRange = EVERYTHING


def partition_findings(
    path: Path, options: Options, checkpointed: Mapping[FileKind, int], *, is_closed: bool = False
) -> Generator[Finding, None, LogEnds | None]:
    """Yield all findings about a partition directory.

    Args:
        path: of the directory.
        options: how to verify.
        checkpointed: the partition's offsets in the checkpoints of the log directory.
        is_closed: whether a broker that starts takes the log for one that was closed cleanly.

    Returns:
        What `CheckedGaps.ends` says; None if unknown.
    """
    try:
        listing = list_partition(path)
    except UnreadableError as error:
        yield Finding.of_error(error)
        return None
    return (yield from listed_findings(listing, options, checkpointed, is_closed=is_closed))


def listed_findings(
    listing: PartitionListing, options: Options, checkpointed: Mapping[FileKind, int], *, is_closed: bool = False
) -> Generator[Finding, None, LogEnds | None]:
    """Yield all findings about a listed partition directory."""
    if options.wanted.is_window:
        for files, after in listing.with_following:
            if options.wanted.overlaps(files.base_offset, INT64_MAX if after is None else after):
                options.extent.files += 1
                yield from log_findings(files.log, files.base_offset, options)
        return None
    options.extent.files += len(listing.files)
    yield from name_findings(listing)
    known_epochs = leader_epochs(listing)
    states, epochs = [], []
    for segment in listing.segments:
        is_active = segment is listing.segments[-1]
        summary = yield from segment_findings(segment, options, is_active=is_active)
        states.append(_state(segment, summary))
        epochs.append(summary.epochs)
    newest = None
    for snapshot in listing.snapshots:
        newest = yield from snapshot_findings(snapshot.path, snapshot.base_offset, options.storage)
    for metadata_snapshot in listing.metadata_snapshots:
        yield from metadata_snapshot_findings(metadata_snapshot.path, options)
    for kind, text_file in listing.text_files.items():
        yield from text_file_findings(text_file, kind)
    log_start_offset = checkpointed.get(FileKind.LOG_START_OFFSET_CHECKPOINT, 0)
    checkpoint = listing.text_files.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    yield from epoch_findings(epochs, checkpoint, log_start_offset)
    try:
        gaps = CheckedGaps(
            listing, states, checkpointed, known_epochs, is_compacted=options.is_compacted, remote=options.remote
        )
        has_snapshot = bool(listing.metadata_snapshots)
        yield from findings_of(PartitionState(str(listing.path), tuple(states), gaps.orphans, has_snapshot))
        yield from gaps.findings()
        yield from snapshot_producer_findings(listing.segments, states, newest, gaps.is_compacted, options.storage)
        if is_closed:
            yield from forgotten_producer_findings(listing, log_start_offset, options.storage)
    except UnreadableError as error:
        yield Finding.of_error(error)
        return None
    return gaps.ends


def name_findings(listing: PartitionListing) -> Iterator[Finding]:
    """Yield the findings about the names of a directory and its files."""
    if listing.name is not None:
        yield from findings_of(DirectoryName(str(listing.path), listing.name))
    for error in (*listing.misnamed, *listing.blocked):
        yield Finding.of_error(error)
    for path in numbered_files(listing):
        name = parse_file_name(path.name)
        if name is not None:
            yield from findings_of(NumberedName(str(path), name))


def numbered_files(listing: PartitionListing) -> Iterator[Path]:
    """Yield the files in use that have an offset in their names."""
    for segment in listing.segments:
        companions = segment.offset_index, segment.time_index, segment.transaction_index
        yield from (path for path in (segment.log, *companions) if path is not None)
    yield from (file.path for file in (*listing.orphans, *listing.snapshots, *listing.shadowed))


def segment_findings(files: SegmentFiles, options: Options, *, is_active: bool) -> Generator[Finding, None, LogSummary]:
    """Check a log, and its indexes against it; return the summary of the log."""
    paths = zip(INDEX_TYPES, (files.offset_index, files.time_index, files.transaction_index), strict=True)
    found = [opened_index(kind, path, files.base_offset, options.storage) for kind, path in paths if path is not None]
    summary = yield from log_findings(files.log, files.base_offset, options)
    for index in found:
        yield from index_findings(index, summary, is_active=is_active)
    return summary


def log_findings(path: Path, base_offset: int, options: Options) -> Generator[Finding, None, LogSummary]:
    """Check a log on its own; return its summary.

    The log is never mapped: in a mapped file on a failing disk, unreadable ranges could not be reported (SEG-PDR-022).
    """
    try:
        source = options.storage.open(path, check=refuse_large_log)
    except UnreadableError as error:
        yield Finding.of_error(error)
        return LogSummary(damaged=0, is_end_known=False)
    except RefusedError as error:  # the file is too large
        yield from findings_of(LogSize(str(path), error.location.size))
        return LogSummary(damaged=0, is_end_known=False)
    with source:
        verification = LogVerification(
            source, source.path, base_offset, options.limit, options.advance, options.prefilter, wanted=options.wanted
        )
        yield from verification
        summary = verification.summary
        options.extent.batches += summary.entry_count
        options.extent.prefiltered += summary.prefiltered_count
        options.extent.fallbacks.update(summary.fallbacks)
        if not summary.entry_count and summary.is_whole and summary.partial_at == 0:
            options.extent.unread.append(source.path)
        return summary


def metadata_snapshot_findings(path: Path, options: Options) -> Iterator[Finding]:
    """Check the entries of a metadata snapshot; if all of them are intact, check its ends."""
    summary = yield from log_findings(path, 0, options)
    if summary.is_whole:
        yield from snapshot_ends_findings(path, options.storage, options.limit)


def opened_index(kind: FileKind, path: Path, base_offset: int, storage: LogStorage) -> Index | FormatError:
    """Open an index before its log is opened, and return it, or why it cannot be read.

    A broker that is running appends to the log first, then to the index: only in this order does the log hold all that
    the index names. Slots that are zero now do not count, even if it fills them before they are read.
    """

    def opened() -> Index:
        index = INDEX_TYPES[kind].open(path, base_offset, storage=storage)
        if not isinstance(index, TransactionIndex):
            index.raw_entries()  # counts the slots
        return index

    try:
        return read_uncut(opened)
    except FormatError as error:
        return error


def index_findings(index: Index | FormatError, summary: LogSummary, *, is_active: bool) -> Iterator[Finding]:
    """Check an index that `opened_index` has opened against its log."""
    if isinstance(index, FormatError):
        yield Finding.of_error(index)
    elif isinstance(index, TransactionIndex):
        yield from findings_of(TransactionIndexSubject(index, summary.aborts if summary.is_whole else None))
    else:
        with index:
            try:
                yield from _slot_findings(index, summary, is_active=is_active)
            except UnreadableError as error:
                yield Finding.of_error(error)


def _slot_findings(index: OffsetIndex | TimeIndex, summary: LogSummary, *, is_active: bool) -> Iterator[Finding]:
    filtered = None if index.trailing_zero_count or index.file_size > MAX_WHOLE_SIZE else summary.filtered
    if isinstance(index, OffsetIndex):
        if filtered is None or not filtered.has_offset_index(index.data):
            yield from findings_of(OffsetIndexSubject(index, index.raw_entries(), summary.outline()))
    elif filtered is None or not filtered.has_time_index(index.data, is_active=is_active):
        yield from findings_of(TimeIndexSubject(index, index.raw_entries(), summary.outline(), is_active))


def snapshot_findings(
    path: Path, offset: int, storage: LogStorage
) -> Generator[Finding, None, ProducerSnapshot | None]:
    """Check a producer snapshot; return it if it can be read."""
    try:
        snapshot = ProducerSnapshot.open(path, storage=storage)
    except FormatError as error:
        yield Finding.of_error(error)
        return None
    yield from findings_of(SnapshotSubject(str(path), snapshot.producers, offset))
    return snapshot


def _state(files: SegmentFiles, summary: LogSummary) -> SegmentState:
    companions = {".index": files.offset_index, ".timeindex": files.time_index}
    missing = tuple(kind for kind, path in companions.items() if path is None)
    last = summary.last_offset
    next_offset = files.base_offset if last is None else last + 1
    return SegmentState(str(files.log), files.base_offset, next_offset, missing, summary.is_end_known, summary.has_tail)
