"""Checks of the entries of a log and of the bytes after them, by chapter, and the subjects that they take.

A subject is a decoded entry with its location.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Finding, Problem, checks
from seglog_format.codec.compression import trailing_size
from seglog_format.codec.control_record import controls_of, decode_control_record
from seglog_format.codec.decode import decode_frame, field, has_very_many_records, stream_frame, verify_checksum
from seglog_format.codec.framing import containers_of
from seglog_format.codec.message_set import read_message_entry
from seglog_format.codec.plain import body_size, varint_size
from seglog_format.errors import FormatError, Location
from seglog_format.model import (
    END_MARKER_TYPES,
    INT32_MAX,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    CompressionCodec,
    MessageHeader,
    MissingOffsets,
    Record,
    RecordBatch,
    RecordBatchHeader,
    Tail,
    TailKind,
    TimestampType,
)
from seglog_format.schema.fixed_fields import BYTES_LENGTH, MESSAGE_HEADERS, RECORD_BATCH_HEADER_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.codec.message_set import MessageEntry
    from seglog_format.model import BatchHeader, ControlRecord, Frame


@dataclass(frozen=True, slots=True)
class Entry:
    """An intact entry in its segment.

    Attributes:
        at: its location.
        batch: header and records.
        segment_base_offset: from the file name.
        previous_last_offset: of the intact entry before it in the same segment; None for the first.
    """

    at: Location
    batch: RecordBatch
    segment_base_offset: int
    previous_last_offset: int | None

    @property
    def header(self) -> BatchHeader:
        """Header fields as stored."""
        return self.batch.header


@dataclass(frozen=True, slots=True)
class Batch:
    """An intact entry of magic 2."""

    at: Location
    frame: Frame
    header: RecordBatchHeader
    records: tuple[Record, ...]

    @property
    def is_partly_checked(self) -> bool:
        """Return whether the batch has too many records: only the first were decoded, and no check of records runs."""
        return not self.records and has_very_many_records(self.header)

    def to_record_batch(self) -> RecordBatch:
        """Convert it to the model of the rest of the package."""
        return RecordBatch(self.at.position, self.header, self.records)


@dataclass(frozen=True, slots=True)
class Messages:
    """An intact entry of magic 0 or 1: a plain message, or a wrapper with the messages inside."""

    at: Location
    frame: Frame
    header: MessageHeader
    contents: MessageEntry

    @property
    def is_wrapper(self) -> bool:
        """Return whether the messages are compressed."""
        return self.header.codec_id != CompressionCodec.NONE

    def to_record_batch(self) -> RecordBatch:
        """Convert it to the model of the rest of the package."""
        return RecordBatch(self.at.position, self.header, self.contents.messages)


def decode_subject(frame: Frame, at: Location, limit: int) -> Batch | Messages:
    """Decode an entry to the subject of its checks.

    Of a batch with very many records only the first are decoded, and no records are returned: see
    `Batch.is_partly_checked`.

    Raises:
        FormatError: the entry is damaged or refused.
    """
    header = frame.header
    if isinstance(header, MessageHeader):
        verify_checksum(frame, at)
        return Messages(at, frame, header, read_message_entry(frame, at=at, limit=limit))
    if has_very_many_records(header):
        stream_frame(frame, at=at, limit=limit)
        return Batch(at, frame, header, ())
    records = decode_frame(frame, at=at, limit=limit).records
    return Batch(at, frame, header, tuple(record for record in records if isinstance(record, Record)))


# -- checks of chapter 20: order and range of entries, and the bytes after the last one -------------------------------


@dataclass(frozen=True, slots=True)
class LogTail:
    """The bytes after the last whole entry of a log file."""

    path: str
    tail: Tail

    def problems(self, kind: TailKind, expected: str) -> Iterator[Problem]:
        """Yield a problem if the tail is of that kind."""
        if self.tail.kind is kind:
            at = Location(self.path, self.tail.position, size=self.tail.size)
            yield Problem(at, expected, f"{self.tail.size} bytes: {kind.value}")


@dataclass(frozen=True, slots=True)
class LogSize:
    """The size of a log file."""

    path: str
    size: int


@checks("SEG-LOG-010")
def positions_fit(log: LogSize) -> Iterator[Problem]:
    """Report a log larger than brokers open."""
    if log.size > INT32_MAX:
        yield Problem(Location(log.path, INT32_MAX), f"at most {INT32_MAX} bytes", log.size)


@checks("SEG-LOG-002")
def no_trailing_bytes(log: LogTail) -> Iterator[Problem]:
    """Report up to 17 trailing bytes, too few for an entry."""
    yield from log.problems(TailKind.TRAILING, "the end of the log")


@checks("SEG-LOG-004")
def no_partial_entry(log: LogTail) -> Iterator[Problem]:
    """Report an entry truncated by the end of the file."""
    yield from log.problems(TailKind.PARTIAL, "a whole entry")


@checks("SEG-LOG-005")
def zero_tail(log: LogTail) -> Iterator[Problem]:
    """Report trailing zeros: preallocated space, or bytes that a file system left after a crash."""
    yield from log.problems(TailKind.ZEROS, "the end of the log")


@checks("SEG-LOG-006")
def last_offsets_increase(entry: Entry) -> Iterator[Problem]:
    """Report a last offset not above that of the entry before."""
    previous, last = entry.previous_last_offset, entry.batch.last_offset
    if previous is not None and last <= previous:
        yield Problem(entry.at.at("offset", 0, 8), f"a last offset above {previous}", last)


@checks("SEG-LOG-007")
def base_after_previous_last(entry: Entry) -> Iterator[Problem]:
    """Report entries that overlap although their last offsets are in order."""
    previous, base = entry.previous_last_offset, entry.batch.base_offset
    if previous is not None and base <= previous < entry.batch.last_offset:
        hidden = MissingOffsets(base, previous + 1)
        yield Problem(entry.at.at("offset", 0, 8), f"a base offset above {previous}", base, missing=hidden)


@checks("SEG-LOG-008")
def not_below_segment(entry: Entry) -> Iterator[Problem]:
    """Report an entry below the base offset in the file name."""
    base, least = entry.batch.base_offset, entry.segment_base_offset
    if base < least:
        is_read = entry.batch.header.base_offset is None and entry.batch.last_offset >= least
        hidden = MissingOffsets(base, least) if is_read else None  # else readers end here
        yield Problem(entry.at.at("offset", 0, 8), f"{least} or more", base, missing=hidden)


@checks("SEG-LOG-009")
def offset_span(entry: Entry) -> Iterator[Problem]:
    """Report an entry whose offset is too far above the base offset for the 31-bit relative offsets of indexes."""
    span = entry.batch.last_offset - entry.segment_base_offset
    if span > INT32_MAX:
        yield Problem(entry.at.at("offset", 0, 8), f"at most {INT32_MAX} above the segment's base offset", span)


# -- checks of chapter 31: records that can be decoded, but break a rule ----------------------------------------------


def _at(batch: Batch, index: int, name: str) -> Location:
    return batch.at.at(f"records[{index}].{name}")


@checks("SEG-REC-003")
def record_attributes(batch: Batch) -> Iterator[Problem]:
    """Report any attribute bit that is set: none is defined."""
    for index, record in enumerate(batch.records):
        if record.attributes:
            yield Problem(_at(batch, index, "attributes"), "0", record.attributes)


@checks("SEG-REC-005")
def minimal_varints(batch: Batch) -> Iterator[Problem]:
    """Report a record that takes more bytes than its values need."""
    for index, record in enumerate(batch.records):
        body = body_size(record)
        minimal = varint_size(body) + body
        if record.size_in_bytes != minimal:
            yield Problem(_at(batch, index, "length"), f"a record of {minimal} bytes", record.size_in_bytes)


@checks("SEG-REC-011")
def header_keys_are_utf8(batch: Batch) -> Iterator[Problem]:
    """Report header keys that are not UTF-8: clients decode them as UTF-8."""
    for index, record in enumerate(batch.records):
        for number, header in enumerate(record.headers):
            if not is_utf8(header.key):
                yield Problem(_at(batch, index, f"headers[{number}].key"), "UTF-8", header.key[:32].hex())


def is_utf8(data: bytes) -> bool:
    """Return whether bytes are UTF-8 text."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


