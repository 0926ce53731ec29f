"""Replicas examined: where each log ends once a broker has recovered it, and where two of them part."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.errors import SeglogError
from seglog_format.plans.in_place import recover
from seglog_format.recovery.apply import RecoveryOptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.cluster.cluster import Replica, Replicas


def examined(replicas: Replicas, on_replica: Callable[[Replica], None] | None = None) -> Replicas:
    """Return the replicas as a broker will find them: recovered from their first offset, as after a crash.

    Every log is read whole. Nothing is changed.

    Args:
        replicas: to examine.
        on_replica: called with each before it is read.
    """
    return {key: tuple(_examined(copy, on_replica) for copy in copies) for key, copies in replicas.items()}


def _examined(copy: Replica, on_replica: Callable[[Replica], None] | None) -> Replica:
    if on_replica is not None:
        on_replica(copy)
    try:
        plan = recover(copy.path, options=RecoveryOptions(is_full_scan=True)).plan
    except SeglogError as error:
        return copy._replace(log_end_offset=None, damage=str(error))
    if plan.cut is None:
        return copy._replace(log_end_offset=max(plan.log_end_offset, copy.log_start_offset))
    epochs = tuple(entry for entry in copy.epochs if entry.start_offset <= plan.log_end_offset)
    return copy._replace(log_end_offset=plan.log_end_offset, epochs=epochs, damage=plan.cut.reason)


def divergence(one: Replica, other: Replica) -> int:
    """Return the first offset at which two replicas of a partition may differ, by their leader epochs.

    Up to there both hold what the same leaders wrote. It is the end of the shorter one where nothing parts them.
    """
    count = 0
    for mine, theirs in zip(one.epochs, other.epochs, strict=False):
        if mine != theirs:
            break
        count += 1
    return min(_start_after(one, count), _start_after(other, count))


def _start_after(copy: Replica, count: int) -> int:
    """Return where the epoch after the first ``count`` ones begins; the end of the log where there is none."""
    end = copy.log_start_offset if copy.log_end_offset is None else copy.log_end_offset
    return copy.epochs[count].start_offset if count < len(copy.epochs) else end
