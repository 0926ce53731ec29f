"""The identities of tiered partitions and of their remote segments (chapter 46)."""

from __future__ import annotations

from typing import NamedTuple


class RemotePartitionId(NamedTuple):
    """A partition of one life of a topic: the id of the topic changes when it is made again.

    Attributes:
        topic: its name.
        topic_id: 22 characters of base64url.
        partition: its number.
    """

    topic: str
    topic_id: str
    partition: int


class RemoteSegmentId(NamedTuple):
    """The identity of one attempt to copy a segment.

    Attributes:
        partition: of which partition.
        segment_id: 22 characters of base64url; each attempt has its own.
    """

    partition: RemotePartitionId
    segment_id: str
