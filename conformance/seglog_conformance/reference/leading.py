"""The records before the damage of a log, one by one, for readers that deliver single records."""

from __future__ import annotations

from contextlib import suppress
from itertools import takewhile
from typing import TYPE_CHECKING, Final

from zstandard import ZstdDecompressor, ZstdError

from seglog_conformance.reference.logs import SOUND_LIMIT, batch_of
from seglog_format.codec.compression import gzip, lz4, snappy, zstd
from seglog_format.codec.compression.output import Output
from seglog_format.codec.decode import check_header, checksum_is_valid, decode_under_outer_checksum, decode_unverified
from seglog_format.codec.framing import plain_headers, walk
from seglog_format.codec.plain import stream_records
from seglog_format.errors import FormatError, Location
from seglog_format.model import CompressionCodec, Frame, Message, Record, RecordBatch, RecordBatchHeader
from seglog_format.schema.fixed_fields import RECORD_BATCH_HEADER_SIZE

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json

START: Final = Location()


def leading_batches(request: Json) -> list[Json]:
    """Return the batches up to the first damaged one, of which only the records before the damage are returned.

    A batch with a wrong checksum of its own has no records that can be trusted.
    """
    checks_crc = request.get("options", {}).get("crc", True)
    batches: list[Json] = []
    with suppress(FormatError):
        for frame in walk(memoryview(bytes.fromhex(request["data"]))):
            records, is_whole = _leading(frame, checks_crc=checks_crc)
            if records or is_whole:
                batches.append(batch_of(RecordBatch(frame.position, frame.header, records)))
            if not is_whole:
                break
    return batches


def _leading(frame: Frame, *, checks_crc: bool) -> tuple[tuple[Record | Message, ...], bool]:
    """Return the records of an entry before its damage, and whether there is no damage."""
    if checks_crc and not checksum_is_valid(frame):
        return (), False
    if isinstance(frame.header, RecordBatchHeader):
        return _leading_records(frame, frame.header)
    return _leading_messages(frame, checks_crc=checks_crc)


def _leading_messages(frame: Frame, *, checks_crc: bool) -> tuple[tuple[Record | Message, ...], bool]:
    """Return the messages before the first with a wrong checksum; of a wrapper with other damage, none."""
    try:
        if not checks_crc:
            return decode_unverified(frame, at=START, limit=SOUND_LIMIT).records, True
        messages = decode_under_outer_checksum(frame, at=START, limit=SOUND_LIMIT).records
    except FormatError:
        return (), False
    sound = tuple(takewhile(lambda one: not isinstance(one, Message) or one.is_valid, messages))
    return sound, len(sound) == len(messages)


def _leading_records(frame: Frame, header: RecordBatchHeader) -> tuple[tuple[Record, ...], bool]:
    records: list[Record] = []
    try:
        check_header(header, START)
        section, is_whole = _decompressed(frame, header)
        for record in stream_records(section, header, START):
            records.append(record)  # noqa: PERF402 - kept when the next one raises
    except FormatError:
        is_whole = False
    return tuple(records), is_whole


def _decompressed(frame: Frame, header: RecordBatchHeader) -> tuple[bytes, bool]:
    """Return the records section, as far as it can be decompressed, and whether it is complete."""
    stored = memoryview(frame.data[RECORD_BATCH_HEADER_SIZE:])
    if header.codec_id == CompressionCodec.NONE or not (header.records_count or stored):
        return bytes(stored), True
    output = Output(SOUND_LIMIT, START)
    try:
        _decompress_into(output, CompressionCodec(header.codec_id), stored)
    except (FormatError, ValueError):
        if header.codec_id == CompressionCodec.ZSTD:
            return _zstd_blocks(stored), False
        return output.content(), False
    return output.content(), True


def _decompress_into(output: Output, codec: CompressionCodec, stored: memoryview) -> None:
    match codec:
        case CompressionCodec.GZIP:
            gzip.decompress(stored, output, START, plain_headers())
        case CompressionCodec.SNAPPY:
            snappy.decompress(stored, output, START, plain_headers())
        case CompressionCodec.LZ4:
            lz4.decompress(stored, output, START, plain_headers(), verify_header=True)
        case _:
            zstd.decompress(stored, output, START, plain_headers())


def _zstd_blocks(stored: memoryview) -> bytes:
    """Return the content of the blocks before the damage, which a decoder of whole frames does not return."""
    decoder, pieces, size = ZstdDecompressor().decompressobj(), [], 0
    with suppress(ZstdError):
        for position in range(len(stored)):
            pieces.append(decoder.decompress(stored[position : position + 1]))
            size += len(pieces[-1])
            if size > SOUND_LIMIT:
                break
    return b"".join(pieces)
