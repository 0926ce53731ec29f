"""Batches of magic 2 read by a small loop: many times as quick as the declared schema, and only where all is regular.

Whatever is irregular gives None, and is for the reference decoder to judge: errors are its business alone.
"""

from __future__ import annotations

from typing import Final

from seglog_format.codec.compression import DEFAULT_OUTPUT_LIMIT
from seglog_format.codec.decode import checksum_is_valid, decompressed_bytes
from seglog_format.errors import Location, RefusedError
from seglog_format.model import (
    GREATEST_OFFSET,
    INT32_MAX,
    INT64_MAX,
    NO_SEQUENCE,
    CompressionCodec,
    Frame,
    RecordBatchHeader,
    TimestampType,
    add_sequence,
)
from seglog_format.record_model import Record, RecordBatch, RecordHeader
from seglog_format.schema.fixed_fields import RECORD_BATCH_HEADER_SIZE

INT32_BITS: Final = 32
INT64_BITS: Final = 64
MORE: Final = 0x80


class IrregularError(Exception):
    """Something is not as it mostly is."""


def quick_batch(frame: Frame, *, limit: int = DEFAULT_OUTPUT_LIMIT, max_parts: int | None = None) -> RecordBatch | None:
    """Decode a batch of magic 2, its checksum verified; None where anything is irregular.

    Args:
        frame: any entry.
        limit: bytes that decompression may produce at most.
        max_parts: records and record headers that the batch may have together; None for any number.

    Raises:
        RefusedError: it has more of them.
    """
    found = _section(frame, limit)
    if found is None:
        return None
    header, section = found
    reading = RecordReading(section, header)
    if max_parts is not None:
        reading.allow(max_parts)
    try:
        records = tuple(reading.record() for _ in range(reading.count))
    except (IrregularError, IndexError):
        return None
    return RecordBatch(frame.position, frame.header, records) if reading.position == len(section) else None


def quick_record(data: bytes, position: int, header: RecordBatchHeader) -> Record | None:
    """One record of a batch that was found to be regular.

    Args:
        data: bytes of the batch.
        position: where `place_of_record` has found the record.
        header: of the batch.
    """
    reading = RecordReading(data, header, position)
    try:
        return reading.record()
    except (IrregularError, IndexError):
        return None


def place_of_record(data: bytes, number: int) -> int | None:
    """Where a record of an uncompressed batch starts in the batch, found by lengths alone; None beyond its end.

    Args:
        data: bytes of the batch.
        number: of the record, from 0.
    """
    position, end = RECORD_BATCH_HEADER_SIZE, len(data)
    try:
        for _ in range(number):
            byte, second = data[position], data[position + 1]
            if byte < MORE:
                position += 1 + (byte >> 1)
            elif second < MORE:
                position += 2 + (byte >> 1 & 63) + (second << 6)
            else:
                third = data[position + 2]
                if third >= MORE:  # a record of a megabyte and more
                    return None
                position += 3 + (byte >> 1 & 63) + ((second & 127) << 6) + (third << 13)
    except IndexError:
        return None
    return position if position < end else None


def _section(frame: Frame, limit: int) -> tuple[RecordBatchHeader, bytes] | None:
    """Header and decompressed records of a batch whose header and checksum are right."""
    header = frame.header
    if not isinstance(header, RecordBatchHeader):
        return None
    base, delta, count = header.base_offset, header.last_offset_delta, header.records_count
    if min(base, delta, count) < 0 or base + delta > GREATEST_OFFSET:
        return None
    stored = frame.data[RECORD_BATCH_HEADER_SIZE:]
    if header.codec_id == CompressionCodec.NONE or not (count or stored):
        return (header, bytes(stored)) if checksum_is_valid(frame) else None
    content = decompressed_bytes(frame, limit=limit)
    return None if content is None else (header, content)


