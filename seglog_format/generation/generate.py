"""Generate log directories from recipes and seeds: the same recipe and seed give the same bytes on every platform.

Only uncompressed data is the same. Compressed bytes depend on the compression library and its version; their content
is the same.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from seglog_format.errors import WriteError, write_errors
from seglog_format.generation.faults import apply_fault
from seglog_format.generation.plan import PartitionPlan, plan_partition
from seglog_format.generation.seeded_random import SeededRandom
from seglog_format.names import partition_directory_name
from seglog_format.state.config import BrokerGeneration
from seglog_format.storage.environment import Environment
from seglog_format.storage.new_directory import all_or_nothing
from seglog_format.storage.unsynced_files import UnsyncedFiles
from seglog_format.writing.log_writer import LogWriter

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.generation.plan import PlannedAppend
    from seglog_format.generation.recipe import Recipe
    from seglog_format.writing.writer import PartitionWriter

TOPIC_ID_SIZE: Final = 16


@dataclass(frozen=True, slots=True)
class GeneratedPartition:
    """One generated partition.

    Attributes:
        path: of its directory.
        plan: the appends, and the records that a reader must find.
        damaged: names of the files that faults damaged.
    """

    path: Path
    plan: PartitionPlan
    damaged: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True)
class GeneratedLog:
    """A generated log directory, with its seed."""

    path: Path
    recipe: Recipe
    seed: int
    partitions: tuple[GeneratedPartition, ...]


class _Clock:
    """A clock that only changes when it is set."""

    def __init__(self, now_ms: int) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def generate(recipe: Recipe, directory: Path, seed: int | None = None) -> GeneratedLog:
    """Generate a log directory.

    Args:
        recipe: its content.
        directory: path of the new directory; it must not exist, or must be empty.
        seed: 0 or more; None for that of the recipe.

    Returns:
        The generated partitions, with the records that a reader must find in them.

    Raises:
        UsageError: the directory is not empty, or the recipe asks for an impossible append or fault.
        WriteError: a file could not be written. After any error, no new file remains in the directory.
    """
    number = recipe.seed if seed is None else seed
    plans = [plan_partition(recipe, topic, part, number) for topic in recipe.topics for part in range(topic.partitions)]
    with all_or_nothing(directory) as staging:
        _write(recipe, staging, number, plans)
        damaged = [_damaged(staging, plan, number) for plan in plans]
    return GeneratedLog(directory, recipe, number, tuple(map(partial(_generated, directory), plans, damaged)))


def _write(recipe: Recipe, directory: Path, seed: int, plans: list[PartitionPlan]) -> None:
    files, clock = UnsyncedFiles(), _Clock(recipe.start_ms)
    environment = Environment(files=files, clock=clock, random=SeededRandom(seed, "jitter").fraction)
    log_writer = LogWriter(directory, environment=environment)
    try:
        for plan in plans:
            clock.now_ms = recipe.start_ms
            _append_all(log_writer, plan, clock, SeededRandom(seed, plan.topic.name, "topic id"))
        if recipe.end == "killed":
            log_writer.checkpoint()
            files.stop()
    finally:
        _close(log_writer, is_killed=files.is_stopped)


def _close(log_writer: LogWriter, *, is_killed: bool) -> None:
    """Close the writer; as if the process were killed, only release its open files."""
    try:
        log_writer.close()
    except WriteError:
        if not is_killed:
            raise


def _append_all(log_writer: LogWriter, plan: PartitionPlan, clock: _Clock, rng: SeededRandom) -> None:
    topic = plan.topic
    first_epoch = plan.appends[0].leader_epoch if plan.appends else 0
    has_topic_id = topic.config.generation in {BrokerGeneration.V3_7, BrokerGeneration.V4_1}
    writer = log_writer.open(
        topic.name,
        plan.partition,
        topic.config,
        leader_epoch=first_epoch,
        topic_id=_topic_id(rng) if has_topic_id else None,
    )
    for append in plan.appends:
        clock.now_ms = append.clock_ms
        _append(writer, append)


def _topic_id(rng: SeededRandom) -> str:
    """Make the topic id, the same for all partitions of a topic."""
    return urlsafe_b64encode(rng.data(TOPIC_ID_SIZE)).decode("ascii").rstrip("=")


def _append(writer: PartitionWriter, append: PlannedAppend) -> None:
    if append.rolls and writer.log_end_offset:
        writer.roll()
    if append.is_follower:
        writer.append_as_follower(append.data)
        return
    if append.leader_epoch != writer.leader_epoch:
        writer.become_leader(append.leader_epoch)
    writer.append(append.data, origin=append.origin)


def _damaged(directory: Path, plan: PartitionPlan, seed: int) -> tuple[str, ...]:
    """Apply the faults of a topic to a partition; return the names of the damaged files."""
    path = directory / _name(plan)
    rng = SeededRandom(seed, plan.topic.name, plan.partition, "faults")
    with write_errors("generating"):
        return tuple(apply_fault(path, fault, rng).name for fault in plan.topic.faults)


def _generated(directory: Path, plan: PartitionPlan, damaged: tuple[str, ...]) -> GeneratedPartition:
    path = directory / _name(plan)
    return GeneratedPartition(path, plan, tuple(path / name for name in damaged))


def _name(plan: PartitionPlan) -> str:
    return partition_directory_name(plan.topic.name, plan.partition)
