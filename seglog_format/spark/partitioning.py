"""The partition of a row that names none, as Kafka's producer chooses it when the number of partitions is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError
from seglog_format.spark.write_options import NO_PARTITION

if TYPE_CHECKING:
    from seglog_format.spark.write_options import WriteOptions

SEED: Final = 0x9747B28C
MULTIPLIER: Final = 0x5BD1E995
UINT32: Final = 0xFFFFFFFF
INT32: Final = 0x7FFFFFFF
WORD: Final = 4


@dataclass
class Spreader:
    """Chooses partitions for the rows of one task.

    A row with a key gets the partition that Kafka's producer gives to the key. Rows without a key fill one partition
    after the other, a batch at a time; the producer does so, too, in an order that differs from run to run.

    Attributes:
        options: of the write.
        first: number of the task; tasks begin with different partitions.
    """

    options: WriteOptions
    first: int = 0
    _current: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By topic, the partition of the next row without a key, and the bytes given to it so far."""

    def partition_of(self, topic: str, named: int | None, key: bytes | None, size: int) -> int:
        """Return the partition of a row.

        Args:
            topic: of the row.
            named: the partition that the row names; None if it names none.
            key: of the row.
            size: approximate bytes of the row.

        Raises:
            UsageError: the row names no partition and their number is not known, or a partition beyond that number.
        """
        count = self.options.partitions
        if named is not None:
            if count is not None and named >= count:
                msg = f"seglog: a row of {topic} names partition {named}, but the option partitions is {count}"
                raise UsageError(msg)
            return named
        if count is None:
            msg = f"seglog: a row of {topic} has no partition: {NO_PARTITION}"
            raise UsageError(msg)
        return self._next(topic, size, count) if key is None else partition_for_key(key, count)

    def _next(self, topic: str, size: int, count: int) -> int:
        number, given = self._current.get(topic, (self.first % count, 0))
        if given and given + size > self.options.batch_size:
            number, given = (number + 1) % count, 0
        self._current[topic] = number, given + size
        return number


def partition_for_key(key: bytes, count: int) -> int:
    """Return the partition of a key among a number of partitions, as Kafka's `BuiltInPartitioner` does."""
    return (murmur2(key) & INT32) % count


def murmur2(data: bytes) -> int:
    """Return the 32-bit hash of bytes with the seed that Kafka uses, as a number without sign."""
    found, whole = SEED ^ len(data), len(data) // WORD * WORD
    for start in range(0, whole, WORD):
        word = int.from_bytes(data[start : start + WORD], "little") * MULTIPLIER & UINT32
        word = (word ^ word >> 24) * MULTIPLIER & UINT32
        found = (found * MULTIPLIER & UINT32) ^ word
    if whole < len(data):
        found = (found ^ int.from_bytes(data[whole:], "little")) * MULTIPLIER & UINT32
    found = (found ^ found >> 13) * MULTIPLIER & UINT32
    return found ^ found >> 15
