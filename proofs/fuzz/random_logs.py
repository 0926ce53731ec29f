"""Random logs: sequences of appends that repeat with their seed, of every magic, codec and kind of batch."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seglog_format import (
    CompressionCodec,
    ControlRecordType,
    build_batch,
    build_end_marker,
    build_message_entry,
    encode_batch,
    new_record,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.types import Record

INTERVALS: Final = (0, 100, 300, 1000, 4096)
BASE_OFFSETS: Final = (0, 0, 7, 368_769, 2**40)
NO_TIMESTAMP: Final = -1
START_MS: Final = 1_700_000_000_000
FIRST_PRODUCER_ID: Final = 4000
NONE: Final = CompressionCodec.NONE
MESSAGE_CODECS: Final = (CompressionCodec.NONE, CompressionCodec.GZIP, CompressionCodec.SNAPPY, CompressionCodec.LZ4)


@dataclass(slots=True)
class Producer:
    """The state of a producer."""

    producer_id: int
    is_transactional: bool
    epoch: int = 0
    sequence: int = 0
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class RandomLog:
    """The appends to one segment.

    Attributes:
        base_offset: base offset of the segment.
        interval_bytes: `index.interval.bytes`.
        appends: entries of each append, with their offsets.
        has_messages: whether all entries are messages of magic 0 or 1.
    """

    base_offset: int
    interval_bytes: int
    appends: tuple[tuple[bytes, ...], ...]
    has_messages: bool

    @property
    def entries(self) -> list[bytes]:
        """Return all entries in order."""
        return [entry for append in self.appends for entry in append]

    @property
    def data(self) -> bytes:
        """Return the bytes of the `.log` file."""
        return b"".join(self.entries)


@dataclass(slots=True)
class LogMaker:
    """Makes entries with increasing offsets.

    Args:
        dice: random number generator.
        next_offset: offset of the next record.
        has_gaps: whether some offsets are left out between batches.
        has_log_append_time: whether some batches carry the broker's time.
        has_compression: whether some batches are compressed.
    """

    dice: random.Random
    next_offset: int = 0
    has_gaps: bool = True
    has_log_append_time: bool = True
    has_compression: bool = True
    time_ms: int = START_MS
    leader_epoch: int = 0
    coordinator_epoch: int = 0
    producers: list[Producer] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number in range(self.dice.randrange(4)):
            self.producers.append(Producer(FIRST_PRODUCER_ID + number, is_transactional=self.happens(70)))

    def happens(self, percent: int) -> bool:
        """Return whether an event with this probability in percent happens."""
        return self.dice.randrange(100) < percent

    def entry(self) -> bytes:
        """Return the next record batch: data without a producer, data of a producer, or an end marker."""
        dice = self.dice
        if self.has_gaps and self.happens(5):
            self.next_offset += dice.choice((1, 10, 10**6))
        if self.happens(3):
            self.leader_epoch += dice.randrange(1, 3)
        if self.producers and self.happens(50):
            producer = dice.choice(self.producers)
            return self._marker(producer) if producer.is_open and self.happens(40) else self._of(producer)
        return self.batch()

    def batch(self, producer: Producer | None = None) -> bytes:
        """Return a data batch."""
        dice = self.dice
        records = [self.record() for _ in range(dice.choice((1, 1, 1, 2, 3, 10)))]
        log_append_ms = self.time_ms if self.has_log_append_time and self.happens(10) else None
        batch = build_batch(
            records,
            base_offset=self.next_offset,
            codec=dice.choice(tuple(CompressionCodec)) if self.has_compression and self.happens(40) else NONE,
            log_append_time_ms=log_append_ms,
            partition_leader_epoch=self.leader_epoch,
            producer_id=producer.producer_id if producer else -1,
            producer_epoch=producer.epoch if producer else -1,
            base_sequence=producer.sequence if producer else -1,
            is_transactional=bool(producer and producer.is_transactional),
        )
        self.next_offset += len(records)
        return encode_batch(batch)

    def _of(self, producer: Producer) -> bytes:
        if not producer.is_open and self.happens(5):
            producer.epoch, producer.sequence = producer.epoch + 1, 0
        first = self.next_offset
        data = self.batch(producer)
        producer.sequence += self.next_offset - first
        producer.is_open = producer.is_transactional
        return data

    def _marker(self, producer: Producer) -> bytes:
        self.coordinator_epoch += self.happens(20)
        kind = self.dice.choice((ControlRecordType.ABORT, ControlRecordType.ABORT, ControlRecordType.COMMIT))
        marker = build_end_marker(
            kind,
            producer_id=producer.producer_id,
            producer_epoch=producer.epoch,
            coordinator_epoch=self.coordinator_epoch,
            timestamp_ms=self.time_ms,
            base_offset=self.next_offset,
            partition_leader_epoch=self.leader_epoch,
        )
        producer.is_open = False
        self.next_offset += 1
        return encode_batch(marker)

    def message(self, magic: int) -> bytes:
        """Return a message of magic 0 or 1, or a wrapper with several."""
        dice = self.dice
        codec = dice.choice(MESSAGE_CODECS) if self.has_compression else NONE
        count = 1 if codec is NONE else dice.choice((1, 2, 5))
        records = [self.record(has_headers=False) for _ in range(count)]
        entry = build_message_entry(
            records,
            magic=magic,
            base_offset=self.next_offset,
            codec=codec,
            log_append_time_ms=self.time_ms if magic and self.happens(10) else None,
        )
        self.next_offset += count
        return encode_batch(entry)

    def record(self, *, has_headers: bool = True) -> Record:
        """Return a record; its timestamp is later than, equal to or earlier than the one before."""
        dice = self.dice
        self.time_ms += dice.choice((0, 1, 1, 7, 1000, -3, -500))
        value = None if self.happens(5) else dice.randbytes(dice.choice((0, 1, 20, 100, 100, 700)))
        key = None if self.happens(30) else b"key-%d" % dice.randrange(50)
        headers = [(b"h", b"1"), (b"h", None)] if has_headers and self.happens(10) else []
        time_ms = NO_TIMESTAMP if self.happens(2) else self.time_ms
        return new_record(key=key, value=value, timestamp_ms=time_ms, headers=headers)


def random_log(seed: int, *, is_dense: bool = False) -> RandomLog:
    """Return random appends to one segment.

    Args:
        seed: seed of all decisions.
        is_dense: whether no offset is left out, as on a leader.
    """
    dice = random.Random(f"log {seed}")
    base_offset = 0 if is_dense else dice.choice(BASE_OFFSETS)
    maker = LogMaker(dice, base_offset, has_gaps=not is_dense)
    magic = dice.choice((2, 2, 2, 2, 2, 2, 2, 1, 0))
    make: Callable[[], bytes] = maker.entry if magic == 2 else lambda: maker.message(magic)  # noqa: PLR2004 - the format
    count = dice.choice((1, 5, 20, 40))
    appends = [tuple(make() for _ in range(dice.choice((1, 1, 1, 2, 5)))) for _ in range(count)]
    return RandomLog(base_offset, dice.choice(INTERVALS), tuple(appends), has_messages=magic < 2)  # noqa: PLR2004 - the format
