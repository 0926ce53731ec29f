"""Hand-written decoder of the records of a magic 2 batch (chapter 31).

Values and errors are those of the declared schema, as the tests verify; this decoder takes a tenth of its time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.record_rules import (
    record_offset,
    record_sequence,
    record_timestamp,
    require_end,
    require_more,
    require_size,
)
from seglog_format.errors import CorruptRecordError, Location, RefusedError
from seglog_format.model import INT32_MAX, INT64_MAX, NO_SEQUENCE, RecordBatchHeader, TimestampType
from seglog_format.record_model import Record, RecordHeader

if TYPE_CHECKING:
    from collections.abc import Iterator

INT32_BITS: Final = 32
INT64_BITS: Final = 64
GROUP_BITS: Final = 7
MORE: Final = 0x80
"""The bit of a byte that says that the number continues in the next byte."""

CUT_SHORT: Final = {
    "length": "SEG-REC-002",
    "attributes": "SEG-REC-003",
    "timestamp_delta": "SEG-BAT-012",
    "offset_delta": "SEG-REC-012",
}
"""The requirement that each of these fields breaks when the bytes end inside it."""
ANY_CUT_SHORT: Final = "SEG-REC-006"
"""The requirement that any other field breaks when the bytes end inside it."""


class FieldError(Exception):
    """An invalid field; `RecordReading.record` turns this error into a `FormatError`.

    Attributes:
        position: where the field starts.
        name: of the field, within its record.
        requirement: id of the requirement that it breaks.
        expected: the value that the requirement demands.
        found: the value found instead.
    """

    def __init__(self, position: int, name: str, requirement: str, expected: str, found: object) -> None:
        super().__init__(name)
        self.position = position
        self.name = name
        self.requirement = requirement
        self.expected = expected
        self.found = found


def decode_records(
    section: bytes, header: RecordBatchHeader, at: Location, *, max_parts: int | None = None
) -> tuple[Record, ...]:
    """Return all records of a batch.

    Args:
        section: everything after the batch header, decompressed.
        header: of the batch.
        at: location of the section; positions in errors are relative to it.
        max_parts: maximum number of records and record headers together; None for any number.

    Raises:
        CorruptRecordError: a record is damaged, or the section does not hold the counted records (SEG-BAT-008).
        RefusedError: there are more records and headers than ``max_parts``.
    """
    reading = RecordReading(section, header, at)
    if max_parts is not None:
        reading.allow(max_parts)
    return tuple(reading.records())


def decode_first_record(section: bytes, header: RecordBatchHeader, at: Location) -> Record:
    """Return the first record of a batch with at least one; ignore the bytes after it.

    Args:
        section: everything after the batch header, decompressed.
        header: of the batch.
        at: location of the section; positions in errors are relative to it.

    Raises:
        CorruptRecordError: the record is damaged.
    """
    return RecordReading(section, header, at).record(0)


class FieldReading:
    """Reads fields of records one by one.

    Args:
        data: bytes with the fields.
        position: of the first field.
    """

    __slots__ = ("data", "position", "size")

    def __init__(self, data: bytes, position: int = 0) -> None:
        self.data = data
        self.position = position
        self.size = len(data)

    def header(self, index: int) -> RecordHeader:
        """Read the next header of a record.

        Args:
            index: its number in the record, for errors.

        Raises:
            FieldError: it is damaged.
        """
        try:
            return RecordHeader(self._header_key(), self._bytes("value"))
        except FieldError as problem:
            problem.name = f"headers[{index}].{problem.name}"
            raise

    def _header_key(self) -> bytes:
        start, key = self.position, self._bytes("key")
        if key is None:
            raise FieldError(start, "key", "SEG-REC-009", "a header key, which cannot be null", key)
        return key

    def _bytes(self, name: str) -> bytes | None:
        first = self.position
        size = self._varint(name, INT32_BITS)
        if size < 0:
            return None
        start = self.position
        self.position = end = start + size
        if end > self.size:
            raise self._cut_short(first, name)
        return self.data[start:end]

    def _varint(self, name: str, bits: int) -> int:
        """Read a signed number; bits of its last byte that do not fit are dropped (SEG-REC-004)."""
        data, position = self.data, self.position
        try:
            byte = data[position]
            if byte < MORE:
                self.position = position + 1
                return byte >> 1 ^ -(byte & 1)
            number, shift = byte & 127, GROUP_BITS
            while True:
                position += 1
                byte = data[position]
                number |= (byte & 127) << shift
                if byte < MORE:
                    break
                shift += GROUP_BITS
                if shift >= bits:
                    most = f"a varint of at most {-(-bits // GROUP_BITS)} bytes"
                    raise FieldError(self.position, name, "SEG-REC-004", most, "a longer one")
        except IndexError:
            raise self._cut_short(self.position, name) from None
        self.position = position + 1
        number &= (1 << bits) - 1
        return number >> 1 ^ -(number & 1)

    def _cut_short(self, start: int, name: str) -> FieldError:
        found = f"the end after {self.size - start}"
        return FieldError(start, name, CUT_SHORT.get(name, ANY_CUT_SHORT), "more bytes", found)


class RecordReading(FieldReading):
    """Reads records one by one.

    Args:
        data: bytes with the records.
        header: of their batch.
        at: location of the data.
    """

    __slots__ = ("append_time", "at", "base_offset", "base_sequence", "base_time", "batch", "parts_left", "type")

    def __init__(self, data: bytes, header: RecordBatchHeader, at: Location) -> None:
        super().__init__(data)
        self.at = at
        self.batch = header
        self.base_offset = header.base_offset
        self.base_time = header.base_timestamp_ms
        self.base_sequence = header.base_sequence
        self.type = header.timestamp_type
        is_append_time = self.type is TimestampType.LOG_APPEND_TIME
        self.append_time = header.max_timestamp_ms if is_append_time else None
        self.parts_left = INT64_MAX

    def allow(self, max_parts: int) -> None:
        """Limit the number of records and headers that are read.

        Raises:
            RefusedError: the header counts more records.
        """
        self.parts_left = max_parts
        self._spend(self.batch.records_count)

    def _spend(self, parts: int) -> None:
        self.parts_left -= parts
        if self.parts_left < 0:
            expected = "no more records and headers than the caller allows"
            raise RefusedError(self.at, "SEG-COD-016", expected=expected, found=f"{-self.parts_left} more")

    def records(self) -> Iterator[Record]:
        """Read as many records as the header counts, and check that the data ends after them.

        Raises:
            CorruptRecordError: a record is damaged, or the data does not hold the counted records (SEG-BAT-008).
        """
        index = 0
        try:
            for index in range(self.batch.records_count):
                if self.position == self.size:
                    require_more(self.data, self.position, index, self.batch, self.at)
                yield self._record(index)
        except FieldError as problem:
            raise self._damage(index, problem) from None
        require_end(self.data, self.position, self.batch, self.at)

    def record(self, index: int) -> Record:
        """Read the next record.

        Args:
            index: its number in the batch, for errors.

        Raises:
            CorruptRecordError: it is damaged.
        """
        try:
            return self._record(index)
        except FieldError as problem:
            raise self._damage(index, problem) from None

    def _damage(self, index: int, problem: FieldError) -> CorruptRecordError:
        at = self.at.at(f"records[{index}].{problem.name}", problem.position, self.size - problem.position)
        return CorruptRecordError(at, problem.requirement, expected=problem.expected, found=problem.found)

    def _record(self, index: int) -> Record:
        first = self.position
        length = self._varint("length", INT32_BITS)
        if length < 0:
            raise FieldError(first, "length", "SEG-REC-002", "a record length of 0 or more", length)
        start = self.position
        if start == self.size:
            raise self._cut_short(start, "attributes")
        attributes = self.data[start]
        self.position = start + 1
        timestamp_delta, offset_delta = (
            self._varint("timestamp_delta", INT64_BITS),
            self._varint("offset_delta", INT32_BITS),
        )
        key, value = self._bytes("key"), self._bytes("value")
        count_position = self.position
        count = self._varint("headers_count", INT32_BITS)
        if count < 0:
            raise FieldError(count_position, "headers_count", "SEG-REC-008", "a header count of 0 or more", count)
        headers = self._headers(count, start + length) if count else ()
        offset = self.base_offset + offset_delta
        if self.position - start != length or not 0 <= offset <= INT64_MAX:
            at = self.at.at(f"records[{index}]", first)
            require_size(length, self.position - start, at)
            record_offset(self.batch, offset_delta, at)
        timestamp_ms = self.base_time + timestamp_delta if self.append_time is None else self.append_time
        if not -INT64_MAX <= timestamp_ms <= INT64_MAX:
            timestamp_ms = record_timestamp(self.batch, timestamp_delta)
        sequence = self.base_sequence + offset_delta if self.base_sequence >= 0 else NO_SEQUENCE
        if sequence > INT32_MAX:
            sequence = record_sequence(self.batch, offset_delta)
        signed = attributes - 256 if attributes & MORE else attributes
        size, kind = self.position - first, self.type
        return Record(
            offset, timestamp_ms, key, value, headers, sequence, signed, timestamp_delta, offset_delta, size, kind
        )

    def _headers(self, count: int, stop: int) -> tuple[RecordHeader, ...]:
        if count > stop - self.position:  # more than fit: headers are read up to the error, and not kept
            for number in range(count):
                self.header(number)
            return ()
        self._spend(count)
        return tuple([self.header(number) for number in range(count)])
