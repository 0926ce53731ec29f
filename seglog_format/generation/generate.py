"""Generate log directories from recipes and seeds: the same recipe and seed give the same bytes on every platform.

Only uncompressed data is the same. Compressed bytes depend on the compression library and its version; their content
is the same.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.cleaning.compaction_apply import compact_partition
from seglog_format.errors import WriteError, write_errors
from seglog_format.generation.faults import apply_fault
from seglog_format.generation.plan import PartitionPlan, plan_partition
from seglog_format.generation.random_recipes import random_recipe
from seglog_format.generation.recipe import parse_recipe, recipe_from
from seglog_format.generation.recipe_model import Recipe
from seglog_format.generation.seeded_random import SeededRandom
from seglog_format.generation.stream import PartitionStream
from seglog_format.generation.stream_writer import write_stream
from seglog_format.names import partition_directory_name
from seglog_format.state.config import BrokerGeneration
from seglog_format.storage.environment import Environment
from seglog_format.storage.files import LOCAL_FILES
from seglog_format.storage.new_directory import all_or_nothing
from seglog_format.storage.unsynced_files import UnsyncedFiles
from seglog_format.writing.log_writer import LogWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from seglog_format.generation.plan import PlannedAppend
    from seglog_format.generation.recipe_model import TopicRecipe
    from seglog_format.state.config import LogConfig
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

    def set(self, now_ms: int) -> None:
        self.now_ms = now_ms


class _Count:
    """Counts records over all partitions, and reports them."""

    def __init__(self, report: Callable[[int], None] | None) -> None:
        self._report = report
        self._before = self._done = 0

    def next_partition(self) -> None:
        self._before = self._done

    def __call__(self, done: int) -> None:
        """Report that so many records of this partition are written."""
        self._done = self._before + done
        if self._report is not None:
            self._report(self._done)


def generate(
    recipe: Recipe | Mapping[str, Any] | str | None,
    directory: str | PathLike[str],
    seed: int | None = None,
    *,
    report: Callable[[int], None] | None = None,
) -> GeneratedLog:
    """Generate a log directory.

    Args:
        recipe: its content: a mapping, or a text in TOML, with the keys that `seglog generate --list` prints; None for
            a random recipe, which the seed decides.
        directory: path of the new directory; it must not exist, or must be empty.
        seed: 0 or more; None for that of the recipe, 0 for a random one.
        report: called now and then with the number of records written so far.

    Returns:
        The generated partitions, with the records that a reader must find in them.

    Raises:
        UsageError: the recipe has an unknown key or a value that is not possible, it asks for an impossible append or
            fault, or the directory is not empty.
        WriteError: a file could not be written. After any error, no new file remains in the directory.

    Examples:
        >>> import tempfile
        >>> from seglog_format import generate, open_partition
        >>> recipe = {"topic": [{"name": "orders", "step": [{"records": 3}]}]}
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     made = generate(recipe, f"{parent}/logs")
        ...     with open_partition(made.partitions[0].path) as partition:
        ...         partition.log_end_offset
        3
    """
    recipe, directory = _recipe(recipe, seed), Path(directory)
    number = recipe.seed if seed is None else seed
    count = _Count(report)
    with all_or_nothing(directory) as staging:
        plans = _write(recipe, staging, number, count)
        damaged = [_damaged(staging, plan, number) for plan in plans]
    return GeneratedLog(directory, recipe, number, tuple(map(partial(_generated, directory), plans, damaged)))


def _recipe(recipe: Recipe | Mapping[str, Any] | str | None, seed: int | None) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe
    if recipe is None:
        return random_recipe(seed or 0)
    return parse_recipe(recipe) if isinstance(recipe, str) else recipe_from(recipe)


def _write(recipe: Recipe, directory: Path, seed: int, count: _Count) -> list[PartitionPlan]:
    files, clock = UnsyncedFiles(), _Clock(recipe.start_ms)
    environment = Environment(files=files, clock=clock, random=SeededRandom(seed, "jitter").fraction)
    log_writer = LogWriter(directory, environment=environment)
    plans = []
    try:
        for topic in recipe.topics:
            for partition in range(topic.partitions):
                clock.set(recipe.start_ms)
                count.next_partition()
                plans.append(
                    _write_partition(log_writer, PartitionStream(recipe, topic, partition, seed), clock, count)
                )
        if recipe.end == "killed":
            log_writer.checkpoint()
            files.stop()
    finally:
        _close(log_writer, is_killed=files.is_stopped)
    for plan in plans:
        if plan.topic.compact:
            _compact(directory / _name(plan), plan.topic.config, clock.now_ms)
    return plans


def _close(log_writer: LogWriter, *, is_killed: bool) -> None:
    """Close the writer; as if the process were killed, only release its open files."""
    try:
        log_writer.close()
    except WriteError:
        if not is_killed:
            raise


def _write_partition(log_writer: LogWriter, stream: PartitionStream, clock: _Clock, count: _Count) -> PartitionPlan:
    topic, partition, seed = stream.topic, stream.partition, stream.seed
    has_topic_id = topic.config.generation in {BrokerGeneration.V3_7, BrokerGeneration.V4_1}
    writer = log_writer.open(
        topic.name,
        partition,
        topic.config,
        leader_epoch=_first_epoch(topic),
        topic_id=_topic_id(SeededRandom(seed, topic.name, "topic id")) if has_topic_id else None,
    )
    if stream.recipe.version > 1:
        placing = write_stream(stream, writer, clock.set, count)
        return PartitionPlan(
            topic,
            partition,
            tuple(placing.transactions),
            end_offset=placing.next_offset,
            append_count=placing.count,
            record_count=stream.record_count,
            draw_records=stream.records,
        )
    plan = plan_partition(stream.recipe, topic, partition, seed)
    for append in plan.appends:
        clock.set(append.clock_ms)
        _append(writer, append)
    count(plan.record_count)
    return plan


def _compact(partition: Path, config: LogConfig, now_ms: int) -> None:
    """Compact a closed partition, and delete the files that a broker deletes later."""
    compact_partition(partition, config, now_ms=now_ms, files=UnsyncedFiles())
    for path in partition.glob("*.deleted"):
        LOCAL_FILES.remove(path)


def _first_epoch(topic: TopicRecipe) -> int:
    """Return the leader epoch of the first record."""
    epoch = 0
    for step in topic.steps:
        epoch = epoch if step.leader_epoch is None else step.leader_epoch
        if step.records:
            return epoch
    return 0


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
