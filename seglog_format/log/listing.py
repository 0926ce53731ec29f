"""Listings of partition directories and log directories, made before any file is opened (chapters 10 and 11).

A listing groups the files of each segment and decides which files count: files that a broker has renamed for
removal are no part of the log, and the output of an interrupted replacement either replaces the files that
it covers or is left out (SEG-PDR-009, SEG-PDR-010). Listing renames and removes nothing.

Regular files are listed, and symbolic links to regular files in any directory: brokers read those also. All other
entries are `skipped` and never opened; `blocked` has an error for each of them with the name of a file of the log, of a
partition or of a root file. They are recorded for `noted_refusals`: no command can end as if it had read them.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location, SeglogError, UsageError
from seglog_format.names import (
    DELETE_STATE,
    FIXED_NAMES,
    INDEX_KINDS,
    NUMBERED_KINDS,
    OFFSET_CHECKPOINT_KINDS,
    REMOTE_INDEX_CACHE,
    FileKind,
    FileName,
    parse_file_name,
    parse_partition_directory,
    printable,
)
from seglog_format.storage.file_reader import note_refusals
from seglog_format.storage.log_storage import LOCAL, SkippedEntry, read_file, scan_directory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seglog_format.names import PartitionDirectoryName
    from seglog_format.storage.log_storage import DirectoryEntries, LogStorage

    NextOffset: TypeAlias = Callable[[str], int]


# -- the decision which files of a partition directory count, mostly by their names (chapter 10) -----------------------


SWAP: Final = ".swap"
CLEANED: Final = ".cleaned"
DELETED: Final = ".deleted"


class Resolution(NamedTuple):
    """The files of a partition directory that count (SEG-PDR-009, SEG-PDR-010).

    Attributes:
        meanings: the parsed names of all files of known kinds, in name order.
        used: by offset and kind, the name of the one file that counts.
        shadowed: other names with the same offset and kind, such as ``0.log``.
        set_aside: names of files that were renamed for removal, are unfinished, or were replaced.
        misnamed: errors for names that end as the name of a segment's file, but have no usable offset.
        others: names of no known kind (SEG-PDR-011).
    """

    meanings: dict[str, FileName]
    used: dict[tuple[int, FileKind], str]
    shadowed: tuple[str, ...]
    set_aside: tuple[str, ...]
    misnamed: tuple[FormatError, ...]
    others: tuple[str, ...]


def resolve(names: Iterable[str], next_offset_of: NextOffset, *, directory: str = "") -> Resolution:
    """Decide which files of a partition directory count (SEG-PDR-009, SEG-PDR-010).

    The unfinished output of a replacement (``.cleaned``) never counts. Finished output (``.swap``) counts unless an
    unfinished file of the same or a lower base offset shows that the replacement was not complete. Finished output that
    counts replaces all files from its first base offset up to the next offset of its last log.

    Args:
        names: of the regular files in the directory.
        next_offset_of: returns the first offset after the last whole entry of the ``.log.swap`` file of that name.
        directory: name of the directory in errors.
    """
    meanings, misnamed, others = _parsed(names, directory)
    numbered = [(name, meaning) for name, meaning in meanings.items() if meaning.kind in NUMBERED_KINDS]
    swaps = _complete_swaps(numbered)
    covered = _covered(swaps, next_offset_of)
    plain = [(name, file) for name, file in numbered if not file.suffix and file.base_offset not in covered]
    used, shadowed = _preferred(plain)
    used |= _preferred(swaps)[0]
    counted = {*used.values(), *shadowed}
    return Resolution(
        meanings=meanings,
        used=used,
        shadowed=shadowed,
        set_aside=tuple(
            name
            for name, meaning in meanings.items()
            if name not in counted and (meaning.suffix or meaning.kind in NUMBERED_KINDS)
        ),
        misnamed=misnamed,
        others=others,
    )


def _parsed(
    names: Iterable[str], directory: str
) -> tuple[dict[str, FileName], tuple[FormatError, ...], tuple[str, ...]]:
    """Return the parsed names, the errors for wrong names, and all other names."""
    meanings, misnamed, others = {}, [], []
    for name in sorted(names):
        try:
            meaning = parse_file_name(name)
        except FormatError as error:
            misnamed.append(relocated(error, directory))
            continue
        if meaning is None:
            others.append(name)
        else:
            meanings[name] = meaning
    return meanings, tuple(misnamed), tuple(others)


def relocated(error: FormatError, directory: str) -> FormatError:
    """Return an error about a file name as one about its path in a directory."""
    location = replace(error.location, path=os.path.join(directory, error.location.path))  # noqa: PTH118 - may be empty
    return FormatError(location, *error.requirements, expected=error.expected, found=error.found)


def _complete_swaps(numbered: list[tuple[str, FileName]]) -> list[tuple[str, FileName]]:
    unfinished = min((parsed.base_offset for _, parsed in numbered if parsed.suffix == CLEANED), default=None)
    return [
        (name, parsed)
        for name, parsed in numbered
        if parsed.suffix == SWAP and (unfinished is None or parsed.base_offset < unfinished)
    ]


def _covered(swaps: list[tuple[str, FileName]], next_offset_of: NextOffset) -> range:
    logs = [(name, parsed.base_offset) for name, parsed in swaps if parsed.kind is FileKind.LOG]
    if not logs:
        return range(0)
    return range(min(base for _, base in logs), max(next_offset_of(name) for name, _ in logs))


def _preferred(files: list[tuple[str, FileName]]) -> tuple[dict[tuple[int, FileKind], str], tuple[str, ...]]:
    """Choose one name for each offset and kind: the canonical one if there is one, else the first in name order."""
    used: dict[tuple[int, FileKind], str] = {}
    for name, meaning in sorted(files, key=lambda pair: not pair[1].is_canonical):
        used.setdefault((meaning.base_offset, meaning.kind), name)
    chosen = set(used.values())
    return used, tuple(name for name, _ in files if name not in chosen)


# -- listings of partition directories and log directories -------------------------------------------------------------


LOG_DIRECTORY_KINDS: Final = frozenset(
    {*OFFSET_CHECKPOINT_KINDS, FileKind.META_PROPERTIES, FileKind.CLEAN_SHUTDOWN, FileKind.LOCK}
)
"""Kinds of files that exist only in a log directory itself, not in its partition directories."""

SEGMENT_ENDINGS: Final = tuple(kind.value for kind in NUMBERED_KINDS)


class NamedFile(NamedTuple):
    """A file and its parsed name."""

    path: Path
    name: FileName

    @property
    def base_offset(self) -> int:
        """The offset in the name."""
        return self.name.base_offset


class SegmentFiles(NamedTuple):
    """The files of one segment. Only the log always exists."""

    base_offset: int
    log: Path
    offset_index: Path | None = None
    time_index: Path | None = None
    transaction_index: Path | None = None
    snapshot: Path | None = None

    @property
    def is_replacement(self) -> bool:
        """The log is one that compaction or a split has finished, under its ``.swap`` name (SEG-PDR-010)."""
        return self.log.name.endswith(SWAP)


class PartitionListing(NamedTuple):
    """The files of a partition directory.

    Attributes:
        path: of the directory.
        name: the parsed name of the directory; None if that is not the name of a partition directory.
        segments: by ascending base offset. May be empty (SEG-PDR-016).
        base_offsets: of the segments.
        orphans: index files that belong to no log, ascending (SEG-PDR-008).
        snapshots: producer snapshots, ascending; a snapshot need not belong to a segment.
        metadata_snapshots: of a metadata partition, ascending.
        text_files: checkpoints and other text files, by kind.
        files: every file of a known kind, in name order, including those in `shadowed` and `set_aside`.
        shadowed: files that do not count because another name of the same offset and kind does.
        set_aside: files that were renamed for removal, are unfinished, or were replaced (SEG-PDR-009, SEG-PDR-010).
        misnamed: errors for names on which a broker fails.
        others: files of no known kind (SEG-PDR-011).
        skipped: directory entries that are not read.
        storage: the storage that holds the files.
    """

    path: Path
    name: PartitionDirectoryName | None
    segments: tuple[SegmentFiles, ...]
    base_offsets: tuple[int, ...]
    orphans: tuple[NamedFile, ...]
    snapshots: tuple[NamedFile, ...]
    metadata_snapshots: tuple[NamedFile, ...]
    text_files: dict[FileKind, Path]
    files: tuple[NamedFile, ...]
    shadowed: tuple[NamedFile, ...]
    set_aside: tuple[NamedFile, ...]
    misnamed: tuple[FormatError, ...]
    others: tuple[Path, ...]
    skipped: tuple[SkippedEntry, ...]
    storage: LogStorage = LOCAL

    @property
    def topic_partition(self) -> tuple[str, int]:
        """The topic and number in the directory's name; those of no partition if it is not a partition's name."""
        return ("", -1) if self.name is None else self.name.topic_partition

    @property
    def blocked(self) -> tuple[FormatError, ...]:
        """Errors for entries that have the name of a log file, and cannot be read as files (SEG-PDR-030)."""
        return tuple(_blocked(self.path / name, reason) for name, reason in self.skipped if _names_a_file(name))

    @property
    def blocked_logs(self) -> tuple[FormatError, ...]:
        """Those of `blocked` that are about logs: their records are missing."""
        logs = (entry for entry in self.skipped if _names_a_file(entry.name, is_log=True))
        return tuple(_blocked(self.path / name, reason) for name, reason in logs)

    def require_logs(self) -> None:
        """Refuse to continue if something that is no regular file has the name of a log: its records would be missing.

        Raises:
            FormatError: there is such a file (SEG-PDR-030).
        """
        if self.blocked_logs:
            raise self.blocked_logs[0]

    def require_settled(self) -> None:
        """Refuse a directory that needs recovery first: its files would be mixed with those that a change writes.

        These are files of an interrupted replacement, files with unusual names, and indexes without a log.

        Raises:
            UsageError: there is such a file, or no segment.
        """
        left = [file for file in self.files if file.name.suffix in {SWAP, CLEANED}]
        left += [file for file in self.files if not file.name.suffix and not file.name.is_canonical]
        left += self.orphans
        if left or not self.segments:
            found = f"{left[0].path.name} is left over from an interrupted operation" if left else "there is no segment"
            msg = f"{self.path}: {found}: recover the directory first"
            raise UsageError(msg)

    @property
    def with_following(self) -> tuple[tuple[SegmentFiles, int | None], ...]:
        """The segments, each with the base offset of the next one; None for the last."""
        return tuple(zip(self.segments, (*self.base_offsets[1:], None), strict=False))

    @property
    def replaced_logs(self) -> tuple[SegmentFiles, ...]:
        """The logs that `.swap` files replace: they may hold more records than their replacements."""
        logs = (file for file in self.set_aside if file.name.kind is FileKind.LOG and not file.name.suffix)
        return tuple(SegmentFiles(file.base_offset, file.path) for file in logs)

    def logs_alone(self) -> PartitionListing:
        """Return a listing of the logs only, as if every other file of the partition were missing."""
        segments = tuple(SegmentFiles(each.base_offset, each.log) for each in self.segments)
        kept = self._replace(segments=segments, files=tuple(f for f in self.files if f.name.kind is FileKind.LOG))
        return kept._replace(orphans=(), snapshots=(), metadata_snapshots=(), text_files={})

    def segment_for(self, offset: int) -> SegmentFiles | None:
        """Return the segment with the greatest base offset not above ``offset``; None below the first."""
        index = bisect_right(self.base_offsets, offset)
        return self.segments[index - 1] if index else None


class PartitionEntry(NamedTuple):
    """A partition directory of a log directory."""

    path: Path
    name: PartitionDirectoryName


class LogDirectoryListing(NamedTuple):
    """The content of a log directory.

    Attributes:
        path: of the directory.
        partitions: sorted by topic, partition and name; renamed directories included.
        special: known directories that are no partitions.
        misnamed: errors for directories on whose names a broker fails (SEG-LDR-001).
        root_files: checkpoints and other root files, by kind.
        others: files of no known kind; brokers also ignore them.
        skipped: directory entries that are not read.
        has_clean_shutdown: whether the directory was closed cleanly (SEG-LDR-003).
    """

    path: Path
    partitions: tuple[PartitionEntry, ...]
    special: tuple[Path, ...]
    misnamed: tuple[FormatError, ...]
    root_files: dict[FileKind, Path]
    others: tuple[Path, ...]
    skipped: tuple[SkippedEntry, ...]

    @property
    def left_out(self) -> tuple[FormatError, ...]:
        """Errors for directories with logs whose names are no partition's: brokers fail, and no log in them is read."""
        found = ((each, f"{each.found}, a directory with logs, which are not read") for each in self.misnamed)
        return tuple(
            FormatError(each.location, *each.requirements, expected=each.expected, found=text)
            for each, text in found
            if _holds_logs(Path(each.location.path))
        )

    @property
    def has_clean_shutdown(self) -> bool:
        """Return whether the clean-shutdown file exists, with any content."""
        return FileKind.CLEAN_SHUTDOWN in self.root_files

    @property
    def blocked(self) -> tuple[FormatError, ...]:
        """Errors for entries with the name of a root file or partition directory that are neither (SEG-PDR-030)."""
        others = (*self.skipped, *(SkippedEntry(file.name, "a regular file") for file in self.others))
        named = (entry for entry in others if entry.name in FIXED_NAMES or _names_a_partition(entry.name))
        kinds = ((each, "a regular file" if each.name in FIXED_NAMES else "a directory") for each in named)
        return tuple(_blocked(self.path / each.name, each.reason, f"{kind}, or a link to one") for each, kind in kinds)


