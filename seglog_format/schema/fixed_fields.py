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


# -- numbers and conditions of the headers of compressed data, for readers that load no declarations (chapter 34) -----


GZIP_MAGIC = bytes.fromhex("1f8b")
GZIP_DEFLATE = 8
GZIP_HEADER_CHECKSUM = 0x02
GZIP_EXTRA = 0x04
GZIP_NAME = 0x08
GZIP_COMMENT = 0x10
GZIP_HEADER_SIZE = 10
GZIP_TRAILER_SIZE = 8

XERIAL_MAGIC = bytes.fromhex("82534e4150505900")
XERIAL_HEADER_SIZE = 16
XERIAL_BLOCK_SIZE = 4

LZ4_MAGIC = 0x184D2204
LZ4_VERSION_MASK = 0xC0
LZ4_VERSION = 0x40
LZ4_INDEPENDENT = 0x20
LZ4_BLOCK_CHECKSUM = 0x10
LZ4_CONTENT_SIZE = 0x08
LZ4_CONTENT_CHECKSUM = 0x04
LZ4_RESERVED_FLAGS = 0x03
LZ4_RESERVED_DESCRIPTOR = 0x8F
LZ4_MIN_SIZE_CODE = 4
LZ4_STORED = 0x80000000
LZ4_DESCRIPTOR_POSITION = 4
LZ4_MAX_HEADER_SIZE = 15
LZ4_BLOCK_HEADER_SIZE = 4

ZSTD_MAGIC = 0xFD2FB528
ZSTD_SKIPPABLE_MAGIC = 0x184D2A50
ZSTD_SKIPPABLE_MASK = 0xFFFFFFF0
ZSTD_SINGLE_SEGMENT = 0x20
ZSTD_RESERVED_FLAG = 0x08
ZSTD_CHECKSUM = 0x04
ZSTD_DICTIONARY_ID_MASK = 0x03
ZSTD_LAST_BLOCK = 0x01
ZSTD_MAX_BLOCK_SIZE = 2**17
ZSTD_MAX_HEADER_SIZE = 18
ZSTD_BLOCK_HEADER_SIZE = 3
ZSTD_SKIPPABLE_SIZE = 8


def lz4_flags_are_legal(flags: int) -> bool:
    """Return whether brokers read an lz4 frame with these flags (SEG-COD-006)."""
    return flags & (LZ4_VERSION_MASK | LZ4_INDEPENDENT | LZ4_RESERVED_FLAGS) == LZ4_VERSION | LZ4_INDEPENDENT


def lz4_descriptor_is_legal(descriptor: int) -> bool:
    """Return whether the block descriptor of an lz4 frame has a known block size, and no reserved bit (SEG-COD-006)."""
    return not descriptor & LZ4_RESERVED_DESCRIPTOR and descriptor >> 4 >= LZ4_MIN_SIZE_CODE


def zstd_content_size_size(descriptor: int) -> int:
    """Return the size of a zstd frame's content size field, by bits 7 and 6; a single segment always has the field."""
    code = descriptor >> 6
    return 1 << code if code or descriptor & ZSTD_SINGLE_SEGMENT else 0
