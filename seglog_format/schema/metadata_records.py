"""Records of `__cluster_metadata`, of its snapshots and of `bootstrap.checkpoint`, and of `__remote_log_metadata`.

The value is a frame: the frame's version, the type of the record and the version of the record, each an unsigned
varint, then the message. Keys are null. To the log format these are ordinary records.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from construct import Struct, Tell

from seglog_format.names import METADATA_TOPIC, REMOTE_LOG_METADATA_TOPIC
from seglog_format.schema.fields import Doc, UnsignedVarint32
from seglog_format.schema.protocol import message, rows, upper_snake

if TYPE_CHECKING:
    from seglog_format.schema.protocol import MessageDefinition

FRAME_VERSIONS = (0, 1)
"""0 in the early access of 2.8, whose messages had another layout; 1 since 3.0."""

MetadataFrame = Struct(
    "frameVersion" / UnsignedVarint32 * Doc("Of this frame: 0 in 2.8, 1 since 3.0.", "SEG-CTL-010", since="2.8.0"),
    "type" / UnsignedVarint32 * Doc("Type of the record.", "SEG-CTL-010", since="2.8.0"),
    "version" / UnsignedVarint32 * Doc("Version of the record.", "SEG-CTL-010", since="2.8.0"),
    "end" / Tell,
)


def _records(table: str, broker: str) -> dict[int, MessageDefinition]:
    """Return messages by type. A reused type keeps its first message among the earlier layouts."""
    found: dict[int, MessageDefinition] = {}
    for row in sorted(rows(table), key=lambda row: "until" in row):
        each = message(upper_snake(row["name"]), row, broker=broker)
        newer = found.get(row["type"])
        found[row["type"]] = each if newer is None else replace(newer, earlier=(*newer.earlier, each))
    return dict(sorted(found.items()))


METADATA_RECORDS = _records("cluster_metadata", "3.0.0")
"""Messages by type. A missing type was never released, or is newer than the tables."""

REMOTE_LOG_METADATA_RECORDS = _records("remote_log_metadata", "3.0.0")
"""Messages by type."""

FRAMED_TOPICS = {METADATA_TOPIC: METADATA_RECORDS, REMOTE_LOG_METADATA_TOPIC: REMOTE_LOG_METADATA_RECORDS}
"""Messages by topic and type."""
