"""Headers of compressed data (chapter 34).

Libraries decode the compressed blocks. The headers around them decide which data is complete or refused, and how much
memory a reader needs, so they are declared here. Numbers of gzip, lz4 and zstd are little-endian; all others of this
format are big-endian.
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
from seglog_format.schema.fixed_fields import (
    GZIP_DEFLATE,
    GZIP_HEADER_SIZE,
    GZIP_MAGIC,
    GZIP_TRAILER_SIZE,
    LZ4_BLOCK_HEADER_SIZE,
    LZ4_CONTENT_SIZE,
    LZ4_MAGIC,
    XERIAL_BLOCK_SIZE,
    XERIAL_HEADER_SIZE,
    XERIAL_MAGIC,
    ZSTD_BLOCK_HEADER_SIZE,
    ZSTD_DICTIONARY_ID_MASK,
    ZSTD_MAGIC,
    ZSTD_RESERVED_FLAG,
    ZSTD_SINGLE_SEGMENT,
    ZSTD_SKIPPABLE_SIZE,
    lz4_descriptor_is_legal,
    lz4_flags_are_legal,
    zstd_content_size_size,
)

if TYPE_CHECKING:
    from collections.abc import Callable


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


Lz4FrameHeader = Struct(
    "magic"
    / Checked(Int32ul, _is(LZ4_MAGIC), f"the magic number {LZ4_MAGIC:#x}", "SEG-COD-006")
    * Doc("Bytes 04 22 4d 18.", "SEG-COD-006", since="0.8.2"),
    "flags"
    / Checked(Int8ub, lz4_flags_are_legal, "version 1, independent blocks, no reserved bit", "SEG-COD-006")
    * Doc(
        "Bits 7-6 version (01), 5 independent blocks (1), 4 block checksums, 3 content size, 2 content checksum, "
        "1-0 reserved (0). 60 from Kafka.",
        "SEG-COD-006",
        "SEG-COD-012",
        "SEG-COD-013",
        since="0.8.2",
    ),
    "block_descriptor"
    / Checked(Int8ub, lz4_descriptor_is_legal, "a block size code of 4 to 7, no reserved bit", "SEG-COD-006")
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
        "Second byte of the xxHash32 of flags to content size (magic 0: also of the magic number).",
        "SEG-COD-007",
        "SEG-COD-008",
        since="0.8.2",
    ),
)


Lz4BlockHeader = Struct(
    "size"
    / Int32ul
    * Doc(
        "Bytes of the block, little-endian; top bit set: stored, not compressed; 0: end mark.",
        "SEG-COD-010",
        "SEG-COD-009",
    ),
)


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
    / _Conditional(
        Switch(
            lambda header: zstd_content_size_size(header.descriptor), {1: Int8ub, 2: Int16ul, 4: Int32ul, 8: Int64ul}
        ),
        "0, 1, 2, 4 or 8 bytes",
    )
    * Doc(
        "Size of the decompressed frame, little-endian, 256 less where it has two bytes.", "SEG-COD-014", since="2.1.0"
    ),
    "size_in_bytes" / Tell,
)


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

assert GzipMemberHeader.sizeof() == GZIP_HEADER_SIZE
assert GzipMemberTrailer.sizeof() == GZIP_TRAILER_SIZE
assert XerialHeader.sizeof() == XERIAL_HEADER_SIZE
assert XerialBlock.sizeof() == XERIAL_BLOCK_SIZE
assert Lz4BlockHeader.sizeof() == LZ4_BLOCK_HEADER_SIZE
assert ZstdBlockHeader.sizeof() == ZSTD_BLOCK_HEADER_SIZE
assert ZstdSkippableHeader.sizeof() == ZSTD_SKIPPABLE_SIZE
