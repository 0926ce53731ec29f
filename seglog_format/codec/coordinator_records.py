"""Records of `__consumer_offsets` and `__transaction_state` to plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.parse import parse
from seglog_format.codec.protocol import decode_message
from seglog_format.errors import Location
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS, VersionPrefix

if TYPE_CHECKING:
    from seglog_format.schema.protocol import MessageDefinition


def decode_coordinator_record(topic: str, key: bytes | None, value: bytes | None) -> dict[str, object]:
    """Decode a record of one of the coordinators' topics.

    Args:
        topic: a key of `COORDINATOR_TOPICS`.
        key: of the record; null never occurs, but is no reason to fail.
        value: of the record; null deletes what the key names.

    Returns:
        ``type``, ``version`` (of the key), ``key``, ``valueVersion`` and ``value``; or ``unknownVersion`` in the place
        of what cannot be decoded for its version.

    Raises:
        CorruptRecordError: key or value does not fit its message (SEG-CTL-010).
    """
    if key is None:
        return {"type": "unknown", "key": None}
    version, body = _versioned(key, "key")
    kind = COORDINATOR_TOPICS[topic].get(version)
    if kind is None:
        return {"type": "unknown", "unknownVersion": version}
    named = decode_message(kind.key, version, body, Location(field="key"))
    return {"type": kind.type, "version": version, "key": named, **_value(kind.value, value)}


def _value(definition: MessageDefinition, value: bytes | None) -> dict[str, object]:
    if value is None:
        return {"value": None}
    version, body = _versioned(value, "value")
    if not 0 <= version <= definition.latest:
        return {"value": {"unknownVersion": version}}
    return {"valueVersion": version, "value": decode_message(definition, version, body, Location(field="value"))}


def _versioned(data: bytes, name: str) -> tuple[int, bytes]:
    """The version that key and value each start with, and the message after it."""
    prefix = parse(VersionPrefix, data, Location(field=name), requirement="SEG-CTL-010")
    return prefix.version, data[VersionPrefix.sizeof() :]
