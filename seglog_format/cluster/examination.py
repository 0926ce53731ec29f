"""Examination of replicas: where each log ends, and which leader epochs it has, after a broker recovers it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint
from seglog_format.errors import FormatError, Location, SeglogError
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import Partition
from seglog_format.names import FileKind
from seglog_format.plans.in_place import recover
from seglog_format.recovery.apply import RecoveryOptions
from seglog_format.recovery.losses import replaced_or_hidden
from seglog_format.recovery.plan import plan_of_logs
from seglog_format.recovery.planned_files import read_leader_epochs
from seglog_format.recovery.salvaged_log import salvaged_log
from seglog_format.state_model import EpochStart
from seglog_format.storage.file_steps import Replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.cluster.comparison import Replica, Replicas
    from seglog_format.recovery.apply import PreparedRecovery
    from seglog_format.recovery.plan import RecoveryPlan


def examined(replicas: Replicas, on_replica: Callable[[Replica], None] | None = None) -> Replicas:
    """Return the replicas as they will be after a broker recovers them from their first offset.

    Every log is read whole. No file is changed.

    Args:
        replicas: to examine.
        on_replica: called with each replica before it is read.
    """
    return {key: tuple(_examined(copy, on_replica) for copy in copies) for key, copies in replicas.items()}


def _examined(copy: Replica, on_replica: Callable[[Replica], None] | None) -> Replica:
    if on_replica is not None:
        on_replica(copy)
    try:
        recovery = recover(copy.path, options=RecoveryOptions(is_full_scan=True))
        plan, epochs = recovery.plan, _epochs_after(copy, recovery)
    except SeglogError as error:
        return _with_logs_alone(copy, str(error))
    if plan.restarts:
        return _with_logs_alone(copy, next(_damages(copy, plan)))
    end = max(plan.log_end_offset, copy.log_start_offset)
    damage = "; ".join(_damages(copy, plan))
    return _with_epochs(copy, epochs, end)._replace(log_end_offset=end, damage=damage, cut=plan.cut)


def _with_epochs(copy: Replica, epochs: tuple[EpochStart, ...], end: int) -> Replica:
    """Return a replica with leader epochs, and those above them that its checkpoint names.

    A broker that loads a log forgets an epoch that begins at its end. But in a log that retention has emptied, this is
    the epoch of the last leader.
    """
    latest = epochs[-1].epoch if epochs else -1
    above = tuple(each for each in copy.known_epochs if each.epoch > latest)
    at_end = tuple(each for each in above if each.start_offset == end)
    return copy._replace(epochs=epochs + at_end, known_epochs=epochs + above)


def _with_logs_alone(copy: Replica, error: str) -> Replica:
    """Return a replica as its logs alone: a file cannot be read, or its log start offset is above its end.

    A broker builds the other files. The log counts up to the first file that cannot be opened, although a node
    also gets the intact entries after it: a replica without such a hole is better.
    """
    plan = plan_of_logs(copy.path)
    if not plan.scanned and not any(each.entry_count for each in salvaged_log(list_partition(copy.path)).reports):
        return copy._replace(log_end_offset=None, damage=error)
    damages = [error, "only its logs are taken"]
    with suppress(SeglogError):
        damages += _damages(copy, plan)
    end = plan.log_end_offset
    return _with_epochs(copy, _epochs_of_batches(copy, end), end)._replace(
        log_end_offset=end,
        damage="; ".join(dict.fromkeys(damages)),
        cut=plan.cut,
        has_logs_alone=True,
    )


def _damages(copy: Replica, plan: RecoveryPlan) -> Iterator[str]:
    """Yield a text for each part of a replica that is lost, with the reason."""
    if plan.restarts:
        yield f"it ends below its checkpointed log start offset, {copy.log_start_offset}: a broker drops every record"
        return
    if plan.cut is not None:
        yield plan.cut.reason
    for lost in replaced_or_hidden(copy.path, plan):
        yield f"{lost.file} {lost.reason.value}: {lost.missing.span}"


def _epochs_after(copy: Replica, recovery: PreparedRecovery) -> tuple[EpochStart, ...]:
    """Return the leader epochs after a recovery; those that the checkpoint lacks are taken from batches."""
    path = copy.path / FileKind.LEADER_EPOCH_CHECKPOINT.value
    known = read_leader_epochs(path)
    if known is None:
        return _epochs_of_batches(copy, recovery.plan.log_end_offset)
    written = (step.data for step in recovery.steps if isinstance(step, Replace) and step.path == path)
    data = next(written, None)
    return known if data is None else decode_leader_epoch_checkpoint(data, Location(str(path))).entries


def _epochs_of_batches(copy: Replica, end: int) -> tuple[EpochStart, ...]:
    """Return the leader epochs of batches up to the first damage, in place of an unreadable checkpoint.

    Epochs that begin at the end of the log or above it are left out: the base offset of their batch is damaged.
    """
    found: list[EpochStart] = []
    with suppress(FormatError), Partition(list_partition(copy.path)) as partition:
        for header in (batch.header for batch in partition.batches()):
            epoch, offset = header.partition_leader_epoch, header.base_offset
            if offset is not None and epoch > (found[-1].epoch if found else -1):
                found.append(EpochStart(epoch, offset))
    return tuple(each for each in found if each.start_offset < end)
