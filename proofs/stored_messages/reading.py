"""Our decoding and encoding of the records that a release wrote."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from seglog_format.codec.coordinator_records import decode_application_record
from seglog_format.codec.protocol import encode_message
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS
from tools.message_definitions import line_of, order
from tools.message_fixtures import renamed

if TYPE_CHECKING:
    from seglog_format.schema.protocol import MessageDefinition

Json = dict[str, Any]


def differences(line: Json) -> list[str]:
    """Return the differences of our decoding and encoding from the record that the classes of its release wrote.

    Args:
        line: a line of `written`.
    """
    value = base64.b64decode(line["valueBytes"])
    key = base64.b64decode(line["keyBytes"]) if "keyBytes" in line else None
    found = decode_application_record(line["topic"], key, value) or {}
    fields = found.get("value", found.get("data"))
    name = f"{line['release']} {line['kind']} version {line['version']}: {line['valueBytes']}"
    if fields != renamed(line["kind"], line["value"]) or found.get("key") != line.get("key"):
        return [f"{name}: {json.dumps(found)}"]
    layout = layout_of(line, found.get("layoutOf", ""))
    again = encode_message(layout, line["version"], fields)
    return [] if value[line["prefix"] :] == again else [f"{name}: written as {again.hex()}"]


def fits_another_layout(line: Json) -> bool:
    """Return whether the bytes of a record of an early layout are also a valid record of the newest layout.

    Then it is not known which release wrote them, and Kafka's own tools of the newest release read the same as we do.
    """
    value = base64.b64decode(line["valueBytes"])
    key = base64.b64decode(line["keyBytes"]) if "keyBytes" in line else None
    found = decode_application_record(line["topic"], key, value) or {}
    layout, fields = layout_of(line, ""), found.get("value", found.get("data"))
    is_early = any(order(line_of(line["release"])) <= order(each.releases[1]) for each in layout.earlier)
    is_other = is_early and not found.get("layoutOf") and fields != renamed(line["kind"], line["value"])
    return is_other and encode_message(layout, line["version"], fields) == value[line["prefix"] :]


def layout_of(line: Json, until: object) -> MessageDefinition:
    """Return the layout that a record was decoded with.

    Args:
        line: the record.
        until: the last line of releases with that layout; empty for the newest.
    """
    if "keyType" in line:
        newest = COORDINATOR_TOPICS[line["topic"]][line["keyType"]].value
    else:
        newest = FRAMED_TOPICS[line["topic"]][base64.b64decode(line["valueBytes"])[1]]
    return next(each for each in (newest, *newest.earlier) if until in ("", each.releases[1]))
