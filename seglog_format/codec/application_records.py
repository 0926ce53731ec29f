"""Decoders of the records of Kafka's own topics, for display."""

from __future__ import annotations

from seglog_format.codec.coordinator_records import decode_coordinator_record
from seglog_format.codec.metadata_records import decode_metadata_record
from seglog_format.errors import FormatError
from seglog_format.field_names import kafka_name
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS


def decode_application_record(topic: str, key: bytes | None, value: bytes | None) -> dict[str, object] | None:
    """Decode a data record of a topic that Kafka keeps for itself.

    These are `__consumer_offsets`, `__transaction_state`, `__share_group_state`, `__cluster_metadata` and
    `__remote_log_metadata`.

    Args:
        topic: the topic's name; snapshots of the metadata log count as the metadata log.
        key: of the record.
        value: of the record.

    Returns:
        A dictionary for JSON with ``type`` and that type's fields; None for any other topic. Invalid bytes
        give ``error``: the record itself is valid whatever its application wrote into it (SEG-CTL-010).
    """
    try:
        if topic in COORDINATOR_TOPICS:
            return decode_coordinator_record(topic, key, value)
        return decode_metadata_record(topic, value) if topic in FRAMED_TOPICS else None
    except FormatError as problem:
        text = f"{kafka_name(problem.location.field)} at byte {problem.location.position}"
        return {"error": f"{text}: expected {problem.expected}, found {problem.found}"}
