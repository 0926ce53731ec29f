"""Decoder of one entry of a log to a `RecordBatch`: checksum, header rules, decompression, records or messages.

The decoders of records are imported with the first record: callers that only verify checksums do not need them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checksum import crc32, crc32c
from seglog_format.codec.compression import decompress
from seglog_format.codec.framing import containers_of, decoders_of, frame_at, refuse_large
from seglog_format.errors import CorruptRecordError, FormatError, Location, TruncatedError
from seglog_format.model import (
    DEFAULT_OUTPUT_LIMIT,
    INT64_MAX,
    BatchHeader,
    CompressionCodec,
    Frame,
    RecordBatch,
    RecordBatchHeader,
    Tail,
)
from seglog_format.schema.fixed_fields import (
    ATTRIBUTES_POSITION,
    MAGIC_POSITION,
    MESSAGE_CRC_POSITION,
    RECORD_BATCH_HEADER_SIZE,
    batch_field_span,
)
from seglog_format.storage.byte_source import Buffer, ByteSource, MemoryBytes

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.model import Message, Record


ANY_OFFSET: Final = 1 << 62
"""A base offset that gives a valid offset with every offset delta."""


def decode_batch(data: Buffer, *, at: Location | None = None, limit: int = DEFAULT_OUTPUT_LIMIT) -> RecordBatch:
    """Decode the entry at the start of some bytes: a record batch, or a message of magic 0 or 1.

    Args:
        data: bytes that start with the entry; more may follow.
        at: location of the bytes, for errors.
        limit: bytes that decompression may produce at most.

    Raises:
        TruncatedError: the bytes end before the entry does.
        FormatError: the entry is damaged, has an unknown version, or exceeds the limit.

    Examples:
        >>> from pathlib import Path
        >>> from seglog_format import decode_batch
        >>> batch = decode_batch(Path("demo/kafka-4.3.0/headers-0/00000000000000000000.log").read_bytes())
        >>> batch.header.base_offset, batch.header.codec_id, len(batch.records), batch.records[0].timestamp_ms
        (0, 0, 9, 1795225345881)
    """
    return decode_first(MemoryBytes(memoryview(data).cast("B")), at or Location(), limit)


def decode_first(source: ByteSource, at: Location, limit: int = DEFAULT_OUTPUT_LIMIT) -> RecordBatch:
    """Decode the entry at the start of a source of bytes; arguments and errors as `decode_batch`."""
    frame = frame_at(source, 0, source.size, at.path)
    if isinstance(frame, Tail):
        found = f"{frame.size} bytes ({frame.kind.value})"
        raise TruncatedError(at.at("size", 0, frame.size), "SEG-LOG-004", expected="a whole entry", found=found)
    return decode_frame(frame, at=at, limit=limit)


def decode_frame(
    frame: Frame, *, at: Location, limit: int = DEFAULT_OUTPUT_LIMIT, max_parts: int | None = None
) -> RecordBatch:
    """Decode an entry that `walk` has found.

    Args:
        frame: the entry.
        at: location of the entry, with the position of the frame.
        limit: bytes that decompression may produce at most.
        max_parts: maximum number of records and record headers together; None for any number. Decoders that the entry
            carries do not count them.

    Raises:
        FormatError: the entry is damaged or refused.
    """
    batch = decode_under_outer_checksum(frame, at=at, limit=limit, max_parts=max_parts)
    if not isinstance(frame.header, RecordBatchHeader):
        from seglog_format.codec.message_set import verify_inner_checksums  # noqa: PLC0415 - as above

        verify_inner_checksums(batch, at)
    return batch


def decode_under_outer_checksum(
    frame: Frame, *, at: Location, limit: int = DEFAULT_OUTPUT_LIMIT, max_parts: int | None = None
) -> RecordBatch:
    """Decode an entry, and verify its own checksum but not those of inner messages, as brokers do in recovery.

    Arguments and errors as `decode_frame`.
    """
    verify_checksum(frame, at)
    return decode_unverified(frame, at=at, limit=limit, max_parts=max_parts)


def decode_unverified(
    frame: Frame, *, at: Location, limit: int = DEFAULT_OUTPUT_LIMIT, max_parts: int | None = None
) -> RecordBatch:
    """Decode an entry without verifying its checksum; arguments and errors as `decode_frame`."""
    return RecordBatch(frame.position, frame.header, _decoded(frame, at, limit, max_parts))


def _decoded(frame: Frame, at: Location, limit: int, max_parts: int | None) -> tuple[Record | Message, ...]:
    if isinstance(frame.header, RecordBatchHeader):
        return _decode_records(frame, frame.header, at, limit, max_parts)
    from seglog_format.codec.message_set import read_message_entry  # noqa: PLC0415 - as above

    return read_message_entry(frame, at=at, limit=limit, max_messages=max_parts).messages


def _decode_records(
    frame: Frame, header: RecordBatchHeader, at: Location, limit: int, max_parts: int | None = None
) -> tuple[Record, ...]:
    if (decoders := decoders_of(frame)) is not None:
        return tuple(decoders.records(*records_section(frame, header, at, limit)))
    from seglog_format.codec.plain import decode_records  # noqa: PLC0415 - as above

    return decode_records(*records_section(frame, header, at, limit), max_parts=max_parts)


def records_section(
    frame: Frame, header: RecordBatchHeader, at: Location, limit: int
) -> tuple[bytes, RecordBatchHeader, Location]:
    """Return the decompressed records section of a batch, the header, and the location of the section.

    Raises:
        FormatError: the header gives no valid offsets or count, or the batch is refused or cannot be decompressed.
    """
    check_header(header, at)
    refuse_large(frame, at, limit)
    section = at.at("records", RECORD_BATCH_HEADER_SIZE, header.size_in_bytes - RECORD_BATCH_HEADER_SIZE)
    stored = frame.data[RECORD_BATCH_HEADER_SIZE:]
    if header.codec_id == CompressionCodec.NONE or not (header.records_count or stored):
        return bytes(stored), header, section
    headers = containers_of(frame)
    data = decompress(header.codec_id, stored, magic=header.magic, at=section, limit=limit, headers=headers)
    return data, header, section.at("decompressed")


def decompressed_bytes(frame: Frame, *, limit: int = DEFAULT_OUTPUT_LIMIT) -> bytes | None:
    """Return the decompressed records section of a batch, or the decompressed value of a wrapper.

    Args:
        frame: an entry.
        limit: bytes that decompression may produce at most.

    Returns:
        None if the entry is not compressed, is damaged, or decompresses to more than the limit.
    """
    header = frame.header
    if header.codec_id == CompressionCodec.NONE or not checksum_is_valid(frame):
        return None
    try:
        if isinstance(header, RecordBatchHeader):
            stored = frame.data[RECORD_BATCH_HEADER_SIZE:]
            return decompress(header.codec_id, stored, magic=header.magic, at=Location(), limit=limit)
        from seglog_format.codec.message_set import wrapped_bytes  # noqa: PLC0415 - as above

        return wrapped_bytes(frame, at=Location(), limit=limit)
    except FormatError:
        return None


def decode_marker(frame: Frame, *, at: Location, limit: int = DEFAULT_OUTPUT_LIMIT) -> Record | None:
    """Return the record of an end marker, as brokers read it from a control batch; None if the batch has no records.

    Brokers read only the first record, unless the batch is compressed. They do not check its offset, so the offset in
    the result has no meaning. The caller verifies the checksum.

    Args:
        frame: a batch of magic 2.
        at: location of the batch.
        limit: bytes that decompression may produce at most.

    Raises:
        FormatError: the record cannot be read.
    """
    header = frame.header
    assert isinstance(header, RecordBatchHeader)
    if header.records_count == 0:
        return None
    unplaced = replace(header, base_offset=ANY_OFFSET, last_offset_delta=0)
    if header.records_count < 2 or header.codec_id != CompressionCodec.NONE:  # noqa: PLR2004 - a single record must end where the section ends
        return _decode_records(frame, unplaced, at, limit)[0]
    refuse_large(frame, at, limit)
    section = at.at("records", RECORD_BATCH_HEADER_SIZE, header.size_in_bytes - RECORD_BATCH_HEADER_SIZE)
    stored = bytes(frame.data[RECORD_BATCH_HEADER_SIZE:])
    if (decoders := decoders_of(frame)) is not None:
        return decoders.first_record(stored, unplaced, section)
    from seglog_format.codec.plain import decode_first_record  # noqa: PLC0415 - as above

    return decode_first_record(stored, unplaced, section)


def check_header(header: RecordBatchHeader, at: Location) -> None:
    """Refuse a header whose offsets or count of records are impossible.

    Raises:
        CorruptRecordError: SEG-BAT-005, SEG-BAT-006, SEG-BAT-007 or SEG-BAT-009.
    """
    base, delta, count = header.base_offset, header.last_offset_delta, header.records_count
    if base < 0:
        raise CorruptRecordError(field(at, "base_offset"), "SEG-BAT-005", expected="0 or more", found=base)
    if delta < 0:
        raise CorruptRecordError(field(at, "last_offset_delta"), "SEG-BAT-006", expected="0 or more", found=delta)
    if count < 0:
        raise CorruptRecordError(field(at, "records_count"), "SEG-BAT-007", expected="0 or more", found=count)
    if base + delta > INT64_MAX:
        last = f"{base} + {delta}"
        raise CorruptRecordError(field(at, "last_offset_delta"), "SEG-BAT-009", expected="below 2^63", found=last)


def field(at: Location, name: str) -> Location:
    """Return the location of a field of a record batch header."""
    return at.at(name, *batch_field_span(name))


def computed_crc(frame: Frame) -> int:
    """Compute the checksum of an entry: CRC-32C in magic 2, CRC-32 below (SEG-BAT-003, SEG-MSG-004)."""
    if (decoders := decoders_of(frame)) is not None:
        return decoders.computed_crc(frame)
    is_batch = isinstance(frame.header, RecordBatchHeader)
    checksum, extend = 0, crc32c if is_batch else crc32
    for piece in frame.pieces(ATTRIBUTES_POSITION if is_batch else MAGIC_POSITION):
        checksum = extend(piece, checksum)
    return checksum


def checksum_is_valid(frame: Frame) -> bool:
    """Return whether the stored and the computed checksum are equal."""
    return frame.header.crc == computed_crc(frame)


def verify_checksum(frame: Frame, at: Location) -> None:
    """Refuse an entry whose stored checksum differs from the computed one.

    Raises:
        CorruptRecordError: SEG-BAT-003 or SEG-MSG-004.
    """
    computed = computed_crc(frame)
    if computed == frame.header.crc:
        return
    expected, found = f"{computed:#010x}", f"{frame.header.crc:#010x}"
    if isinstance(frame.header, RecordBatchHeader):
        raise CorruptRecordError(field(at, "crc"), "SEG-BAT-003", expected=expected, found=found)
    raise CorruptRecordError(at.at("crc", MESSAGE_CRC_POSITION, 4), "SEG-MSG-004", expected=expected, found=found)


# -- the records of an entry one by one, in memory that does not grow with their number --------------------------------
#
# A batch of a few hundred kilobytes may hold twenty million records, or one record with as many headers. As objects
# they would take gigabytes, and a reader that needs only the first three would wait until all of them are built.


KEPT_RECORDS: Final = 2**16
"""Records of a batch that are checked before the first of them is returned: more than brokers accept in one batch."""


@dataclass(frozen=True, slots=True)
class StreamedBatch:
    """An entry of a log whose records are decoded while they are iterated over.

    Attributes:
        position: byte position in the file.
        header: fixed fields as stored.
        base_offset: the stored base offset; for a wrapper the offset of its first message.
        records: records or messages in stored order; to be iterated over once.
    """

    position: int
    header: BatchHeader
    base_offset: int
    records: Iterable[Record | Message]

    @property
    def next_offset(self) -> int:
        """The first offset after this entry."""
        return self.header.next_offset


def stream_frame(
    frame: Frame, *, at: Location, limit: int = DEFAULT_OUTPUT_LIMIT, to_offset: int | None = None
) -> StreamedBatch:
    """Check an entry as `decode_frame` does, and return it with an iterable over its records.

    Args:
        frame: the entry.
        at: location of the entry.
        limit: bytes that decompression may produce at most.
        to_offset: after the first `KEPT_RECORDS` of a batch, stop before a record at or above this offset.

    Raises:
        FormatError: the entry is damaged or refused. Iterating over the records also raises it, for damage after the
            first `KEPT_RECORDS` of a batch.
    """
    header = frame.header
    if not isinstance(header, RecordBatchHeader):
        batch = decode_frame(frame, at=at, limit=limit)
        return StreamedBatch(frame.position, header, batch.base_offset, batch.records)
    records = _opened(frame, header, at, limit)
    kept: Iterable[Record] = list(islice(records, KEPT_RECORDS))
    if header.records_count > KEPT_RECORDS:
        kept = chain(kept, takewhile(lambda record: to_offset is None or record.offset < to_offset, records))
    return StreamedBatch(frame.position, header, header.base_offset, kept)


def has_very_many_records(header: BatchHeader) -> bool:
    """Return whether the header of an entry counts more than `KEPT_RECORDS` records."""
    return isinstance(header, RecordBatchHeader) and header.records_count > KEPT_RECORDS


def _opened(frame: Frame, header: RecordBatchHeader, at: Location, limit: int) -> Iterator[Record]:
    verify_checksum(frame, at)
    decoders = decoders_of(frame)
    if decoders is not None:
        return decoders.records(*records_section(frame, header, at, limit))
    from seglog_format.codec.plain import stream_records  # noqa: PLC0415 - as above

    return stream_records(*records_section(frame, header, at, limit))