@checks("SEG-REC-013")
def offset_deltas_increase(batch: Batch) -> Iterator[Problem]:
    """Report offset deltas that do not increase within the batch."""
    for index, (before, record) in enumerate(pairwise(batch.records), start=1):
        if record.offset_delta <= before.offset_delta:
            yield Problem(_at(batch, index, "offset_delta"), f"more than {before.offset_delta}", record.offset_delta)


@checks("SEG-REC-014")
def offset_deltas_in_range(batch: Batch) -> Iterator[Problem]:
    """Report offset deltas below 0, or above the last offset delta in the header."""
    last = batch.header.last_offset_delta
    for index, record in enumerate(batch.records):
        if not 0 <= record.offset_delta <= last:
            yield Problem(_at(batch, index, "offset_delta"), f"0 to {last}", record.offset_delta)


# -- checks of chapter 30: rules that a batch with a right checksum may still break -----------------------------------


@checks("SEG-BAT-014")
def unknown_attribute_bits(batch: Batch) -> Iterator[Problem]:
    """Report attribute bits 7 to 15."""
    if batch.header.unknown_attribute_bits:
        found = f"{batch.header.unknown_attribute_bits:#06x}"
        yield Problem(field(batch.at, "attributes"), "bits 7 to 15 clear", found)


