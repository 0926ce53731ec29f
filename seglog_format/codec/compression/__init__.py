"""Compression as Kafka does it, and decompression with a limit on the output (chapter 34).

Libraries decode the compressed blocks. This package reads the frames around them: libraries differ in which truncated,
extended or concatenated streams they accept, and none of them stops where a broker's reader stops. Before memory is
allocated for a length that the data claims, the length is compared with the limit, and with the maximum that the
compressed bytes can decode to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from seglog_format.codec.compression.output import Output, inside
from seglog_format.codec.framing import plain_headers
from seglog_format.errors import CorruptRecordError, Location, RefusedError, UsageError
from seglog_format.model import DEFAULT_OUTPUT_LIMIT, CompressionCodec

if TYPE_CHECKING:
    from seglog_format.codec.container_headers import ContainerHeaders
    from seglog_format.storage.byte_source import Buffer


def compress(codec: CompressionCodec, data: Buffer, *, magic: int) -> bytes:
    """Compress a records section, or the messages of a wrapper, at Kafka's default level.

    Args:
        codec: of the batch or wrapper.
        data: any bytes.
        magic: of the batch or wrapper: 0, 1 or 2.

    Raises:
        UsageError: zstd below magic 2 (SEG-MSG-018).
    """
    if not CompressionCodec.fits(codec, magic):
        msg = f"{codec.label} cannot be used in magic {magic} (SEG-MSG-018)"
        raise UsageError(msg)
    match codec:
        case CompressionCodec.NONE:
            return bytes(data)
        case CompressionCodec.GZIP:
            from seglog_format.codec.compression import gzip  # noqa: PLC0415 - loaded when gzip is written

            return gzip.compress(data)
        case CompressionCodec.SNAPPY:
            from seglog_format.codec.compression import snappy  # noqa: PLC0415 - loaded when snappy is written

            return snappy.compress(data)
        case CompressionCodec.LZ4:
            from seglog_format.codec.compression import lz4  # noqa: PLC0415 - loaded when lz4 is written

            return lz4.compress(data, magic)
        case CompressionCodec.ZSTD:
            from seglog_format.codec.compression import zstd  # noqa: PLC0415 - loaded when zstd is written

            return zstd.compress(data)
        case _:
            assert_never(codec)


def decompress(
    codec_id: int,
    data: Buffer,
    *,
    magic: int,
    at: Location,
    limit: int = DEFAULT_OUTPUT_LIMIT,
    headers: ContainerHeaders | None = None,
) -> bytes:
    """Decompress a records section of magic 2, or the value of a wrapper of magic 0 or 1.

    Args:
        codec_id: attribute bits 0 to 2, as a number from 0 to 7.
        data: the compressed bytes and nothing else.
        magic: of the batch or wrapper: 0, 1 or 2.
        at: where the compressed bytes start.
        limit: maximum bytes of output.
        headers: parsers of the headers of compressed data; None for those of the plain engine.

    Raises:
        CorruptRecordError: the data is not a complete stream of that codec; the error names the requirement.
        RefusedError: the data decompresses to more than the limit (SEG-COD-016).
    """
    output, _ = _decompress(codec_id, data, magic, at, limit, headers)
    return output.content()


def trailing_size(
    codec_id: int,
    data: Buffer,
    *,
    magic: int,
    at: Location,
    limit: int = DEFAULT_OUTPUT_LIMIT,
    headers: ContainerHeaders | None = None,
) -> int:
    """Return the number of bytes at the end that decompression ignores (SEG-COD-011, SEG-COD-018, SEG-COD-019).

    Arguments and errors are those of `decompress`.
    """
    _, used = _decompress(codec_id, data, magic, at, limit, headers)
    return memoryview(data).nbytes - used


def decompress_all(
    codec_id: int, data: Buffer, *, magic: int, at: Location, limit: int = DEFAULT_OUTPUT_LIMIT
) -> bytes | None:
    """Decompress data; return None if decompression ignores bytes at its end.

    Arguments and errors are those of `decompress`.
    """
    output, used = _decompress(codec_id, data, magic, at, limit, None)
    return output.content() if used == memoryview(data).nbytes else None


def codec_of(codec_id: int, *, magic: int, at: Location) -> CompressionCodec:
    """Return the codec that attribute bits 0 to 2 name.

    Raises:
        CorruptRecordError: they name no codec (SEG-COD-001), or one that this magic does not allow (SEG-MSG-018).
    """
    if codec_id not in set(CompressionCodec):
        raise CorruptRecordError(inside(at, "codec"), "SEG-COD-001", expected="a codec of 0 to 4", found=codec_id)
    codec = CompressionCodec(codec_id)
    if not CompressionCodec.fits(codec, magic):
        raise CorruptRecordError(inside(at, "codec"), "SEG-MSG-018", expected="no zstd", found=f"zstd in magic {magic}")
    return codec


def _decompress(
    codec_id: int, data: Buffer, magic: int, at: Location, limit: int, headers: ContainerHeaders | None
) -> tuple[Output, int]:
    """Return the decompressed bytes, and the number of compressed bytes read."""
    output, headers = Output(limit, at), headers or plain_headers()
    codec = codec_of(codec_id, magic=magic, at=at)
    try:
        return output, _decompress_into(output, codec, memoryview(data).cast("B"), magic, at, headers)
    except MemoryError:
        expected = f"memory for {limit} decompressed bytes"
        raise RefusedError(at, "SEG-COD-016", expected=expected, found="not enough") from None


def _decompress_into(
    output: Output, codec: CompressionCodec, data: memoryview, magic: int, at: Location, headers: ContainerHeaders
) -> int:
    match codec:
        case CompressionCodec.NONE:
            output.append(data)
            return len(data)
        case CompressionCodec.GZIP:
            from seglog_format.codec.compression import gzip  # noqa: PLC0415 - loaded when gzip is read

            return gzip.decompress(data, output, at, headers)
        case CompressionCodec.SNAPPY:
            from seglog_format.codec.compression import snappy  # noqa: PLC0415 - loaded when snappy is read

            return snappy.decompress(data, output, at, headers)
        case CompressionCodec.LZ4:
            from seglog_format.codec.compression import lz4  # noqa: PLC0415 - loaded when lz4 is read

            return lz4.decompress(data, output, at, headers, verify_header=magic > 0)
        case CompressionCodec.ZSTD:
            from seglog_format.codec.compression import zstd  # noqa: PLC0415 - loaded when zstd is read

            return zstd.decompress(data, output, at, headers)
        case _:
            assert_never(codec)
