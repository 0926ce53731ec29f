"""Encoder of `RecordBatch` values, the inverse of `codec.decode` (chapters 30 to 33).

The encoder computes sizes and checksums, and writes all other values of the model unchanged, unknown attribute bits
included. So an uncompressed batch encodes to the bytes that it was decoded from.

Two encoders give the same bytes: packers written by hand, and those of `codec.reference`, which build every structure
through its declaration. Below them stand the compression of content, and the conversion of Arrow columns.
"""

from __future__ import annotations

import struct
import threading
import zlib
from dataclasses import fields, replace
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final, TypeVar, assert_never

from construct import ConstructError

from seglog_format.arguments import require_instance, require_integer
from seglog_format.codec.checksum import crc32, crc32c
from seglog_format.codec.decoders import Encoders
from seglog_format.engine import Engine, encode_table
from seglog_format.errors import UsageError
from seglog_format.layouts import MESSAGE_V0_HEADER_LAYOUT, MESSAGE_V1_HEADER_LAYOUT, RECORD_BATCH_HEADER_LAYOUT
from seglog_format.model import (
    ENTRY_PREFIX_SIZE,
    INT32_MAX,
    INT64_MAX,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    CompressionCodec,
    MessageHeader,
    RecordBatchHeader,
)
from seglog_format.record_model import Message, Record, RecordBatch
from seglog_format.schema.compression import Lz4FrameHeader, XerialHeader
from seglog_format.schema.fields import unsigned_varint, zigzag
from seglog_format.schema.fixed_fields import (
    ATTRIBUTES_POSITION,
    BYTES_LENGTH,
    LZ4_BLOCK_HEADER_SIZE,
    LZ4_INDEPENDENT,
    LZ4_MAGIC,
    LZ4_STORED,
    LZ4_VERSION,
    MAGIC_POSITION,
    MESSAGE_HEADERS,
    RECORD_BATCH_HEADER,
    RECORD_BATCH_HEADER_SIZE,
    XERIAL_BLOCK_SIZE,
    XERIAL_MAGIC,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

    from seglog_format.storage.byte_source import Buffer


# -- hand-written encoder of the records of a magic 2 batch (chapter 31), a tenth of the time of the declared schema --


ATTRIBUTES: Final = struct.Struct("b")
ONE_BYTE: Final = {number: unsigned_varint(zigzag(number)) for number in range(-64, 64)}
"""The numbers that one byte holds; nearly all that a record has."""
NULL: Final = ONE_BYTE[-1]
"""The length -1."""


def encode_record(record: Record) -> bytes:
    """Return the bytes of a record from its deltas, with the shortest varints (SEG-REC-005).

    Raises:
        UsageError: a delta does not fit its field, or a header has no key (SEG-REC-009).
        struct.error: the attributes do not fit theirs.
    """
    time, delta, headers = record.timestamp_delta, record.offset_delta, record.headers
    if not -INT32_MAX <= delta <= INT32_MAX or not -INT64_MAX <= time <= INT64_MAX:
        require_integer("offset_delta", delta, bits=32)
        require_integer("timestamp_delta", time)
    parts = [ATTRIBUTES.pack(record.attributes), _varint(time), _varint(delta)]
    for data in (record.key, record.value):
        parts += (NULL,) if data is None else (_varint(len(data)), data)
    parts.append(_varint(len(headers)))
    for header in headers:
        try:
            parts += (_varint(len(header.key)), header.key)
        except TypeError:
            msg = "a header key cannot be null (SEG-REC-009)"
            raise UsageError(msg) from None
        parts += (NULL,) if header.value is None else (_varint(len(header.value)), header.value)
    body = b"".join(parts)
    return _varint(len(body)) + body


def _varint(number: int) -> bytes:
    """Return the shortest encoding of a signed number."""
    return ONE_BYTE.get(number) or unsigned_varint(zigzag(number))


# -- encoder of `RecordBatch` values, the inverse of `codec.decode` (chapters 30 to 33) -------------------------------


RecordT = TypeVar("RecordT", Record, Message)

MESSAGE_LAYOUTS: Final = {0: MESSAGE_V0_HEADER_LAYOUT, 1: MESSAGE_V1_HEADER_LAYOUT}
MESSAGE_CRCS: Final = {magic: layout.slot("crc") for magic, layout in MESSAGE_LAYOUTS.items()}
"""By magic."""
MESSAGE_VALUES: Final = {
    magic: attrgetter(*(field.name for field in fields(MessageHeader) if field.name in layout.codes))
    for magic, layout in MESSAGE_LAYOUTS.items()
}
"""Functions that return the values of a header in the order of its packer, by magic."""
BATCH_CRC: Final = RECORD_BATCH_HEADER_LAYOUT.slot("crc")
HEADER_VALUES: Final = attrgetter(*(field.name for field in fields(RecordBatchHeader)))
"""Returns the values of a header in the order of its packer."""


def encode_batch(batch: RecordBatch, *, engine: Engine = Engine.AUTO) -> bytes:
    """Encode one entry of a log.

    Args:
        batch: a record batch, or an outermost message of magic 0 or 1 with its content. Sizes, byte counts and
            the checksum in its header are ignored.
        engine: `Engine.REFERENCE` builds every structure through its declaration, slowly; any other uses packers
            written by hand. The bytes are the same.

    Returns:
        The whole entry, with its 12-byte prefix.

    Raises:
        UsageError: the records are not of the header's kind, a value does not fit its field, or the codec cannot be
            written.

    Examples:
        >>> from seglog_format import build_batch, decode_batch, encode_batch, new_record
        >>> data = encode_batch(build_batch([new_record(key=b"k", value=b"v")]))
        >>> len(data), decode_batch(data).records[0].key
        (70, b'k')
    """
    require_instance("batch", batch, RecordBatch)
    encoders = _encoders(Engine(engine))
    try:
        if isinstance(batch.header, RecordBatchHeader):
            return _encode_record_batch(batch.header, batch.records, encoders)
        return _encode_message_entry(batch.header, batch.records, encoders)
    except (struct.error, ConstructError, TypeError) as error:
        msg = f"batch: a field of header or records cannot hold its value: {error}"
        raise UsageError(msg) from error


def _encoders(engine: Engine) -> Encoders:
    if engine is not Engine.REFERENCE:
        return PLAIN
    from seglog_format.codec.reference import ENCODERS  # noqa: PLC0415 - loads all declarations

    return ENCODERS


def _encode_record_batch(header: RecordBatchHeader, records: Sequence[Record | Message], encoders: Encoders) -> bytes:
    section = b"".join(map(encoders.record, _only(Record, records)))
    stored = compress(codec_named(header.codec_id), section, magic=header.magic)
    return encoders.batch(header, stored)


def encode_record_batch(header: RecordBatchHeader, stored: bytes) -> bytes:
    """Return the bytes of a batch; ``stored`` is all that follows the header, whose size and checksum are ignored."""
    size = RECORD_BATCH_HEADER_SIZE + len(stored) - ENTRY_PREFIX_SIZE
    data = bytearray(RECORD_BATCH_HEADER.pack(*HEADER_VALUES(replace(header, batch_length=size))) + stored)
    BATCH_CRC.write(data, crc32c(memoryview(data)[ATTRIBUTES_POSITION:]))
    return bytes(data)


def _encode_message_entry(header: MessageHeader, records: Sequence[Record | Message], encoders: Encoders) -> bytes:
    messages = _only(Message, records)
    codec = codec_named(header.codec_id)
    if codec is not CompressionCodec.NONE:
        inner = b"".join(encoders.message(_stored_header(one), one.key, one.value) for one in messages)
        return encoders.message(header, None, compress(codec, inner, magic=header.magic))
    if len(messages) != 1:
        msg = f"an uncompressed message is one message, not {len(messages)}"
        raise UsageError(msg)
    return encoders.message(header, messages[0].key, messages[0].value)


def _stored_header(message: Message) -> MessageHeader:
    return MessageHeader(message.stored_offset, 0, 0, message.magic, message.attributes, message.stored_timestamp_ms)


def encode_message(header: MessageHeader, key: bytes | None, value: bytes | None) -> bytes:
    """Encode one message of magic 0 or 1; size and checksum in the header are ignored."""
    packer, values = MESSAGE_HEADERS[header.magic], MESSAGE_VALUES[header.magic]
    content = b"".join(
        BYTES_LENGTH.pack(-1) if data is None else BYTES_LENGTH.pack(len(data)) + data for data in (key, value)
    )
    size = packer.size + len(content) - ENTRY_PREFIX_SIZE
    data = bytearray(packer.pack(*values(replace(header, message_size=size))) + content)
    MESSAGE_CRCS[header.magic].write(data, crc32(memoryview(data)[MAGIC_POSITION:]))
    return bytes(data)


PLAIN: Final = Encoders(encode_record, encode_record_batch, encode_message)


def codec_named(codec_id: int) -> CompressionCodec:
    """Return the codec of an id.

    Raises:
        UsageError: the id names no codec (SEG-COD-001).
    """
    try:
        return CompressionCodec(codec_id)
    except ValueError:
        msg = f"codec {codec_id} is not defined (SEG-COD-001)"
        raise UsageError(msg) from None


def _only(kind: type[RecordT], records: Sequence[Record | Message]) -> list[RecordT]:
    """Check that all records are of the kind that the header requires, and return them.

    Raises:
        UsageError: one is of the other kind.
    """
    found = [record for record in records if isinstance(record, kind)]
    if len(found) != len(records):
        msg = f"header and records do not belong together: expected {kind.__name__} values only"
        raise UsageError(msg)
    return found


# -- compression with the frames that brokers and their clients write (chapter 34) ------------------------------------


GZIP_WINDOW_BITS: Final = 15 + 16
SNAPPY_BLOCK_SIZE: Final = 32 * 1024
LZ4_BLOCK_SIZE: Final = 64 * 1024
LZ4_BLOCK_DESCRIPTOR: Final = 0x40
XERIAL_VERSION: Final = 1
ZSTD_LEVEL: Final = 3


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
        msg = f"zstd cannot be used in magic {magic} (SEG-MSG-018)"
        raise UsageError(msg)
    match codec:
        case CompressionCodec.NONE:
            return bytes(data)
        case CompressionCodec.GZIP:
            return zlib.compress(data, wbits=GZIP_WINDOW_BITS)
        case CompressionCodec.SNAPPY:
            return _snappy(data)
        case CompressionCodec.LZ4:
            return _lz4(data, magic)
        case CompressionCodec.ZSTD:
            return _zstd(data)
        case _:
            assert_never(codec)


XERIAL_HEADER: Final = bytes(
    XerialHeader.build({"magic": XERIAL_MAGIC, "version": XERIAL_VERSION, "compatible_version": XERIAL_VERSION})
)


def _snappy(data: Buffer) -> bytes:
    """Compress to a xerial header and blocks of 32 KiB, at least one: a header alone is refused (SEG-COD-003)."""
    import cramjam  # noqa: PLC0415 - loaded when snappy is written

    found = [XERIAL_HEADER]
    for start in range(0, len(data) or 1, SNAPPY_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(data[start : start + SNAPPY_BLOCK_SIZE]))
        found += (len(block).to_bytes(XERIAL_BLOCK_SIZE, "big"), block)
    return b"".join(found)


def _lz4(data: Buffer, magic: int) -> bytes:
    """Compress to one frame of independent 64 KiB blocks; a block that does not shrink is stored."""
    import lz4.block  # noqa: PLC0415 - loaded when lz4 is written

    found: list[Buffer] = [_lz4_header(magic)]
    for start in range(0, len(data), LZ4_BLOCK_SIZE):
        piece = data[start : start + LZ4_BLOCK_SIZE]
        packed = lz4.block.compress(piece, store_size=False)
        size, content = (len(packed), packed) if len(packed) < len(piece) else (len(piece) | LZ4_STORED, piece)
        found += (size.to_bytes(LZ4_BLOCK_HEADER_SIZE, "little"), content)
    return b"".join([*found, bytes(LZ4_BLOCK_HEADER_SIZE)])  # a block of size 0 ends it


@cache
def _lz4_header(magic: int) -> bytes:
    import xxhash  # noqa: PLC0415 - loaded when lz4 is written

    fields = {
        "magic": LZ4_MAGIC,
        "flags": LZ4_VERSION | LZ4_INDEPENDENT,
        "block_descriptor": LZ4_BLOCK_DESCRIPTOR,
        "content_size": None,
        "header_checksum": 0,
    }
    unsealed = bytes(Lz4FrameHeader.build(fields))[:-1]
    hashed = unsealed if magic == 0 else unsealed[4:]  # SEG-COD-008: old brokers hashed the magic number, too
    return unsealed + bytes([xxhash.xxh32_intdigest(hashed) >> 8 & 0xFF])


CONTEXTS: Final = threading.local()
"""The zstd compressor of each thread: to make one takes as long as to compress a batch."""


def _zstd(data: Buffer) -> bytes:
    """Compress to one frame without content size and checksum; an empty block ends it, as in a written stream."""
    import zstandard  # noqa: PLC0415 - loaded when zstd is written

    if not hasattr(CONTEXTS, "zstd"):
        CONTEXTS.zstd = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_content_size=False, write_checksum=False)
    stream = CONTEXTS.zstd.compressobj()
    return bytes(stream.compress(data) + stream.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK) + stream.flush())


