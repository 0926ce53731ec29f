"""Decoder of records of `__consumer_offsets`, `__transaction_state` and `__share_group_state`."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.parse import parse
from seglog_format.codec.protocol import decode_message, decode_whole
from seglog_format.errors import FormatError, Location
from seglog_format.schema.coordinator_records import CONSUMER_PROTOCOL, COORDINATOR_TOPICS, EMBEDDED, VersionPrefix

if TYPE_CHECKING:
    from collections.abc import Iterator

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
