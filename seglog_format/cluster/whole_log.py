"""A replica together with its segments in a remote store: the files that make up the log, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seglog_format.log.listing import SegmentFiles, list_partition
from seglog_format.log.partition import open_partition
from seglog_format.log.transactions import read_transactions

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.partition import Partition
    from seglog_format.log.remote_store import RemoteStore


class WholeLog(NamedTuple):
    """The files of a log, on a disk or in a store.

    Attributes:
        listing: of the files. Of segments in the store only the logs, since a broker builds the rest again.
        log_start_offset: the first offset that may be read.
        remote_count: number of segments in the store.
        remote_size: bytes of their logs.
        missing: what is neither on the disk nor in the store, or damaged in the store.
    """

    listing: PartitionListing
    log_start_offset: int
    remote_count: int
    remote_size: int
    missing: tuple[str, ...]


def whole_log(path: Path, remote: RemoteStore | None = None) -> WholeLog:
    """Return the files of a log.

    Each log in the store is read whole. A damaged one is left out: a broker would cut all that follows as well.

    Args:
        path: of the partition directory.
        remote: the store; None for what the directory holds alone.

    Raises:
        UsageError: the store does not answer, or a key is not at hand.
        FormatError: what an object says of its partition cannot be read.
    """
    local = list_partition(path)
    with open_partition(path, remote=remote) as partition:
        stored = [segment for segment in partition.segments if segment.base_offset not in local.base_offsets]
        ends = {segment.base_offset: read_transactions((segment,)) for segment in stored}
        sound = [segment for segment in stored if ends[segment.base_offset].damage is None]
        spans = [(segment.base_offset, ends[segment.base_offset].end_offset) for segment in sound]
        damages = [f"{each.damage}; this segment is left out" for each in ends.values() if each.damage is not None]
        files = (*(SegmentFiles(each.base_offset, each.paths.log) for each in sound), *local.segments)
        bases = tuple(each.base_offset for each in files)
        return WholeLog(
            local._replace(segments=files, base_offsets=bases, storage=partition.listing.storage),
            max(partition.log_start_offset, bases[0] if bases else 0),
            len(sound),
            sum(segment.size for segment in sound),
            (*damages, *_gaps(_first_offset(partition), [*spans, *((base, base) for base in local.base_offsets[:1])])),
        )


def _first_offset(partition: Partition) -> int:
    """Return the first offset that the partition had, wherever it was."""
    tiered = partition.tiered_offsets
    return partition.log_start_offset if tiered is None else tiered.first_offset


def _gaps(first: int, spans: list[tuple[int, int]]) -> list[str]:
    """Name the offsets from the first one on that lie between spans of offsets, each with its end."""
    gaps = []
    for start, end in spans:
        if first < start:
            gaps.append(f"offsets {first} to {start - 1} are not in the directory, but in a remote store, or lost")
        first = max(first, end)
    return gaps
