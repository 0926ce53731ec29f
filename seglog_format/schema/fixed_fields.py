"""Readers and writers of fixed fields without construct, so walks over entries and slots need not import it.

Each names the fields in the order that the package uses. Their stored order comes from the declarations in the other
modules of this package (`seglog_format.layouts`).
"""

from __future__ import annotations

from dataclasses import fields
from typing import Final

from seglog_format.layouts import (
    BYTES_LENGTH_LAYOUT,
    CONTROL_RECORD_KEY_LAYOUT,
    END_TRANSACTION_MARKER_LAYOUT,
    ENTRY_PREFIX_LAYOUT,
    MESSAGE_V0_HEADER_LAYOUT,
    MESSAGE_V1_HEADER_LAYOUT,
    OFFSET_INDEX_ENTRY_LAYOUT,
    RECORD_BATCH_HEADER_LAYOUT,
    TIME_INDEX_ENTRY_LAYOUT,
    TRANSACTION_INDEX_ENTRY_LAYOUT,
)
from seglog_format.model import ENTRY_PREFIX_SIZE, AbortedTxn, MessageHeader, RecordBatchHeader

RECORD_BATCH_MAGIC: Final = 2
RECORD_BATCH_HEADER: Final = RECORD_BATCH_HEADER_LAYOUT.packer_of(RecordBatchHeader)
RECORD_BATCH_HEADER_SIZE: Final = RECORD_BATCH_HEADER_LAYOUT.size
BATCH_FIELDS: Final = tuple(field.name for field in fields(RecordBatchHeader))
"""The order of values in `RECORD_BATCH_HEADER`."""
ATTRIBUTES_POSITION: Final = RECORD_BATCH_HEADER_LAYOUT.position("attributes")

ENTRY_PREFIX: Final = ENTRY_PREFIX_LAYOUT.packer("offset", "size", "crc_or_epoch", "magic")
SIZE_POSITION: Final = ENTRY_PREFIX_LAYOUT.position("size")
MAGIC_POSITION: Final = ENTRY_PREFIX_LAYOUT.position("magic")

MESSAGE_V0_HEADER: Final = MESSAGE_V0_HEADER_LAYOUT.packer_of(MessageHeader)
MESSAGE_V1_HEADER: Final = MESSAGE_V1_HEADER_LAYOUT.packer_of(MessageHeader)
MESSAGE_HEADERS: Final = {0: MESSAGE_V0_HEADER, 1: MESSAGE_V1_HEADER}
"""The header of a message, by magic."""
BYTES_LENGTH: Final = BYTES_LENGTH_LAYOUT.packer("length")
"""The length before a key or a value."""
MESSAGE_MIN_SIZES: Final = {
    magic: header.size + 2 * BYTES_LENGTH.size - ENTRY_PREFIX_SIZE for magic, header in MESSAGE_HEADERS.items()
}
"""Minimum of the size field, by magic: fixed fields from the checksum on, and two lengths of 4 bytes."""
MESSAGE_CRC_POSITION: Final = MESSAGE_V1_HEADER_LAYOUT.position("crc")
MESSAGE_ATTRIBUTES_POSITION: Final = MESSAGE_V1_HEADER_LAYOUT.position("attributes")

OFFSET_INDEX_ENTRY: Final = OFFSET_INDEX_ENTRY_LAYOUT.packer("relative_offset", "position")
TIME_INDEX_ENTRY: Final = TIME_INDEX_ENTRY_LAYOUT.packer("timestamp_ms", "relative_offset")
TRANSACTION_INDEX_ENTRY: Final = TRANSACTION_INDEX_ENTRY_LAYOUT.packer_of(AbortedTxn)

CONTROL_RECORD_KEY: Final = CONTROL_RECORD_KEY_LAYOUT.packer("version", "type")
END_TRANSACTION_MARKER: Final = END_TRANSACTION_MARKER_LAYOUT.packer("version", "coordinatorEpoch")

assert RECORD_BATCH_HEADER_SIZE == 61
assert ENTRY_PREFIX.size == MAGIC_POSITION + 1


def batch_field_span(name: str) -> tuple[int, int]:
    """Return the byte position and the size of a field of a record batch header."""
    return RECORD_BATCH_HEADER_LAYOUT.span(name)