def list_partition(
    path: str | os.PathLike[str],
    storage: LogStorage = LOCAL,
    *,
    end_of_swap: Callable[[Path], int] | None = None,
    entries: DirectoryEntries | None = None,
) -> PartitionListing:
    """List the files of a partition directory.

    Only ``.log.swap`` files are opened, to find where they end.

    Args:
        path: any directory; its name need not be that of a partition directory.
        storage: the storage that holds the directory.
        end_of_swap: returns the first offset after a ``.log.swap`` file; by default the offset after its last whole
            entry.
        entries: what the directory holds, if that is known.

    Raises:
        UsageError: the path is not a directory or cannot be read.
    """
    directory = Path(path)
    names, inner, skipped = storage.entries(directory) if entries is None else entries
    skipped += tuple(SkippedEntry(name, "a directory") for name in inner)
    end_of_swap = end_of_swap or partial(_next_offset, storage=storage)
    files = resolve(names, lambda name: end_of_swap(directory / name), directory=storage.name_of(directory))
    listing = _grouped(directory, files, skipped)._replace(storage=storage)
    note_refusals(listing.blocked)
    return listing


def _grouped(directory: Path, resolved: Resolution, skipped: tuple[SkippedEntry, ...]) -> PartitionListing:
    files = {name: NamedFile(directory / name, meaning) for name, meaning in resolved.meanings.items()}
    set_aside = tuple(files[name] for name in resolved.set_aside)
    segments = tuple(_segments(files, resolved.used))
    bases = tuple(segment.base_offset for segment in segments)
    fixed = [file for file in files.values() if file.name.kind not in NUMBERED_KINDS and not file.name.suffix]
    return PartitionListing(
        path=directory,
        name=_partition_name(directory),
        segments=segments,
        base_offsets=bases,
        orphans=_of_kinds(files, resolved.used, INDEX_KINDS, without=frozenset(bases)),
        snapshots=_of_kinds(files, resolved.used, (FileKind.PRODUCER_SNAPSHOT,)),
        metadata_snapshots=tuple(file for file in fixed if file.name.kind is FileKind.METADATA_SNAPSHOT),
        text_files={file.name.kind: file.path for file in fixed if file.name.kind is not FileKind.METADATA_SNAPSHOT},
        files=tuple(files.values()),
        shadowed=tuple(files[name] for name in resolved.shadowed),
        set_aside=set_aside,
        misnamed=resolved.misnamed,
        others=tuple(directory / name for name in resolved.others),
        skipped=skipped,
    )