# -- conversion of Arrow columns to record batches, by the columnar engine --------------------------------------------


DEFAULT_BATCH_SIZE: Final = 16_384


def encode_columns(  # noqa: PLR0913 - each is a field of the header, or divides rows into batches
    table: pa.Table,
    *,
    base_offset: int = 0,
    batch_size: int = DEFAULT_BATCH_SIZE,
    counts: Sequence[int] | None = None,
    codec: CompressionCodec = CompressionCodec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> Iterator[bytes]:
    """Encode the rows of a table as record batches of magic 2: the bytes that `encode_batch` gives for these records.

    Needs the extra ``fast``.

    Args:
        table: columns ``offset``, ``timestamp``, ``key``, ``value`` and ``headers``, each optional; a timestamp
            is in milliseconds since 1970, a header a pair of key and value.
        base_offset: offset of the first row, if there is no column of offsets.
        batch_size: maximum bytes of a batch of several records, before compression.
        counts: number of records in each batch, instead of `batch_size`.
        codec: how the records of a batch are compressed.
        producer_id: or -1.
        producer_epoch: or -1.
        base_sequence: sequence number of the first record, or -1; later records increase it by one each.
        is_transactional: whether the batches belong to a transaction.
        partition_leader_epoch: or -1.

    Yields:
        Bytes of one or more whole batches.

    Raises:
        UsageError: while iterating: a batch cannot hold the rows, an option is invalid, or the engine is not
            installed.

    Examples:
        >>> import pyarrow
        >>> from seglog_format import encode_columns
        >>> rows = pyarrow.table({"key": [b"a", b"b"], "value": [b"1", None]})
        >>> log = b"".join(encode_columns(rows, base_offset=100))
        >>> len(log)
        78
    """
    fields = {
        "codec": codec,
        "leader_epoch": partition_leader_epoch,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "base_sequence": base_sequence,
        "is_transactional": is_transactional,
    }
    return encode_table(
        table,
        fields,
        base_offset=base_offset,
        batch_size=batch_size,
        counts=counts,
        compress=None if codec is CompressionCodec.NONE else partial(compress, codec, magic=2),
    )
