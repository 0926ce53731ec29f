"""Appenders at work on a log directory, which take turns in a random order."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Final

from proofs.entries import with_offset
from proofs.power.promise import Appended, Compacted, Promise
from proofs.power.world import ACTIONS, BlockedError
from seglog_format import (
    CompressionCodec,
    ControlRecordType,
    Origin,
    build_batch,
    build_end_marker,
    encode_batch,
    new_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from proofs.power.world import World
    from seglog_format import LogWriter, PartitionWriter

MAX_APPENDERS: Final = 8
MAX_TURNS: Final = (8, 30)
OTHERS_GO_ON, WAITS_FOR_DISK, HAS_PRODUCER, ENDS = 0.4, 0.2, 0.5, 0.4
KEYS: Final = (None, b"a", b"b", b"c", b"d", b"e")


@dataclass(slots=True)
class Producer:
    """An idempotent or transactional producer of one log; with id -1, a producer without an id.

    Attributes:
        epoch: producer epoch, which its coordinator increments after each restart.
    """

    producer_id: int
    is_transactional: bool
    epoch: int = 0
    sequence: int = 0
    is_open: bool = False


@dataclass(slots=True)
class Log:
    """A partition with everything that was appended to it, in order.

    Attributes:
        appended: appended batches; the power may fail while the last one is written.
        acknowledged: offset below which everything was reported as stored on the disk.
        start: offset up to which batches may be deleted.
        groups: groups of segments that are being compacted.
        leader_epoch: epoch under which it was last written.
        producers: producers by the number of their appender.
        writer: the writer, while the log is open.
    """

    appended: list[Appended] = field(default_factory=list)
    acknowledged: int = 0
    start: int = 0
    groups: tuple[Compacted, ...] = ()
    leader_epoch: int = -1
    producers: dict[int, Producer] = field(default_factory=dict)
    writer: PartitionWriter | None = None

    @property
    def open_writer(self) -> PartitionWriter:
        """Return the writer of an open log."""
        assert self.writer is not None
        return self.writer

    @property
    def promise(self) -> Promise:
        """Return the promise that holds if the power fails now."""
        reached = self.writer.recovery_point if self.writer is not None else 0
        return Promise(tuple(self.appended), max(self.acknowledged, reached), self.start, self.groups)

    def note(self) -> None:
        """Note which offsets are acknowledged now."""
        self.acknowledged = self.promise.acknowledged

    def keep(self, kept: list[Appended]) -> None:
        """Note that the log holds these batches."""
        self.appended = kept
        self.groups = ()

    def begin_at(self, offset: int) -> None:
        """Note that batches that end at an offset or below are deleted."""
        self.start = offset
        self.appended = [each for each in self.appended if each.end > offset]

    @property
    def end(self) -> int:
        """Return the offset after the last batch."""
        return self.appended[-1].end if self.appended else 0


class Appenders:
    """One to eight appenders that take turns, also during each other's flushes.

    Args:
        logs: open logs.
        writer: writer of the log directory.
        world: random number generator, clock and habits.
    """

    def __init__(self, logs: dict[int, Log], writer: LogWriter, world: World) -> None:
        self._logs = logs
        self._writer = writer
        self._world = world
        self._dice = world.dice
        self._counts = world.counts
        self._appenders = [self._appender(number) for number in range(self._dice.randint(1, MAX_APPENDERS))]
        self._at_work: set[int] = set()

    def run(self) -> None:
        """Take some turns; appenders that still wait at the end stop waiting.

        Raises:
            PowerCut: the power fails during a turn.
        """
        with suppress(BlockedError):
            most = max(MAX_TURNS) if self._world.compacts else self._dice.choice(MAX_TURNS)
            for _ in range(self._dice.randint(1, most)):
                self._turn()

    def others_go_on(self) -> None:
        """Wait as a sync does; if no lock is held, others append meanwhile."""
        while not self._world.turns.held and self._dice.random() < OTHERS_GO_ON:
            self._turn()

    def _turn(self) -> None:
        free = [number for number in range(len(self._appenders)) if number not in self._at_work]
        if not free:
            return
        number = self._dice.choice(free)
        self._at_work.add(number)
        try:
            next(self._appenders[number])
        finally:
            self._at_work.discard(number)
        for log in self._logs.values():
            log.note()

    def _appender(self, number: int) -> Iterator[None]:
        while True:
            log = self._dice.choice(tuple(self._logs.values()))
            action = self._action(number, log)
            while True:
                try:
                    action()
                except BlockedError:
                    self._counts["waited for another's flush"] += 1
                    action = log.open_writer.flush
                    yield
                else:
                    break
            yield

    def _action(self, number: int, log: Log) -> Callable[[], object]:
        writer = log.open_writer
        actions: dict[str, Callable[[], object]] = {
            "append": partial(self._append, number, log),
            "follow": partial(self._follow, number, log),
            "flush": writer.flush,
            "roll": writer.roll,
            "elect": partial(self._elect, log),
            "checkpoint": self._writer.checkpoint,
            "retain": partial(self._retain, log),
            "remove": writer.remove_deleted,
        }
        weights = {**ACTIONS, **self._world.habits.actions}
        return actions[self._dice.choices(tuple(weights), tuple(weights.values()))[0]]

    def _elect(self, log: Log) -> None:
        log.leader_epoch += 1
        log.open_writer.become_leader(log.leader_epoch)

    def _retain(self, log: Log) -> None:
        """Remove segments by age and size; until the plan is known, any segment may be deleted."""
        log.start = log.open_writer.log_end_offset
        plan = log.open_writer.apply_retention()
        log.begin_at(plan.log_start_offset)
        self._counts["segments removed"] += len(plan.removed)

    def _append(self, number: int, log: Log) -> None:
        data, origin = self._batch(number, log)
        acks = self._dice.random() < WAITS_FOR_DISK
        self._note_append(log, data, log.open_writer.log_end_offset)
        done = log.open_writer.append(data, origin=origin, acks="flushed" if acks else "written")
        self._counts["rolls"] += done.rolled is not None
        if acks:
            log.acknowledged = max(log.acknowledged, done.last_offset + 1)

    def _follow(self, number: int, log: Log) -> None:
        """Append as a follower what another leader wrote; it may leave out offsets."""
        data, _ = self._batch(number, log)
        first = log.open_writer.log_end_offset + self._dice.choice((0, 0, 3))
        self._note_append(log, data, first)
        log.open_writer.append_as_follower(log.appended[-1].data)
        self._counts["appends as follower"] += 1

    def _note_append(self, log: Log, data: bytes, first: int) -> None:
        self._world.now_ms += self._dice.choice((0, 1, 30))
        end = first + int.from_bytes(data[23:27], "big") + 1
        log.appended.append(Appended(with_offset(data, first, log.leader_epoch), first, end))
        self._counts["appends"] += 1

    def _batch(self, number: int, log: Log) -> tuple[bytes, Origin]:
        """Return the next batch of an appender: plain, idempotent, or a part of a transaction or its end."""
        dice = self._dice
        known = log.producers.get(number)
        if known is None:
            producer_id = 1000 + number if dice.random() < HAS_PRODUCER else -1
            share = self._world.habits.transactions
            share = share / 4 if self._world.compacts else share  # open transactions hold back compaction
            known = Producer(producer_id, producer_id >= 0 and dice.random() < share)
            log.producers[number] = known
        if known.is_open and dice.random() < ENDS:
            known.is_open = False
            return self._end_marker(known), Origin.COORDINATOR
        return self._data_batch(known), Origin.CLIENT

    def _end_marker(self, producer: Producer) -> bytes:
        kind = self._dice.choice((ControlRecordType.ABORT, ControlRecordType.COMMIT))
        self._counts["transactions"] += 1
        marker = build_end_marker(
            kind,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            coordinator_epoch=0,
            timestamp_ms=self._world.now_ms,
        )
        return encode_batch(marker)

    def _data_batch(self, producer: Producer) -> bytes:
        dice = self._dice
        count = dice.choice((1, 1, 2, 4))
        records = [
            new_record(
                key=dice.choice(KEYS) if self._world.compacts else None,
                value=dice.randbytes(dice.choice((0, 5, 30, 60))),
                timestamp_ms=self._world.now_ms - dice.randrange(20),
            )
            for _ in range(count)
        ]
        codec = dice.choice((CompressionCodec.NONE, CompressionCodec.NONE, CompressionCodec.LZ4))
        if producer.producer_id < 0:
            return encode_batch(build_batch(records, codec=codec))
        producer.is_open = producer.is_transactional
        sequence, producer.sequence = producer.sequence, producer.sequence + count
        batch = build_batch(
            records,
            codec=codec,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            base_sequence=sequence,
            is_transactional=producer.is_transactional,
        )
        return encode_batch(batch)


def restart_producers(log: Log) -> None:
    """Give each producer a new epoch after a restart, with sequence numbers from 0; transactions stay open."""
    for producer in log.producers.values():
        producer.epoch += 1
        producer.sequence = 0