@checks("SEG-BAT-015")
def max_timestamp(batch: Batch) -> Iterator[Problem]:
    """Report a maximum timestamp that differs from that of the records; only with CreateTime, and with records."""
    header = batch.header
    if header.timestamp_type is TimestampType.CREATE_TIME and batch.records:
        largest = max(record.timestamp_ms for record in batch.records)
        if header.max_timestamp_ms != largest:
            yield Problem(field(batch.at, "max_timestamp_ms"), str(largest), header.max_timestamp_ms)


@checks("SEG-BAT-019")
def lost_records(batch: Batch) -> Iterator[Problem]:
    """Report removed records, a sign of compaction."""
    offsets = batch.header.last_offset_delta + 1
    if batch.header.records_count < offsets:
        yield Problem(field(batch.at, "records_count"), f"{offsets} records", batch.header.records_count)


@checks("SEG-BAT-020")
def producer_epoch(batch: Batch) -> Iterator[Problem]:
    """Report a producer epoch without a producer id."""
    epoch, has_producer = batch.header.producer_epoch, batch.header.producer_id != NO_PRODUCER_ID
    if has_producer and epoch < 0:
        yield Problem(field(batch.at, "producer_epoch"), "0 or more with a producer id", epoch)
    if not has_producer and epoch != NO_PRODUCER_EPOCH:
        yield Problem(field(batch.at, "producer_epoch"), "-1 without a producer id", epoch)


@checks("SEG-BAT-021")
def leader_epoch(batch: Batch) -> Iterator[Problem]:
    """Report a leader epoch below -1; -1 means unknown."""
    if batch.header.partition_leader_epoch < -1:
        found = batch.header.partition_leader_epoch
        yield Problem(field(batch.at, "partition_leader_epoch"), "-1 or greater", found)


@checks("SEG-BAT-022")
def transaction_needs_producer(batch: Batch) -> Iterator[Problem]:
    """Report a transactional batch without a producer id: no end marker could end its transaction."""
    if batch.header.is_transactional and batch.header.producer_id < 0:
        yield Problem(field(batch.at, "producer_id"), "0 or more in a transaction", batch.header.producer_id)


@checks("SEG-BAT-023")
def control_not_compressed(batch: Batch) -> Iterator[Problem]:
    """Report a compressed control batch; brokers never write one."""
    if batch.header.is_control and batch.header.codec_id:
        yield Problem(field(batch.at, "attributes"), "codec none in a control batch", batch.header.codec_id)


@checks("SEG-BAT-024")
def data_needs_sequence(batch: Batch) -> Iterator[Problem]:
    """Report a data batch without a sequence; control batches have -1."""
    header = batch.header
    if header.producer_id >= 0 and not header.is_control and header.base_sequence < 0:
        yield Problem(field(batch.at, "base_sequence"), "0 or more with a producer id", header.base_sequence)


