"""Magic 0 and 1 messages, plain or as wrappers of compressed ones (chapter 33).

The fixed fields have declarations of their own, so a walk over a log can read them without construct. An
outermost message and one inside a wrapper have the same layout; only the base of their offsets differs.
"""

from construct import Int8sb, Int32sb, Int32ub, Int64sb, Struct

from seglog_format.schema.fields import Doc, NullableBytes

_OFFSET = (
    "offset"
    / Int64sb
    * Doc("Of this message; in a wrapper, of the last message inside.", "SEG-MSG-025", "SEG-MSG-012", "SEG-MSG-024")
)
_MESSAGE_SIZE = (
    "message_size" / Int32sb * Doc("Bytes after this field; at least 14 in magic 0 and 22 in magic 1.", "SEG-MSG-003")
)
_CRC = "crc" / Int32ub * Doc("CRC-32 of everything from the magic to the end of the message.", "SEG-MSG-004")
_MAGIC = "magic" / Int8sb * Doc("Version of this message: 0 or 1.", "SEG-BAT-004", "SEG-MSG-017")

MessageV0Header = Struct(
    _OFFSET,
    _MESSAGE_SIZE,
    _CRC,
    _MAGIC,
    "attributes" / Int8sb * Doc("Bits 0-2 codec; the others mean nothing.", "SEG-MSG-020", "SEG-COD-001", default="0"),
)

MessageV1Header = Struct(
    _OFFSET,
    _MESSAGE_SIZE,
    _CRC,
    _MAGIC,
    "attributes"
    / Int8sb
    * Doc(
        "Bits 0-2 codec, 3 timestamp type (1: LogAppendTime).", "SEG-MSG-020", "SEG-COD-001", "SEG-MSG-015", default="0"
    ),
    "timestamp_ms"
    / Int64sb
    * Doc("Milliseconds since 1970; -1 none.", "SEG-MSG-002", "SEG-MSG-021", since="0.10.0", default="-1"),
)

BytesLength = Struct("length" / Int32sb * Doc("Bytes that follow; negative: null.", "SEG-MSG-007"))
"""The length before a key or a value."""

_KEY = (
    "key"
    / NullableBytes(Int32sb)
    * Doc(
        "Length (int32; negative: null) and bytes; null in a wrapper.",
        "SEG-MSG-005",
        "SEG-MSG-007",
        "SEG-MSG-023",
        default="null",
    )
)
_VALUE = (
    "value"
    / NullableBytes(Int32sb)
    * Doc(
        "Length (int32; negative: null) and bytes; in a wrapper, the compressed messages.",
        "SEG-MSG-005",
        "SEG-MSG-006",
        "SEG-MSG-007",
        "SEG-MSG-009",
    )
)

MessageV0 = Struct(*MessageV0Header.subcons, _KEY, _VALUE)
MessageV1 = Struct(*MessageV1Header.subcons, _KEY, _VALUE)

MESSAGE_V0_HEADER_SIZE = 18
MESSAGE_V1_HEADER_SIZE = 26

assert MessageV0Header.sizeof() == MESSAGE_V0_HEADER_SIZE
assert MessageV1Header.sizeof() == MESSAGE_V1_HEADER_SIZE

MESSAGES = {0: MessageV0, 1: MessageV1}
"""The declaration of a whole message, by magic."""
