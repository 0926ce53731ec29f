"""Decoder of control records (chapter 32)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.parse import parse
from seglog_format.codec.protocol import decode_message, to_plain
from seglog_format.errors import CorruptRecordError, Location
from seglog_format.model import END_MARKER_TYPES, ControlRecordType
from seglog_format.schema.control_record import KRAFT_VALUES, ControlRecordKey, EndTransactionMarker
from seglog_format.small_model import ControlRecord

if TYPE_CHECKING:
    from seglog_format.schema.protocol import MessageDefinition

VERSION_SIZE = 2


def decode_control_record(key: bytes | None, value: bytes | None, at: Location) -> ControlRecord:
    """Decode a record of a batch whose control bit is set.

    Args:
        key: of the record: version and type.
        value: of the record.
        at: location of the record; positions in errors are relative to the start of its key or value.

    Returns:
        The record; without fields if its type is unknown (SEG-CTL-003).

    Raises:
        CorruptRecordError: the key (SEG-CTL-001) or the value (SEG-CTL-004, SEG-CTL-006) does not fit its layout.
    """
    if key is None:
        raise CorruptRecordError(_part(at, "key"), "SEG-CTL-001", expected="version and type", found="null")
    fixed = parse(ControlRecordKey, key, _part(at, "key"), requirement="SEG-CTL-001")
    kind = ControlRecordType(fixed.type) if fixed.type in set(ControlRecordType) else None
    fields = {} if kind is None else _fields(kind, value, _part(at, "value"))
    return ControlRecord(fixed.version, fixed.type, kind, fields)


def _part(at: Location, name: str) -> Location:
    return at.at(f"{at.field}.{name}" if at.field else name)


def _fields(kind: ControlRecordType, value: bytes | None, at: Location) -> dict[str, object]:
    if kind in END_MARKER_TYPES:
        return _marker(value, at)
    return _kraft_value(KRAFT_VALUES[kind], value, at)


def _marker(value: bytes | None, at: Location) -> dict[str, object]:
    if value is None:
        raise CorruptRecordError(at, "SEG-CTL-004", expected="version and coordinator epoch", found="null")
    marker = to_plain(parse(EndTransactionMarker, value, at, requirement="SEG-CTL-004"))
    assert isinstance(marker, dict)
    return marker


def _kraft_value(definition: MessageDefinition, value: bytes | None, at: Location) -> dict[str, object]:
    """Decode a KRaft value; versions above the known ones are read as the latest of them (SEG-CTL-012)."""
    if value is None:
        raise CorruptRecordError(at, "SEG-CTL-006", expected=definition.name, found="null")
    version = int.from_bytes(value[:VERSION_SIZE], "big", signed=True)
    return decode_message(definition, min(max(version, 0), definition.latest), value, at)
