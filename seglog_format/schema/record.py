"""Magic 2 record and its headers (chapter 31)."""

from functools import partial

from construct import Array, Int8sb, Struct, Tell, this

from seglog_format.schema.fields import Checked, Doc, NullableBytes, Varint32, Varint64

_doc = partial(Doc, since="0.11.0")


def _not_negative(value: int) -> bool:
    return value >= 0


def _not_null(value: bytes | None) -> bool:
    return value is not None


RecordHeader = Struct(
    "key"
    / Checked(NullableBytes(Varint32), _not_null, "a header key, which cannot be null", "SEG-REC-009")
    * _doc("Length (varint, 0 or more) and UTF-8 bytes.", "SEG-REC-006", "SEG-REC-009", "SEG-REC-011"),
    "value"
    / NullableBytes(Varint32)
    * _doc("Length (varint; negative: null) and bytes.", "SEG-REC-006", default="null"),
)

Record = Struct(
    "length"
    / Checked(Varint32, _not_negative, "a record length of 0 or more", "SEG-REC-002")
    * _doc("Bytes after this field.", "SEG-REC-002", "SEG-REC-001"),
    "start" / Tell,
    "attributes" / Int8sb * _doc("0; no bit is defined.", "SEG-REC-003", default="0"),
    "timestamp_delta" / Varint64 * _doc("Timestamp minus the base timestamp; may be negative.", "SEG-BAT-012"),
    "offset_delta" / Varint32 * _doc("Offset minus the base offset.", "SEG-REC-012"),
    "key" / NullableBytes(Varint32) * _doc("Length (varint; negative: null) and bytes.", "SEG-REC-006", default="null"),
    "value"
    / NullableBytes(Varint32)
    * _doc("Length (varint; negative: null) and bytes. Null is a tombstone.", "SEG-REC-006"),
    "headers_count"
    / Checked(Varint32, _not_negative, "a header count of 0 or more", "SEG-REC-008")
    * _doc("Number of headers.", "SEG-REC-006", "SEG-REC-008", default="0"),
    "headers"
    / Array(this.headers_count, RecordHeader)
    * _doc("Keys may repeat and may be empty; order counts.", "SEG-REC-006", "SEG-REC-010"),
    "end" / Tell,
)
