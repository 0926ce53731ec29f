"""The number of partitions of a coordinator's topic without metadata, inferred from the records in them.

A coordinator stores a group in the partition with the number of its name's hash modulo the number of partitions. With
another number of partitions it would search for the group in another partition, and not find it.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Final

from seglog_format.cluster.cluster import best_of
from seglog_format.cluster.coordinators import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from seglog_format.codec.coordinator_records import decode_coordinator_record
from seglog_format.errors import SeglogError
from seglog_format.log.partition import open_partition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping
    from pathlib import Path

    from seglog_format.cluster.cluster import Replicas
    from seglog_format.cluster.image import MetadataImage

DEFAULT_COUNT: Final = 50
"""Kafka's default number of partitions of these topics."""

MAX_PARTITIONS: Final = 10_000
"""Maximum number of partitions that is tried."""

MAX_KEYS: Final = 10_000
"""Maximum number of keys that are read in one partition."""

KEY_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    CONSUMER_OFFSETS: ("group", "groupId"),
    TRANSACTION_STATE: ("transactionalId",),
    SHARE_GROUP_STATE: ("groupId", "topicId", "partition"),
}
"""Fields of a record's key that decide its partition; in the first topic a key has one of the two fields."""


def add_missing_partitions(
    image: MetadataImage, replicas: Replicas, topics: Collection[str] | None = None
) -> list[tuple[str, str]]:
    """Add missing partitions to the coordinators' topics that are not in the metadata.

    Args:
        image: changed in place: partitions without a directory are added.
        replicas: of the partitions.
        topics: names of topics that are not in the metadata; None without metadata.

    Returns:
        The name of each topic to which partitions were added, and a text about it.
    """
    found = []
    for name in KEY_FIELDS:
        topic = image.topic_named(name) if topics is None or name in topics else None
        if topic is not None:
            count = count_of({number: _hashes_of(name, number, replicas) for number in topic.partitions})
            missing = set(range(count)) - topic.partitions.keys()
            topic.partitions |= {number: {"partitionId": number, "leaderEpoch": -1} for number in missing}
            if missing:
                found.append((name, f"had {count} partitions, as the names in it show; {len(missing)} are not here"))
    return found


def _hashes_of(topic: str, number: int, replicas: Replicas) -> set[int]:
    copies = [copy for copy in replicas.get((topic, number), ()) if copy.log_end_offset is not None]
    return hashes_in(topic, best_of(copies).path) if copies else set()


def java_hash(text: str) -> int:
    """Return Java's hash of a text without its sign, as Kafka's coordinators compute it."""
    code = 0
    encoded = text.encode("utf-16-be", "surrogatepass")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        code = (31 * code + (high << 8 | low)) & 0xFFFFFFFF
    return code & 0x7FFFFFFF


def count_of(hashes: Mapping[int, Collection[int]]) -> int:
    """Infer the number of partitions.

    Args:
        hashes: of the names found in each partition, by its number.

    Returns:
        The smallest number with which every name belongs to its partition; if partitions are missing, Kafka's default
        is preferred. If no number fits, one more than the highest partition.
    """
    least = max(hashes, default=-1) + 1
    preferred = [least] if len(hashes) == least else [DEFAULT_COUNT]
    tried = chain((each for each in preferred if each >= least), range(least, MAX_PARTITIONS + 1))
    return next((count for count in tried if _fits(count, hashes)), least)


def _fits(count: int, hashes: Mapping[int, Collection[int]]) -> bool:
    return count > 0 and all(each % count == number for number, found in hashes.items() for each in found)


def hashes_in(topic: str, path: Path) -> set[int]:
    """Return the hashes of the names in a partition of a coordinator's topic, up to its first damage."""
    found: set[int] = set()
    try:
        with open_partition(path) as partition:
            for name in _names(topic, partition.records(on_gap=lambda _gap: None)):
                found.add(java_hash(name))
                if len(found) >= MAX_KEYS:
                    break
    except SeglogError:
        pass
    return found


def _names(topic: str, records: Iterable[object]) -> Iterator[str]:
    for record in records:
        key = decode_coordinator_record(topic, record.key, record.value).get("key")  # type: ignore[attr-defined]
        fields = [key[name] for name in KEY_FIELDS[topic] if name in key] if isinstance(key, dict) else []
        if fields:
            yield ":".join(map(str, fields))
