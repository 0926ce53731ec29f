"""Generate log directories from recipes and seeds: the same recipe and seed give the same bytes on every platform.

Only uncompressed data is the same. Compressed bytes depend on the compression library and its version; their content
is the same. Damage that a recipe asks for is done after all files of a partition are written.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.cleaning.compaction_apply import compact_partition
from seglog_format.codec.build import MAGIC_2, build_batch, build_end_marker, with_timestamps
from seglog_format.codec.checksum import crc32c
from seglog_format.codec.control_record import EndMarker
from seglog_format.codec.encode import encode_batch, encode_columns
from seglog_format.codec.framing import read_header
from seglog_format.engine import is_installed
from seglog_format.errors import Location, UsageError, WriteError, write_errors
from seglog_format.generation.faults import apply_fault
from seglog_format.generation.plan import COORDINATOR_EPOCH, PartitionPlan, Turn, codec_of, encoded, plan_partition
from seglog_format.generation.recipe import parse_recipe, random_recipe, recipe_from
from seglog_format.generation.recipe_model import Recipe, SeededRandom
from seglog_format.generation.stream import PartitionStream
from seglog_format.layouts import RECORD_BATCH_HEADER_LAYOUT
from seglog_format.model import ENTRY_PREFIX_SIZE, ControlRecordType, TimestampOffset, TimestampType
from seglog_format.names import partition_directory_name
from seglog_format.schema.fixed_fields import ATTRIBUTES_POSITION, ENTRY_PREFIX
from seglog_format.state.config import BrokerGeneration, IndexUnit
from seglog_format.storage.environment import Environment, UnsyncedFiles
from seglog_format.storage.files import LOCAL_FILES
from seglog_format.storage.new_directory import all_or_nothing
from seglog_format.writing.append import Entry, as_follower
from seglog_format.writing.log_writer import LogWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from os import PathLike

    from seglog_format.generation.plan import PlannedAppend
    from seglog_format.generation.recipe_model import TopicRecipe
    from seglog_format.generation.stream import Lane, Placed, Placing
    from seglog_format.state.config import LogConfig
    from seglog_format.writing.writer import PartitionWriter


# -- write the content of a partition by version 2 of recipes: encoded by columns, appended in groups -----------------


BASE_OFFSET, BATCH_CRC, BASE_TIMESTAMP, MAX_TIMESTAMP = map(
    RECORD_BATCH_HEADER_LAYOUT.slot, ("base_offset", "crc", "base_timestamp_ms", "max_timestamp_ms")
)
GENERATED: Final = Location("generated")
GROUP_SIZE: Final = 1 << 20
"""Bytes that are appended at once, about."""


def write_stream(
    stream: PartitionStream, writer: PartitionWriter, set_clock: Callable[[int], None], report: Callable[[int], None]
) -> Placing:
    """Write all batches of a partition.

    Args:
        stream: the content.
        writer: of the partition.
        set_clock: sets the time of the broker.
        report: called with the number of records so far.

    Returns:
        The transactions, and the number of batches.

    Raises:
        UsageError: a batch is larger than its topic allows, or its producer may not write it.
        WriteError: writing failed.
    """
    placing = stream.placing(_encoded_lane)
    group = _Group(stream.topic.config, writer)
    done = 0
    for placed in placing:
        if placed.rolls or group.is_full:
            group.append()
            report(done)
        set_clock(placed.clock_ms)
        if placed.rolls and placed.base_offset:
            writer.roll()
            group.position = 0
        for entry in _entries(placed, stream.topic.config):
            group.add(entry)
        done += placed.count if placed.marker is None else 0
    group.append()
    report(done)
    return placing


class _Group:
    """Entries that are appended at once, as long as they fit into one segment."""

    def __init__(self, config: LogConfig, writer: PartitionWriter) -> None:
        self._config, self._writer = config, writer
        self._is_single = config.generation.index_unit is IndexUnit.APPEND
        self._entries: list[Entry] = []
        self._size = 0
        self.position = 0

    @property
    def is_full(self) -> bool:
        """Return whether it is time to append."""
        return self._size >= GROUP_SIZE or (self._is_single and self._size > 0)

    def add(self, entry: Entry) -> None:
        """Add an entry; first append those before it if it does not fit into their segment."""
        size = len(entry.data)
        if size > min(self._config.max_message_bytes, self._config.segment_bytes):
            msg = (
                f"a batch of {size} bytes is larger than max.message.bytes or segment.bytes (SEG-APP-006, SEG-APP-021)"
            )
            raise UsageError(msg)
        if self.position + self._size + size > self._config.segment_bytes:
            self.append()
        self._entries.append(entry)
        self._size += size

    def append(self) -> None:
        """Append the entries."""
        if not self._entries:
            return
        appended = self._writer.append_prepared(self._entries)
        self.position = self._size + (self.position if appended.rolled is None else 0)
        self._entries, self._size = [], 0


def _encoded_lane(lane: Lane) -> Iterator[Any]:
    """Yield each batch of a producer, encoded with base offset 0; of messages, the records to encode later."""
    if lane.step.magic < MAGIC_2:
        return lane.batches()
    producer = lane.producer
    fields: dict[str, Any] = {
        "codec": codec_of(lane.step),
        "producer_id": producer.producer_id,
        "producer_epoch": producer.epoch,
        "is_transactional": lane.step.producers.kind == "transactional",
        "partition_leader_epoch": lane.leader_epoch,
    }
    if is_installed():
        encoder = encode_columns(lane.rows.to_arrow(), counts=lane.counts, base_sequence=producer.sequence, **fields)
        return _cut(encoder)
    return (encode_batch(build_batch(records, base_sequence=producer.sequence, **fields)) for records in lane.batches())


def _cut(runs: Iterator[bytes]) -> Iterator[memoryview]:
    """Yield the batches in runs of whole ones."""
    for run in runs:
        view, position = memoryview(run), 0
        while position < len(view):
            end = position + ENTRY_PREFIX_SIZE + ENTRY_PREFIX.unpack_from(view, position)[1]
            yield view[position:end]
            position = end


def _entries(placed: Placed, config: LogConfig) -> list[Entry] | tuple[Entry, ...]:
    is_stamped = config.message_timestamp_type is TimestampType.LOG_APPEND_TIME
    stamp = placed.clock_ms if is_stamped else None
    if placed.marker is None and placed.step.magic < MAGIC_2:
        turn = Turn(placed.step, placed.producer, placed.content, placed.base_offset)
        data = encoded(turn, placed.content, placed.base_offset, stamp)
        return as_follower(data, config, next_offset=placed.base_offset)
    marker = None
    if placed.marker is not None:
        data = _marker(placed)
        marker = EndMarker(placed.marker, COORDINATOR_EPOCH, placed.clock_ms)
    else:
        data = BASE_OFFSET.layout.pack(placed.base_offset) + placed.content[BASE_OFFSET.layout.size :]
    if is_stamped:
        data = with_timestamps(data, TimestampType.LOG_APPEND_TIME, placed.clock_ms)
    header = read_header(memoryview(data), len(data), MAGIC_2, GENERATED)
    largest = TimestampOffset(header.max_timestamp_ms, header.last_offset)
    return [Entry(data, header, placed.base_offset, largest, marker)]


def _marker(placed: Placed) -> bytes:
    assert placed.marker is not None
    producer = placed.producer
    marker = bytearray(_marker_of(placed.marker, producer.producer_id, producer.epoch, placed.leader_epoch))
    for field in (BASE_TIMESTAMP, MAX_TIMESTAMP):
        field.write(marker, placed.clock_ms)
    BASE_OFFSET.write(marker, placed.base_offset)
    BATCH_CRC.write(marker, crc32c(memoryview(marker)[ATTRIBUTES_POSITION:]))
    return bytes(marker)


@lru_cache(maxsize=4096)
def _marker_of(kind: ControlRecordType, producer_id: int, epoch: int, leader_epoch: int) -> bytes:
    """Encode an end marker without its time and place."""
    batch = build_end_marker(
        kind,
        producer_id=producer_id,
        producer_epoch=epoch,
        coordinator_epoch=COORDINATOR_EPOCH,
        timestamp_ms=0,
        partition_leader_epoch=leader_epoch,
    )
    return encode_batch(batch)


# -- directories from recipes and seeds -------------------------------------------------------------------------------


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
