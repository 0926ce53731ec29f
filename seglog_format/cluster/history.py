"""The history of one topic, from the records of the metadata log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.cluster.image import TOPIC_RESOURCE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.cluster.metadata_state import MetadataRecord

EVENTS: Final = {
    "TOPIC_RECORD": "created",
    "PARTITION_RECORD": "partition added",
    "PARTITION_CHANGE_RECORD": "partition changed",
    "CONFIG_RECORD": "setting changed",
    "CLEAR_ELR_RECORD": "eligible leader replicas cleared",
    "REMOVE_TOPIC_RECORD": "deleted",
}


class TopicEvent(NamedTuple):
    """An event in the history of a topic.

    Attributes:
        offset: of the record.
        timestamp_ms: time at which the controller wrote the record.
        event: a value of `EVENTS`.
        topic_id: of the topic at that time; empty before it was created.
        fields: of the record, by Kafka's names.
    """

    offset: int
    timestamp_ms: int
    event: str
    topic_id: str
    fields: dict[str, Any]


def topic_history(records: Iterable[MetadataRecord], name: str) -> Iterator[TopicEvent]:
    """Yield the events of a topic, in the order of the log.

    Args:
        records: of the metadata log.
        name: of the topic; a topic that was deleted and created again has another id.
    """
    topic_id = ""
    for record in records:
        if record.is_control or record.type not in EVENTS:
            continue
        if record.type == "TOPIC_RECORD" and record.fields["name"] == name:
            topic_id = record.fields["topicId"]
        if _is_about(record, name, topic_id):
            event = EVENTS[record.type]
            yield TopicEvent(record.offset, record.timestamp_ms, event, topic_id, record.fields)


def _is_about(record: MetadataRecord, name: str, topic_id: str) -> bool:
    fields = record.fields
    if record.type == "CONFIG_RECORD":
        return bool(fields["resourceType"] == TOPIC_RESOURCE and fields["resourceName"] == name)
    if record.type == "CLEAR_ELR_RECORD":
        return fields["topicName"] in {"", name} and bool(topic_id)
    return bool(topic_id) and fields["topicId"] == topic_id
