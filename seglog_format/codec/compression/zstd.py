"""Zstd: consecutive frames (SEG-COD-014, SEG-COD-015, SEG-COD-021 to SEG-COD-023).

The library trusts the frame header: it allocates the window that the header claims, even for a frame of ten bytes, and
some of its functions allocate the claimed content size. So this module walks the block headers first. They show whether
the frame is complete, and the maximum that it can decode to; the library then gets a header that claims no more.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.codec.compression.output import LIBRARY_ERRORS, PIECE_SIZE, inside
from seglog_format.errors import CorruptRecordError, Location
from seglog_format.schema.fixed_fields import (
    ZSTD_BLOCK_HEADER_SIZE,
    ZSTD_CHECKSUM,
    ZSTD_LAST_BLOCK,
    ZSTD_MAX_BLOCK_SIZE,
    ZSTD_MAX_HEADER_SIZE,
    ZSTD_SKIPPABLE_MAGIC,
    ZSTD_SKIPPABLE_MASK,
    ZSTD_SKIPPABLE_SIZE,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.codec.compression.output import Output
    from seglog_format.codec.container_headers import ContainerHeaders, ZstdHeader
    from seglog_format.storage.byte_source import Buffer

CHECKSUM_SIZE: Final = 4

MAX_WINDOW_SIZE: Final = 2**27
MAX_WHOLE_FRAME_SIZE: Final = 64 * 2**20
"""Maximum content size that `decompress_whole` allocates because a frame claims it."""
MIN_WINDOW_LOG: Final = 10
WINDOW_POSITION: Final = 5

REPEATED_BYTE: Final = 1
COMPRESSED: Final = 2
RESERVED: Final = 3


def decompress(data: memoryview, output: Output, at: Location, headers: ContainerHeaders) -> int:
    """Decompress every frame.

    Args:
        data: compressed bytes.
        output: receives the decompressed bytes.
        at: where the data starts.
        headers: parsers of the headers.

    Returns:
        Number of bytes read, which is the size of the data.

    Raises:
        CorruptRecordError: a frame is damaged, cut short, or uses a feature that brokers do not support.
        RefusedError: the output is full (SEG-COD-016).
    """
    if not len(data):
        raise CorruptRecordError(inside(at, "zstd"), "SEG-COD-014", expected="a frame", found="no bytes")
    position = 0
    while position < len(data):
        position = _frame_end(data, position, output, at, headers)
    return position


def _frame_end(data: memoryview, start: int, output: Output, at: Location, headers: ContainerHeaders) -> int:
    magic = int.from_bytes(data[start : start + 4], "little")
    if magic & ZSTD_SKIPPABLE_MASK == ZSTD_SKIPPABLE_MAGIC:
        return _skippable_end(data, start, at, headers)
    frame = _walk(data, start, at, headers)
    _verify_header(frame, output, at)
    _decode(data, frame, output, at)
    return frame.end


def _skippable_end(data: memoryview, start: int, at: Location, headers: ContainerHeaders) -> int:
    where = inside(at, "zstd", start)
    size = headers.zstd_skippable(data[start : start + ZSTD_SKIPPABLE_SIZE], where)
    end = start + ZSTD_SKIPPABLE_SIZE + size
    if end > len(data):
        raise CorruptRecordError(where, "SEG-COD-023", expected=f"{size} bytes", found=f"{len(data) - start}")
    return end


@dataclass(frozen=True, slots=True)
class _Frame:
    """A complete frame.

    Attributes:
        start, end: positions of its first byte and of the byte after it.
        window_size: as the header claims.
        content_size: as the header claims; None if it claims none.
        dictionary_id: 0 for none.
        bound: upper bound for its decompressed size.
    """

    start: int
    end: int
    window_size: int
    content_size: int | None
    dictionary_id: int
    bound: int


def _walk(data: memoryview, start: int, at: Location, headers: ContainerHeaders) -> _Frame:
    where = inside(at, "zstd", start)
    header = headers.zstd(data[start : start + ZSTD_MAX_HEADER_SIZE], where)
    content_size = _content_size(header)
    window_size = content_size if header.window is None else _window_size(header.window)
    assert window_size is not None  # a single segment has a content size
    max_size = min(window_size, ZSTD_MAX_BLOCK_SIZE)
    end, bound = _walk_blocks(data, start + header.size_in_bytes, max_size, at, headers)
    end += CHECKSUM_SIZE if header.descriptor & ZSTD_CHECKSUM else 0
    if end > len(data):
        raise CorruptRecordError(where, "SEG-COD-014", expected="a complete frame", found="the end of the data")
    return _Frame(start, end, window_size, content_size, header.dictionary_id or 0, bound)


def _content_size(header: ZstdHeader) -> int | None:
    """Return the decompressed size that the header claims; a size stored in two bytes is 256 less than the claim."""
    if header.content_size is None:
        return None
    return header.content_size + (256 if header.descriptor >> 6 == 1 else 0)


def _window_size(descriptor: int) -> int:
    base: int = 1 << (MIN_WINDOW_LOG + (descriptor >> 3))
    return base + base // 8 * (descriptor & 7)


def _walk_blocks(
    data: memoryview, position: int, max_size: int, at: Location, headers: ContainerHeaders
) -> tuple[int, int]:
    """Return the position after the last block, and an upper bound for the output."""
    last, bound = False, 0
    while not last and position < len(data):
        stored = bytes(data[position : position + ZSTD_BLOCK_HEADER_SIZE])
        fields = headers.zstd_block(stored.ljust(ZSTD_BLOCK_HEADER_SIZE, b"\0"))  # missing bytes count as zeros
        last, kind, size = bool(fields & ZSTD_LAST_BLOCK), fields >> 1 & 3, fields >> 3
        if kind == RESERVED or size > max_size:
            where = inside(at, "zstd.block", position, size)
            expected = f"a known block type and at most {max_size} bytes"
            raise CorruptRecordError(where, "SEG-COD-014", expected=expected, found=f"type {kind}, {size} bytes")
        position += ZSTD_BLOCK_HEADER_SIZE + (1 if kind == REPEATED_BYTE else size)
        bound += max_size if kind == COMPRESSED else size
    if not last:
        where = inside(at, "zstd.block", len(data))
        raise CorruptRecordError(where, "SEG-COD-014", expected="another block", found="the end of the data")
    return position, bound


def _verify_header(frame: _Frame, output: Output, at: Location) -> None:
    """Check the claims of the header against the rules, the possible maximum and the limit, in that order."""
    where = inside(at, "zstd", frame.start, frame.end - frame.start)
    if frame.dictionary_id:
        raise CorruptRecordError(where, "SEG-COD-021", expected="no dictionary", found=frame.dictionary_id)
    if frame.content_size is not None and frame.content_size > frame.bound:
        expected = f"a content size of at most {frame.bound}"
        raise CorruptRecordError(where, "SEG-COD-014", expected=expected, found=frame.content_size)
    output.reserve(frame.content_size or 0)
    if frame.window_size > MAX_WINDOW_SIZE:
        expected = f"a window of at most {MAX_WINDOW_SIZE}"
        raise CorruptRecordError(where, "SEG-COD-022", expected=expected, found=frame.window_size)


def _decode(data: memoryview, frame: _Frame, output: Output, at: Location) -> None:
    from zstandard import ZstdError  # noqa: PLC0415 - its import takes ten times as long as that of another codec

    stored = _with_smallest_window(data[frame.start : frame.end], frame)
    piece_size = min(PIECE_SIZE, frame.bound + 1)
    try:
        if frame.bound > output.room:
            _measure(stored, piece_size, output)
        for piece in _pieces(stored, piece_size):
            output.append(piece)
    except (*LIBRARY_ERRORS, ZstdError) as problem:
        where = inside(at, "zstd", frame.start, frame.end - frame.start)
        raise CorruptRecordError(where, "SEG-COD-014", expected="zstd blocks", found=problem) from None


def _with_smallest_window(stored: memoryview, frame: _Frame) -> memoryview:
    """Return the frame with the smallest sufficient window in its header, since the library allocates the window."""
    if frame.window_size <= max(frame.bound, 1 << MIN_WINDOW_LOG):
        return stored
    window_log = max((frame.bound - 1).bit_length(), MIN_WINDOW_LOG)
    descriptor = (window_log - MIN_WINDOW_LOG) << 3
    return memoryview(b"".join((stored[:WINDOW_POSITION], bytes([descriptor]), stored[WINDOW_POSITION + 1 :])))


def _measure(stored: memoryview, piece_size: int, output: Output) -> None:
    """Decode without keeping the output, so a frame beyond the limit takes no memory except the library's window."""
    size = 0
    for piece in _pieces(stored, piece_size):
        size += len(piece)
        output.reserve(size)


