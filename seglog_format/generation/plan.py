"""Plan one partition of a recipe: every append with its bytes, and the records that a reader must find.

The plan depends only on recipe and seed. It is independent of the code that writes partitions, so tests can compare
the records that are read with it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seglog_format.codec.build import MAGIC_2
from seglog_format.codec.control_batch import build_end_marker
from seglog_format.codec.encode import encode_batch
from seglog_format.generation.batches import NO_PRODUCER, PlannedProducer, Turn, as_compacted, built, encoded, team_of
from seglog_format.generation.seeded_random import SeededRandom
from seglog_format.generation.values import make_headers, make_timestamps, make_value
from seglog_format.model import NO_SEQUENCE, NO_TIMESTAMP, ControlRecordType, TimestampType, add_sequence
from seglog_format.record_model import Record, RecordBatch
from seglog_format.state.producer_state import Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seglog_format.generation.recipe_model import Recipe, StepRecipe, TopicRecipe
    from seglog_format.state.config import LogConfig

COORDINATOR_EPOCH: Final = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedAppend:
    """One append, and the records that it adds to the log.

    Attributes:
        data: bytes to append; without final offsets for a leader.
        is_follower: whether a follower appends the data.
        origin: the source of the append, for a leader.
        leader_epoch: of the leader.
        clock_ms: time of the broker's clock.
        rolls: whether a new segment is begun first.
        base_offset: its first offset.
        last_offset: its last offset.
        records: as a reader must find them, with offset, timestamp, key, value, headers and sequence.
        is_control: whether the records are an end marker.
    """

    data: bytes
    is_follower: bool
    origin: Origin
    leader_epoch: int
    clock_ms: int
    rolls: bool
    base_offset: int
    last_offset: int
    records: tuple[Record, ...]
    is_control: bool = False


@dataclass(frozen=True, slots=True)
class PlannedTransaction:
    """A transaction: offsets of its first batch and of its marker (None if it is open), and whether it was aborted."""

    producer_id: int
    first_offset: int
    last_offset: int | None
    is_aborted: bool


def still_open(producers: Iterable[PlannedProducer]) -> Iterator[PlannedTransaction]:
    """Yield the transactions that producers left open."""
    for producer in producers:
        if producer.first_offset is not None:
            yield PlannedTransaction(producer.producer_id, producer.first_offset, None, is_aborted=False)


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """What is in one partition.

    Attributes:
        topic: its topic.
        partition: from 0.
        transactions: in the order of their ends; then those that remain open.
        end_offset: the first offset after all records.
        append_count: number of appends.
        record_count: number of records, without end markers.
        appends: by version 1 of recipes; version 2 keeps none.
        draw_records: yields the records again, by version 2.
    """

    topic: TopicRecipe
    partition: int
    transactions: tuple[PlannedTransaction, ...]
    end_offset: int
    append_count: int
    record_count: int
    appends: tuple[PlannedAppend, ...] = ()
    draw_records: Callable[[], Iterator[Record]] | None = None

    @property
    def records(self) -> Iterator[Record]:
        """The records that a reader must find, without end markers; compaction of version 2 may remove some."""
        if self.draw_records is not None:
            return self.draw_records()
        return (record for append in self.appends if not append.is_control for record in append.records)


@dataclass(slots=True)
class Planner:
    """Creates the plan of one partition."""

    config: LogConfig
    rng: SeededRandom
    clock_ms: int
    next_offset: int = 0
    leader_epoch: int = 0
    appends: list[PlannedAppend] = field(default_factory=list)
    transactions: list[PlannedTransaction] = field(default_factory=list)
    producers: dict[int, PlannedProducer] = field(default_factory=dict)

    def step(self, step: StepRecipe) -> None:
        """Plan all batches of a step."""
        if step.leader_epoch is not None:
            self.leader_epoch = step.leader_epoch
        bounds = step.producers.batches
        team = team_of(step.producers, self.producers, lambda count: [self.rng.number(*bounds) for _ in range(count)])
        for number, records in enumerate(self._groups(step)):
            producer = team[number % len(team)]
            gap = self.rng.number(*step.gap)
            self._batch(Turn(step, producer, records, self.next_offset + gap, rolls=step.roll and not number))
            self._count_down(step, producer)
        for producer in team[: len(team) - step.producers.open]:
            self._end(step, producer)

    def _groups(self, step: StepRecipe) -> Iterator[list[Record]]:
        """Yield the records of a step, batch by batch."""
        timestamps = make_timestamps(step.timestamps, step.records, self.clock_ms, self.rng)
        done = 0
        while done < step.records:
            group = timestamps[done : done + self.rng.number(*step.batch)]
            done += len(group)
            yield [self._record(step, timestamp_ms) for timestamp_ms in group]

    def _record(self, step: StepRecipe, timestamp_ms: int) -> Record:
        return Record(
            -1,
            timestamp_ms if step.magic else NO_TIMESTAMP,
            make_value(step.key, self.rng),
            make_value(step.value, self.rng),
            make_headers(step.headers, self.rng),
        )

    def _batch(self, turn: Turn) -> None:
        self.clock_ms = max([self.clock_ms + 1, *(record.timestamp_ms for record in turn.records)])
        producer, count = turn.producer, len(turn.records)
        placed = tuple(self._with_offset(turn, number) for number in range(count))
        kept = self._kept(turn.step, placed)
        self._add(
            turn,
            data=self._data(turn, placed, kept),
            records=kept,
            last_offset=turn.base_offset + count - 1,
        )
        if producer is not NO_PRODUCER:
            producer.sequence = add_sequence(producer.sequence, count)
        if turn.step.producers.kind == "transactional" and producer.first_offset is None:
            producer.first_offset = turn.base_offset

    def _with_offset(self, turn: Turn, number: int) -> Record:
        """Return a record as a reader must find it."""
        record, first = turn.records[number], turn.producer.sequence
        return replace(
            record,
            offset=turn.base_offset + number,
            timestamp_ms=record.timestamp_ms if self._stamp is None or not turn.step.magic else self._stamp,
            sequence=first if first == NO_SEQUENCE else add_sequence(first, number),
            timestamp_type=self.config.message_timestamp_type if turn.step.magic else TimestampType.NO_TIMESTAMP_TYPE,
        )

    @property
    def _stamp(self) -> int | None:
        """Return the broker's time, if the topic uses it; else None."""
        return self.clock_ms if self.config.message_timestamp_type is TimestampType.LOG_APPEND_TIME else None

    def _kept(self, step: StepRecipe, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """Return the records of a batch that compaction keeps."""
        if self.rng.happens(step.emptied):
            return ()
        kept = tuple(record for record in records if not self.rng.happens(step.removed))
        return kept or records[-1:]

    def _data(self, turn: Turn, placed: Sequence[Record], kept: Sequence[Record]) -> bytes:
        """Encode the bytes to append: final offsets for a follower, offsets from 0 without append time for a leader."""
        if turn.step.role == "leader":
            return encoded(turn, turn.records, 0, None)
        if turn.step.magic < MAGIC_2:
            return encoded(turn, turn.records, turn.base_offset, self._stamp)
        return encode_batch(self._copied(turn, placed, kept))

    def _copied(self, turn: Turn, placed: Sequence[Record], kept: Sequence[Record]) -> RecordBatch:
        """Build the batch that a follower copies, after compaction."""
        times = dict(zip((record.offset for record in placed), (r.timestamp_ms for r in turn.records), strict=True))
        present = [replace(record, timestamp_ms=times[record.offset]) for record in kept or placed]
        batch = built(turn, present, turn.base_offset, self._stamp, self.leader_epoch)
        return as_compacted(batch, len(placed) - 1, is_emptied=not kept)

    def _add(
        self, turn: Turn, *, data: bytes, records: tuple[Record, ...], last_offset: int, is_control: bool = False
    ) -> None:
        self.appends.append(
            PlannedAppend(
                data=data,
                is_follower=turn.step.role == "follower",
                origin=Origin.COORDINATOR if is_control else Origin.CLIENT,
                leader_epoch=self.leader_epoch,
                clock_ms=self.clock_ms,
                rolls=turn.rolls,
                base_offset=turn.base_offset,
                last_offset=last_offset,
                records=records,
                is_control=is_control,
            )
        )
        self.next_offset = last_offset + 1

    # Transactions

    def _count_down(self, step: StepRecipe, producer: PlannedProducer) -> None:
        if step.producers.kind != "transactional" or producer.batches_left is None:
            return
        producer.batches_left -= 1
        if not producer.batches_left:
            self._end(step, producer)
            producer.batches_left = self.rng.number(*step.producers.batches)

    def _end(self, step: StepRecipe, producer: PlannedProducer) -> None:
        """End the producer's open transaction, if there is one: commit or abort."""
        if step.producers.kind != "transactional" or producer.first_offset is None:
            return
        is_aborted = self.rng.happens(step.producers.abort)
        self.clock_ms += 1
        offset = self.next_offset
        marker = self._marker(step, producer, is_aborted=is_aborted)
        records = [replace(record, offset=offset) for record in marker.records if isinstance(record, Record)]
        if step.role == "leader":  # the leader sets the append time
            records = [replace(record, timestamp_type=self.config.message_timestamp_type) for record in records]
        self._add(
            Turn(step, producer, (), offset),
            data=encode_batch(marker),
            records=tuple(records),
            last_offset=offset,
            is_control=True,
        )
        self.transactions.append(PlannedTransaction(producer.producer_id, producer.first_offset, offset, is_aborted))
        producer.first_offset = None

    def _marker(self, step: StepRecipe, producer: PlannedProducer, *, is_aborted: bool) -> RecordBatch:
        is_follower = step.role == "follower"
        return build_end_marker(
            ControlRecordType.ABORT if is_aborted else ControlRecordType.COMMIT,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            coordinator_epoch=COORDINATOR_EPOCH,
            timestamp_ms=self.clock_ms,
            base_offset=self.next_offset if is_follower else 0,
            partition_leader_epoch=self.leader_epoch if is_follower else -1,
        )


def plan_partition(recipe: Recipe, topic: TopicRecipe, partition: int, seed: int) -> PartitionPlan:
    """Plan one partition.

    Args:
        recipe: the whole recipe.
        topic: one of its topics.
        partition: from 0.
        seed: of the whole recipe; each partition derives its own random numbers from it.
    """
    planner = Planner(topic.config, SeededRandom(seed, topic.name, partition), recipe.start_ms)
    for step in topic.steps:
        planner.step(step)
    appends = tuple(planner.appends)
    return PartitionPlan(
        topic,
        partition,
        (*planner.transactions, *still_open(planner.producers.values())),
        end_offset=planner.next_offset,
        append_count=len(appends),
        record_count=sum(len(append.records) for append in appends if not append.is_control),
        appends=appends,
    )
