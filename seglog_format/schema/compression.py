"""Headers of compressed data (chapter 34).

Libraries decode the compressed blocks; the headers around them decide what is complete, what is refused and how
much memory a reader spends, so it is declared here. Numbers of gzip, lz4 and zstd are little-endian, alone in this
format.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from construct import (
    Bytes,
    Construct,
    If,
    Int8ub,
    Int16ul,
    Int24ul,
    Int32sb,
    Int32ul,
    Int64ul,
    SizeofError,
    Struct,
    Subconstruct,
    Switch,
    Tell,
    this,
)

from seglog_format.schema.fields import Checked, Doc

if TYPE_CHECKING:
    from collections.abc import Callable

GZIP_MAGIC = bytes.fromhex("1f8b")
GZIP_DEFLATE = 8
GZIP_HEADER_CHECKSUM = 0x02
GZIP_EXTRA = 0x04
GZIP_NAME = 0x08
GZIP_COMMENT = 0x10

XERIAL_MAGIC = bytes.fromhex("82534e4150505900")

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

ZSTD_MAGIC = 0xFD2FB528
ZSTD_SKIPPABLE_MAGIC = 0x184D2A50
ZSTD_SKIPPABLE_MASK = 0xFFFFFFF0
ZSTD_SINGLE_SEGMENT = 0x20
ZSTD_RESERVED_FLAG = 0x08
ZSTD_CHECKSUM = 0x04
ZSTD_DICTIONARY_ID_MASK = 0x03
ZSTD_LAST_BLOCK = 0x01
ZSTD_MAX_BLOCK_SIZE = 2**17


def _is(wanted: object) -> Callable[[object], bool]:
    return lambda value: value == wanted


class _Conditional(Subconstruct):
    """A field whose presence or size depends on other fields, named after its content."""

    def __init__(self, subcon: Construct, type_name: str) -> None:
        super().__init__(subcon)
        self.type_name = type_name

    def _sizeof(self, context: Any, path: str) -> int:
        del context
        msg = "the size depends on other fields"
        raise SizeofError(msg, path=path)


GzipMemberHeader = Struct(
    "magic"
    / Checked(Bytes(2), _is(GZIP_MAGIC), "the magic number 1f 8b", "SEG-COD-002")
    * Doc("1f 8b.", "SEG-COD-002"),
    "method"
    / Checked(Int8ub, _is(GZIP_DEFLATE), "8, deflate", "SEG-COD-002")
    * Doc("8: deflate.", "SEG-COD-002", default="8"),
    "flags"
    / Int8ub
    * Doc(
        "1 text, 2 header checksum, 4 extra field, 8 name, 16 comment follow; 0 from Kafka.", "SEG-COD-002", default="0"
    ),
    "modification_time" / Int32ul * Doc("Not looked at; 0 from Kafka.", "SEG-COD-002", default="0"),
    "extra_flags" / Int8ub * Doc("Not looked at; 0 from Kafka.", "SEG-COD-002", default="0"),
    "operating_system" / Int8ub * Doc("Not looked at; ff or 00 from Kafka.", "SEG-COD-002"),
)

GzipMemberTrailer = Struct(
    "crc" / Int32ul * Doc("CRC-32 of the decompressed member; little-endian.", "SEG-COD-002"),
    "size" / Int32ul * Doc("Size of the decompressed member modulo 2^32; little-endian.", "SEG-COD-002"),
)

XerialHeader = Struct(
    "magic"
    / Checked(Bytes(8), _is(XERIAL_MAGIC), "82 'SNAPPY' 00", "SEG-COD-003")
    * Doc("82 'SNAPPY' 00.", "SEG-COD-003"),
    "version" / Int32sb * Doc("1; not looked at.", "SEG-COD-005"),
    "compatible_version" / Int32sb * Doc("1; not looked at.", "SEG-COD-005"),
)

XerialBlock = Struct(
    "size" / Int32sb * Doc("Bytes of the raw snappy block that follows.", "SEG-COD-003"),
)


def _lz4_flags_are_legal(flags: int) -> bool:
    return flags & (LZ4_VERSION_MASK | LZ4_INDEPENDENT | LZ4_RESERVED_FLAGS) == LZ4_VERSION | LZ4_INDEPENDENT


def _lz4_descriptor_is_legal(descriptor: int) -> bool:
    return not descriptor & LZ4_RESERVED_DESCRIPTOR and descriptor >> 4 >= LZ4_MIN_SIZE_CODE


Lz4FrameHeader = Struct(
    "magic"
    / Checked(Int32ul, _is(LZ4_MAGIC), f"the magic number {LZ4_MAGIC:#x}", "SEG-COD-006")
    * Doc("Bytes 04 22 4d 18.", "SEG-COD-006", since="0.8.2"),
    "flags"
    / Checked(Int8ub, _lz4_flags_are_legal, "version 1, independent blocks, no reserved bit", "SEG-COD-006")
    * Doc(
        "Bits 7-6 version (01), 5 independent blocks (1), 4 block checksums, 3 content size, 2 content checksum, "
        "1-0 reserved (0). 60 from Kafka.",
        "SEG-COD-006",
        "SEG-COD-012",
        "SEG-COD-013",
        since="0.8.2",
    ),
    "block_descriptor"
    / Checked(Int8ub, _lz4_descriptor_is_legal, "a block size code of 4 to 7, no reserved bit", "SEG-COD-006")
    * Doc(
        "Bits 6-4 block size code (4: 64 KiB, 5: 256 KiB, 6: 1 MiB, 7: 4 MiB), others reserved (0). 40 from Kafka.",
        "SEG-COD-006",
        "SEG-COD-009",
        since="0.8.2",
    ),
    "content_size"
    / _Conditional(If(this.flags & LZ4_CONTENT_SIZE, Int64ul), "uint64")
    * Doc("Only where flag bit 3 is set; little-endian; not looked at.", "SEG-COD-006", "SEG-COD-013", since="0.8.2"),
    "header_checksum"
    / Int8ub
    * Doc(
        "Second byte of the xxHash32 of flags to content size (magic 0: of the magic number too).",
        "SEG-COD-007",
        "SEG-COD-008",
        since="0.8.2",
    ),
)

LZ4_DESCRIPTOR_POSITION = 4
LZ4_MAX_HEADER_SIZE = 15

Lz4BlockHeader = Struct(
    "size"
    / Int32ul
    * Doc(
        "Bytes of the block, little-endian; top bit set: stored, not compressed; 0: end mark.",
        "SEG-COD-010",
        "SEG-COD-009",
    ),
)


def _content_size_size(header: Any) -> int:
    """Return the bytes of the content size, from bits 7 and 6 of the descriptor; a single segment always has one."""
    code = header.descriptor >> 6
    return 1 << code if code or header.descriptor & ZSTD_SINGLE_SEGMENT else 0


ZstdFrameHeader = Struct(
    "magic"
    / Checked(Int32ul, _is(ZSTD_MAGIC), f"the magic number {ZSTD_MAGIC:#x}", "SEG-COD-014")
    * Doc("Bytes 28 b5 2f fd.", "SEG-COD-014", since="2.1.0"),
    "descriptor"
    / Checked(Int8ub, lambda value: not value & ZSTD_RESERVED_FLAG, "the reserved bit clear", "SEG-COD-014")
    * Doc(
        "Bits 7-6 size of the content size, 5 single segment, 3 reserved (0), 2 checksum, 1-0 size of the "
        "dictionary id. 00 from Kafka.",
        "SEG-COD-014",
        since="2.1.0",
    ),
    "window"
    / _Conditional(If(lambda header: not header.descriptor & ZSTD_SINGLE_SEGMENT, Int8ub), "uint8")
    * Doc(
        "How far references reach back: 2^(10 + bits 7-3), plus bits 2-0 eighths of that. "
        "Absent from a single segment, whose window is its content size.",
        "SEG-COD-014",
        "SEG-COD-022",
        since="2.1.0",
    ),
    "dictionary_id"
    / _Conditional(
        Switch(this.descriptor & ZSTD_DICTIONARY_ID_MASK, {1: Int8ub, 2: Int16ul, 3: Int32ul}),
        "0, 1, 2 or 4 bytes",
    )
    * Doc(
        "Dictionary that the frame was compressed with, little-endian; absent or 0: none.", "SEG-COD-014", "SEG-COD-021"
    ),
    "content_size"
    / _Conditional(Switch(_content_size_size, {1: Int8ub, 2: Int16ul, 4: Int32ul, 8: Int64ul}), "0, 1, 2, 4 or 8 bytes")
    * Doc(
        "Size of the decompressed frame, little-endian, 256 less where it has two bytes.", "SEG-COD-014", since="2.1.0"
    ),
    "size_in_bytes" / Tell,
)

ZSTD_MAX_HEADER_SIZE = 18

ZstdBlockHeader = Struct(
    "fields"
    / Int24ul
    * Doc(
        "Little-endian: bit 0 last block, bits 2-1 type (raw, repeated byte, compressed), the rest size.", "SEG-COD-014"
    ),
)

ZstdSkippableHeader = Struct(
    "magic" / Int32ul * Doc("184d2a50 to 184d2a5f, little-endian.", "SEG-COD-023", since="2.1.0"),
    "size" / Int32ul * Doc("Bytes that follow and hold no content; little-endian.", "SEG-COD-023", since="2.1.0"),
)
