"""The positions of a log's chunks in its object (chapter 47). This module reads no objects."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.codec.compression import decompress
from seglog_format.errors import CorruptIndexError, FormatError, RefusedError
from seglog_format.model import INT32_MAX, CompressionCodec
from seglog_format.names import printable
from seglog_format.tier.json_fields import SHOWN

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.tier.json_fields import JsonFields


MAX_SIZES_SIZE: Final = 10 * 2**20
"""Maximum bytes of the decompressed list of sizes; the plug-in refuses a longer one."""
MAX_CHUNKS: Final = 2**21
"""Maximum number of chunks of a log whose sizes are listed: the largest log in chunks of 1 KiB."""
MAX_WIDTH: Final = 4
INT32_SIZE: Final = 4


class Chunk(NamedTuple):
    """A chunk of a log, and its position in the object.

    Attributes:
        number: of the chunk, from 0.
        start: position of its first byte in the log.
        size: its size in the log in bytes.
        stored_start: position of its first byte in the object.
        stored_size: its size in the object in bytes.
    """

    number: int
    start: int
    size: int
    stored_start: int
    stored_size: int


@dataclass(frozen=True, slots=True)
class ChunkIndex:
    """The chunks of a log.

    Attributes:
        chunk_size: size of each chunk in the log, except for the last.
        size: size of the log in bytes.
        ends: end position of each chunk in the object, except for the last.
        stored_size: size of the object in bytes.
    """

    chunk_size: int
    size: int
    ends: Sequence[int]
    stored_size: int

    @property
    def count(self) -> int:
        """Number of chunks."""
        return -(-self.size // self.chunk_size)

    def chunk(self, number: int) -> Chunk:
        """Return a chunk by its number, from 0."""
        start = number * self.chunk_size
        stored_start = self.ends[number - 1] if number else 0
        stored_end = self.stored_size if number == self.count - 1 else self.ends[number]
        return Chunk(number, start, min(self.chunk_size, self.size - start), stored_start, stored_end - stored_start)

    def chunks_of(self, start: int, end: int) -> range:
        """Return the numbers of the chunks that hold a range of the log's bytes; none for an empty range."""
        end = min(end, self.size)
        return range(start // self.chunk_size, -(-end // self.chunk_size)) if start < end else range(0)


def equal_chunks(chunk_size: int, size: int) -> ChunkIndex:
    """Return the chunks of a log that is stored unchanged."""
    count = -(-size // chunk_size)
    return ChunkIndex(chunk_size, size, range(chunk_size, count * chunk_size, chunk_size), size)


def read_chunk_index(fields: JsonFields) -> ChunkIndex:
    """Read the chunk index of a manifest.

    Args:
        fields: the object `chunkIndex`.

    Raises:
        CorruptIndexError: a field is missing, wrong or contradicts another (SEG-TIR-004, SEG-TIR-005).
        RefusedError: there are too many chunks.
    """
    kind = fields.text("type")
    chunk_size = fields.integer("originalChunkSize", 1, INT32_MAX)
    size = fields.integer("originalFileSize", 1, INT32_MAX)
    count = -(-size // chunk_size)
    if kind == "fixed":
        return _fixed(fields, chunk_size, size, count)
    if kind == "variable":
        return _variable(fields.under("SEG-TIR-005"), chunk_size, size, count)
    at = fields.at.at(f"{fields.at.field}.type")
    raise CorruptIndexError(at, "SEG-TIR-004", expected="fixed or variable", found=printable(repr(kind), SHOWN))


def _fixed(fields: JsonFields, chunk_size: int, size: int, count: int) -> ChunkIndex:
    stored = fields.integer("transformedChunkSize", 1, INT32_MAX)
    last = fields.integer("finalTransformedChunkSize", 1, INT32_MAX)
    ends = range(stored, count * stored, stored)
    return ChunkIndex(chunk_size, size, ends, (count - 1) * stored + last)


def _variable(fields: JsonFields, chunk_size: int, size: int, count: int) -> ChunkIndex:
    name = "transformedChunks"
    if count > MAX_CHUNKS:
        at = fields.at.at(f"{fields.at.field}.{name}")
        raise RefusedError(at, "SEG-TIR-005", expected=f"at most {MAX_CHUNKS:,} chunks", found=f"{count:,}")
    sizes = _sizes(_decompressed(fields, name), fields, name)
    if len(sizes) != count:
        raise fields.wrong(name, f"{count} chunk sizes", len(sizes))
    if min(sizes) < 1:
        raise fields.wrong(name, "chunk sizes above 0", min(sizes))
    ends = array("q", accumulate(sizes))
    return ChunkIndex(chunk_size, size, ends, ends[-1])


def _decompressed(fields: JsonFields, name: str) -> bytes:
    packed = fields.base64(name)
    at = fields.at.at(f"{fields.at.field}.{name}")
    try:
        return decompress(CompressionCodec.ZSTD, packed, magic=2, at=at, limit=MAX_SIZES_SIZE)
    except RefusedError:
        raise
    except FormatError as error:
        raise CorruptIndexError(
            at, "SEG-TIR-005", *error.requirements, expected=error.expected, found=error.found
        ) from None


def _sizes(data: bytes, fields: JsonFields, name: str) -> list[int]:
    """Decode the list of sizes: the count, all sizes but the last as differences to their minimum, then the last."""
    count = int.from_bytes(data[:INT32_SIZE], signed=True)
    if len(data) < INT32_SIZE or count < 0:
        raise fields.wrong(name, "a count of 0 or more", f"{len(data)} bytes, count {count}")
    if count <= 1:
        expected, width, base = INT32_SIZE * (1 + count), 0, 0
    else:
        width = data[2 * INT32_SIZE] if len(data) > 2 * INT32_SIZE else 0
        base = int.from_bytes(data[INT32_SIZE : 2 * INT32_SIZE], signed=True)
        expected = 3 * INT32_SIZE + 1 + (count - 1) * width
        if not 1 <= width <= MAX_WIDTH:
            raise fields.wrong(name, f"a width of 1 to {MAX_WIDTH} bytes", width)
    if len(data) != expected:
        raise fields.wrong(name, f"{expected} bytes for {count} sizes", len(data))
    if not count:
        return []
    start = 2 * INT32_SIZE + 1
    rest = range(start, start + (count - 1) * width, width or 1)
    sizes = [base + int.from_bytes(data[position : position + width]) for position in rest]
    return [*sizes, int.from_bytes(data[-INT32_SIZE:], signed=True)]
