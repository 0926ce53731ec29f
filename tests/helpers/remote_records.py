"""Records of the metadata topic, made for tests: bytes, and appended to a partition of it."""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING

from seglog_format import PartitionWriter, new_record

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.tier.segments import RemoteSegment, RemoteSegmentId, SegmentState


def metadata_partition(local: Path) -> Path:
    return local / "__remote_log_metadata-0"


def append(local: Path, *values: bytes) -> None:
    """Add records to the metadata topic in a log directory."""
    with PartitionWriter(metadata_partition(local)) as writer:
        for value in values:
            writer.append([new_record(value=value)])


def started(segment: RemoteSegment) -> bytes:
    """Return the record with which copying begins."""
    epochs = b"".join(struct.pack(">iqB", *entry, 0) for entry in segment.epochs)
    times = struct.pack(">qqiqq", segment.start_offset, segment.end_offset, 1, segment.max_timestamp_ms, 1)
    tags = b"\x01\x00\x01\x01" if segment.is_transaction_index_empty else b"\0"
    rest = struct.pack(">B", len(segment.epochs) + 1) + epochs + struct.pack(">iBB", segment.size, 0, 0) + tags
    return b"\x01\x00\x00" + _named(segment.id) + times + rest


def updated(segment: RemoteSegmentId, state: SegmentState, custom: bytes | None = None) -> bytes:
    """Return the record of another state."""
    noted = b"\0" if custom is None else varint(len(custom) + 1) + custom
    return b"\x01\x01\x00" + _named(segment) + struct.pack(">iq", 1, 1) + noted + struct.pack(">BB", state, 0)


def varint(value: int) -> bytes:
    """Encode an unsigned varint."""
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def _named(segment: RemoteSegmentId) -> bytes:
    topic, topic_id, partition = segment.partition
    name = bytes([len(topic) + 1]) + topic.encode()
    return name + _uuid(topic_id) + struct.pack(">iB", partition, 0) + _uuid(segment.segment_id) + b"\0"


def _uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "==")
