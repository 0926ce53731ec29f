"""Decoder and encoder of records of `__cluster_metadata` and `__remote_log_metadata`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.parse import parse
from seglog_format.codec.protocol import decode_whole, encode_message
from seglog_format.errors import CorruptRecordError, Location, UsageError
from seglog_format.schema.derived import OLDEST_LINE
from seglog_format.schema.metadata_records import FRAME_VERSIONS, FRAMED_TOPICS, MetadataFrame

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_format.schema.protocol import MessageDefinition

VALUE = Location(field="value")


def decode_metadata_record(topic: str, value: bytes | None) -> dict[str, object]:
    """Decode the value of a record of a metadata topic; the key of such a record is null.

    Args:
        topic: a key of `FRAMED_TOPICS`.
        value: of the record.

    Returns:
        ``type``, ``version`` and ``data`` with Kafka's names; ``layoutOf`` too, if the layout is that of an early
        release; ``hex`` with the message's bytes instead of ``data`` if the type or version is unknown.

    Raises:
        CorruptRecordError: the value is not a frame of version 0 or 1, or its message does not fit (SEG-CTL-010).
    """
    if value is None:
        raise CorruptRecordError(VALUE, "SEG-CTL-010", expected="a metadata record", found="null")
    frame = parse(MetadataFrame, value, VALUE, requirement="SEG-CTL-010")
    if frame.frameVersion not in FRAME_VERSIONS:
        location = VALUE.at("value.frameVersion", 0, 1)
        raise CorruptRecordError(location, "SEG-CTL-010", expected="0 or 1", found=frame.frameVersion)
    definition, body = FRAMED_TOPICS[topic].get(frame.type), value[frame.end :]
    if definition is not None and not frame.frameVersion:
        definition = _oldest(definition)
    if definition is None:
        return {"type": "UNKNOWN", "apiKey": frame.type, "version": frame.version, "hex": body.hex()}
    if not definition.describes(frame.version):
        return {"type": definition.name, "version": frame.version, "hex": body.hex()}
    fields, line = decode_whole(definition, frame.version, body, VALUE)
    return {"type": definition.name, "version": frame.version, "data": fields, **({"layoutOf": line} if line else {})}


def encode_metadata_record(topic: str, kind: str, version: int, fields: Mapping[str, object]) -> bytes:
    """Encode the value of a record of a metadata topic.

    Args:
        topic: a key of `FRAMED_TOPICS`.
        kind: Kafka's name of the record's type, such as ``TOPIC_RECORD``.
        version: of the message, at most `newest_version`.
        fields: by Kafka's names. Tagged fields may be left out.

    Raises:
        UsageError: the topic has no such type, a field is missing, or a field has a value that cannot be stored.
    """
    number, definition = _named(topic, kind)
    frame = MetadataFrame.build({"frameVersion": FRAME_VERSIONS[-1], "type": number, "version": version})
    return bytes(frame) + encode_message(definition, version, fields)


def newest_version(topic: str, kind: str) -> int:
    """Return the newest version of a type of record.

    Raises:
        UsageError: the topic has no such type.
    """
    return _named(topic, kind)[1].latest


def _named(topic: str, kind: str) -> tuple[int, MessageDefinition]:
    for number, definition in FRAMED_TOPICS[topic].items():
        if definition.name == kind:
            return number, definition
    msg = f"{topic} has no records of type {kind}"
    raise UsageError(msg)


def _oldest(definition: MessageDefinition) -> MessageDefinition | None:
    """Return the layout of 2.8; None if that release has no such message."""
    layouts = (each for each in (definition, *definition.earlier) if each.releases[0] == OLDEST_LINE)
    return next(layouts, None)
