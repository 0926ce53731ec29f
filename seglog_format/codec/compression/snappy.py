"""Snappy: xerial blocks with a header, or one bare block (SEG-COD-003 to SEG-COD-005, SEG-COD-019)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import cramjam

from seglog_format.codec.compression.output import LIBRARY_ERRORS, inside
from seglog_format.errors import CorruptRecordError, Location
from seglog_format.schema.fixed_fields import XERIAL_BLOCK_SIZE, XERIAL_HEADER_SIZE, XERIAL_MAGIC

if TYPE_CHECKING:
    from seglog_format.codec.compression.output import Output
    from seglog_format.codec.container_headers import ContainerHeaders
    from seglog_format.storage.byte_source import Buffer

MAX_RATIO: Final = 22
"""Upper bound for the ratio of decompressed to compressed bytes in a block: three bytes encode at most 64."""

SHORT_LITERAL: Final = 60
"""Maximum size of a literal whose size is in its tag; the size of a longer one follows the tag."""
COPY_SIZES: Final = (0, 2, 3, 5)
"""Sizes of copy elements in bytes, by kind."""
LONG_TAILS: Final = ((b"\xf0\x00", 1), (b"\xf0\x01", 2), (b"\xf4\x00\x00", 1))
"""Tag and size before a literal that ends fewer than four bytes after its tag, and the literal's size."""

REFUSED: Final = cramjam.DecompressionError
ERRORS: Final = (*LIBRARY_ERRORS, REFUSED)


def decompress(data: memoryview, output: Output, at: Location, headers: ContainerHeaders) -> int:
    """Decompress xerial blocks or one bare block.

    Args:
        data: compressed bytes.
        output: receives the decompressed bytes.
        at: where the data starts.
        headers: parsers of the headers.

    Returns:
        Number of bytes read. The bytes after them are too few for a block length, and are ignored.

    Raises:
        CorruptRecordError: a block is damaged or cut short (SEG-COD-003, SEG-COD-004).
        RefusedError: the output is full (SEG-COD-016).
    """
    if headers.is_xerial(data):
        return _decompress_blocks(data, output, at, headers)
    if not _decompress_block(data, output):
        where = inside(at, "snappy.block", 0, len(data))
        raise CorruptRecordError(where, "SEG-COD-004", expected="one raw snappy block", found="no such block")
    return len(data)


def _decompress_blocks(data: memoryview, output: Output, at: Location, headers: ContainerHeaders) -> int:
    position = _header_end(data, 0, at)
    while len(data) - position >= XERIAL_BLOCK_SIZE:
        if headers.is_xerial(data[position:]):
            position = _header_end(data, position, at)
        else:
            position = _block_end(data, position, output, at, headers)
    return position


def _header_end(data: memoryview, position: int, at: Location) -> int:
    if len(data) - position < XERIAL_HEADER_SIZE:
        where = inside(at, "snappy.header", position, len(data) - position)
        raise CorruptRecordError(where, "SEG-COD-003", expected="a header of 16 bytes", found="the end")
    return position + XERIAL_HEADER_SIZE


def _block_end(data: memoryview, position: int, output: Output, at: Location, headers: ContainerHeaders) -> int:
    start = position + XERIAL_BLOCK_SIZE
    size = headers.xerial_block(data[position:start])
    if not 0 <= size <= len(data) - start:
        where = inside(at, "snappy.block_size", position, XERIAL_BLOCK_SIZE)
        raise CorruptRecordError(where, "SEG-COD-003", expected=f"0 to {len(data) - start}", found=size)
    if not _decompress_block(data[start : start + size], output):
        where = inside(at, "snappy.block", start, size)
        raise CorruptRecordError(where, "SEG-COD-003", expected="a raw snappy block", found="no such block")
    return start + size


def _decompress_block(block: memoryview, output: Output) -> bool:
    """Decompress one raw block; return False if the bytes are not such a block.

    A block starts with its decompressed size; an impossible one is refused first.
    """
    try:
        claimed = cramjam.snappy.decompress_raw_len(block)
        if not len(block) or claimed > len(block) * MAX_RATIO:
            return False
        output.reserve(claimed)
        content = _content(block)
    except ERRORS:
        return False
    output.append(memoryview(content))
    return True


def _content(block: memoryview) -> Any:  # noqa: ANN401 - a buffer of the library
    """Return the decompressed content of a block.

    The library requires four bytes after the tag of a literal whose size is not in the tag. So it refuses a block
    that ends with such a literal of one or two bytes. Kafka reads such a block, so the function tries again with the
    size moved into the tag.

    Raises:
        DecompressionError: the block is damaged.
    """
    try:
        return cramjam.snappy.decompress_raw(block)
    except REFUSED:
        plain = _with_size_in_last_tag(bytes(block))
        if plain is None:
            raise
    return cramjam.snappy.decompress_raw(plain)


def _with_size_in_last_tag(block: bytes) -> bytes | None:
    """Move the size of a last literal of one or two bytes into its tag; return None for any other block."""
    for head, size in LONG_TAILS:
        start = len(block) - len(head) - size
        if start > 0 and block.startswith(head, start) and _element_starts_at(block, start):
            return block[:start] + bytes([(size - 1) << 2]) + block[-size:]
    return None


def _element_starts_at(block: bytes, target: int) -> bool:
    """Return whether an element starts at a position, when each element before it has the size that its tag gives."""
    position = 0
    while position < target and block[position] & 0x80:  # the decompressed size
        position += 1
    position += 1
    while position < target:
        tag = block[position]
        if tag & 3:
            position += COPY_SIZES[tag & 3]
        elif tag >> 2 < SHORT_LITERAL:
            position += 2 + (tag >> 2)
        else:
            count = (tag >> 2) - SHORT_LITERAL + 1
            position += 2 + count + int.from_bytes(block[position + 1 : position + 1 + count], "little")
    return position == target


# -- compression -------------------------------------------------------------------------------------------------------


XERIAL_VERSION: Final = 1
BLOCK_SIZE: Final = 32 * 1024
HEADER: Final = XERIAL_MAGIC + XERIAL_VERSION.to_bytes(4, "big") * 2
"""The magic bytes, the version, and the oldest version that is compatible."""


def compress(data: Buffer) -> bytes:
    """Compress to a xerial header and blocks of 32 KiB, at least one: a header alone is refused (SEG-COD-003)."""
    found = [HEADER]
    for start in range(0, len(data) or 1, BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + BLOCK_SIZE]))
        found += (len(block).to_bytes(XERIAL_BLOCK_SIZE, "big"), block)
    return b"".join(found)
