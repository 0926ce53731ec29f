"""What the two encoders of entries have in common: the packers of `codec.encode`, and those by the declarations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.model import MessageHeader, RecordBatchHeader
    from seglog_format.record_model import Record


class Encoders(NamedTuple):
    """Writers of the structures of an entry.

    Attributes:
        record: returns the bytes of a record of magic 2.
        batch: returns the bytes of a batch: its header, with size and checksum, and the given bytes after it.
        message: returns the bytes of a message of magic 0 or 1, with size and checksum.
    """

    record: Callable[[Record], bytes]
    batch: Callable[[RecordBatchHeader, bytes], bytes]
    message: Callable[[MessageHeader, bytes | None, bytes | None], bytes]


def varint_size(value: int) -> int:
    """Return the size of the shortest encoding of a signed number (SEG-REC-005)."""
    return ((value if value >= 0 else ~value).bit_length() + 7) // 7  # a bit for the sign, and 7 bits in a byte


def body_size(record: Record) -> int:
    """Return the size of a record after its length field, with the shortest varints."""
    size = 1 + varint_size(record.timestamp_delta) + varint_size(record.offset_delta)
    size += _nullable_size(record.key) + _nullable_size(record.value) + varint_size(len(record.headers))
    return size + sum(_nullable_size(header.key) + _nullable_size(header.value) for header in record.headers)


def _nullable_size(data: bytes | None) -> int:
    return varint_size(-1) if data is None else varint_size(len(data)) + len(data)
