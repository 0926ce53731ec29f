"""A replica together with its segments in a remote store: the files of the whole log, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.log.gaps import leader_epochs
from seglog_format.log.listing import SegmentFiles, list_partition
from seglog_format.log.offset_checkpoints import checkpointed_offset
from seglog_format.log.partition import open_partition
from seglog_format.log.transactions import Transactions, read_on
from seglog_format.names import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_format.cluster.cluster import Replica
    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.partition import Partition
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.log.segment import LogSegment

REACHED: Final = (FileKind.REPLICATION_OFFSET_CHECKPOINT, FileKind.RECOVERY_POINT_CHECKPOINT)
"""Checkpoints whose offset shows how far a log had reached."""


class WholeLog(NamedTuple):
    """The files of a log, on a disk or in a store.

    Attributes:
        listing: of the files. For segments in the store only the logs, because a broker builds the other files.
        log_start_offset: the first offset that may be read.
        log_end_offset: the offset after the last existing one.
        open_offsets: first offsets of transactions that are open at the end of the segments in the store, by producer
            id.
        remote_count: number of segments in the store.
        remote_size: number of bytes of their logs.
        missing: descriptions of offsets that are neither on the disk nor in the store, or are damaged in the store.
    """

    listing: PartitionListing
    log_start_offset: int
    log_end_offset: int
    open_offsets: Mapping[int, int]
    remote_count: int
    remote_size: int
    missing: tuple[str, ...]


class _RemoteLogs(NamedTuple):
    """The result of reading the segments of a store."""

    sound: list[LogSegment]
    spans: list[tuple[int, int]]
    damages: list[str]
    open_offsets: Mapping[int, int]


def whole_log(replica: Replica, remote: RemoteStore | None = None) -> WholeLog:
    """Return the files of a log.

    Each log in the store is read whole. A damaged one is left out: a broker would also remove all that follow it.

    Args:
        replica: the local replica, as examined.
        remote: the store; None to use the directory alone.

    Raises:
        UsageError: the store does not answer, or a decryption key is missing.
        FormatError: an object that describes the partition's segments cannot be read.
    """
    local = list_partition(replica.path)
    local = local.logs_alone() if replica.has_logs_alone else local
    with open_partition(replica.path, remote=remote) as partition:
        stored = _read(segment for segment in partition.segments if segment.base_offset not in local.base_offsets)
        files = (*(SegmentFiles(each.base_offset, each.paths.log) for each in stored.sound), *local.segments)
        bases = tuple(each.base_offset for each in files)
        start = max(partition.log_start_offset, bases[0] if bases else 0)
        ends = [replica.log_end_offset or 0] if local.segments else [end for _, end in stored.spans[-1:]]
        end = max([start, *ends])
        gaps = _gaps(_first_offset(partition), [*stored.spans, *((base, base) for base in local.base_offsets[:1])])
        # For a damaged replica, its end is already noted.
        lost = () if replica.damage else _lost_end(local, end, is_empty=not files)
        return WholeLog(
            local._replace(segments=files, base_offsets=bases, storage=partition.listing.storage),
            start,
            end,
            stored.open_offsets,
            len(stored.sound),
            sum(segment.size for segment in stored.sound),
            (*stored.damages, *gaps, *lost),
        )


def _read(segments: Iterable[LogSegment]) -> _RemoteLogs:
    """Read each log in a store whole, once."""
    stored = _RemoteLogs([], [], [], {})
    for segment in segments:
        found = Transactions(open_offsets=dict(stored.open_offsets))
        read_on(found, (segment,), 0)
        if found.damage is not None:
            stored.damages.append(f"{found.damage}; this segment is left out")
            continue
        stored.sound.append(segment)
        stored.spans.append((segment.base_offset, found.end_offset))
        stored = stored._replace(open_offsets=found.open_offsets)
    return stored


def _lost_end(local: PartitionListing, end: int, *, is_empty: bool) -> list[str]:
    """Return texts about offsets after the end of a log that it had, as other files show."""
    reached = {kind.value: checkpointed_offset(local, kind) or 0 for kind in REACHED}
    if epochs := leader_epochs(local):
        reached[FileKind.LEADER_EPOCH_CHECKPOINT.value] = epochs[-1][1]
    where, known = max(reached.items(), key=lambda each: each[1])
    if known <= end:
        return []
    what = "not in the directory, but in a remote store, or lost" if is_empty else "lost"
    return [f"offsets {end} to {known - 1} are {what}: by {where} the log had reached {known}"]


def _first_offset(partition: Partition) -> int:
    """Return the first offset that the partition had, whether local or remote."""
    tiered = partition.tiered_offsets
    return partition.log_start_offset if tiered is None else tiered.first_offset


def _gaps(first: int, spans: list[tuple[int, int]]) -> list[str]:
    """Return texts about the offsets from a first one on that are not in any of the given ranges."""
    gaps = []
    for start, end in spans:
        if first < start:
            gaps.append(f"offsets {first} to {start - 1} are not in the directory, but in a remote store, or lost")
        first = max(first, end)
    return gaps