def _pieces(stored: memoryview, piece_size: int) -> Iterator[bytes]:
    from zstandard import ZstdDecompressor  # noqa: PLC0415 - as above

    reader = ZstdDecompressor(max_window_size=MAX_WINDOW_SIZE).stream_reader(stored)
    while piece := reader.read(piece_size):
        yield piece


def decompress_whole(data: Buffer, size: int) -> bytes | None:
    """Decompress in one step a frame that states its content size; return None for anything else.

    Args:
        data: the frame and nothing else.
        size: content size in bytes that the frame must state; this size is allocated.
    """
    import zstandard  # noqa: PLC0415 - as above

    try:
        if zstandard.frame_content_size(data) != size or size > MAX_WHOLE_FRAME_SIZE:
            return None
        decompressor = zstandard.ZstdDecompressor(max_window_size=MAX_WINDOW_SIZE)
        found: bytes = decompressor.decompress(data, allow_extra_data=False)
    except (*LIBRARY_ERRORS, zstandard.ZstdError):
        return None
    return found


# -- compression -------------------------------------------------------------------------------------------------------


LEVEL: Final = 3
CONTEXTS: Final = threading.local()
"""The compressor of each thread: to make one takes as long as to compress a batch."""


def compress(data: Buffer) -> bytes:
    """Compress to one frame without content size and checksum; an empty block ends it, as in a written stream."""
    import zstandard  # noqa: PLC0415 - as above

    if not hasattr(CONTEXTS, "compressor"):
        CONTEXTS.compressor = zstandard.ZstdCompressor(level=LEVEL, write_content_size=False, write_checksum=False)
    stream = CONTEXTS.compressor.compressobj()
    return bytes(stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush())
