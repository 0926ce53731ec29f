"""Decoder and encoder of messages of Kafka's protocol, with plain values ready for JSON."""

from __future__ import annotations

import base64
import json
import math
from typing import TYPE_CHECKING, Any, TypeAlias

from construct import ConstructError, Struct, Tell

from seglog_format.codec.parse import parse
from seglog_format.errors import CorruptRecordError, Location, UsageError
from seglog_format.schema.fields import SchemaError
from seglog_format.schema.protocol import (
    SIMPLE_TYPES,
    TAGGED_FIELDS,
    UNKNOWN_TAGGED_FIELDS,
    ArrayOf,
    Blob,
    Structure,
    declaration,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_format.schema.protocol import FieldType, MessageDefinition

Plain: TypeAlias = dict[str, object]
"""The fields of a message as JSON types."""


def decode_message(definition: MessageDefinition, version: int, data: bytes, at: Location) -> dict[str, object]:
    """Decode the fields of one message, by Kafka's names.

    Args:
        definition: of the message.
        version: of the message, from 0 to the latest that the definition describes.
        data: bytes that start with the message; more may follow.
        at: location of the bytes.

    Returns:
        Fields in stored order, followed by the tagged fields that are present. Uuids and bytes are Base64
        text, as in Kafka's own tools.

    Raises:
        CorruptRecordError: the bytes are invalid; names the definition's requirement.
    """
    container = parse(declaration(definition, version), data, at, requirement=definition.requirement)
    plain = to_plain(container)
    assert isinstance(plain, dict)
    return plain


def decode_whole(definition: MessageDefinition, version: int, data: bytes, at: Location) -> tuple[Plain, str]:
    """Decode a message that fills its bytes, in the layout of any release.

    Early releases changed some messages without a new version. So if today's layout does not fit the bytes, or leaves
    bytes over, the layouts of earlier releases are tried, the newest first.

    Args:
        definition: of the message.
        version: of the message; the definition describes it.
        data: the message and nothing else.
        at: location of the bytes.

    Returns:
        The fields, as `decode_message` returns them, and the last release line with that layout; empty for today's.

    Raises:
        CorruptRecordError: the bytes fit no layout; names the definition's requirement.
    """
    problem = None
    for layout in (definition, *definition.earlier):
        if layout.describes(version):
            try:
                return _decode_all(layout, version, data, at), layout.releases[1]
            except CorruptRecordError as error:
                problem = problem or error
    assert problem is not None
    raise problem


def _decode_all(definition: MessageDefinition, version: int, data: bytes, at: Location) -> Plain:
    whole = Struct("message" / declaration(definition, version), "end" / Tell)
    parsed = parse(whole, data, at, requirement=definition.requirement)
    if parsed.end != len(data):
        left = f"{len(data) - parsed.end} more bytes"
        expected = f"the end of {definition.name}"
        raise CorruptRecordError(at, definition.requirement, expected=expected, found=left)
    plain = to_plain(parsed.message)
    assert isinstance(plain, dict)
    return plain


def encode_message(definition: MessageDefinition, version: int, fields: Mapping[str, object]) -> bytes:
    """Encode a message from the result of `decode_message`.

    Args:
        definition: of the message.
        version: of the message; the definition describes it.
        fields: by Kafka's names. Tagged fields may be left out.

    Raises:
        UsageError: a field is missing, or its value cannot be stored.
    """
    try:
        return bytes(declaration(definition, version).build(_to_stored(Structure(definition.fields), version, fields)))
    except (ConstructError, SchemaError, KeyError, TypeError, ValueError) as error:
        msg = f"{definition.name} of version {version} cannot be written: {error}"
        raise UsageError(msg) from error


def _to_stored(kind: FieldType, version: int, value: Any) -> Any:  # noqa: ANN401 - JSON, and what construct builds
    """Convert a plain value to the form from which its declaration builds bytes."""
    if value is None:
        return None
    if isinstance(kind, Structure):
        return _structure_to_stored(kind, version, value)
    if isinstance(kind, ArrayOf):
        return [_to_stored(kind.element, version, each) for each in value]
    if isinstance(kind, Blob):
        return base64.b64decode(value, validate=True)
    return float(value) if kind is SIMPLE_TYPES["float64"] else value


def _structure_to_stored(kind: Structure, version: int, value: Mapping[str, Any]) -> dict[str, Any]:
    present = [field for field in kind.fields if field.exists(version) and (field.tag is None or field.name in value)]
    stored = {field.name: _to_stored(field.type, version, value[field.name]) for field in present}
    tagged = {field.name: stored.pop(field.name) for field in present if field.tag is not None}
    unknown = [
        each | {"data": base64.b64decode(each["data"], validate=True)} for each in value.get(UNKNOWN_TAGGED_FIELDS, ())
    ]
    return stored | {TAGGED_FIELDS: tagged | ({UNKNOWN_TAGGED_FIELDS: unknown} if unknown else {})}


def to_plain(value: object) -> object:
    """Convert a parsed value to JSON types: tagged fields among the others, bytes as Base64, no NaN."""
    if isinstance(value, dict):
        tagged = value.get(TAGGED_FIELDS, {})
        fields = {name: item for name, item in value.items() if name not in {TAGGED_FIELDS, "_io"}} | tagged
        return {name: to_plain(item) for name, item in fields.items()}
    if isinstance(value, list):
        return [to_plain(item) for item in value]
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return value
