"""Comparison of replicas: which one an election keeps, where another diverges from it, and what only that one holds."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.log.partition import open_partition

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.cluster.cluster import Replica
    from seglog_format.cluster.image import Fields
    from seglog_format.log.segment import LogSegment


def divergence(one: Replica, other: Replica) -> int:
    """Return the first offset at which two replicas of a partition may differ, by their leader epochs.

    Up to that offset, both hold what the same leaders wrote. If they do not diverge, it is the end of the shorter one.
    """
    count = 0
    for mine, theirs in zip(one.epochs, other.epochs, strict=False):
        if mine != theirs:
            break
        count += 1
    return min(_start_after(one, count), _start_after(other, count))


def _start_after(copy: Replica, count: int) -> int:
    """Return the start of the epoch after the first ``count`` epochs; the end of the log if there is none."""
    end = copy.log_start_offset if copy.log_end_offset is None else copy.log_end_offset
    return copy.epochs[count].start_offset if count < len(copy.epochs) else end


def safe_leaders(partition: Fields) -> set[int]:
    """Return the brokers that have all committed records, according to the metadata of a partition."""
    return {*(partition.get("isr") or ()), *(partition.get("eligibleLeaderReplicas") or ())}


def is_in_sync(copy: Replica, partition: Fields) -> bool:
    """Return whether a replica is a safe leader: the metadata lists it as in sync, and it is not damaged.

    Args:
        copy: the replica.
        partition: fields of its partition in the metadata; if the replica has a later leader epoch, they are outdated.
    """
    return (
        not copy.damage
        and copy.node_id in safe_leaders(partition)
        and copy.leader_epoch <= partition.get("leaderEpoch", -1)
    )


def chosen_of(copies: Iterable[Replica], partition: Fields) -> Replica:
    """Return the replica that an election keeps: by the highest leader epoch, then in sync, then the longest."""
    return max(copies, key=lambda copy: (copy.leader_epoch, is_in_sync(copy, partition), copy.log_end_offset or 0))


class Parting(NamedTuple):
    """Where a replica diverges from the chosen one, and how much only it holds.

    Attributes:
        offset: the first offset at which they may differ.
        epoch: the leader epoch of the replica at that offset; -1 if none is known, or the replica ends there.
        file: name of the log that holds this offset; empty if the replica ends there.
        position: of the offset in that file.
        lost_size: number of bytes of the replica from there to its end.
    """

    offset: int
    epoch: int = -1
    file: str = ""
    position: int = 0
    lost_size: int = 0


def parting(chosen: Replica, other: Replica) -> Parting:
    """Return where another replica diverges from the chosen one; read its log only if it holds more."""
    offset, end = divergence(chosen, other), other.log_end_offset or 0
    if offset >= end:
        return Parting(offset)
    epoch = max((each.epoch for each in other.epochs if each.start_offset <= offset), default=-1)
    with open_partition(other.path) as partition:
        kept = [each for each in partition.segments if other.cut is None or each.base_offset <= other.cut.base_offset]
        if not kept:
            return Parting(offset, epoch)
        first = max((each for each in kept if each.base_offset <= offset), key=_base_offset, default=kept[0])
        position = first.position_of(offset) or 0
        sizes = {each.base_offset: each.size for each in kept if each.base_offset >= first.base_offset}
    if other.cut is not None:
        sizes[other.cut.base_offset] = other.cut.position
    return Parting(offset, epoch, Path(first.path).name, position, sum(sizes.values()) - position)


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset
