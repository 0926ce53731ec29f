"""Short meanings of field values."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.record_rules import record_timestamp
from seglog_format.errors import FormatError, Location
from seglog_format.model import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    CompressionCodec,
    ControlRecordType,
    RecordBatchHeader,
)

if TYPE_CHECKING:
    from seglog_format.model import BatchHeader

BATCH_FLAGS: Final = {
    TIMESTAMP_TYPE_BIT: "LogAppendTime",
    TRANSACTIONAL_BIT: "transactional",
    CONTROL_BIT: "control",
    DELETE_HORIZON_BIT: "delete horizon",
}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
RECORD_DEPTH: Final = 2
"""Number of parts in the name of a record's own field, such as ``records[0].key``."""

CONTROL_KEY_SIZE: Final = 4

MESSAGE_FLAGS: Final = {TIMESTAMP_TYPE_BIT: "LogAppendTime"}


def entry_note(name: str, value: object, header: BatchHeader, computed_crc: int) -> str:
    """Return the note on a field of an outermost entry."""
    if name == "attributes":
        return attributes_note(header)
    if name == "crc":
        return "right" if computed_crc == header.crc else f"WRONG: computed {computed_crc:08x}"
    if name == "last_offset_delta":
        return f"last offset {header.last_offset}"
    return time_note(name, value)


def attributes_note(header: BatchHeader) -> str:
    """Return the codec and the flags that are set."""
    flags = BATCH_FLAGS if isinstance(header, RecordBatchHeader) else MESSAGE_FLAGS if header.magic else {}
    names = [codec_note(header.codec_id), *(flag for bit, flag in flags.items() if header.attributes & bit)]
    if header.unknown_attribute_bits:
        names.append(f"undefined bits {header.unknown_attribute_bits:#x}")
    return ", ".join(names)


def codec_note(codec_id: int) -> str:
    """Return the codec's name, or a text that the codec is undefined."""
    try:
        codec = CompressionCodec(codec_id & CODEC_MASK)
    except ValueError:
        return f"undefined codec {codec_id}"
    return codec.label if codec else "no compression"


def time_note(name: str, value: object) -> str:
    """Return the date and time in a field named ``..._ms``."""
    if not name.endswith("_ms") or not isinstance(value, int):
        return ""
    if value == NO_TIMESTAMP:
        return "none"
    try:
        moment = EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        return "a time that no calendar has"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class RecordNotes:
    """Notes on the fields of a batch's records, in order."""

    def __init__(self, header: RecordBatchHeader) -> None:
        self.header = header
        self.key: bytes | None = None

    def __call__(self, name: str, value: object) -> str:
        """Return the note on one field, by its dotted name."""
        parts = name.split(".")
        field = parts[-1]
        if field == "offset_delta" and isinstance(value, int):
            return f"offset {self.header.base_offset + value}"
        if field == "timestamp_delta" and isinstance(value, int):
            return time_note("timestamp_ms", record_timestamp(self.header, value))
        if self.header.is_control and len(parts) == RECORD_DEPTH and (value is None or isinstance(value, bytes)):
            return self._control(field, value)
        return ""

    def _control(self, field: str, value: bytes | None) -> str:
        if field == "key":
            self.key = value
            return control_type_name(value or b"")
        try:
            control = decode_control_record(self.key, value, Location())
        except FormatError as problem:
            return f"expected {problem.expected}"
        return ", ".join(f"{name} {value}" for name, value in control.fields.items())


def control_type_name(key: bytes) -> str:
    """Return the name of a control record's type, such as ``COMMIT``, by its key; empty if the type is unknown."""
    number = int.from_bytes(key[2:4], signed=True) if len(key) >= CONTROL_KEY_SIZE else -1
    return ControlRecordType(number).name if number in set(ControlRecordType) else ""
