"""What proofs take from here: states and lineage of remote segments are compared with Kafka's classes, event by event.

`seglog_format.open_tier` reads remote segments.
"""

from __future__ import annotations

from seglog_format.tier.expiry import RetentionRules, expired
from seglog_format.tier.ids import RemotePartitionId, RemoteSegmentId
from seglog_format.tier.lineage import Lineage
from seglog_format.tier.records import RemoteSegment, remote_event
from seglog_format.tier.segments import RemoteSegments
from seglog_format.tier.states import SegmentState

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
