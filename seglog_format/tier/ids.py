"""The identities of tiered partitions and of their remote segments (chapter 46)."""

from __future__ import annotations

from typing import NamedTuple


class RemotePartitionId(NamedTuple):
    """A partition of a topic with an id; a topic that is deleted and created again has another id.

    Attributes:
        topic: name of the topic.
        topic_id: 22 characters of base64url.
        partition: number of the partition.
    """

    topic: str
    topic_id: str
    partition: int


class RemoteSegmentId(NamedTuple):
    """The identity of one attempt to copy a segment.

    Attributes:
        partition: the partition of the segment.
        segment_id: 22 characters of base64url; each attempt has its own.
    """

    partition: RemotePartitionId
    segment_id: str