def _segments(files: dict[str, NamedFile], used: dict[tuple[int, FileKind], str]) -> Iterator[SegmentFiles]:
    for base_offset in sorted(offset for offset, kind in used if kind is FileKind.LOG):
        names = (used.get((base_offset, kind)) for kind in NUMBERED_KINDS)
        log, *companions = (files[name].path if name else None for name in names)
        assert log is not None
        yield SegmentFiles(base_offset, log, *companions)


def _names_a_file(name: str, *, is_log: bool = False) -> bool:
    try:
        parsed = parse_file_name(name)
    except FormatError:
        return False
    return parsed is not None and (not is_log or (parsed.kind is FileKind.LOG and parsed.suffix in {"", SWAP}))


def _names_a_partition(name: str) -> bool:
    try:
        return parse_partition_directory(name) is not None
    except FormatError:
        return False


def _blocked(path: Path, reason: str, expected: str = "a regular file, or a link to one") -> FormatError:
    return FormatError(Location(printable(str(path))), "SEG-PDR-030", expected=expected, found=reason)


def _of_kinds(
    files: dict[str, NamedFile],
    used: dict[tuple[int, FileKind], str],
    kinds: tuple[FileKind, ...],
    without: frozenset[int] = frozenset(),
) -> tuple[NamedFile, ...]:
    names = sorted((offset, name) for (offset, kind), name in used.items() if kind in kinds and offset not in without)
    return tuple(files[name] for _, name in names)


