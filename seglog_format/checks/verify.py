"""Verification of any path: a file, a partition directory or a log directory."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from seglog_format.checks.finding import Extent, Finding, Problem, checks, findings_of
from seglog_format.checks.log_file import LogSummary, LogVerification
from seglog_format.checks.partition import (
    Options,
    index_findings,
    log_findings,
    metadata_snapshot_findings,
    opened_index,
    partition_findings,
    snapshot_findings,
)
from seglog_format.checks.partition_directory import NumberedName
from seglog_format.checks.text_files import OffsetsAndLogs, PartitionOffsets, read_partition_offsets, text_file_findings
from seglog_format.engine import Engine, engine_for, prefilter_of
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.log.entry_table import WantedRange
from seglog_format.log.listing import LogDirectoryListing, list_log_directory, list_partition
from seglog_format.log.path_kind import UNKNOWN, PathKind, foreign_at, path_kind, size_of_logs, unnamed_base_offset
from seglog_format.log.scanning import bytes_for, storage_for
from seglog_format.log.side_files import meta_properties_of
from seglog_format.model import DEFAULT_OUTPUT_LIMIT
from seglog_format.names import (
    FILE_KINDS,
    INDEX_KINDS,
    METADATA_TOPICS,
    NUMBERED_KINDS,
    OFFSET_CHECKPOINT_KINDS,
    FileKind,
    FileName,
    parse_cached_index,
    parse_file_name,
    parse_object_name,
    segment_file_name,
)
from seglog_format.recovery.start_problems import without_topic_id, without_topic_ids
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from seglog_format.checks.text_files import LogEnds
    from seglog_format.log.remote_store import KnowsTiered
    from seglog_format.storage.byte_source import Buffer

SEGMENT_FILES: Final = frozenset(
    kind.value for kind in (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX, FileKind.TRANSACTION_INDEX)
)
"""Endings of the files of a segment that readers use."""


def verify(  # noqa: PLR0913 - options by name
    path: str | os.PathLike[str],
    *,
    limit: int = DEFAULT_OUTPUT_LIMIT,
    advance: Callable[[int], None] | None = None,
    engine: Engine = Engine.AUTO,
    compacted: bool | None = None,
    extent: Extent | None = None,
    remote: KnowsTiered | None = None,
    base_offset: int | None = None,
    from_offset: int | None = None,
    to_offset: int | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> Iterator[Finding]:
    """Check everything at a path against the specification.

    Args:
        path: a file, a partition directory, or a log directory.
        limit: maximum bytes that one entry may decompress to; more is refused, with a warning.
        advance: called with the size of checked log entries, to show progress.
        engine: reads the logs; findings do not depend on it. `Extent.engine` reports the chosen one.
        compacted: whether the logs are compacted, so gaps between segments are no warning; None if unknown: a log
            then counts as compacted if it shows signs of compaction, such as a hole inside a segment (SEG-PDR-023).
        extent: counts the checked data, while the verification runs.
        remote: the store with the tiered segments of partitions, where offsets are looked up that are missing in a
            directory; `RemoteTier.verify` checks its content. See `open_tier`.
        base_offset: of a single log whose name has none; None for its first offset.
        from_offset: with this or one of the next three, only batches of logs are checked, no indexes, other files and
            gaps: from the one before the batch that holds this offset on.
        to_offset: the checks of a log end after the batch that reaches this offset.
        since_ms: the checks of a log begin at the batch before the first that is not older by its header.
        until_ms: the checks of a log end after the batch that follows the last older one by its header.

    Yields:
        Findings, file by file; locations name files below the given path. Notes of one kind in a file are one finding.

    Raises:
        UsageError: the path does not exist or is not of a known kind (see `path_kind`), an engine is not installed,
            the store does not answer, or a range is wanted of a file that is no log.

    Examples:
        >>> from seglog_format import Severity, verify
        >>> for finding in verify("demo/broken"):
        ...     if finding.severity is Severity.ERROR:
        ...         print(finding)
        crash-flip-0/00000000000000000270.log:14722: crc: expected 0x0051bb4c, found 0xdf10a37f [SEG-BAT-003]
    """
    root = Path(path)
    counted = extent or Extent()
    choice = engine_for(engine, size_of_logs(root) if engine is Engine.AUTO else 0)
    counted.engine = choice.engine
    options = Options(
        limit,
        advance=advance,
        prefilter=prefilter_of(choice),
        storage=storage_for(choice.engine),
        is_compacted=compacted,
        extent=counted,
        remote=remote,
        base_offset=base_offset,
        wanted=WantedRange(from_offset=from_offset, to_offset=to_offset, since_ms=since_ms, until_ms=until_ms),
    )
    for finding in notes_once(_findings(root, options)):
        yield _below(root, finding)


def faults_of_logs(path: Path, engine: Engine = Engine.AUTO) -> Iterator[Finding]:
    """Yield what is wrong in the logs and indexes at a path, or was not checked, and what a broker does not look at.

    Brokers accept a batch by its checksum, which does not cover its magic, and do not decode its records. They compare
    no index of a closed segment with its log.
    """
    for finding in verify(path, engine=engine):
        is_of_segment = SEGMENT_FILES & {*Path(finding.location.path).suffixes}
        if (finding.severity is Severity.ERROR and is_of_segment) or finding.is_unchecked:
            yield finding


def verify_log(
    data: Buffer,
    *,
    path: str = "",
    base_offset: int = 0,
    limit: int = DEFAULT_OUTPUT_LIMIT,
    engine: Engine = Engine.AUTO,
) -> Iterator[Finding]:
    """Check the bytes of a log on their own.

    Args:
        data: entries, as in a `.log` file or a fetch response.
        path: name of the bytes in locations.
        base_offset: of the segment.
        limit: maximum bytes that one entry may decompress to.
        engine: reads the log; findings do not depend on it.
    """
    choice = engine_for(engine, len(data))
    source = bytes_for(choice.engine, data, path)
    return notes_once(LogVerification(source, path, base_offset, limit, prefilter=prefilter_of(choice)))


def _findings(root: Path, options: Options) -> Iterator[Finding]:
    kind = path_kind(root)
    if kind is PathKind.FILE:
        return single_file_findings(root, options)
    if kind is PathKind.PARTITION:
        return lone_partition_findings(root, options)
    return log_directory_findings(root, options)


def _below(root: Path, finding: Finding) -> Finding:
    """Return the finding with its path relative to the given directory, or to the directory of the given file."""
    start = root if root.is_dir() else root.parent
    path = Path(finding.location.path)
    if not path.is_relative_to(start):
        return finding
    return replace(finding, location=replace(finding.location, path=str(path.relative_to(start))))


def notes_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """Yield errors and warnings unchanged, and each kind of note once for a file, with a count, after the others."""
    for _, of_file in groupby(findings, key=lambda finding: finding.location.path):
        notes: dict[str, Finding] = {}
        for finding in of_file:
            if finding.severity is not Severity.NOTE:
                yield finding
            elif finding.requirement in notes:
                seen = notes[finding.requirement]
                notes[finding.requirement] = replace(seen, count=seen.count + 1)
            else:
                notes[finding.requirement] = finding
        yield from notes.values()


# -- verification of one file, whose name decides its kind; an index is compared with the log beside it ----------------


SNAPSHOT_KINDS: Final = (FileKind.METADATA_SNAPSHOT, FileKind.BOOTSTRAP_SNAPSHOT)


def single_file_findings(path: Path, options: Options) -> Iterator[Finding]:
    """Yield all findings about one file; a name that ends in ``.log``, or a file that begins with a batch, is a log.

    Raises:
        UsageError: the name does not belong to a known kind.
    """
    options.extent.files += 1
    stored = parse_object_name(path.name) or parse_cached_index(path.name)
    if stored is not None and stored.kind in FILE_KINDS:
        yield from _named_findings(path, FileName(stored.start_offset, FILE_KINDS[stored.kind]), options)
        return
    try:
        name = parse_file_name(path.name)
    except FormatError as error:
        yield Finding.of_error(error)
        name = None
    if name is not None:
        yield from _named_findings(path, name, options)
    elif (base_offset := unnamed_base_offset(path)) is not None or path.suffix == FileKind.LOG.value:
        given = options.base_offset
        yield from log_findings(path, base_offset or 0 if given is None else given, options)
    else:
        msg = f"{path}: {foreign_at(path) or UNKNOWN}"
        raise UsageError(msg)


def _named_findings(path: Path, name: FileName, options: Options) -> Iterator[Finding]:
    if options.wanted.is_window and name.kind is not FileKind.LOG:
        msg = f"{path}: offsets and times choose batches of a log, and this is none"
        raise UsageError(msg)
    if name.kind in NUMBERED_KINDS and name.digits:
        yield from findings_of(NumberedName(str(path), name))
    if name.kind is FileKind.LOG:
        yield from log_findings(path, name.base_offset, options)
    elif name.kind in SNAPSHOT_KINDS:
        yield from metadata_snapshot_findings(path, options)
    elif name.kind in INDEX_KINDS:
        index = opened_index(name.kind, path, name.base_offset, options.storage)
        yield from index_findings(index, _summary_beside(path, name, options), is_active=True)
    elif name.kind is FileKind.PRODUCER_SNAPSHOT:
        yield from snapshot_findings(path, name.base_offset, options.storage)
    else:
        yield from text_file_findings(path, name.kind)


def _summary_beside(path: Path, name: FileName, options: Options) -> LogSummary:
    """Check the log beside an index; without one, only the order of the index entries can be checked."""
    beside = segment_file_name(name.base_offset, FileKind.LOG) if name.digits else path.stem + FileKind.LOG.value
    log = path.with_name(beside)
    if not log.is_file():
        return LogSummary(damaged=0)
    findings = log_findings(log, name.base_offset, replace(options, extent=Extent()))  # only to compare with
    while True:
        try:
            next(findings)
        except StopIteration as end:
            summary: LogSummary = end.value
            return summary


# -- verification of a log directory: its partitions, its root files, and whether they agree (chapter 11) --------------


@dataclass(frozen=True, slots=True)
class BrokerDirectories:
    """The log directories of one broker: paths of the partitions in use, by topic and partition."""

    partitions: dict[tuple[str, int], tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class WithoutTopicIds:
    """The partition directories of a log directory that lack the ids of their topics, and have to have them."""

    paths: Sequence[Path]


class Checkpoints:
    """The readable offset checkpoints of a log directory.

    Read them before the logs: a running broker appends to the logs in the meantime, so their end offsets only grow.
    """

    def __init__(self, found: Mapping[FileKind, PartitionOffsets]) -> None:
        self._found = found
        self._offsets = {
            kind: {(entry.topic, entry.partition): entry.offset for entry in checkpoint.entries}
            for kind, checkpoint in found.items()
        }

    @classmethod
    def beside(cls, directory: Path) -> Self:
        """Read the checkpoints of a directory."""
        read = {kind: read_partition_offsets(directory / kind.value) for kind in OFFSET_CHECKPOINT_KINDS}
        return cls({kind: checkpoint for kind, checkpoint in read.items() if checkpoint is not None})

    def of(self, partition: tuple[str, int] | None) -> dict[FileKind, int]:
        """Return the offset of a partition in each checkpoint; nothing for a directory without a partition in use."""
        return {kind: offsets[partition] for kind, offsets in self._offsets.items() if partition in offsets}

    def findings(self, ends: Mapping[tuple[str, int], LogEnds]) -> Iterator[Finding]:
        """Yield findings about offsets above the log end offsets."""
        for checkpoint in self._found.values():
            yield from findings_of(OffsetsAndLogs(checkpoint, ends))


@checks("SEG-LDR-002")
def partition_is_held_once(broker: BrokerDirectories) -> Iterator[Problem]:
    """Report a partition in two log directories; the broker gives copies for other purposes other names."""
    for (topic, partition), paths in broker.partitions.items():
        for path in paths[1:]:
            yield Problem(Location(path), f"{topic}-{partition} in one directory", f"it is also in {paths[0]}")


@checks("SEG-LDR-008")
def topics_have_ids(directories: WithoutTopicIds) -> Iterator[Problem]:
    """Report partition directories that a broker takes for those of deleted topics."""
    for error in map(without_topic_id, directories.paths):
        yield Problem(error.location, error.expected, error.found)


def log_directory_findings(path: Path, options: Options) -> Iterator[Finding]:
    """Yield all findings about a log directory."""
    listing = list_log_directory(path)
    checkpoints = Checkpoints.beside(path)
    options.extent.files += len(listing.root_files)
    for error in (*listing.misnamed, *listing.blocked):
        yield Finding.of_error(error)
    for kind, root_file in listing.root_files.items():
        yield from text_file_findings(root_file, kind)
        if kind is FileKind.BOOTSTRAP_SNAPSHOT:
            yield from metadata_snapshot_findings(root_file, options)
    ends = {}
    for partition in listing.partitions:
        is_in_use, key = not partition.name.state, partition.name.topic_partition
        found = yield from partition_findings(
            partition.path,
            options,
            checkpoints.of(key) if is_in_use else {},
            is_closed=is_in_use and _is_closed(path, key[0]),
        )
        if found is not None and is_in_use:
            ends[key] = found
    yield from findings_of(WithoutTopicIds(without_topic_ids(listing)))
    yield from findings_of(broker_directories([listing]))
    yield from checkpoints.findings(ends)


def lone_partition_findings(path: Path, options: Options) -> Iterator[Finding]:
    """Yield all findings about a partition directory, and about its end offset in the checkpoints of its parent."""
    name = list_partition(path).name
    key = None if name is None or name.state else name.topic_partition
    checkpoints = Checkpoints.beside(path.absolute().parent)
    is_closed = key is not None and _is_closed(path.absolute().parent, key[0])
    found = yield from partition_findings(path, options, checkpoints.of(key), is_closed=is_closed)
    if found is not None and key is not None:
        yield from checkpoints.findings({key: found})


def _is_closed(log_directory: Path, topic: str) -> bool:
    """Return whether a log counts as closed cleanly; the loader of the metadata log recovers it always."""
    return topic not in METADATA_TOPICS and (log_directory / FileKind.CLEAN_SHUTDOWN.value).exists()


def repeated_partitions(paths: Sequence[Path]) -> Iterator[Finding]:
    """Yield a finding for each partition that is in several log directories of one broker (SEG-LDR-002).

    Directories whose `meta.properties` name different brokers are not compared with each other. A directory that names
    no broker is compared with all.

    Args:
        paths: log directories. `log_directory_findings` reports a partition that is twice in one of them.
    """
    nodes = {path: _node_of(path) for path in dict.fromkeys(path.resolve() for path in paths)}
    brokers: list[int | None] = [*sorted({node for node in nodes.values() if node is not None})]
    shown = {path.resolve(): path for path in reversed(paths)}
    for node in brokers or [None]:
        mates = [shown[path] for path, of in nodes.items() if of in {node, None}]
        yield from findings_of(_first_of_each([list_log_directory(path, is_subject=False) for path in mates]))


def _node_of(directory: Path) -> int | None:
    """Return the id of the broker that a log directory belongs to; None if no readable file names it."""
    properties = meta_properties_of(directory)
    return None if properties is None else properties.node_id


def _first_of_each(listings: list[LogDirectoryListing]) -> BrokerDirectories:
    """Return the paths of each partition, one for each log directory."""
    found: defaultdict[tuple[str, int], dict[int, str]] = defaultdict(dict)
    for number, listing in enumerate(listings):
        for partition in listing.partitions:
            if not partition.name.state:
                found[partition.name.topic_partition].setdefault(number, str(partition.path))
    return BrokerDirectories({key: tuple(paths.values()) for key, paths in found.items()})


def broker_directories(listings: list[LogDirectoryListing]) -> BrokerDirectories:
    """Return the partitions in use of several log directories."""
    found: defaultdict[tuple[str, int], tuple[str, ...]] = defaultdict(tuple)
    for listing in listings:
        for partition in listing.partitions:
            if not partition.name.state:
                found[partition.name.topic_partition] += (str(partition.path),)
    return BrokerDirectories(dict(found))
