"""Records of an entry: of a batch, of a message, of a wrapper (chapters 30, 31, 33 and 34)."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from seglog_algorithms.damage import Damage, or_none
from seglog_algorithms.entries import HEADER_SIZE, LAST_OFFSET, NO_TIMESTAMP, Entry, check_offsets, crc32
from seglog_format.schema.fields import CONSTRUCT_ERRORS
from seglog_format.schema.message_set import MESSAGES, MessageV0Header
from seglog_format.schema.record import Record as RecordSchema
from seglog_format.schema.tracing import trace

if TYPE_CHECKING:
    from collections.abc import Iterator

Decompress: TypeAlias = Callable[[int, bytes, int], bytes]
"""Returns the content of compressed bytes: codec, bytes, magic. Raises `Damage` with a rule of chapter 34."""

NO_CODEC: Final = 0
ZSTD: Final = 4
SEQUENCES: Final = 2**31
MIN_MESSAGE_SIZES: Final = {0: 14, 1: 22}
"""Smallest size field of a message, by magic (SEG-MSG-003)."""


@dataclass(frozen=True, slots=True)
class Record:
    """A record, or a message of magic 0 or 1, as readers see it.

    Attributes:
        offset: absolute.
        timestamp_ms: or -1.
        key: None for null.
        value: None for null; in magic 2 a tombstone.
        headers: pairs of key and value, in order.
        sequence: of its producer, or -1.
        attributes: its own byte of attributes.
        is_log_append_time: whether a broker wrote the timestamp.
        magic: 2 for a record, 0 or 1 for a message.
    """

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    sequence: int = -1
    attributes: int = 0
    is_log_append_time: bool = False
    magic: int = 2


def records_of(entry: Entry, decompress: Decompress) -> tuple[Record, ...]:
    """Return the records of an entry. Its own checksum is not checked (`check_crc`).

    Raises:
        Damage: header, compressed data, a record or a message inside breaks a rule.
    """
    check_offsets(entry)
    return tuple(_records(entry, decompress) if entry.is_batch else _messages(entry, decompress))


def records_section(entry: Entry, decompress: Decompress) -> bytes:
    """Return the records section of a batch, decompressed."""
    stored = entry.data[HEADER_SIZE:]
    if entry.codec == NO_CODEC or not (entry.header.records_count or stored):  # SEG-BAT-018
        return stored
    return _decompressed(entry, stored, decompress)


def _decompressed(entry: Entry, stored: bytes, decompress: Decompress) -> bytes:
    if entry.codec > ZSTD:
        raise Damage("SEG-COD-001", entry.position, f"codec {entry.codec}")
    try:
        return decompress(entry.codec, stored, entry.magic)
    except Damage as damage:
        raise Damage(damage.rule, entry.position, damage.text) from None


def parsed(declaration: Any, stream: io.BytesIO, at: int) -> Any:  # noqa: ANN401 - construct is untyped
    """Parse a structure by its declaration; a failure names the rule of the field at which the bytes end or are wrong.

    Raises:
        Damage: the bytes do not fit the declaration.
    """
    start = stream.tell()
    try:
        return declaration.parse_stream(stream)
    except CONSTRUCT_ERRORS as error:
        failed = trace(declaration, stream.getvalue()[start:]).failed
        assert failed is not None
        rule = getattr(error, "requirement", "") or failed.doc.requirements[0]
        raise Damage(rule, at, f"field {failed.name}") from None


def _records(entry: Entry, decompress: Decompress) -> Iterator[Record]:
    section = records_section(entry, decompress)
    stream = io.BytesIO(section)
    for _ in range(entry.header.records_count):
        if stream.tell() == len(section):  # SEG-BAT-008
            raise Damage("SEG-BAT-008", entry.position, "too few records")
        yield _record(entry, stream)
    if stream.tell() < len(section):  # SEG-BAT-008
        raise Damage("SEG-BAT-008", entry.position, "bytes after the last record")


def first_record(entry: Entry) -> Record:
    """Return the first record of a batch that is not compressed, whatever follows it."""
    return _record(entry, io.BytesIO(entry.data[HEADER_SIZE:]))


def _record(entry: Entry, stream: io.BytesIO) -> Record:
    fields = parsed(RecordSchema, stream, entry.position)
    if fields.end - fields.start != fields.length:  # SEG-REC-001
        raise Damage("SEG-REC-001", entry.position, f"length {fields.length}")
    offset = entry.header.base_offset + fields.offset_delta  # SEG-REC-012
    if not 0 <= offset <= LAST_OFFSET + 1:  # SEG-REC-014
        raise Damage("SEG-REC-014", entry.position, f"offset {offset}")
    return Record(
        offset,
        _timestamp_of(entry, fields.timestamp_delta),
        fields.key,
        fields.value,
        tuple((header.key, header.value) for header in fields.headers),  # SEG-REC-010
        sequence_of(entry.header.base_sequence, fields.offset_delta),
        fields.attributes,
        entry.is_log_append_time,
    )


def _timestamp_of(entry: Entry, delta: int) -> int:
    if entry.is_log_append_time:  # SEG-BAT-011
        return entry.max_timestamp_ms
    return int((entry.header.base_timestamp_ms + delta + 2**63) % 2**64 - 2**63)  # SEG-BAT-012


def sequence_of(base_sequence: int, delta: int) -> int:
    """Return the sequence number of a record (SEG-REC-015) or the last one of a batch (SEG-BAT-017)."""
    return -1 if base_sequence < 0 else (base_sequence + delta) % SEQUENCES


def first_offset(entry: Entry, decompress: Decompress) -> int:
    """Return the first offset of an entry; of a wrapper that cannot be decompressed, its last."""
    if entry.first_offset is not None:
        return entry.first_offset
    records = or_none(records_of, entry, decompress)
    return records[0].offset if records else entry.last_offset


# Chapter 33


def _messages(entry: Entry, decompress: Decompress) -> Iterator[Record]:
    outer = _message(entry.data, entry.position)
    if entry.codec == NO_CODEC:
        yield _as_record(entry, outer, entry.header.offset)
        return
    inner = _inner(entry, _wrapped(entry, outer, decompress))
    base = _base_of(entry, inner[-1].offset)
    for message in inner:
        if not 0 <= base + message.offset <= LAST_OFFSET + 1:  # SEG-MSG-025
            raise Damage("SEG-MSG-025", entry.position, f"offset {base + message.offset}")
        yield _as_record(entry, message, base + message.offset)


def _message(data: bytes, at: int) -> Any:  # noqa: ANN401 - construct is untyped
    magic = MessageV0Header.parse(data).magic
    if magic not in MESSAGES:  # SEG-MSG-026
        raise Damage("SEG-MSG-026", at, f"magic {magic}")
    if len(data) - 12 < MIN_MESSAGE_SIZES[magic]:  # SEG-MSG-003
        raise Damage("SEG-MSG-003", at, f"size {len(data) - 12}")
    return parsed(MESSAGES[magic], io.BytesIO(data), at)  # SEG-MSG-001, SEG-MSG-002, SEG-MSG-005


def _wrapped(entry: Entry, outer: Any, decompress: Decompress) -> bytes:  # noqa: ANN401 - as above
    if entry.codec == ZSTD:  # SEG-MSG-018
        raise Damage("SEG-MSG-018", entry.position, "zstd")
    if outer.value is None:  # SEG-MSG-009
        raise Damage("SEG-MSG-009", entry.position, "null")
    return _decompressed(entry, outer.value, decompress)


def _inner(entry: Entry, data: bytes) -> list[Any]:
    """Return the messages inside a wrapper."""
    found, position = [], 0
    while len(data) - position >= 12:
        size = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
        if size < MIN_MESSAGE_SIZES[0]:  # SEG-MSG-003
            raise Damage("SEG-MSG-003", entry.position, f"size {size} inside")
        end = position + 12 + size
        if end > len(data):  # SEG-MSG-019
            break
        found.append(_inner_message(entry, data[position:end]))
        position = end
    if not found:  # SEG-MSG-009
        raise Damage("SEG-MSG-009", entry.position, "no message inside")
    return found


def _inner_message(entry: Entry, data: bytes) -> Any:  # noqa: ANN401 - as above
    message = _message(data, entry.position)
    if message.attributes & 7:  # SEG-MSG-010
        raise Damage("SEG-MSG-010", entry.position, "compressed inside")
    if message.crc != crc32(data[16:]):  # SEG-MSG-016
        raise Damage("SEG-MSG-016", entry.position, f"checksum {message.crc:#010x} inside")
    return message


def _base_of(wrapper: Entry, last: int) -> int:
    """Return what the offsets inside a wrapper count from."""
    if wrapper.magic == 0 or wrapper.header.offset == 0:  # SEG-MSG-011, SEG-MSG-013, SEG-MSG-017
        return 0
    if wrapper.header.offset < last:  # SEG-MSG-014
        raise Damage("SEG-MSG-014", wrapper.position, f"offset {wrapper.header.offset} below {last}")
    return int(wrapper.header.offset - last)  # SEG-MSG-012


def _as_record(wrapper: Entry, message: Any, offset: int) -> Record:  # noqa: ANN401 - as above
    is_log_append_time = message.magic > 0 and wrapper.is_log_append_time  # SEG-MSG-015
    if message.magic == 0:  # SEG-MSG-008
        timestamp_ms = NO_TIMESTAMP
    else:
        timestamp_ms = wrapper.max_timestamp_ms if is_log_append_time else message.timestamp_ms
    return Record(
        offset,
        timestamp_ms,
        message.key,  # SEG-MSG-007
        message.value,
        attributes=message.attributes,
        is_log_append_time=is_log_append_time,
        magic=message.magic,
    )