class FieldReading:
    """Fields of records one after the other.

    Args:
        data: what holds them.
        position: of the first.
    """

    __slots__ = ("data", "position")

    def __init__(self, data: bytes, position: int) -> None:
        self.data = data
        self.position = position

    def header(self, stop: int) -> RecordHeader:
        """The next header of a record that ends at a position.

        Raises:
            IrregularError: it is not regular.
            IndexError: the data end before it does.
        """
        key = self._bytes(stop)
        if key is None:
            raise IrregularError
        return RecordHeader(key, self._bytes(stop))

    def _bytes(self, stop: int) -> bytes | None:
        size = self._varint(INT32_BITS)
        if size < 0:
            return None
        start = self.position
        self.position = end = start + size
        if end > stop:
            raise IrregularError
        return self.data[start:end]

    def _varint(self, bits: int) -> int:
        """A signed number; one with bits that do not fit is irregular, as is one of needless bytes."""
        data, position = self.data, self.position
        byte = data[position]
        if byte < MORE:
            self.position = position + 1
            return byte >> 1 ^ -(byte & 1)
        number, shift = byte & 127, 7
        while True:
            position += 1
            byte = data[position]
            number |= (byte & 127) << shift
            if byte < MORE:
                break
            shift += 7
            if shift > bits:
                raise IrregularError
        if number >> bits:
            raise IrregularError
        self.position = position + 1
        return number >> 1 ^ -(number & 1)


class RecordReading(FieldReading):
    """Records one after the other.

    Args:
        data: what holds them.
        header: of their batch.
        position: of the first.
    """

    __slots__ = ("append_time", "base_offset", "base_sequence", "base_time", "count", "parts_left", "timestamp_type")

    def __init__(self, data: bytes, header: RecordBatchHeader, position: int = 0) -> None:
        super().__init__(data, position)
        self.count = header.records_count
        self.base_offset = header.base_offset
        self.base_time = header.base_timestamp_ms
        self.base_sequence = header.base_sequence
        self.timestamp_type = header.timestamp_type
        is_append_time = self.timestamp_type is TimestampType.LOG_APPEND_TIME
        self.append_time = header.max_timestamp_ms if is_append_time else None
        self.parts_left = INT64_MAX

    def allow(self, max_parts: int) -> None:
        """Read no more records and headers than that.

        Raises:
            RefusedError: there are more records.
        """
        self.parts_left = max_parts
        self._spend(self.count)

    def _spend(self, parts: int) -> None:
        self.parts_left -= parts
        if self.parts_left < 0:
            expected = "no more records and headers than the caller allows"
            raise RefusedError(Location(), "SEG-COD-016", expected=expected, found=f"{-self.parts_left} more")

    def record(self) -> Record:
        """The next record.

        Raises:
            IrregularError: it is not regular.
            IndexError: the data end before it does.
        """
        first, data = self.position, self.data
        length = self._varint(INT32_BITS)
        start = self.position
        stop = start + length
        if length < 1 or stop > len(data):
            raise IrregularError
        attributes, self.position = data[start], start + 1
        timestamp_delta, offset_delta = self._varint(INT64_BITS), self._varint(INT32_BITS)
        key, value = self._bytes(stop), self._bytes(stop)
        count = self._varint(INT32_BITS)
        headers = self._headers(count, stop) if count else ()
        offset = self.base_offset + offset_delta
        if self.position != stop or not 0 <= offset <= GREATEST_OFFSET:
            raise IrregularError
        timestamp_ms = self.base_time + timestamp_delta if self.append_time is None else self.append_time
        if not -INT64_MAX <= timestamp_ms <= INT64_MAX:
            raise IrregularError
        sequence = self.base_sequence + offset_delta if self.base_sequence >= 0 else NO_SEQUENCE
        if sequence > INT32_MAX:
            sequence = add_sequence(self.base_sequence, offset_delta)
        signed = attributes - 256 if attributes & MORE else attributes
        size, kind = stop - first, self.timestamp_type
        return Record(
            offset, timestamp_ms, key, value, headers, sequence, signed, timestamp_delta, offset_delta, size, kind
        )

    def _headers(self, count: int, stop: int) -> tuple[RecordHeader, ...]:
        if not 0 <= count <= stop - self.position:
            raise IrregularError
        self._spend(count)
        return tuple([self.header(stop) for _ in range(count)])
