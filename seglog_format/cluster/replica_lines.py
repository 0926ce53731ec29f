"""The comparison of replicas, as text and as objects for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_format.cluster.comparison import Standing, lost_from, parting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seglog_format.cluster.comparison import Election, Replica
    from seglog_format.log.directory import TopicPartition


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
