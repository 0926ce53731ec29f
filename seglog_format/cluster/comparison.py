"""Comparison of replicas: which one an election keeps, where another diverges from it, and what only that one holds."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from contextlib import suppress
from enum import IntEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from seglog_format.errors import FormatError
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import Partition
from seglog_format.model import INT64_MAX, EpochStart
from seglog_format.names import is_reserved_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_format.cluster.image import Fields
    from seglog_format.log.directory import TopicPartition
    from seglog_format.log.gaps import Gap
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.segment_scan import Cut


class Replica(NamedTuple):
    """A replica of a partition in one of the log directories.

    Attributes:
        path: of the partition directory.
        node_id: of the broker that it belonged to; None without readable `meta.properties`.
        topic_id: from `partition.metadata`; None without it.
        epochs: leader epochs and the first offset of each, ascending, from the leader epoch checkpoint. The last one
            may begin at the log end: retention has emptied the log, or the leader wrote nothing yet.
        log_start_offset: the first offset that may be read.
        log_end_offset: the offset after the last whole entry; None if the log cannot be read.
        size: of its segments in bytes.
        damage: why the log ends before its files do; empty if it was not examined, or is whole.
        cut: the segment and the position in it at which the log then ends; None if nothing is cut.
        has_logs_alone: whether only the logs are used, because another file cannot be read.
        state: ``stray``, ``delete`` or ``future`` if a broker renamed the directory; else empty.
        directory_id: of the log directory, from `meta.properties`; None if it has none.
        high_watermark: from the checkpoint of the log directory; 0 without one.
        recovery_point: from the checkpoint of the log directory; 0 without one.
        known_epochs: `epochs`, and those that begin behind the end of a damaged log.
        gaps: offsets that are missing before its first segment and after its last one; not those in a remote store.
    """

    path: Path
    node_id: int | None
    topic_id: str | None
    epochs: tuple[EpochStart, ...]
    log_start_offset: int
    log_end_offset: int | None
    size: int
    damage: str = ""
    cut: Cut | None = None
    has_logs_alone: bool = False
    state: str = ""
    directory_id: str | None = None
    high_watermark: int = 0
    recovery_point: int = 0
    known_epochs: tuple[EpochStart, ...] = ()
    gaps: tuple[Gap, ...] = ()

    @property
    def leader_epoch(self) -> int:
        """The highest leader epoch; -1 if none is known."""
        return self.epochs[-1].epoch if self.epochs else -1

    @property
    def chain(self) -> tuple[EpochStart, ...]:
        """All leader epochs that the replica knows, also behind its end."""
        return self.known_epochs or self.epochs

    @property
    def latest_epoch(self) -> int:
        """The highest leader epoch that it knows, also behind its end; -1 if none is known."""
        return self.chain[-1].epoch if self.chain else -1


Replicas: TypeAlias = "Mapping[TopicPartition, tuple[Replica, ...]]"


class Standing(IntEnum):
    """What the metadata say of a replica; an election takes the highest one that is there."""

    OTHER = 0
    """It may lack committed records, or the metadata do not say."""
    LAST_LEADER = 1
    """It was the last known leader, and ISR and ELR are empty."""
    ELIGIBLE = 2
    """It is in the ELR, the eligible leader replicas."""
    IN_SYNC = 3
    """It is in the ISR."""


def divergence(one: Replica, other: Replica) -> int:
    """Return the first offset at which two replicas of a partition may differ, by their leader epochs.

    Up to that offset, both held what the same leaders wrote. If they do not diverge, it is the end of the shorter one.
    """
    return _agreed_end(one.epochs, other.epochs, min(one.log_end_offset or 0, other.log_end_offset or 0))


def _agreed_end(mine: Sequence[EpochStart], theirs: Sequence[EpochStart], end: int) -> int:
    """Return the offset up to which two chains of leader epochs agree, at most a given end.

    A log start offset that moves takes the first entry along, so nothing is known below the first entry of a chain. All
    records of an epoch are of one leader, so two replicas that have an epoch agree below it. It begins later in a
    replica that fetched its first records after they were cleaned away.
    """
    if not mine or not theirs:
        return end
    known = max(mine[0].start_offset, theirs[0].start_offset)
    for earlier, later in ((mine, theirs), (theirs, mine)):
        above = (each.start_offset for each in earlier if each.epoch > later[0].epoch and each.start_offset < known)
        end = min(end, *above, end)
    common = max({each.epoch for each in mine} & {each.epoch for each in theirs}, default=-1)
    known = max([known, *(each.start_offset for each in (*mine, *theirs) if each.epoch == common)])
    starts = {known, *(each.start_offset for each in (*mine, *theirs))}
    return min((at for at in starts if known <= at < end and _epoch_at(mine, at) != _epoch_at(theirs, at)), default=end)


def _epoch_at(epochs: Sequence[EpochStart], offset: int) -> int:
    return max((each.epoch for each in epochs if each.start_offset <= offset), default=-1)


class Election:
    """The choice among the replicas of a partition.

    By the metadata, a member of the ISR wins, then one of the ELR, then the last known leader: so controllers elect.
    So retention, DeleteRecords and idle topics do not matter. A member that has lost records ranks with all others: by
    the offset up to which a replica agrees with the latest leader, then by leader epoch, then by its end.

    Attributes:
        copies: the replicas, all readable.
        is_outdated: whether a replica knows a later leader epoch than the metadata, which then do not count.
    """

    def __init__(self, copies: Sequence[Replica], partition: Fields) -> None:
        """Compare replicas.

        Args:
            copies: the replicas, all readable, at least one.
            partition: fields of the partition in the metadata; empty without metadata.
        """
        self.copies = copies
        self._partition = partition
        latest = max(copies, key=lambda copy: (copy.latest_epoch, copy.log_end_offset or 0))
        self._chain = latest.chain
        self.is_outdated = latest.latest_epoch > partition.get("leaderEpoch", -1)

    @property
    def chosen(self) -> Replica:
        """The replica that an election keeps."""
        return max(self.copies, key=self._rank)

    def _rank(self, copy: Replica) -> tuple[int, ...]:
        end = copy.log_end_offset or 0
        agreed = _agreed_end(copy.epochs, self._chain, end)
        counts = self.standing(copy)
        return (counts, agreed, copy.leader_epoch, end, not copy.damage, self.listed(copy), -copy.log_start_offset)

    def standing(self, copy: Replica) -> Standing:
        """Return what the metadata say of a replica, or `Standing.OTHER` if it has lost records since."""
        return self.listed(copy) if self.is_whole(copy) else Standing.OTHER

    def listed(self, copy: Replica) -> Standing:
        """Return what the metadata say of the broker and the disk of a replica."""
        isr, eligible = (self._partition.get(name) or () for name in ("isr", "eligibleLeaderReplicas"))
        if self.is_outdated or copy.state or not self._is_on_its_disk(copy):
            return Standing.OTHER
        if copy.node_id in isr:
            return Standing.IN_SYNC
        if copy.node_id in eligible:
            return Standing.ELIGIBLE
        is_last = not isr and not eligible and copy.node_id in (self._partition.get("lastKnownElr") or ())
        return Standing.LAST_LEADER if is_last else Standing.OTHER

    def _is_on_its_disk(self, copy: Replica) -> bool:
        """Return whether a replica lies where the metadata say; a broker may have left an older one on another disk."""
        disks = dict(zip(self._partition.get("replicas") or (), self._partition.get("directories") or (), strict=False))
        disk = disks.get(copy.node_id)
        return disk is None or copy.directory_id in {None, disk} or is_reserved_id(urlsafe_b64decode(f"{disk}=="))

    def is_whole(self, copy: Replica) -> bool:
        """Return whether a replica has lost no records: it is not damaged, and reaches every end known as committed."""
        own = [copy.high_watermark, *(each.start_offset for each in copy.chain)]
        return not copy.damage and (copy.log_end_offset or 0) >= max(*own, self.committed_end(copy))

    def committed_end(self, chosen: Replica) -> int:
        """Return the end that high watermarks and log start offsets prove, as far as they lie in the chosen history."""
        return max(
            min(max(copy.high_watermark, copy.log_start_offset), end_of_epoch(chosen, copy.latest_epoch))
            for copy in self.copies
        )


def end_of_epoch(copy: Replica, epoch: int) -> int:
    """Return the offset at which a later leader epoch of a replica begins; above every offset if none does."""
    later = (each.start_offset for each in copy.epochs if 0 <= epoch < each.epoch)
    return min(later, default=INT64_MAX)


class Parting(NamedTuple):
    """Where a replica diverges from the chosen one, and how much only it holds.

    Attributes:
        offset: the first offset at which they may differ, and that the replica holds.
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