def _partition_name(directory: Path) -> PartitionDirectoryName | None:
    try:
        return parse_partition_directory(directory.absolute().name)
    except FormatError:
        return None


def _holds_logs(directory: Path) -> bool:
    with suppress(SeglogError):
        return any(_names_a_file(name, is_log=True) for name in scan_directory(directory).files)
    return False


def _next_offset(path: Path, storage: LogStorage) -> int:
    """Return the first offset after the last whole entry before any damage; 0 for a log without entries."""
    reached = 0
    with suppress(FormatError), storage.open(path) as file:
        for frame in walk(file, path=file.path):
            reached = max(reached, frame.header.next_offset)
    return reached


def list_log_directory(path: str | os.PathLike[str], *, is_subject: bool = True) -> LogDirectoryListing:
    """List the partition directories and root files of a log directory. No file is opened.

    Args:
        path: any directory.
        is_subject: whether the caller reads its partitions; then those that it skips are recorded as unreadable.

    Raises:
        UsageError: the path is not a directory or cannot be read.
    """
    directory = Path(path)
    names, directories, skipped = scan_directory(directory)
    partitions, misnamed = _partitions(directory, [name for name in directories if name != REMOTE_INDEX_CACHE])
    root_files, others = _root_files(directory, names)
    listing = LogDirectoryListing(
        path=directory,
        # The sort is stable, so directories of one partition stay in order of name.
        partitions=tuple(sorted(partitions, key=lambda entry: entry.name.topic_partition)),
        special=tuple(directory / name for name in directories if name == REMOTE_INDEX_CACHE),
        misnamed=tuple(misnamed),
        root_files=root_files,
        others=others,
        skipped=skipped + tuple(SkippedEntry(name, "a directory") for name in directories if name in FIXED_NAMES),
    )
    note_refusals((*listing.blocked, *listing.left_out) if is_subject else ())
    return listing


def _partitions(directory: Path, names: list[str]) -> tuple[list[PartitionEntry], list[FormatError]]:
    partitions, misnamed = [], []
    for name in names:
        try:
            partitions.append(_partition(directory, name))
        except FormatError as error:
            misnamed.append(error)
    return partitions, misnamed


def _partition(directory: Path, name: str) -> PartitionEntry:
    try:
        parsed = parse_partition_directory(name)
    except FormatError as error:
        where = relocated(error, str(directory)).location
        ids = error.requirements
        raise FormatError(where, "SEG-LDR-001", *ids, expected=error.expected, found=error.found) from None
    return PartitionEntry(directory / name, parsed)


def _root_files(directory: Path, names: list[str]) -> tuple[dict[FileKind, Path], tuple[Path, ...]]:
    known: dict[FileKind, Path] = {}
    others = []
    for name in names:
        kind = FIXED_NAMES.get(name)
        if kind is None:
            others.append(directory / name)
        else:
            known[kind] = directory / name
    return known, tuple(others)


# -- fast parsers for checkpoints as brokers write them; callers parse any other content with the declared schema ------


LINE: Final = re.compile(rb"([a-zA-Z0-9._-]+) (0|[1-9][0-9]{0,8}) (0|[1-9][0-9]{0,17})\n")
CHECKPOINT: Final = re.compile(rb"0\n(0|[1-9][0-9]{0,8})\n((?:%b)*)" % LINE.pattern)
"""Version, count and lines, with so few digits that no number overflows."""

