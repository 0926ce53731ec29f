"""Examination of replicas: where each log ends, and which leader epochs it has, after a broker recovers it."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint
from seglog_format.errors import FormatError, Location, SeglogError
from seglog_format.log.partition import open_partition
from seglog_format.names import FileKind
from seglog_format.plans.in_place import recover
from seglog_format.recovery.apply import RecoveryOptions
from seglog_format.recovery.losses import replaced_or_hidden
from seglog_format.recovery.plan import plan_of_logs
from seglog_format.recovery.planned_files import read_leader_epochs
from seglog_format.state_model import EpochStart
from seglog_format.storage.file_steps import Replace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.cluster.cluster import Replica, Replicas
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
    end = max(plan.log_end_offset, copy.log_start_offset)
    return copy._replace(epochs=epochs, log_end_offset=end, damage="; ".join(_damages(copy, plan)), cut=plan.cut)


def _with_logs_alone(copy: Replica, error: str) -> Replica:
    """Return a replica with an unreadable file as its logs alone, if they can be read: a broker builds the rest."""
    try:
        plan = plan_of_logs(copy.path)
        damages = dict.fromkeys((error, "only its logs are taken", *_damages(copy, plan)))
    except SeglogError:
        return copy._replace(log_end_offset=None, damage=error)
    end = max(plan.log_end_offset, copy.log_start_offset)
    return copy._replace(
        epochs=_epochs_of_batches(copy),
        log_end_offset=end,
        damage="; ".join(damages),
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
        return _epochs_of_batches(copy)
    written = (step.data for step in recovery.steps if isinstance(step, Replace) and step.path == path)
    data = next(written, None)
    return known if data is None else decode_leader_epoch_checkpoint(data, Location(str(path))).entries


def _epochs_of_batches(copy: Replica) -> tuple[EpochStart, ...]:
    """Return the leader epochs of batches up to the first damage, in place of an unreadable checkpoint."""
    found: list[EpochStart] = []
    with suppress(FormatError), open_partition(copy.path) as partition:
        for header in (batch.header for batch in partition.batches()):
            epoch, offset = header.partition_leader_epoch, header.base_offset
            if offset is not None and epoch > (found[-1].epoch if found else -1):
                found.append(EpochStart(epoch, offset))
    return tuple(found)