def lost_from(chosen: Replica, other: Replica) -> int:
    """Return the first offset that another replica holds in a history of its own; its end if there is none."""
    return max(divergence(chosen, other), min(other.log_start_offset, other.log_end_offset or 0))


def parting(chosen: Replica, other: Replica) -> Parting:
    """Return where another replica diverges from the chosen one; read its log only if it holds more."""
    offset, end = lost_from(chosen, other), other.log_end_offset or 0
    if offset >= end:
        return Parting(offset)
    epoch = _epoch_at(other.epochs, offset)
    with Partition(list_partition(other.path)) as partition:
        kept = [each for each in partition.segments if other.cut is None or each.base_offset <= other.cut.base_offset]
        if not kept:
            return Parting(offset, epoch)
        first = max((each for each in kept if each.base_offset <= offset), key=_base_offset, default=kept[0])
        position = 0
        with suppress(FormatError):
            position = first.position_of(offset) or 0
        sizes = {each.base_offset: each.size for each in kept if each.base_offset >= first.base_offset}
    if other.cut is not None:
        sizes[other.cut.base_offset] = other.cut.position
    return Parting(offset, epoch, Path(first.path).name, position, sum(sizes.values()) - position)


def _base_offset(segment: LogSegment) -> int:
    return segment.base_offset