EPOCH_LINE: Final = re.compile(rb"(0|[1-9][0-9]{0,8}) (0|[1-9][0-9]{0,17})\n")
EPOCHS: Final = re.compile(rb"0\n(0|[1-9][0-9]{0,8})\n((?:%b)*)" % EPOCH_LINE.pattern)
"""Version, count and lines of a leader epoch checkpoint."""


def simple_offsets(data: bytes) -> dict[tuple[str, int], int] | None:
    """Parse offsets by topic and partition, where the last line counts; return None for any unusual content.

    Args:
        data: the whole file.
    """
    found = CHECKPOINT.fullmatch(data)
    if found is None:
        return None
    lines = LINE.findall(found[2])
    if len(lines) != int(found[1]):
        return None
    return {(topic.decode("ascii"), int(partition)): int(offset) for topic, partition, offset in lines}


def _simple_epochs(data: bytes) -> list[tuple[int, int]] | None:
    """Parse leader epochs and their first offsets; return None for any unusual content.

    Args:
        data: the whole file.
    """
    found = EPOCHS.fullmatch(data)
    if found is None:
        return None
    lines = EPOCH_LINE.findall(found[2])
    return [(int(epoch), int(start)) for epoch, start in lines] if len(lines) == int(found[1]) else None


def leader_epochs(listing: PartitionListing) -> Sequence[tuple[int, int]]:
    """Return leader epochs and their first offsets; none if their checkpoint is missing or cannot be read."""
    path = listing.text_files.get(FileKind.LEADER_EPOCH_CHECKPOINT)
    if path is None:
        return ()
    try:
        data = read_file(listing.storage, path)
        found = _simple_epochs(data)
        return _decoded_epochs(data, path) if found is None else found
    except SeglogError:
        return ()


def _decoded_epochs(data: bytes, path: Path) -> Sequence[tuple[int, int]]:
    from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint  # noqa: PLC0415 - loads declarations

    return decode_leader_epoch_checkpoint(data, Location(str(path))).entries


# -- offset checkpoints of a log directory, read as brokers read them at start (chapter 51) ----------------------------


def read_offset_checkpoint(path: Path, storage: LogStorage = LOCAL) -> dict[tuple[str, int], int]:
    """Return offsets by topic and partition; empty if the file is missing or unreadable (SEG-CKP-011).

    If a partition has several entries, the last entry counts.
    """
    try:
        data = read_file(storage, path)
        found = simple_offsets(data)
        return _offsets(data, path) if found is None else found
    except SeglogError:
        return {}


def checkpointed_offset(partition: PartitionListing, kind: FileKind) -> int | None:
    """Return the offset of a partition in a checkpoint of the log directory above; None if there is none.

    Args:
        partition: listing of its directory.
        kind: which checkpoint.
    """
    return reached_offsets(partition, (kind,))[kind]


REACHED: Final = (
    FileKind.REPLICATION_OFFSET_CHECKPOINT,
    FileKind.RECOVERY_POINT_CHECKPOINT,
    FileKind.CLEANER_OFFSET_CHECKPOINT,
    FileKind.LOG_START_OFFSET_CHECKPOINT,
)
"""Checkpoints that have no offset above the end that the log had (SEG-CKP-012)."""


def reached_offsets(partition: PartitionListing, kinds: Iterable[FileKind] = REACHED) -> dict[FileKind, int | None]:
    """Return the offset of a partition in each checkpoint of the log directory above, by default those of `REACHED`.

    A directory that brokers delete has none: they remove its files one by one.
    """
    if partition.name is None or partition.name.state == DELETE_STATE:
        return dict.fromkeys(kinds)
    key, storage = partition.name.topic_partition, partition.storage
    directory = (partition.path.absolute() if storage.is_local else partition.path).parent
    return {kind: read_offset_checkpoint(directory / kind.value, storage).get(key) for kind in kinds}


def greatest(offsets: Iterable[int | None]) -> int:
    """Return the greatest offset that a log had reached by its checkpoints; 0 without any."""
    return max((each or 0 for each in offsets), default=0)


def _offsets(data: bytes, path: Path) -> dict[tuple[str, int], int]:
    from seglog_format.codec.checkpoints import decode_offset_checkpoint  # noqa: PLC0415 - rarely needed

    checkpoint = decode_offset_checkpoint(data, Location(str(path)))
    return {(topic, partition): offset for topic, partition, offset in checkpoint.entries}
