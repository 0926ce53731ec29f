"""What a request asks for, each thing once: who names a partition a thousand times gets one answer about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable


def partitions_asked(topics: Iterable[Any], topic_key: str, partition_key: str) -> dict[Any, dict[int, Any]]:
    """What is asked about each partition, by topic and number; of several questions about one, the first.

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
