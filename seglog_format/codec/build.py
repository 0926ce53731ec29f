"""Construction of batches from records, with header fields as brokers and clients compute them (chapters 30 to 33).

A built batch has no size and no checksum yet; encoding computes both. The functions at the end return encoded entries
with other header fields, as a leader sets them when it appends an entry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checksum import crc32, crc32c
from seglog_format.errors import UsageError, require_bytes, require_instance, require_integer
from seglog_format.layouts import MESSAGE_V1_HEADER_LAYOUT, RECORD_BATCH_HEADER_LAYOUT
from seglog_format.model import (
    CODEC_MASK,
    CONTROL_BIT,
    INT32_MAX,
    INT64_MAX,
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    CompressionCodec,
    ControlRecordType,
    Message,
    MessageHeader,
    Record,
    RecordBatch,
    RecordBatchHeader,
    RecordHeader,
    TimestampType,
    add_sequence,
)
from seglog_format.schema.control_record import KRAFT_VALUES, ControlRecordKey, EndTransactionMarker
from seglog_format.schema.fixed_fields import ATTRIBUTES_POSITION, MAGIC_POSITION
from seglog_format.schema.protocol import TAGGED_FIELDS, declaration

if TYPE_CHECKING:
    from seglog_format.storage.byte_source import Buffer

MAGIC_2: Final = 2


OFFSET: Final = RECORD_BATCH_HEADER_LAYOUT.slot("base_offset")
LEADER_EPOCH: Final = RECORD_BATCH_HEADER_LAYOUT.slot("partition_leader_epoch")
CRC: Final = RECORD_BATCH_HEADER_LAYOUT.slot("crc")
MESSAGE_CRC: Final = MESSAGE_V1_HEADER_LAYOUT.slot("crc")

STAMPED: Final = {
    1: (MESSAGE_V1_HEADER_LAYOUT.slot("attributes"), MESSAGE_V1_HEADER_LAYOUT.slot("timestamp_ms"), CODEC_MASK),
    2: (RECORD_BATCH_HEADER_LAYOUT.slot("attributes"), RECORD_BATCH_HEADER_LAYOUT.slot("max_timestamp_ms"), 0x7F),
}
"""By magic: layout of attributes and timestamp in the header, and the attribute bits kept when they are written."""


def new_record(
    *,
    key: bytes | None = None,
    value: bytes | None = None,
    headers: Sequence[RecordHeader | tuple[bytes, bytes | None]] = (),
    timestamp_ms: int = NO_TIMESTAMP,
) -> Record:
    """Create a record without an offset, and without a timestamp (-1) unless you give one, as every producer does.

    Args:
        key: bytes, or None for null.
        value: bytes, or None for null: in a compacted topic, it deletes the key.
        headers: in order; each a `RecordHeader`, or a pair of key and value.
        timestamp_ms: milliseconds since 1970, or -1 for none; 64 bits.

    Raises:
        UsageError: a key or value is not bytes, a header is not a pair of bytes, or the timestamp is not an
            integer of 64 bits.

    Examples:
        >>> from seglog_format import new_record
        >>> new_record(key=b"alice", value=b"12 apples", timestamp_ms=1_700_000_000_000).value
        b'12 apples'
    """
    require_bytes("key", key)
    require_bytes("value", value)
    require_integer("timestamp_ms", timestamp_ms)
    require_instance("headers", headers, Sequence)
    return Record(-1, timestamp_ms, key, value, tuple(map(_header, headers)))


def _header(header: RecordHeader | tuple[bytes, bytes | None]) -> RecordHeader:
    if not isinstance(header, RecordHeader):
        require_instance("header", header, tuple)
        header = RecordHeader(*header)
    require_instance("header key", header.key, bytes)
    require_bytes("header value", header.value)
    return header


def build_batch(  # noqa: PLR0913 - each is a field of the header
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    codec: CompressionCodec = CompressionCodec.NONE,
    log_append_time_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
    keeps_offsets: bool = False,
) -> RecordBatch:
    """Build a record batch of magic 2 as a producer does.

    Args:
        records: one or more; timestamp, key, value, headers and attributes are used.
        base_offset: of the batch; the records take the offsets from there on.
        codec: how the records are compressed.
        log_append_time_ms: the broker's time, which replaces the records' own; None for CreateTime.
        producer_id: or -1.
        producer_epoch: or -1.
        base_sequence: sequence number of the first record, or -1.
        is_transactional: whether the batch belongs to a transaction.
        is_control: whether the records are control records.
        partition_leader_epoch: or -1.
        keeps_offsets: whether records keep their offsets, which must increase from `base_offset` or above.

    Raises:
        UsageError: there are no records, a number does not fit its field, or the offsets do not increase.

    Examples:
        >>> from seglog_format import CompressionCodec, build_batch, new_record
        >>> records = [new_record(value=b"1"), new_record(value=b"2")]
        >>> batch = build_batch(records, base_offset=7, codec=CompressionCodec.ZSTD)
        >>> [record.offset for record in batch.records]
        [7, 8]
    """
    require_records(records)
    for name, number, bits in (
        ("base_offset", base_offset, 64),
        ("log_append_time_ms", 0 if log_append_time_ms is None else log_append_time_ms, 64),
        ("producer_id", producer_id, 64),
        ("producer_epoch", producer_epoch, 16),
        ("base_sequence", base_sequence, 32),
        ("partition_leader_epoch", partition_leader_epoch, 32),
    ):
        require_integer(name, number, bits=bits)
    require_instance("codec", codec, CompressionCodec)
    offsets = [record.offset for record in records] if keeps_offsets else _consecutive(base_offset, len(records))
    _check_offsets(offsets, base_offset)
    base_timestamp_ms = records[0].timestamp_ms
    largest_ms = max(record.timestamp_ms for record in records)
    header = RecordBatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=partition_leader_epoch,
        magic=MAGIC_2,
        crc=0,
        attributes=_attributes(codec, log_append_time_ms, is_transactional=is_transactional, is_control=is_control),
        last_offset_delta=offsets[-1] - base_offset,
        base_timestamp_ms=base_timestamp_ms,
        max_timestamp_ms=largest_ms if log_append_time_ms is None else log_append_time_ms,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        records_count=len(records),
    )
    placed = (_placed(record, offset, header) for record, offset in zip(records, offsets, strict=True))
    return RecordBatch(0, header, tuple(placed))


def require_records(records: object) -> None:
    """Check that an argument is a sequence of records.

    Raises:
        UsageError: it is not.
    """
    require_instance("records", records, Sequence)
    assert isinstance(records, Sequence)
    if not all(isinstance(record, Record) for record in records):
        for record in records:
            require_instance("record", record, Record)


def _consecutive(base_offset: int, count: int) -> list[int]:
    return list(range(base_offset, base_offset + count))


def _check_offsets(offsets: Sequence[int], base_offset: int) -> None:
    if not offsets:
        msg = "a batch needs at least one record"
        raise UsageError(msg)
    if not 0 <= base_offset <= offsets[0] or offsets[-1] > min(INT64_MAX, base_offset + INT32_MAX):
        msg = f"offsets {offsets[0]} to {offsets[-1]} do not fit a batch from {base_offset} on"
        raise UsageError(msg)
    if any(later <= earlier for earlier, later in pairwise(offsets)):
        msg = "offsets of the records of a batch strictly increase (SEG-REC-013)"
        raise UsageError(msg)


def _attributes(
    codec: CompressionCodec, log_append_time_ms: int | None, *, is_transactional: bool, is_control: bool
) -> int:
    return (
        codec
        | (TIMESTAMP_TYPE_BIT if log_append_time_ms is not None else 0)
        | (TRANSACTIONAL_BIT if is_transactional else 0)
        | (CONTROL_BIT if is_control else 0)
    )


def _placed(record: Record, offset: int, header: RecordBatchHeader) -> Record:
    delta = offset - header.base_offset
    log_append = header.attributes & TIMESTAMP_TYPE_BIT
    return Record(
        offset,
        header.max_timestamp_ms if log_append else record.timestamp_ms,
        record.key,
        record.value,
        record.headers,
        NO_SEQUENCE if header.base_sequence == NO_SEQUENCE else add_sequence(header.base_sequence, delta),
        record.attributes,
        record.timestamp_ms - header.base_timestamp_ms,
        delta,
        0,
        TimestampType.LOG_APPEND_TIME if log_append else TimestampType.CREATE_TIME,
    )


def build_message_entry(
    records: Sequence[Record],
    *,
    magic: int,
    base_offset: int = 0,
    codec: CompressionCodec = CompressionCodec.NONE,
    log_append_time_ms: int | None = None,
) -> RecordBatch:
    """Build a message of magic 0 or 1, or the wrapper around several compressed ones.

    Args:
        records: timestamp, key and value are used; exactly one without compression.
        magic: 0 or 1.
        base_offset: offset of the first message.
        codec: of the wrapper.
        log_append_time_ms: the broker's time, which replaces the records' own; None for CreateTime.

    Raises:
        UsageError: the magic is not 0 or 1, a record has headers, the number of records is wrong, or a number does not
            fit its field.

    Examples:
        >>> from seglog_format import CompressionCodec, build_message_entry, encode_batch, new_record
        >>> records = [new_record(value=b"1"), new_record(value=b"2")]
        >>> wrapper = build_message_entry(records, magic=1, base_offset=7, codec=CompressionCodec.GZIP)
        >>> wrapper.header.offset, [message.offset for message in wrapper.records]
        (8, [7, 8])
    """
    require_records(records)
    require_integer("base_offset", base_offset)
    require_integer("log_append_time_ms", 0 if log_append_time_ms is None else log_append_time_ms)
    require_instance("codec", codec, CompressionCodec)
    if magic not in {0, 1} or any(record.headers for record in records):
        msg = f"messages are of magic 0 or 1 and have no headers; magic {magic}"
        raise UsageError(msg)
    if not records or (codec is CompressionCodec.NONE and len(records) > 1):
        msg = f"{len(records)} messages do not make one entry of codec {codec.label}"
        raise UsageError(msg)
    largest_ms = max(record.timestamp_ms for record in records) if magic else NO_TIMESTAMP
    header = MessageHeader(
        offset=base_offset + len(records) - 1,
        message_size=0,
        crc=0,
        magic=magic,
        attributes=codec | (TIMESTAMP_TYPE_BIT if magic and log_append_time_ms is not None else 0),
        timestamp_ms=largest_ms if not magic or log_append_time_ms is None else log_append_time_ms,
    )
    inner = enumerate(records)
    return RecordBatch(0, header, tuple(_message(record, number, base_offset, header) for number, record in inner))


def _message(record: Record, number: int, base_offset: int, header: MessageHeader) -> Message:
    log_append = header.attributes & TIMESTAMP_TYPE_BIT
    is_plain = not header.codec_id
    return Message(
        offset=base_offset + number,
        timestamp_ms=header.timestamp_ms if log_append or not header.magic else record.timestamp_ms,
        key=record.key,
        value=record.value,
        magic=header.magic,
        crc=0,
        is_valid=True,
        attributes=header.attributes if is_plain else 0,
        stored_offset=base_offset + number if is_plain or not header.magic else number,  # SEG-MSG-012
        stored_timestamp_ms=header.timestamp_ms if is_plain else record.timestamp_ms,
        timestamp_type=header.timestamp_type,
    )


def with_offset(data: Buffer, offset: int, leader_epoch: int | None = None) -> bytes:
    """Return an encoded entry with another offset; the checksum does not cover the offset (SEG-BAT-010).

    Args:
        data: one whole entry.
        offset: base offset of a record batch; offset of a message, or of the last message in a wrapper.
        leader_epoch: of the leader that appends it; None for no change. Messages have none.
    """
    changed = bytearray(data)
    OFFSET.write(changed, offset)  # SEG-APP-003, SEG-APP-018: the checksum stays unchanged (SEG-APP-020)
    if leader_epoch is not None and changed[MAGIC_POSITION] == MAGIC_2:
        LEADER_EPOCH.write(changed, leader_epoch)
    return bytes(changed)


def with_timestamps(data: Buffer, timestamp_type: TimestampType, max_timestamp_ms: int) -> bytes:
    """Return an encoded entry with this timestamp type and largest timestamp in its header (SEG-APP-010, SEG-APP-026).

    Deltas and inner messages stay unchanged. An entry of magic 0, or one that already has both values, is returned
    unchanged. In any other entry the checksum is computed again, and undefined attribute bits are set to 0.

    Args:
        data: one whole entry.
        timestamp_type: CreateTime or LogAppendTime.
        max_timestamp_ms: of a batch or wrapper; the timestamp of a plain message.
    """
    magic = memoryview(data)[MAGIC_POSITION]
    if magic == 0:
        return bytes(data)
    changed = bytearray(data)
    attributes, timestamp, known_bits = STAMPED[magic]
    old = attributes.read(changed)
    bit = TIMESTAMP_TYPE_BIT if timestamp_type is TimestampType.LOG_APPEND_TIME else 0
    if old & TIMESTAMP_TYPE_BIT == bit and timestamp.read(changed) == max_timestamp_ms:
        return bytes(data)
    attributes.write(changed, old & known_bits & ~TIMESTAMP_TYPE_BIT | bit)
    timestamp.write(changed, max_timestamp_ms)
    return sealed(changed)


def sealed(entry: bytearray) -> bytes:
    """Compute the checksum of an encoded entry, and return the entry with it."""
    if entry[MAGIC_POSITION] == MAGIC_2:
        CRC.write(entry, crc32c(memoryview(entry)[ATTRIBUTES_POSITION:]))
    else:
        MESSAGE_CRC.write(entry, crc32(memoryview(entry)[MAGIC_POSITION:]))
    return bytes(entry)


CONTROL_KEY_VERSION: Final = 0
END_MARKER_VERSION: Final = 0


def build_control_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> RecordBatch:
    """Build a control batch: of end markers with a producer id, else of KRaft records (SEG-CTL-007, SEG-CTL-011).

    Args:
        records: see `control_record`.
        base_offset: of the batch.
        producer_id: of the producer whose transaction ends; -1 for KRaft.
        producer_epoch: of that producer; -1 for KRaft.
        partition_leader_epoch: or -1.
    """
    return build_batch(
        records,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=producer_id != NO_PRODUCER_ID,
        is_control=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def build_end_marker(  # noqa: PLR0913 - each is a field of the marker
    kind: ControlRecordType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> RecordBatch:
    """Build the batch that ends a transaction.

    Args:
        kind: ABORT or COMMIT.
        producer_id: of the producer whose transaction ends.
        producer_epoch: of that producer.
        coordinator_epoch: of the transaction coordinator.
        timestamp_ms: when it ends.
        base_offset: of the batch.
        partition_leader_epoch: or -1.

    Raises:
        UsageError: the kind is neither ABORT nor COMMIT.

    Examples:
        >>> from seglog_format import ControlRecordType, build_end_marker
        >>> marker = build_end_marker(
        ...     ControlRecordType.COMMIT, producer_id=4, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1000
        ... )
        >>> marker.header.is_control
        True
    """
    if kind not in {ControlRecordType.ABORT, ControlRecordType.COMMIT}:
        msg = f"{kind.name} does not end a transaction"
        raise UsageError(msg)
    fields = {"version": END_MARKER_VERSION, "coordinatorEpoch": coordinator_epoch}
    return build_control_batch(
        [control_record(kind, fields, timestamp_ms=timestamp_ms)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
    )


def control_record(kind: ControlRecordType, fields: Mapping[str, object], *, timestamp_ms: int) -> Record:
    """Create a control record.

    Args:
        kind: its type.
        fields: of its value, as `ControlRecord.fields` holds them; ``version`` chooses the layout.
        timestamp_ms: of the record.
    """
    key = ControlRecordKey.build({"version": CONTROL_KEY_VERSION, "type": int(kind)})
    definition = KRAFT_VALUES.get(kind)
    layout = EndTransactionMarker if definition is None else declaration(definition, _version(fields))
    return new_record(key=bytes(key), value=bytes(layout.build(_with_tagged_fields(fields))), timestamp_ms=timestamp_ms)


def _with_tagged_fields(value: object) -> object:
    """Add the empty tagged fields at the end of every structure."""
    if isinstance(value, Mapping):
        return {name: _with_tagged_fields(item) for name, item in value.items()} | {TAGGED_FIELDS: {}}
    return [_with_tagged_fields(item) for item in value] if isinstance(value, list) else value


def _version(fields: Mapping[str, object]) -> int:
    version = fields.get("version", 0)
    assert isinstance(version, int)
    return version
