"""Committed offsets of consumer groups as brokers left them in `__consumer_offsets`."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from seglog_format.cluster.cluster import CoordinatorState
from seglog_format.errors import UsageError
from seglog_format.log.directory import open_log_directory
from seglog_format.names import CONSUMER_OFFSETS
from seglog_format.serve.committed import Committed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from seglog_format.log.directory import TopicPartition

OffsetsByGroup: TypeAlias = "Mapping[str, Mapping[TopicPartition, Committed]]"
"""Committed offsets by group, topic and partition."""


def committed_offsets_in(directories: Sequence[Path], on_problem: Callable[[str], None]) -> OffsetsByGroup:
    """Return the offsets that groups had committed.

    Args:
        directories: log directories of brokers.
        on_problem: called with a message about anything of the topic that cannot be read.

    Raises:
        UsageError: no partition of the topic is in any of them, or a file cannot be read.
    """
    logs, state = open_log_directory(directories), CoordinatorState()
    entries = [entry for (topic, _), entry in sorted(logs.partitions.items()) if topic == CONSUMER_OFFSETS]
    if not entries:
        msg = (
            f"no partition of {CONSUMER_OFFSETS} in {', '.join(map(str, directories))}: committed offsets are not known"
        )
        raise UsageError(msg)
    for entry in entries:
        with logs.opened(entry) as partition:
            state.replay(CONSUMER_OFFSETS, partition.batches())
    for problem in state.problems:
        on_problem(problem)
    return {
        name: {key: Committed(at.offset, at.metadata, at.leader_epoch) for key, at in group.offsets.items()}
        for name, group in state.groups.items()
        if group.offsets
    }
