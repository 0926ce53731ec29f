"""The content of a partition by version 2 of recipes: it is made and written piece by piece, at any size."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.errors import UsageError
from seglog_format.generation.columns import RowMaker, Timestamps
from seglog_format.generation.draws import Draws, threshold
from seglog_format.generation.plan import NO_PRODUCER, PlannedProducer, PlannedTransaction, still_open, team_of
from seglog_format.model import NO_SEQUENCE, NO_TIMESTAMP, ControlRecordType, TimestampType, add_sequence

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.generation.columns import Purpose, Rows
    from seglog_format.generation.recipe_model import Recipe, StepRecipe, TopicRecipe
    from seglog_format.record_model import Record

PIECE_SIZE: Final = 1 << 21
"""Bytes that are made at once, about. The random numbers depend on it."""
RECORD_OVERHEAD: Final = 24


class Lane(NamedTuple):
    """What one producer writes in a piece: its records, and how many are in each of its batches."""

    step: StepRecipe
    producer: PlannedProducer
    rows: Rows
    counts: Sequence[int]
    leader_epoch: int

    def batches(self) -> Iterator[list[Record]]:
        """Yield the records of each batch, without offsets."""
        records = self.rows.records()
        return (list(islice(records, count)) for count in self.counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """One batch, or the end marker of a transaction, with its place in the log.

    Attributes:
        step: that it belongs to.
        producer: that writes it.
        content: of the batch, in the form that `PartitionStream.placing` was asked for; None for a marker.
        base_offset: of the batch.
        count: number of records.
        sequence: of the first record, or -1.
        clock_ms: time of the broker's clock.
        leader_epoch: of the leader.
        rolls: whether a new segment is begun first.
        marker: kind of the end marker; None for records.
    """

    step: StepRecipe
    producer: PlannedProducer
    content: Any
    base_offset: int
    count: int
    sequence: int
    clock_ms: int
    leader_epoch: int
    rolls: bool = False
    marker: ControlRecordType | None = None


@dataclass(slots=True)
class PartitionStream:
    """The content of one partition.

    Attributes:
        recipe: the whole recipe.
        topic: one of its topics.
        partition: from 0.
        seed: of the whole recipe.
    """

    recipe: Recipe
    topic: TopicRecipe
    partition: int
    seed: int

    @property
    def record_count(self) -> int:
        """Number of records, without end markers."""
        return sum(step.records for step in self.topic.steps)

    def placing(self, content_of: Callable[[Lane], Iterator[Any]]) -> Placing:
        """Return an iterator over all batches and markers in order.

        Args:
            content_of: yields the content of each batch of a producer.
        """
        return Placing(self, content_of)

    def records(self) -> Iterator[Record]:
        """Yield the records that a reader must find, without end markers; compaction is not considered."""
        config = self.topic.config
        for placed in self.placing(Lane.batches):
            if placed.marker is None:
                yield from _as_read(placed, config.message_timestamp_type)


def _as_read(placed: Placed, timestamp_type: TimestampType) -> Iterator[Record]:
    magic, first = placed.step.magic, placed.sequence
    is_stamped = timestamp_type is TimestampType.LOG_APPEND_TIME
    for number, record in enumerate(placed.content):
        timestamp_ms = placed.clock_ms if is_stamped else record.timestamp_ms
        yield replace(
            record,
            offset=placed.base_offset + number,
            timestamp_ms=timestamp_ms if magic else NO_TIMESTAMP,
            sequence=first if first == NO_SEQUENCE else add_sequence(first, number),
            timestamp_type=timestamp_type if magic else TimestampType.NO_TIMESTAMP_TYPE,
        )


@dataclass(slots=True)
class Placing:
    """Places the batches of a partition one after the other; iterate over it once.

    Attributes:
        transactions: that ended so far, and at the end those that remain open.
        next_offset: the first offset after all batches so far.
        count: number of batches and markers so far.
    """

    stream: PartitionStream
    content_of: Callable[[Lane], Iterator[Any]]
    transactions: list[PlannedTransaction] = field(default_factory=list)
    next_offset: int = 0
    count: int = 0
    _clock_ms: int = 0
    _leader_epoch: int = 0
    _producers: dict[int, PlannedProducer] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Placed]:
        self._clock_ms = self.stream.recipe.start_ms
        for number, step in enumerate(self.stream.topic.steps):
            for placed in self._step(step, number):
                self.count += 1
                yield placed
        self.transactions += still_open(self._producers.values())

    def _step(self, step: StepRecipe, number: int) -> Iterator[Placed]:
        if step.leader_epoch is not None:
            self._leader_epoch = step.leader_epoch
        purpose = (self.stream.topic.name, self.stream.partition, number)
        draws = Draws(self.stream.seed, *purpose, "producers")
        team = self._team(step, draws)
        is_first, turn = True, 0
        for counts, lanes in self._pieces(step, team, purpose):
            contents = [None if lane is None else self.content_of(lane) for lane in lanes]
            timed = [iter(()) if lane is None else _newest(lane) for lane in lanes]
            for count in counts:
                position = turn % len(team)
                producer, content = team[position], contents[position]
                assert content is not None
                self._clock_ms = max(self._clock_ms, next(timed[position]))
                yield self._batch(step, producer, next(content), count, rolls=is_first and step.roll)
                is_first, turn = False, turn + 1
                yield from self._count_down(step, producer, draws)
        for producer in team[: len(team) - step.producers.open]:
            yield from self._end(step, producer, draws)

    def _team(self, step: StepRecipe, draws: Draws) -> list[PlannedProducer]:
        recipe = step.producers
        ids = range(recipe.first_id, recipe.first_id + recipe.count) if recipe.kind != "plain" else ()
        for known in (each for each in self._producers.values() if each.producer_id in ids):
            if recipe.epoch < known.epoch:
                epoch = f"epoch {recipe.epoch} of producer {known.producer_id}"
                msg = f"{epoch} is older than its latest, {known.epoch} (SEG-APP-009)"
                raise UsageError(msg)
        return team_of(recipe, self._producers, lambda count: draws.within(count, recipe.batches))

    def _pieces(
        self, step: StepRecipe, team: Sequence[PlannedProducer], purpose: Purpose
    ) -> Iterator[tuple[list[int], list[Lane | None]]]:
        """Yield the numbers of records in some batches, and what each producer writes in them."""
        seed, size = self.stream.seed, len(team)
        sizes = Draws(seed, *purpose, "batches")
        times = Timestamps(step.timestamps, self._clock_ms, Draws(seed, *purpose, "times"))
        makers = [RowMaker(step, seed, (*purpose, number)) for number in range(size)]
        left, done, at_once = step.records, 0, _batches_at_once(step)
        while left:
            counts = _until(left, sizes.within(at_once, step.batch))
            stamps = times.make(sum(counts))
            starts = list(accumulate(counts, initial=0))
            lanes: list[Lane | None] = [None] * size
            for first in range(min(size, len(counts))):
                position = (done + first) % size
                own = range(first, len(counts), size)
                mine = stamps if size == 1 else array("q")
                for number in own if size > 1 else ():
                    mine.extend(stamps[starts[number] : starts[number + 1]])
                rows = makers[position].make(mine)
                lanes[position] = Lane(step, team[position], rows, [counts[n] for n in own], self._leader_epoch)
            yield counts, lanes
            left, done = left - sum(counts), done + len(counts)

    def _batch(
        self, step: StepRecipe, producer: PlannedProducer, content: object, count: int, *, rolls: bool
    ) -> Placed:
        base_offset, sequence = self.next_offset, producer.sequence
        if producer is not NO_PRODUCER:
            producer.sequence = add_sequence(sequence, count)
        if step.producers.kind == "transactional" and producer.first_offset is None:
            producer.first_offset = base_offset
        self.next_offset += count
        return Placed(
            step=step,
            producer=producer,
            content=content,
            base_offset=base_offset,
            count=count,
            sequence=sequence,
            clock_ms=self._clock_ms,
            leader_epoch=self._leader_epoch,
            rolls=rolls,
        )

    def _count_down(self, step: StepRecipe, producer: PlannedProducer, draws: Draws) -> Iterator[Placed]:
        if step.producers.kind != "transactional" or producer.batches_left is None:
            return
        producer.batches_left -= 1
        if not producer.batches_left:
            yield from self._end(step, producer, draws)
            (producer.batches_left,) = draws.within(1, step.producers.batches)

    def _end(self, step: StepRecipe, producer: PlannedProducer, draws: Draws) -> Iterator[Placed]:
        """End the producer's open transaction, if there is one: commit or abort."""
        first = producer.first_offset
        if step.producers.kind != "transactional" or first is None:
            return
        is_aborted = draws.numbers(1)[0] < threshold(step.producers.abort)
        offset, producer.first_offset = self.next_offset, None
        self.next_offset += 1
        self.transactions.append(PlannedTransaction(producer.producer_id, first, offset, is_aborted))
        yield Placed(
            step=step,
            producer=producer,
            content=None,
            base_offset=offset,
            count=1,
            sequence=NO_SEQUENCE,
            clock_ms=self._clock_ms,
            leader_epoch=self._leader_epoch,
            marker=ControlRecordType.ABORT if is_aborted else ControlRecordType.COMMIT,
        )


def _newest(lane: Lane) -> Iterator[int]:
    """Yield the largest timestamp of each batch."""
    times, starts = lane.rows.timestamps, accumulate(lane.counts, initial=0)
    if lane.step.timestamps.order != "shuffled":
        return (times[end - 1] for _, end in pairwise(starts))
    return (max(times[start:end]) for start, end in pairwise(starts))


def _batches_at_once(step: StepRecipe) -> int:
    """Return the number of batches in a piece; the random numbers depend on it."""
    headers = step.headers.count[1] * (step.headers.size[-1] + 8)
    record = step.key.size[-1] + step.value.size[-1] + headers + RECORD_OVERHEAD
    batch = record * (step.batch[0] + step.batch[-1]) // 2
    return max(1, PIECE_SIZE // batch)


def _until(left: int, counts: list[int]) -> list[int]:
    """Return the first counts up to a sum; the last one is cut to reach it exactly."""
    if sum(counts) <= left:
        return counts
    kept = []
    for count in counts:
        kept.append(min(count, left))
        left -= kept[-1]
        if not left:
            break
    return kept
