"""The choice of the remote segments that belong to a partition directory, by the metadata topic or by objects."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, decode_partition_metadata
from seglog_format.errors import Location, SeglogError, UsageError
from seglog_format.log.gaps import leader_epochs
from seglog_format.log.listing import list_partition
from seglog_format.log.remote_store import RemoteCopies
from seglog_format.model import GREATEST_OFFSET, MissingOffsets
from seglog_format.names import REMOTE_LOG_METADATA_TOPIC, FileKind
from seglog_format.record_model import EpochStart
from seglog_format.storage.log_storage import read_file
from seglog_format.tier.joined_storage import JoinedStorage, remote_files
from seglog_format.tier.object_facts import remote_segments_of
from seglog_format.tier.segments import Lineage
from seglog_format.tier.stored_segment import whole_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seglog_format.log.listing import PartitionListing
    from seglog_format.tier.records import RemotePartitionId
    from seglog_format.tier.segments import RemoteSegments, SegmentPart
    from seglog_format.tier.tier import Tier

    KnownSegments: TypeAlias = Mapping[RemotePartitionId, RemoteSegments]


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
