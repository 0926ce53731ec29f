"""Decoder of records of `__consumer_offsets`, `__transaction_state` and `__share_group_state`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.parse import parse
from seglog_format.codec.protocol import decode_message, decode_whole, encode_message
from seglog_format.errors import CorruptRecordError, FormatError, Location, UsageError
from seglog_format.field_names import kafka_name
from seglog_format.schema.coordinator_records import CONSUMER_PROTOCOL, COORDINATOR_TOPICS, EMBEDDED, VersionPrefix
from seglog_format.schema.metadata_records import FRAME_VERSIONS, FRAMED_TOPICS, MetadataFrame
from seglog_format.schema.protocol import OLDEST_LINE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seglog_format.schema.protocol import MessageDefinition


CONSUMER: Final = "consumer"
"""Protocol type of consumer groups. Others, such as those of Kafka Connect, embed other data."""


def decode_coordinator_record(topic: str, key: bytes | None, value: bytes | None) -> dict[str, object]:
    """Decode a record of one of the coordinators' topics.

    Args:
        topic: a key of `COORDINATOR_TOPICS`.
        key: of the record; null, which never occurs, is accepted.
        value: of the record; null deletes the state that the key names.

    Returns:
        ``type``, ``version`` (of the key), ``key``, ``valueVersion`` and ``value``; or ``unknownVersion`` instead
        of a key or value of an unknown version. ``embedded`` lists the messages of the consumer protocol inside byte
        fields, ``layoutOf`` names an early release whose layout of the value differs from today's.

    Raises:
        CorruptRecordError: key or value does not fit its message (SEG-CTL-010).
    """
    if key is None:
        return {"type": "unknown", "key": None}
    version, body = _versioned(key, "key")
    kind = COORDINATOR_TOPICS[topic].get(version)
    if kind is None:
        return {"type": "unknown", "unknownVersion": version}
    named = decode_message(kind.key, 0, body, Location(field="key"))
    return {"type": kind.type, "version": version, "key": named, **_value(kind.type, kind.value, value)}


def _value(kind: str, definition: MessageDefinition, value: bytes | None) -> dict[str, object]:
    if value is None:
        return {"value": None}
    version, body = _versioned(value, "value")
    if not definition.describes(version):
        return {"value": {"unknownVersion": version}}
    fields, line = decode_whole(definition, version, body, Location(field="value"))
    found: dict[str, object] = {"valueVersion": version, "value": fields}
    embedded = list(_embedded(kind, fields))
    return found | ({"layoutOf": line} if line else {}) | ({"embedded": embedded} if embedded else {})


def _embedded(kind: str, fields: dict[str, Any]) -> Iterator[dict[str, object]]:
    """Yield the messages of the consumer protocol in byte fields; skip other bytes."""
    if fields.get("protocolType", CONSUMER) != CONSUMER:
        return
    names = EMBEDDED.get(kind, {})
    for path, full_path, text in _texts(fields) if names else ():
        message = _consumer_message(names[path], base64.b64decode(text)) if path in names else None
        if message is not None:
            yield {"path": full_path, "type": names[path], **message}


def _texts(value: object, path: str = "", full_path: str = "") -> Iterator[tuple[str, str, str]]:
    """Yield every text in stored order, after its path without and its path with the indexes of elements."""
    if isinstance(value, list):
        for number, each in enumerate(value):
            yield from _texts(each, path, f"{full_path}[{number}]")
    elif isinstance(value, dict):
        for name, each in value.items():
            yield from _texts(each, f"{path}.{name}" if path else name, f"{full_path}.{name}" if full_path else name)
    elif isinstance(value, str):
        yield path, full_path, value


def _consumer_message(name: str, data: bytes) -> dict[str, object] | None:
    """Decode a message of the consumer protocol as clients do: a newer version like the latest known one."""
    definition = CONSUMER_PROTOCOL[name]
    try:
        version, body = _versioned(data, name)
        if version < 0:
            return None
        return {
            "version": version,
            "value": decode_message(definition, min(version, definition.latest), body, Location(field=name)),
        }
    except FormatError:
        return None


def _versioned(data: bytes, name: str) -> tuple[int, bytes]:
    """Return the version at the start of a key or value, and the bytes after it."""
    prefix = parse(VersionPrefix, data, Location(field=name), requirement="SEG-CTL-010")
    return prefix.version, data[VersionPrefix.sizeof() :]


# -- decoder and encoder of records of `__cluster_metadata` and `__remote_log_metadata` --------------------------------


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


# -- decoders of the records of Kafka's own topics, for display --------------------------------------------------------


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
