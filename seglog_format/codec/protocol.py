"""Messages of Kafka's protocol to plain values, ready for JSON."""

from __future__ import annotations

import base64
import json
import math
from typing import TYPE_CHECKING

from seglog_format.codec.parse import parse
from seglog_format.schema.protocol import TAGGED_FIELDS, declaration

if TYPE_CHECKING:
    from seglog_format.errors import Location
    from seglog_format.schema.protocol import MessageDefinition


def decode_message(definition: MessageDefinition, version: int, data: bytes, at: Location) -> dict[str, object]:
    """The fields of one message by Kafka's names.

    Args:
        definition: what the message is.
        version: of the message, from 0 to the latest that the definition describes.
        data: bytes that start with the message; more may follow.
        at: where the bytes stand.

    Returns:
        Fields in stored order; those of tagged fields follow, as far as they are there. Uuids and bytes are Base64
        text, as in Kafka's own tools.

    Raises:
        CorruptRecordError: the bytes do not fit; names the definition's requirement.
    """
    container = parse(declaration(definition, version), data, at, requirement=definition.requirement)
    plain = to_plain(container)
    assert isinstance(plain, dict)
    return plain


def to_plain(value: object) -> object:
    """A parsed value as JSON knows it: tagged fields among the others, bytes as Base64, no NaN."""
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
