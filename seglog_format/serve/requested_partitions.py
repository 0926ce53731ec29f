"""The partitions that a request names, without duplicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def requested_partitions(topics: Iterable[Any], topic_key: str, partition_key: str) -> dict[Any, dict[int, Any]]:
    """Return the request's entry for each partition, by topic and number; the first of several wins.

    Args:
        topics: of the request; each has `partitions`.
        topic_key: the field that names a topic.
        partition_key: the field that numbers a partition.
    """
    found: dict[Any, dict[int, Any]] = {}
    for topic in topics:
        partitions = found.setdefault(getattr(topic, topic_key), {})
        for each in topic.partitions:
            partitions.setdefault(getattr(each, partition_key), each)
    return found