# -- the comparison of replicas, as text and as objects for JSON -------------------------------------------------------


STANDINGS: Final = {
    Standing.IN_SYNC: "was in the ISR",
    Standing.ELIGIBLE: "was in the ELR",
    Standing.LAST_LEADER: "was the last leader",
}


def choice_text(election: Election, other: Replica) -> str:
    """Return why a replica was chosen, and which offsets only another replica holds, as text."""
    chosen = election.chosen
    standing, end = election.standing(chosen), other.log_end_offset or 0
    if standing > election.standing(other):
        least = min(standing, election.listed(other))
        why = f"broker {chosen.node_id} {STANDINGS[standing]}, and "
        why += "the other has lost records" if least == standing else f"broker {other.node_id} was not"
    elif chosen.leader_epoch > other.leader_epoch:
        why = f"leader epoch {chosen.leader_epoch} is above {other.leader_epoch}"
    elif chosen.log_end_offset != end:
        why = f"its log ends at {chosen.log_end_offset}, the other's at {end}"
    elif chosen.log_start_offset != other.log_start_offset:
        why = f"its log begins at {chosen.log_start_offset}, the other's at {other.log_start_offset}"
    else:
        why = "both have the same length"
    if (listed := election.listed(other)) > standing:
        why += f", although broker {other.node_id} {STANDINGS[listed]}: it has lost records"
    first, deleted = lost_from(chosen, other), min(chosen.log_start_offset, end)
    lost = f"; offsets {first} to {end - 1} of the other are lost" if end > first else ""
    if (last := min(deleted, first)) > other.log_start_offset:
        lost += f"; the other still holds offsets {other.log_start_offset} to {last - 1}, below the log start offset"
    return f"taken from {chosen.path}, not from {other.path}: {why}{lost}"


def comparisons(elections: Mapping[TopicPartition, Election]) -> Iterator[dict[str, Any]]:
    """Yield each replica of partitions with several replicas, and where it diverges from the chosen one."""
    for key, election in sorted(elections.items()):
        chosen = election.chosen
        for copy in election.copies if len(election.copies) > 1 else ():
            yield {
                "type": "replica",
                "topic": key[0],
                "partition": key[1],
                "path": str(copy.path),
                "nodeId": copy.node_id,
                "isTaken": copy is chosen,
                "isInSync": election.standing(copy) >= Standing.ELIGIBLE,
                "leaderEpoch": copy.leader_epoch,
                "logStartOffset": copy.log_start_offset,
                "logEndOffset": copy.log_end_offset,
                "size": copy.size,
                "damage": copy.damage or None,
                "divergence": None if copy is chosen else _divergence(chosen, copy),
            }


def _divergence(chosen: Replica, copy: Replica) -> dict[str, Any] | None:
    """Return where a replica diverges from the chosen one; None if it has no offsets that the chosen one lacks."""
    apart = parting(chosen, copy)
    if apart.offset >= (copy.log_end_offset or 0):
        return None
    return {
        "offset": apart.offset,
        "leaderEpoch": apart.epoch,
        "file": apart.file,
        "position": apart.position,
        "lostOffsetCount": (copy.log_end_offset or 0) - apart.offset,
        "lostSize": apart.lost_size,
    }
