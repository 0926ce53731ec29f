"""A partition directory and its remote segments: their choice, both as one storage, and fetching them as files."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from seglog_format.codec.checkpoints import (
    decode_leader_epoch_checkpoint,
    decode_partition_metadata,
    encode_offset_checkpoint,
    encode_partition_metadata,
)
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location, SeglogError, UsageError, write_errors
from seglog_format.log.listing import leader_epochs, list_partition
from seglog_format.log.remote_store import RemoteCopies
from seglog_format.model import GREATEST_OFFSET, CheckpointedOffset, EpochStart, MissingOffsets
from seglog_format.names import (
    NUMBERED_KINDS,
    REMOTE_LOG_METADATA_TOPIC,
    FileKind,
    partition_directory_name,
    segment_file_name,
)
from seglog_format.storage.byte_source import Closing, SourceFile, Window
from seglog_format.storage.copying import pieces_of
from seglog_format.storage.log_storage import DirectoryEntries, FileStatus, read_file
from seglog_format.storage.new_directory import all_or_nothing
from seglog_format.tier.layout import MemoryFile, whole_file
from seglog_format.tier.segments import Lineage
from seglog_format.tier.tier import key_of, remote_segments_of

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from seglog_format.log.listing import PartitionListing
    from seglog_format.storage.log_storage import LogStorage, SizeCheck
    from seglog_format.tier.layout import OpenedSegment
    from seglog_format.tier.segments import (
        RemotePartitionId,
        RemoteSegment,
        RemoteSegmentId,
        RemoteSegments,
        SegmentPart,
    )
    from seglog_format.tier.tier import Tier

    KnownSegments: TypeAlias = Mapping[RemotePartitionId, RemoteSegments]


# -- a part of a log: the entries of a range of offsets, if other segments are used for the rest -----------------------


class SlicedBytes(Closing):
    """A part of a file, from one position to another, that is read like a whole file; a `SourceFile`.

    Attributes:
        path: of the whole file.
        size: size of the part in bytes.
    """

    def __init__(self, source: SourceFile, start: int, end: int) -> None:
        self._source, self._start = source, start
        self.path = source.path
        self.size = end - start

    def expect(self, start: int, end: int | None) -> None:
        """Announce a sequential read of a range."""
        self._source.expect(start + self._start, min(self.size, end or self.size) + self._start)

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another, fewer at the end of the part."""
        return self._source.view(start + self._start, min(end, self.size) + self._start)

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part that holds the byte at a position."""
        start, data = self._source.window(position + self._start, min(at_least, self.size - position))
        cut = max(self._start - start, 0)
        data = data[cut : self._start + self.size - start]
        return Window(start + cut - self._start, data)

    def forget(self) -> None:
        """Release memory, as the whole file does."""
        self._source.forget()

    def release_before(self, position: int) -> None:
        """Release memory from time to time, as the whole file does."""
        self._source.release_before(position + self._start)

    def close(self) -> None:
        """Close the whole file."""
        self._source.close()


def slice_of(source: SourceFile, first_offset: int, last_offset: int) -> tuple[int, int]:
    """Return the positions at which the entries of a range of offsets begin and end in a log.

    Args:
        source: the log.
        first_offset: first offset of the range.
        last_offset: last offset of the range, inclusive.

    Raises:
        FormatError: at damage after which no entry can be found.
    """
    start: int | None = None
    end = 0
    for frame in walk(source, path=source.path):
        header = frame.header
        if header.last_offset < first_offset:
            end = frame.end
            continue
        first = header.last_offset if header.base_offset is None else header.base_offset
        if first > last_offset:
            break
        start = frame.position if start is None else start
        end = frame.end
    return end if start is None else start, end


# -- a partition directory together with the files of its remote segments ----------------------------------------------


PLAIN_KINDS = (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


class RemoteFile(NamedTuple):
    """A file of a remote segment, as a partition directory would have it.

    Attributes:
        part: the segment, with the offsets that it is used for.
        kind: of the file.
        is_cut: whether only a part of its log is used.
    """

    part: SegmentPart
    kind: FileKind
    is_cut: bool


class JoinedStorage:
    """A `LogStorage` that adds the files of remote segments to one directory of another storage.

    A file that is in both is read from the other storage. Nothing of a remote segment is fetched, not even its
    manifest, before one of its files is opened.

    Attributes:
        directory: the partition directory.
        tier: the remote store.
    """

    def __init__(self, storage: LogStorage, directory: Path, tier: Tier, files: Mapping[str, RemoteFile]) -> None:
        """Create a storage for remote files.

        Args:
            storage: the storage that holds the directory.
            directory: of the partition.
            tier: the remote store.
            files: remote files by their names in the directory; see `remote_files`.
        """
        self._storage, self.tier, self._files = storage, tier, files
        self.directory = directory
        self._cuts: dict[str, tuple[int, int]] = {}

    @property
    def is_local(self) -> bool:
        """Whether the directory is in the local file system."""
        return self._storage.is_local

    def name_of(self, path: Path) -> str:
        """Return the name of a file or directory that errors and rows show; for a remote file, that of its object."""
        file = self._file(path)
        if file is None:
            return self._storage.name_of(path)
        return self.tier.name_of(file.part.segment.id, file.kind)

    def entries(self, directory: Path) -> DirectoryEntries:
        """List a directory, without a request to the remote store."""
        files, directories, skipped = self._storage.entries(directory)
        if directory == self.directory:
            files = sorted({*files, *self._files})
        return DirectoryEntries(files, directories, skipped)

    def is_link(self, path: Path) -> bool:
        """Return whether a path is a symbolic link."""
        return self._file(path) is None and self._storage.is_link(path)

    def tiered_end(self, path: Path) -> int | None:
        """Return the offset after the used part of a remote segment; None for a local file."""
        file = self._file(path)
        return None if file is None else file.part.last_offset + 1

    def status(self, path: Path) -> FileStatus:
        """Return size and time of a file; for a remote log, those that it had before the upload."""
        file = self._file(path)
        if file is None:
            return self._storage.status(path)
        if file.kind is not FileKind.LOG:
            opened = self._opened(file)
            return FileStatus(opened.size(file.kind) if file.kind in opened.kinds else 0, None)
        if file.is_cut:
            start, end = self._cut(path.name, file)
            return FileStatus(end - start, None)
        return FileStatus(file.part.segment.size or self._opened(file).size(FileKind.LOG), None)

    def open(self, path: Path, *, mapped: bool = False, check: SizeCheck | None = None) -> SourceFile:
        """Open a file for reading.

        Raises:
            UsageError: there is no such file, a decryption key is missing, or the remote store does not answer.
            FormatError: the remote store lacks the file (SEG-PDR-028), or an object does not follow its layout.
        """
        file = self._file(path)
        if file is None:
            return self._storage.open(path, mapped=mapped, check=check)
        opened = self._opened(file)
        if file.kind is FileKind.TRANSACTION_INDEX and file.kind not in opened.kinds:
            return MemoryFile(b"", self.name_of(path))  # not all brokers record that there is none
        if file.kind not in opened.kinds:
            expected = f"its {file.kind.value} in the remote store"
            raise FormatError(Location(self.name_of(path)), "SEG-PDR-028", expected=expected, found="none")
        if check is not None:
            check(opened.size(file.kind), self.name_of(path))
        source = opened.open(file.kind)
        if file.kind is FileKind.LOG and file.is_cut:
            return SlicedBytes(source, *self._cut(path.name, file))
        return source

    def remote_file(self, path: Path) -> RemoteFile | None:
        """Return the remote file at a path; None if the file is local."""
        return self._file(path)

    def _file(self, path: Path) -> RemoteFile | None:
        return self._files.get(path.name) if path.parent == self.directory else None

    def _opened(self, file: RemoteFile) -> OpenedSegment:
        return self.tier.open(file.part.segment.id)

    def _cut(self, name: str, file: RemoteFile) -> tuple[int, int]:
        """Return start and end position of the used part of a log."""
        if name not in self._cuts:
            with self._opened(file).open(FileKind.LOG) as source:
                self._cuts[name] = slice_of(source, file.part.first_offset, file.part.last_offset)
        return self._cuts[name]


def remote_files(parts: Iterable[SegmentPart], local_names: Collection[str]) -> dict[str, RemoteFile]:
    """Return the files of remote segments by their names in the directory, except those that are also local.

    Args:
        parts: the remote segments, with the offsets that each is used for; in order.
        local_names: names of the files in the directory.
    """
    return {name: file for name, file in _named(parts) if name not in local_names}


def _named(parts: Iterable[SegmentPart]) -> Iterable[tuple[str, RemoteFile]]:
    """Yield the names that the files of remote segments have in a partition directory."""
    for number, part in enumerate(parts):
        segment = part.segment
        # The first part is not cut at its start: readers skip the records below the log start offset.
        starts_late = number > 0 and part.first_offset > segment.start_offset
        is_cut = starts_late or part.last_offset < segment.end_offset
        base = part.first_offset if starts_late else segment.start_offset
        # The stored indexes are relative to the base offset of the whole segment.
        kinds = [FileKind.LOG] if starts_late else [*PLAIN_KINDS]
        if not segment.is_transaction_index_empty:
            kinds.append(FileKind.TRANSACTION_INDEX)
        for kind in kinds:
            yield segment_file_name(base, kind), RemoteFile(part, kind, is_cut)
        if not is_cut:
            after = segment_file_name(segment.end_offset + 1, FileKind.PRODUCER_SNAPSHOT)
            yield after, RemoteFile(part, FileKind.PRODUCER_SNAPSHOT, is_cut=False)


# -- the choice of the remote segments that belong to a partition directory, by the metadata topic or by objects -------


class Joined(NamedTuple):
    """A partition together with its remote segments.

    Attributes:
        listing: of all its files, local and remote.
        log_start_offset: first offset that may be read.
        is_guess: whether there was no record of `__remote_log_metadata` to choose the remote segments by.
    """

    listing: PartitionListing
    log_start_offset: int
    is_guess: bool


class Served(NamedTuple):
    """The parts of a partition that its remote segments hold.

    Attributes:
        parts: of remote segments, in order, below the first segment of the directory; there may be gaps between them.
        log_start_offset: first offset that may be read.
        is_guess: whether there was no record of `__remote_log_metadata` to choose the remote segments by.
    """

    parts: list[SegmentPart]
    log_start_offset: int
    is_guess: bool


def join(
    listing: PartitionListing,
    log_start_offset: int | None,
    tier: Tier,
    known: KnownSegments | None,
) -> Joined:
    """Add the remote segments of a partition to its listing.

    Args:
        listing: of the directory.
        log_start_offset: as checkpointed; None without a checkpoint.
        tier: the remote store.
        known: remote segments from the metadata topic; None to use the objects alone.

    Raises:
        UsageError: the name of the directory is not that of a partition, or the store does not answer.
        FormatError: a manifest or an epoch checkpoint of the store does not follow its layout.
    """
    if listing.name is None:
        msg = f"{listing.path}: its name is not that of a partition, so its remote segments are not known"
        raise UsageError(msg)
    served = served_parts(listing, log_start_offset, tier, known)
    if served is None:
        return Joined(listing, log_start_offset or 0, is_guess=False)
    files = remote_files(served.parts, set(listing.storage.entries(listing.path).files))
    storage = JoinedStorage(listing.storage, listing.path, tier, files)
    return Joined(list_partition(listing.path, storage), served.log_start_offset, served.is_guess)


def served_parts(
    listing: PartitionListing, log_start_offset: int | None, tier: Tier | None, known: KnownSegments | None
) -> Served | None:
    """Return the parts of remote segments to read below the first segment of a directory.

    Args:
        listing: of the directory, whose name must be that of a partition.
        log_start_offset: as checkpointed; None without a checkpoint.
        tier: the remote store; None to use the metadata topic alone.
        known: remote segments from the metadata topic; None to use the objects alone.

    Returns:
        None if there are no remote segments of the partition.

    Raises:
        UsageError: the store does not answer.
        FormatError: a manifest or an epoch checkpoint of the store does not follow its layout.
    """
    remote = _recorded(listing, known or {})
    is_guess = remote is None
    if remote is None and tier is not None and listing.name is not None:
        topic, number = listing.name.topic_partition
        remote = remote_segments_of(tier, topic, _topic_id(listing), number)
    if remote is None:
        return None
    epochs = [EpochStart(*entry) for entry in leader_epochs(listing)]
    if not epochs and tier is not None:
        epochs = list(newest_epochs(remote, tier))
    start = max(log_start_offset or 0, epochs[0].start_offset if epochs else 0)
    local_start = listing.base_offsets[0] if listing.base_offsets else GREATEST_OFFSET
    served = Lineage(epochs, GREATEST_OFFSET).served(remote, start)
    parts = _merged(part for part in served if part.first_offset < local_start)
    cut = [part._replace(last_offset=min(part.last_offset, local_start - 1)) for part in parts]
    return Served(cut, start, is_guess)


def copies_of(
    listing: PartitionListing, log_end_offset: int, tier: Tier | None, known: KnownSegments | None
) -> RemoteCopies | None:
    """Return what a remote store holds of a partition, also of segments that are still in its directory.

    Args:
        listing: of the directory, whose name must be that of a partition.
        log_end_offset: of the local log.
        tier: the remote store; None to use the metadata topic alone.
        known: remote segments from the metadata topic; None to use the objects alone.

    Returns:
        None if that is not known: no remote segments of the partition are, or those of several topics of its name.

    Raises:
        UsageError: the store does not answer.
        FormatError: a manifest of the store does not follow its layout.
    """
    remote, where = _recorded(listing, known or {}, is_unique=True), f"by {REMOTE_LOG_METADATA_TOPIC} the remote store"
    if remote is None and tier is not None and listing.name is not None:
        topic, number = listing.name.topic_partition
        remote, where = remote_segments_of(tier, topic, _topic_id(listing), number), "by its objects the remote store"
    if remote is None:
        return None
    lineage = Lineage([EpochStart(*entry) for entry in leader_epochs(listing)], log_end_offset)
    highest = lineage.highest_copied(remote)
    parts = [part for part in lineage.served(remote, 0) if tier is None or tier.is_finished(part.segment.id)]
    held = tuple((part.first_offset, part.last_offset) for part in sorted(parts, key=lambda each: each.first_offset))
    return RemoteCopies(where, -1 if highest is None else highest[0], held)


def gaps_between(parts: Iterable[SegmentPart], wanted: MissingOffsets) -> tuple[MissingOffsets, ...]:
    """Return the wanted offsets that no part holds."""
    gaps, reached = [], wanted.first_offset
    for part in parts:
        if part.first_offset > reached:
            gaps.append(MissingOffsets(reached, min(part.first_offset, wanted.next_offset)))
        reached = max(reached, part.last_offset + 1)
    if reached < wanted.next_offset:
        gaps.append(MissingOffsets(reached, wanted.next_offset))
    return tuple(gaps)


def _recorded(listing: PartitionListing, known: KnownSegments, *, is_unique: bool = False) -> RemoteSegments | None:
    """Return the remote segments of a partition from the metadata topic; None if it has none.

    Args:
        listing: of the directory.
        known: the remote segments of all partitions.
        is_unique: whether to return None also if the topic id is not known, and several topics had the name.
    """
    topic_partition = None if listing.name is None else listing.name.topic_partition
    topic_id = _topic_id(listing)
    named = (id_ for id_ in known if (id_.topic, id_.partition) == topic_partition)
    found = [id_ for id_ in named if topic_id in {None, id_.topic_id}]
    return None if not found or (is_unique and len(found) > 1) else known[found[0]]


def _topic_id(listing: PartitionListing) -> str | None:
    """Return the topic id in `partition.metadata`; None if the file is missing or cannot be read."""
    path = listing.text_files.get(FileKind.PARTITION_METADATA)
    if path is not None:
        with suppress(SeglogError):
            return decode_partition_metadata(read_file(listing.storage, path), Location(str(path))).topic_id
    return None


def newest_epochs(remote: RemoteSegments, tier: Tier) -> Sequence[EpochStart]:
    """Return the leader epochs of a log from its newest segment: each segment stores all epochs up to its end.

    Raises:
        FormatError: they are damaged; an older segment would lack the newer epochs.
        UsageError: the store does not answer, or a decryption key is missing.
    """
    finished = sorted(remote.segments.values(), key=lambda each: (each.epochs[-1].epoch, each.end_offset))
    for segment in reversed(finished):
        opened = tier.open(segment.id)
        if FileKind.LEADER_EPOCH_CHECKPOINT in opened.kinds:
            source = opened.open(FileKind.LEADER_EPOCH_CHECKPOINT)
            return decode_leader_epoch_checkpoint(whole_file(source), Location(source.path)).entries
    return ()


def _merged(parts: Iterator[SegmentPart]) -> list[SegmentPart]:
    """Merge consecutive parts of one segment: there is one part for each leader epoch."""
    found: list[SegmentPart] = []
    for part in parts:
        if found and found[-1].segment.id == part.segment.id and found[-1].last_offset + 1 >= part.first_offset:
            found[-1] = found[-1]._replace(last_offset=part.last_offset)
        else:
            found.append(part)
    return found


# -- fetching of segments from a remote store into a partition directory, as the files that they were before -----------


class Choice(NamedTuple):
    """The segments of a store to fetch.

    Attributes:
        wanted: the segments that are part of the log of their partition, in order.
        superseded: the finished segments that are not part of it.
    """

    wanted: tuple[RemoteSegment, ...]
    superseded: tuple[RemoteSegment, ...]


def segments_to_fetch(tier: Tier, ids: Iterable[RemoteSegmentId]) -> Choice:
    """Choose the segments that belong to the logs of partitions, by the leader epochs of their newest segments.

    Args:
        tier: the remote store.
        ids: of finished segments.

    Raises:
        FormatError: an object does not follow its layout.
        UsageError: the store does not answer.
    """
    partitions = {tier.open(id_).facts.id.partition: key_of(id_) for id_ in ids}
    wanted: list[RemoteSegment] = []
    superseded: list[RemoteSegment] = []
    for (topic, topic_id, number), _ in sorted(partitions.items()):
        remote = remote_segments_of(tier, topic, topic_id, number)
        if remote is not None:
            parts = Lineage(newest_epochs(remote, tier), GREATEST_OFFSET).served(remote, 0)
            counted = {part.segment.id for part in parts}
            ordered = sorted(remote.segments.values(), key=lambda each: each.start_offset)
            wanted += [each for each in ordered if each.id in counted]
            superseded += [each for each in ordered if each.id not in counted]
    return Choice(tuple(wanted), tuple(superseded))


def fetch_segments(tier: Tier, segments: Iterable[RemoteSegment], target: Path) -> None:
    """Write segments into a new log directory: all of them, or none after a failure.

    Args:
        tier: the remote store.
        segments: finished segments; those of one partition in the order of their offsets.
        target: a new or empty directory; a directory for each partition is created in it.

    Raises:
        FormatError: an object does not follow its layout, or cannot be decrypted.
        UsageError: the target is not empty, two segments begin with the same offset, a decryption key is missing, or
            the store does not answer.
        WriteError: writing failed.
    """
    starts: dict[tuple[str, int], int] = {}
    with all_or_nothing(target) as staging:
        for segment in segments:
            opened = tier.open(segment.id)
            topic, _, partition = opened.facts.id.partition
            starts.setdefault((topic, partition), segment.start_offset)
            directory = staging / partition_directory_name(topic, partition)
            if (directory / segment_file_name(segment.start_offset, FileKind.LOG)).exists():
                msg = f"segments of {topic}-{partition} overlap at {segment.start_offset}: choose one by its id"
                raise UsageError(msg)
            with write_errors("writing"):
                directory.mkdir(exist_ok=True)
            _write_segment(directory, segment, opened)
        with write_errors("writing"):
            checkpoint = encode_offset_checkpoint(CheckpointedOffset(*key, start) for key, start in starts.items())
            (staging / FileKind.LOG_START_OFFSET_CHECKPOINT.value).write_bytes(checkpoint)


def _write_segment(directory: Path, segment: RemoteSegment, opened: OpenedSegment) -> None:
    for kind in NUMBERED_KINDS:
        if kind in opened.kinds:
            is_snapshot = kind is FileKind.PRODUCER_SNAPSHOT  # it holds the state at the end of the segment
            offset = segment.end_offset + 1 if is_snapshot else segment.start_offset
            _write(directory / segment_file_name(offset, kind), opened.open(kind))
    with write_errors("writing"):
        metadata = encode_partition_metadata(segment.id.partition.topic_id)
        (directory / FileKind.PARTITION_METADATA.value).write_bytes(metadata)
        if FileKind.LEADER_EPOCH_CHECKPOINT in opened.kinds:  # that of the last segment has the whole history
            epochs = whole_file(opened.open(FileKind.LEADER_EPOCH_CHECKPOINT))
            (directory / FileKind.LEADER_EPOCH_CHECKPOINT.value).write_bytes(epochs)


def _write(path: Path, source: SourceFile) -> None:
    with write_errors("writing"), path.open("xb") as file:
        file.writelines(pieces_of(source))
