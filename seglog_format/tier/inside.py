"""The names of this package that proofs use to compare states and lineage of remote segments with Kafka's classes.

To read remote segments, call `seglog_format.open_tier` instead.
"""

from __future__ import annotations

from seglog_format.tier.local_metadata import RetentionRules, expired
from seglog_format.tier.segments import (
    Lineage,
    RemotePartitionId,
    RemoteSegment,
    RemoteSegmentId,
    RemoteSegments,
    SegmentState,
    remote_event,
)

__all__ = [
    "Lineage",
    "RemotePartitionId",
    "RemoteSegment",
    "RemoteSegmentId",
    "RemoteSegments",
    "RetentionRules",
    "SegmentState",
    "expired",
    "remote_event",
]
