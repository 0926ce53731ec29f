"""Plan one partition of a recipe: every append with its bytes, and the records that a reader must find.

The plan depends only on recipe and seed. It is independent of the code that writes partitions, so tests can compare
the records that are read with it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seglog_format.codec.build import MAGIC_2, build_batch, build_end_marker, build_message_entry
from seglog_format.codec.encode import encode_batch
from seglog_format.generation.recipe_model import SHUFFLED_SPAN, SeededRandom
from seglog_format.model import (
    CODEC_MASK,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    CompressionCodec,
    ControlRecordType,
    Record,
    RecordBatch,
    RecordBatchHeader,
    RecordHeader,
    TimestampType,
    add_sequence,
)
from seglog_format.state.producer_state import Origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seglog_format.generation.recipe_model import (
        HeaderRecipe,
        ProducerRecipe,
        Recipe,
        StepRecipe,
        TimestampRecipe,
        TopicRecipe,
        ValueRecipe,
    )
    from seglog_format.state.config import LogConfig


# -- the batches of a recipe: their producers and their bytes ----------------------------------------------------------


@dataclass(slots=True)
class PlannedProducer:
    """State of a producer during planning.

    ``batches_left`` counts down to the end of a transaction; None if the transaction does not end in this step.
    """

    producer_id: int
    epoch: int
    sequence: int = 0
    first_offset: int | None = None
    batches_left: int | None = None


NO_PRODUCER: Final = PlannedProducer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)


def team_of(
    recipe: ProducerRecipe, known: dict[int, PlannedProducer], draw: Callable[[int], Iterable[int]]
) -> list[PlannedProducer]:
    """Return the producers of a step; those of an earlier step continue unless their epoch changes.

    Args:
        recipe: of the producers.
        known: all producers of the partition by id; new ones are added.
        draw: draws a number of batches for the next transaction of each of so many producers.
    """
    if recipe.kind == "plain":
        return [NO_PRODUCER]
    for producer_id in range(recipe.first_id, recipe.first_id + recipe.count):
        former = known.get(producer_id)
        if former is None or former.epoch != recipe.epoch:
            first = None if former is None else former.first_offset
            known[producer_id] = PlannedProducer(producer_id, recipe.epoch, first_offset=first)
    team = [known[recipe.first_id + number] for number in range(recipe.count)]
    for producer, batches in zip(team, draw(len(team)), strict=True):
        producer.batches_left = batches
    for producer in team[len(team) - recipe.open :]:
        producer.batches_left = None
    return team


@dataclass(slots=True)
class Turn:
    """One batch of a step, before it is encoded."""

    step: StepRecipe
    producer: PlannedProducer
    records: Sequence[Record]
    base_offset: int
    rolls: bool = False


def encoded(turn: Turn, records: Sequence[Record], base_offset: int, stamp_ms: int | None) -> bytes:
    """Encode a batch, or the messages of an append; the batch for a leader has no leader epoch yet."""
    step, codec = turn.step, codec_of(turn.step)
    if step.magic == MAGIC_2:
        return encode_batch(built(turn, records, base_offset, stamp_ms, -1))
    groups = [records] if codec else [[record] for record in records]
    entries = []
    for group in groups:
        entry = build_message_entry(
            group, magic=step.magic, base_offset=base_offset, codec=codec, log_append_time_ms=stamp_ms
        )
        entries.append(encode_batch(entry))
        base_offset += len(group)
    return b"".join(entries)


def built(
    turn: Turn, records: Sequence[Record], base_offset: int, stamp_ms: int | None, leader_epoch: int
) -> RecordBatch:
    """Build the record batch of a turn."""
    producer = turn.producer
    return build_batch(
        records,
        base_offset=base_offset,
        codec=codec_of(turn.step),
        log_append_time_ms=stamp_ms,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=producer.sequence,
        is_transactional=turn.step.producers.kind == "transactional",
        partition_leader_epoch=leader_epoch,
        keeps_offsets=turn.step.role == "follower",
    )


def codec_of(step: StepRecipe) -> CompressionCodec:
    """Return the codec of a step."""
    return CompressionCodec[step.codec.upper()]


def as_compacted(batch: RecordBatch, last_offset_delta: int, *, is_emptied: bool) -> RecordBatch:
    """Give a batch the last offset of the original one; drop its records if it is emptied (SEG-BAT-018)."""
    assert isinstance(batch.header, RecordBatchHeader)
    header = replace(batch.header, last_offset_delta=last_offset_delta)
    if not is_emptied:
        return replace(batch, header=header)
    header = replace(
        header, records_count=0, attributes=header.attributes & ~CODEC_MASK, base_timestamp_ms=header.max_timestamp_ms
    )
    return replace(batch, header=header, records=())


# -- keys, values, headers and timestamps as recipes describe them -----------------------------------------------------


WORDS: Final = ("order", "payment", "sensor", "käufer", "город", "注文", "log", "a", "of", "segment", "offset", "0815")
"""Words of generated texts; some have more bytes in UTF-8 than characters."""


def make_value(recipe: ValueRecipe, rng: SeededRandom) -> bytes | None:
    """Generate a key or a value."""
    is_null, is_empty = rng.happens(recipe.null), rng.happens(recipe.empty)
    if is_null or recipe.kind == "null":
        return None
    return b"" if is_empty or recipe.kind == "empty" else MAKERS[recipe.kind](recipe, rng)


def _fixed(recipe: ValueRecipe, _rng: SeededRandom) -> bytes:
    return recipe.text.encode()


def _random(recipe: ValueRecipe, rng: SeededRandom) -> bytes:
    return rng.data(rng.number(recipe.size[0], recipe.size[-1]))


def _text(recipe: ValueRecipe, rng: SeededRandom) -> bytes:
    """Generate words, cut to a size; dots replace a character that would be cut."""
    size, words = rng.number(recipe.size[0], recipe.size[-1]), b""
    while len(words) < size:
        words += rng.one_of(WORDS).encode() + b" "
    return words[:size].decode(errors="ignore").encode().ljust(size, b".")


def _json(_recipe: ValueRecipe, rng: SeededRandom) -> bytes:
    content = {
        "id": rng.number(0, 10**9),
        "event": rng.one_of(WORDS),
        "cents": rng.number(-10_000, 10_000),
        "ok": rng.happens(0.5),
        "trace": rng.data(8).hex(),
    }
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()


MAKERS: Final[dict[str, Callable[[ValueRecipe, SeededRandom], bytes]]] = {
    "fixed": _fixed,
    "random": _random,
    "text": _text,
    "json": _json,
}


def make_headers(recipe: HeaderRecipe, rng: SeededRandom) -> tuple[RecordHeader, ...]:
    """Generate the headers of a record; some keys repeat."""
    return tuple(_header(recipe, rng) for _ in range(rng.number(*recipe.count)))


def _header(recipe: HeaderRecipe, rng: SeededRandom) -> RecordHeader:
    key = rng.one_of(WORDS).encode()
    is_null = rng.happens(recipe.null)
    return RecordHeader(key, None if is_null else rng.data(rng.number(recipe.size[0], recipe.size[-1])))


def make_timestamps(recipe: TimestampRecipe, count: int, start_ms: int, rng: SeededRandom) -> list[int]:
    """Generate a timestamp for each of a number of records."""
    match recipe.order:
        case "zero":
            return [0] * count
        case "none":
            return [NO_TIMESTAMP] * count
        case "equal":
            return [start_ms] * count
    ascending = [start_ms + number * recipe.step_ms for number in range(count)]
    if recipe.order == "ascending":
        return ascending
    groups = (ascending[first : first + SHUFFLED_SPAN] for first in range(0, count, SHUFFLED_SPAN))
    return [timestamp_ms for group in groups for timestamp_ms in rng.shuffled(group)]


# -- the plan of one partition of a recipe -----------------------------------------------------------------------------


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
        self._add(turn, data=self._data(turn, placed, kept), records=kept, last_offset=turn.base_offset + count - 1)
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
