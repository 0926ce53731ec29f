"""Hand-written encoder of the records of a magic 2 batch (chapter 31), a tenth of the time of the declared schema."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from seglog_format.arguments import require_integer
from seglog_format.errors import UsageError
from seglog_format.model import INT32_MAX, INT64_MAX
from seglog_format.schema.varint import unsigned_varint, zigzag

if TYPE_CHECKING:
    from seglog_format.record_model import Record

ATTRIBUTES: Final = struct.Struct("b")
ONE_BYTE: Final = {number: unsigned_varint(zigzag(number)) for number in range(-64, 64)}
"""The numbers that one byte holds; nearly all that a record has."""
NULL: Final = ONE_BYTE[-1]
"""The length -1."""


def encode_record(record: Record) -> bytes:
    """Return the bytes of a record from its deltas, with the shortest varints (SEG-REC-005).

    Raises:
        UsageError: a delta does not fit its field, or a header has no key (SEG-REC-009).
        struct.error: the attributes do not fit theirs.
    """
    time, delta, headers = record.timestamp_delta, record.offset_delta, record.headers
    if not -INT32_MAX <= delta <= INT32_MAX or not -INT64_MAX <= time <= INT64_MAX:
        require_integer("offset_delta", delta, bits=32)
        require_integer("timestamp_delta", time)
    parts = [ATTRIBUTES.pack(record.attributes), _varint(time), _varint(delta)]
    for data in (record.key, record.value):
        parts += (NULL,) if data is None else (_varint(len(data)), data)
    parts.append(_varint(len(headers)))
    for header in headers:
        try:
            parts += (_varint(len(header.key)), header.key)
        except TypeError:
            msg = "a header key cannot be null (SEG-REC-009)"
            raise UsageError(msg) from None
        parts += (NULL,) if header.value is None else (_varint(len(header.value)), header.value)
    body = b"".join(parts)
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    """Return the shortest encoding of a signed number."""
    return ONE_BYTE.get(number) or unsigned_varint(zigzag(number))
