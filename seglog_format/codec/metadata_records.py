"""Records of `__cluster_metadata` to plain values."""

from __future__ import annotations

from construct import Struct, Tell

from seglog_format.codec.parse import parse
from seglog_format.codec.protocol import to_plain
from seglog_format.errors import CorruptRecordError, Location
from seglog_format.schema.metadata_records import FRAME_VERSION, METADATA_RECORDS, MetadataFrame
from seglog_format.schema.protocol import MessageDefinition, declaration

VALUE = Location(field="value")


def decode_metadata_record(value: bytes | None) -> dict[str, object]:
    """Decode the value of a record of the metadata log; the key of such a record is null.

    Args:
        value: of the record.

    Returns:
        ``type``, ``version`` and ``data`` with Kafka's names; ``hex`` with the message's bytes in the place of
        ``data`` where type or version is not known.

    Raises:
        CorruptRecordError: the value is not a frame of version 1, or its message does not fit (SEG-CTL-010).
    """
    if value is None:
        raise CorruptRecordError(VALUE, "SEG-CTL-010", expected="a metadata record", found="null")
    frame = parse(MetadataFrame, value, VALUE, requirement="SEG-CTL-010")
    if frame.frameVersion != FRAME_VERSION:
        place = VALUE.at("value.frameVersion", 0, 1)
        raise CorruptRecordError(place, "SEG-CTL-010", expected=str(FRAME_VERSION), found=frame.frameVersion)
    definition, body = METADATA_RECORDS.get(frame.type), value[frame.end :]
    if definition is None:
        return {"type": "UNKNOWN", "apiKey": frame.type, "version": frame.version, "hex": body.hex()}
    if frame.version > definition.latest:
        return {"type": definition.name, "version": frame.version, "hex": body.hex()}
    return {"type": definition.name, "version": frame.version, "data": _message(definition, frame.version, body)}


def _message(definition: MessageDefinition, version: int, body: bytes) -> object:
    """The fields of a message that must fill its frame."""
    whole = Struct("message" / declaration(definition, version), "end" / Tell)
    parsed = parse(whole, body, VALUE, requirement=definition.requirement)
    if parsed.end != len(body):
        left = f"{len(body) - parsed.end} more bytes"
        raise CorruptRecordError(VALUE, "SEG-CTL-010", expected=f"the end of {definition.name}", found=left)
    return to_plain(parsed.message)