# -- checks of chapter 32. Errors of the decoder of control records are reported under the ids that they name ---------


def control_records(batch: Batch) -> Iterator[ControlRecord]:
    """Yield the control records of a batch that can be decoded; none for a data batch."""
    for record in batch.records if batch.header.is_control else ():
        try:
            yield decode_control_record(record.key, record.value, batch.at, controls_of(batch.frame))
        except FormatError:
            continue


def refusals(batch: Batch) -> Iterator[Finding]:
    """Yield findings about the control records that cannot be decoded (SEG-CTL-001, SEG-CTL-004, SEG-CTL-006)."""
    for index, record in enumerate(batch.records if batch.header.is_control else ()):
        try:
            at = batch.at.at(f"records[{index}]")
            decode_control_record(record.key, record.value, at, controls_of(batch.frame))
        except FormatError as error:
            yield Finding.of_error(error)


@checks("SEG-CTL-003")
def known_types(batch: Batch) -> Iterator[Problem]:
    """Report a type that the specification does not list."""
    for record in control_records(batch):
        if record.type is None:
            yield Problem(batch.at.at("records"), "a control record of type 0 to 6", record.type_id)


@checks("SEG-CTL-005")
def end_marker_batch(batch: Batch) -> Iterator[Problem]:
    """Report an end marker in a form that coordinators do not write."""
    if not any(record.type in END_MARKER_TYPES for record in control_records(batch)):
        return
    if len(batch.records) > 1:
        yield Problem(field(batch.at, "records_count"), "one end marker", len(batch.records))
    if not batch.header.is_transactional:
        yield Problem(field(batch.at, "attributes"), "a transactional batch", f"{batch.header.attributes:#06x}")
    if batch.header.base_sequence != NO_SEQUENCE:
        yield Problem(field(batch.at, "base_sequence"), str(NO_SEQUENCE), batch.header.base_sequence)


# -- checks of chapter 33: rules that a message or wrapper with a right checksum may still break ----------------------


@checks("SEG-MSG-006")
def nothing_after_value(entry: Messages) -> Iterator[Problem]:
    """Report bytes after the value, of the outermost message and of inner ones."""
    contents = entry.contents
    if contents.trailing_size:
        yield Problem(entry.at.at("value"), "the end of the message", f"{contents.trailing_size} more bytes")
    for index, size in enumerate(contents.inner_trailing_sizes):
        if size:
            yield Problem(entry.at.at(f"messages[{index}].value"), "the end of the message", f"{size} more bytes")


@checks("SEG-MSG-016")
def inner_checksums(entry: Messages) -> Iterator[Problem]:
    """Report a wrong checksum of an inner message; brokers check them on produce only."""
    for index, message in enumerate(entry.contents.messages):
        if entry.is_wrapper and not message.is_valid:
            location = entry.at.at(f"messages[{index}].crc")
            yield Problem(location, "the checksum of the message", f"{message.crc:#010x}")


@checks("SEG-MSG-019")
def last_message_is_whole(entry: Messages) -> Iterator[Problem]:
    """Report a truncated last message, which brokers drop silently."""
    size = entry.contents.dropped_size
    if size:
        index = len(entry.contents.messages)
        yield Problem(entry.at.at(f"messages[{index}]"), "a whole message", f"the first {size} bytes of one")


@checks("SEG-MSG-020")
def unknown_message_bits(entry: Messages) -> Iterator[Problem]:
    """Report bits 3 to 7 in magic 0, 4 to 7 in magic 1."""
    if entry.header.unknown_attribute_bits:
        found = f"{entry.header.unknown_attribute_bits & 0xFF:#04x}"
        yield Problem(entry.at.at("attributes", 17, 1), "bits without a meaning clear", found)


@checks("SEG-MSG-021")
def wrapper_timestamp(entry: Messages) -> Iterator[Problem]:
    """Report a wrapper's timestamp below the maximum inside; with LogAppendTime the wrapper's own is valid."""
    header = entry.header
    if entry.is_wrapper and header.timestamp_type is TimestampType.CREATE_TIME:
        largest = max(message.timestamp_ms for message in entry.contents.messages)
        if header.timestamp_ms != largest:
            yield Problem(entry.at.at("timestamp_ms", 18, 8), str(largest), header.timestamp_ms)


