"""The options for the start and the end of a read in each partition, in the form of Spark's Kafka connector.

``earliest``, ``latest``, or JSON: ``{"orders": {"0": 23, "1": -2}}``, where -2 is the earliest
offset and -1 the latest.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from seglog_format.log.partition import Partition

TopicPartition: TypeAlias = tuple[str, int]

EARLIEST_OFFSET: Final = -2
LATEST_OFFSET: Final = -1


@dataclass(frozen=True, slots=True)
class OffsetChoice:
    """The offset chosen in each partition.

    Attributes:
        kind: ``earliest``, ``latest``, ``offsets``, ``timestamp`` (one for all) or ``timestamps``.
        values: by partition: an offset, -2 or -1; or a timestamp in milliseconds.
        timestamp_ms: for all partitions.
        strategy: ``error`` or ``latest``: what to do in a partition without a record at or after the timestamp.
    """

    kind: str
    values: Mapping[TopicPartition, int] = field(default_factory=dict)
    timestamp_ms: int = 0
    strategy: str = "error"

    def check(self, what: str, partitions: Collection[TopicPartition]) -> None:
        """Check that each partition to read is named, and no other, as the connector does.

        Raises:
            UsageError: a partition is missing, or is not read.
        """
        if self.kind not in {"offsets", "timestamps"}:
            return
        missing = sorted(set(partitions) - set(self.values))
        extra = sorted(set(self.values) - set(partitions))
        for names, text in ((missing, "does not name"), (extra, "names partitions that are not read:")):
            if names:
                msg = f"seglog: {what} {text} {', '.join(f'{topic}-{number}' for topic, number in names[:5])}"
                raise UsageError(msg)


EARLIEST: Final = OffsetChoice("earliest")
LATEST: Final = OffsetChoice("latest")


def parse_offsets(text: str) -> OffsetChoice:
    """Parse ``earliest``, ``latest`` or offsets in JSON."""
    if text.lower() in {"earliest", "latest"}:
        return OffsetChoice(text.lower())
    return OffsetChoice("offsets", parse_numbers(text))


def parse_numbers(text: str) -> dict[TopicPartition, int]:
    """Parse numbers by topic and partition, in JSON.

    Raises:
        ValueError: the text is something else.
    """
    try:
        found = json.loads(text)
        return {
            (str(topic), int(number)): int(value) for topic, each in found.items() for number, value in each.items()
        }
    except (ValueError, TypeError, AttributeError) as error:
        msg = 'expected a number for each partition, such as {"orders": {"0": 23, "1": 42}}'
        raise ValueError(msg) from error


def offsets_as_json(offsets: Mapping[TopicPartition, int]) -> dict[str, dict[str, int]]:
    """Convert offsets to the form of the connector's checkpoints."""
    nested: dict[str, dict[str, int]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        nested.setdefault(topic, {})[str(number)] = offset
    return nested


def offsets_from_json(nested: Mapping[str, Mapping[str, int]]) -> dict[TopicPartition, int]:
    """Convert offsets from the form of the connector's checkpoints."""
    return {(topic, int(number)): offset for topic, each in nested.items() for number, offset in each.items()}


@dataclass(frozen=True, slots=True)
class Bounds:
    """The resolved offsets of one partition.

    Attributes:
        start: the first offset to read.
        end: the first offset not to read; None for no limit.
    """

    start: int
    end: int | None


def resolve_start(choice: OffsetChoice, partition: Partition, key: TopicPartition) -> int:
    """Return the first offset to read in a partition.

    Raises:
        UsageError: no record is at or after a timestamp, and the strategy is ``error``.
        FormatError: damage was met while a timestamp was looked up.
    """
    if choice.kind == "earliest":
        return partition.log_start_offset
    if choice.kind == "latest":
        return partition.log_end_offset
    if choice.kind == "offsets":
        return _named(choice.values[key], partition)
    timestamp_ms = choice.timestamp_ms if choice.kind == "timestamp" else choice.values[key]
    found = partition.offset_for_timestamp(timestamp_ms)
    if found is not None:
        return found.offset
    if choice.strategy == "error":
        msg = (
            f"seglog: {key[0]}-{key[1]} has no record from timestamp {timestamp_ms} on;"
            " startingOffsetsByTimestampStrategy latest starts at the end there"
        )
        raise UsageError(msg)
    return partition.log_end_offset


def resolve_end(choice: OffsetChoice, partition: Partition, key: TopicPartition) -> int | None:
    """Return the first offset not to read in a partition; None for no limit.

    Raises:
        UsageError: the earliest offset is no valid end.
        FormatError: damage was met while a timestamp was looked up.
    """
    if choice.kind == "latest":
        return None
    if choice.kind == "earliest" or (choice.kind == "offsets" and choice.values[key] == EARLIEST_OFFSET):
        msg = "seglog: endingOffsets cannot be earliest (-2): nothing would be read"
        raise UsageError(msg)
    if choice.kind == "offsets":
        offset = choice.values[key]
        return None if offset == LATEST_OFFSET else _named(offset, partition)
    timestamp_ms = choice.timestamp_ms if choice.kind == "timestamp" else choice.values[key]
    found = partition.offset_for_timestamp(timestamp_ms)
    return None if found is None else found.offset


def _named(offset: int, partition: Partition) -> int:
    if offset == EARLIEST_OFFSET:
        return partition.log_start_offset
    if offset == LATEST_OFFSET:
        return partition.log_end_offset
    if offset < 0:
        msg = f"seglog: {offset} is no offset: give 0 or more, -2 for the earliest or -1 for the latest"
        raise UsageError(msg)
    return offset
