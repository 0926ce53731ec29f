"""The comparison of replicas as objects for JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seglog_format.cluster.comparison import is_in_sync, parting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.cluster.cluster import Replica
    from seglog_format.cluster.image import MetadataImage
    from seglog_format.cluster.new_image import NewImage


def comparisons(made: NewImage, old: MetadataImage) -> Iterator[dict[str, Any]]:
    """Yield each replica of partitions with several replicas, and where it diverges from the chosen one."""
    partitions = {
        (topic.name, number): each for topic in old.topics.values() for number, each in topic.partitions.items()
    }
    for key, copies in sorted(made.compared.items()):
        chosen = next(copy for copy in copies if copy.path == made.logs[key].path)
        for copy in copies if len(copies) > 1 else ():
            yield {
                "type": "replica",
                "topic": key[0],
                "partition": key[1],
                "path": str(copy.path),
                "nodeId": copy.node_id,
                "isTaken": copy is chosen,
                "isInSync": is_in_sync(copy, partitions.get(key, {})),
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