@checks("SEG-MSG-022")
def inner_offsets_increase(entry: Messages) -> Iterator[Problem]:
    """Report offsets that do not increase within the wrapper."""
    for index, (before, message) in enumerate(pairwise(entry.contents.messages), start=1):
        if message.offset <= before.offset:
            location = entry.at.at(f"messages[{index}].offset")
            yield Problem(location, f"more than {before.stored_offset}", message.stored_offset)


@checks("SEG-MSG-023")
def wrapper_key(entry: Messages) -> Iterator[Problem]:
    """Report a key of the wrapper, which would belong to no message."""
    if entry.is_wrapper and entry.contents.key is not None:
        yield Problem(entry.at.at("key"), "null in a wrapper", f"{len(entry.contents.key)} bytes")


@checks("SEG-MSG-024")
def wrapper_offset(entry: Messages) -> Iterator[Problem]:
    """Report a wrong offset of a wrapper of magic 1: inner offsets are relative to it, unless it is 0 (SEG-MSG-013)."""
    last = entry.contents.messages[-1].offset
    if entry.is_wrapper and entry.header.magic == 0 and entry.header.offset != last:
        yield Problem(entry.at.at("offset", 0, 8), f"{last}, the offset of the last message", entry.header.offset)


# -- checks of chapter 34: bytes that decompression ignores -----------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Compressed:
    """The compressed part of an intact entry.

    Attributes:
        at: location of its start.
        codec: of the entry; `CompressionCodec.NONE` if it is not compressed.
        trailing_size: number of bytes at its end that a reader ignores.
    """

    at: Location
    codec: CompressionCodec
    trailing_size: int

    def problem(self) -> Problem:
        """Return the problem that bytes follow the compressed data."""
        return Problem(self.at, "the end of the compressed data", f"{self.trailing_size} more bytes")


def compressed_part(subject: Batch | Messages, limit: int) -> Compressed:
    """Return the compressed part of an entry that was decoded within this limit."""
    codec_id, magic = subject.header.codec_id, subject.header.magic
    start, end = _records(subject) if isinstance(subject, Batch) else _value(subject)
    at = subject.at.at("records" if isinstance(subject, Batch) else "value", start, end - start)
    if codec_id == CompressionCodec.NONE or start == end:
        return Compressed(at, CompressionCodec.NONE, 0)
    headers = containers_of(subject.frame)
    size = trailing_size(codec_id, subject.frame.data[start:end], magic=magic, at=at, limit=limit, headers=headers)
    return Compressed(at.at(at.field, end - start - size, size), CompressionCodec(codec_id), size)


def _records(batch: Batch) -> tuple[int, int]:
    return RECORD_BATCH_HEADER_SIZE, len(batch.frame.data)


def _value(messages: Messages) -> tuple[int, int]:
    """Return start and end of the value of the outermost message."""
    lengths = 2 * BYTES_LENGTH.size
    start = MESSAGE_HEADERS[messages.header.magic].size + lengths + len(messages.contents.key or b"")
    return start, len(messages.frame.data) - messages.contents.trailing_size


@checks("SEG-COD-011")
def after_lz4_frame(compressed: Compressed) -> Iterator[Problem]:
    """Report bytes after the lz4 frame, perhaps a second one, which is never read."""
    if compressed.codec is CompressionCodec.LZ4 and compressed.trailing_size:
        yield compressed.problem()


@checks("SEG-COD-018")
def after_gzip_members(compressed: Compressed) -> Iterator[Problem]:
    """Report bytes that start no further gzip member."""
    if compressed.codec is CompressionCodec.GZIP and compressed.trailing_size:
        yield compressed.problem()


@checks("SEG-COD-019")
def after_snappy_blocks(compressed: Compressed) -> Iterator[Problem]:
    """Report bytes too few for the length of a snappy block."""
    if compressed.codec is CompressionCodec.SNAPPY and compressed.trailing_size:
        yield compressed.problem()
