"""Replace the content of the entries of a log; offsets, sequences, attributes and sizes of uncompressed ones stay."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checksum import crc32, crc32c
from seglog_format.codec.compression import decompress
from seglog_format.codec.decode import computed_crc
from seglog_format.codec.encode import compress
from seglog_format.errors import FormatError, Location
from seglog_format.generation.pseudonyms import PLAUSIBLE
from seglog_format.layouts import MESSAGE_V0_HEADER_LAYOUT, MESSAGE_V1_HEADER_LAYOUT, RECORD_BATCH_HEADER_LAYOUT
from seglog_format.model import ENTRY_PREFIX_SIZE, BatchHeader, CompressionCodec, Frame, RecordBatchHeader
from seglog_format.schema.fields import unzigzag
from seglog_format.schema.fixed_fields import (
    ATTRIBUTES_POSITION,
    BYTES_LENGTH,
    ENTRY_PREFIX,
    MAGIC_POSITION,
    MESSAGE_HEADERS,
    RECORD_BATCH_HEADER_SIZE,
    SIZE_POSITION,
)

if TYPE_CHECKING:
    from seglog_format.generation.anonymous_messages import MessageReplacer, Replaced
    from seglog_format.generation.pseudonyms import Pseudonyms
    from seglog_format.storage.byte_source import Buffer

NOWHERE: Final = Location()
BATCH_SIZE_SLOT: Final = RECORD_BATCH_HEADER_LAYOUT.slot("batch_length")
BATCH_CRC: Final = RECORD_BATCH_HEADER_LAYOUT.slot("crc")
BATCH_TIMES: Final = tuple(map(RECORD_BATCH_HEADER_LAYOUT.slot, ("base_timestamp_ms", "max_timestamp_ms")))
MESSAGE_SIZE_SLOT: Final = MESSAGE_V0_HEADER_LAYOUT.slot("message_size")
MESSAGE_CRC: Final = MESSAGE_V0_HEADER_LAYOUT.slot("crc")
MESSAGE_TIME: Final = MESSAGE_V1_HEADER_LAYOUT.slot("timestamp_ms")
MAX_VARINT: Final = 10
PLAUSIBLE_COUNT: Final = 1 << 28
"""Numbers of records in a batch are below it; 4 bytes of text, read as a number, are above."""


class _UnreadableError(Exception):
    """The bytes from here on are no records."""


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry after replacement.

    Attributes:
        data: its bytes.
        problem: why a part of it could not be read, and was replaced as a whole; empty if all of it was read.
    """

    data: bytes
    problem: str = ""


class EntryReplacer:
    """Replaces the content of entries.

    Args:
        pseudonyms: the replacements.
        messages: replaces keys and values.
    """

    def __init__(self, pseudonyms: Pseudonyms, messages: MessageReplacer) -> None:
        self._pseudonyms = pseudonyms
        self._messages = messages
        self._problem = ""

    def entry(self, frame: Frame) -> NewEntry:
        """Replace the content of an entry."""
        self._problem = ""
        data = bytearray(frame.data)
        error = frame.header.crc ^ computed_crc(frame)
        if error and not _is_plausible(frame.header):
            return NewEntry(self.unreadable(bytes(data)), "its header is damaged")
        if isinstance(frame.header, RecordBatchHeader):
            new = self._batch(data, frame.header, is_damaged=bool(error))
            BATCH_CRC.write(new, crc32c(memoryview(new)[ATTRIBUTES_POSITION:]) ^ error)
        else:
            new = self._outer_message(data, is_damaged=bool(error))
            MESSAGE_CRC.write(new, crc32(memoryview(new)[MAGIC_POSITION:]) ^ error)
        return NewEntry(bytes(new), self._problem)

    def unreadable(self, data: bytes) -> bytes:
        """Replace bytes that hold no whole entry; size and magic of an entry that they seem to begin stay."""
        if not data.strip(b"\0"):
            return data
        new = bytearray(self._pseudonyms.fresh(len(data)))
        if len(data) >= ENTRY_PREFIX.size:
            new[SIZE_POSITION:ENTRY_PREFIX_SIZE] = data[SIZE_POSITION:ENTRY_PREFIX_SIZE]
            new[MAGIC_POSITION] = data[MAGIC_POSITION]
            new[0] &= 0x7F  # an offset
        return bytes(new)

    # Record batches

    def _batch(self, data: bytearray, header: RecordBatchHeader, *, is_damaged: bool) -> bytearray:
        for slot in BATCH_TIMES:
            slot.write(data, self._pseudonyms.time(slot.read(data)))
        head, stored = data[:RECORD_BATCH_HEADER_SIZE], bytes(data[RECORD_BATCH_HEADER_SIZE:])
        if is_damaged:
            return head + self._given_up(stored, "its checksum is wrong")
        section = self._opened(header.codec_id, stored, 2)
        if section is None:
            return head + self._given_up(stored, "it cannot be decompressed")
        self._records(section, is_control=header.is_control)
        head += section if header.codec_id == CompressionCodec.NONE else self._closed(header.codec_id, section, 2)
        BATCH_SIZE_SLOT.write(head, len(head) - ENTRY_PREFIX_SIZE)
        return head

    def _given_up(self, data: Buffer, problem: str) -> bytes:
        self._problem = problem
        return self._pseudonyms.fresh(len(data))

    def _opened(self, codec_id: int, stored: bytes, magic: int) -> bytearray | None:
        if codec_id == CompressionCodec.NONE or not stored:
            return bytearray(stored)
        try:
            return bytearray(decompress(codec_id, stored, magic=magic, at=NOWHERE))
        except FormatError:
            return None

    def _closed(self, codec_id: int, data: Buffer, magic: int) -> bytes:
        return compress(CompressionCodec(codec_id), bytes(data), magic=magic) if data else b""

    def _records(self, section: bytearray, *, is_control: bool) -> None:
        position = 0
        try:
            while position < len(section):
                start, end = _span(section, position)
                self._record(section, start, end, is_control=is_control)
                position = end
        except _UnreadableError:
            section[position:] = self._given_up(section[position:], "its records cannot be read")

    def _record(self, section: bytearray, start: int, end: int, *, is_control: bool) -> None:
        """Replace the content of one record, whose first byte holds its attributes."""
        _, position = _number(section, start + 1)
        _, position = _number(section, position)
        key, position = _bytes(section, position, end)
        value, position = _bytes(section, position, end)
        count, position = _number(section, position)
        headers = []
        for _ in range(count):
            name, position = _bytes(section, position, end)
            content, position = _bytes(section, position, end)
            headers.append((name, content))
        if position > end:
            raise _UnreadableError
        if position < end:
            section[position:end] = self._given_up(section[position:end], "bytes follow the last field of a record")
        old_key, old_value = _content(section, key), _content(section, value)
        put = self._messages.control if is_control else self._messages.record
        self._put(section, key, value, put(old_key, old_value))
        for name, content in headers:
            if name is not None:
                section[name] = self._header_key(bytes(section[name]))
            if content is not None:
                section[content] = self._pseudonyms.noise(section[content])

    def _put(self, data: bytearray, key: slice | None, value: slice | None, replaced: Replaced) -> None:
        if replaced.is_opaque:
            self._problem = "a record of one of Kafka's own topics has no known form"
        for span, content in ((key, replaced.key), (value, replaced.value)):
            if span is not None and content is not None:
                data[span] = content

    def _header_key(self, name: bytes) -> bytes:
        try:
            return self._pseudonyms.name(name.decode()).encode()
        except UnicodeDecodeError:
            return self._pseudonyms.noise(name)

    # Messages

    def _outer_message(self, data: bytearray, *, is_damaged: bool) -> bytearray:
        magic = data[MAGIC_POSITION]
        size = MESSAGE_HEADERS[magic].size
        if magic:
            MESSAGE_TIME.write(data, self._pseudonyms.time(MESSAGE_TIME.read(data)))
        if is_damaged:
            return data[:size] + self._given_up(data[size:], "its checksum is wrong")
        codec_id = data[MESSAGE_V0_HEADER_LAYOUT.position("attributes")] & 0x07
        try:
            key, value, end = _message_fields(data, size)
            if codec_id == CompressionCodec.NONE:
                self._plain_message(data, key, value, end)
                return data
        except _UnreadableError:
            return data[:size] + self._given_up(data[size:], "its fields cannot be read")
        if value is None:
            return data
        section = self._opened(codec_id, bytes(data[value]), magic) if codec_id < CompressionCodec.ZSTD else None
        if section is None:
            data[value] = self._given_up(data[value], "it cannot be decompressed")
            return data
        self._inner_messages(section)
        stored = self._closed(codec_id, section, magic)
        after = self._given_up(data[end:], "bytes follow its last field") if data[end:] else b""
        new = data[: value.start - BYTES_LENGTH.size] + BYTES_LENGTH.pack(len(stored)) + stored + after
        if key is not None:
            new[key] = self._pseudonyms.noise(new[key])
        MESSAGE_SIZE_SLOT.write(new, len(new) - ENTRY_PREFIX_SIZE)
        return new

    def _plain_message(self, data: bytearray, key: slice | None, value: slice | None, end: int) -> None:
        self._put(data, key, value, self._messages.record(_content(data, key), _content(data, value)))
        if end != len(data):
            data[end:] = self._given_up(data[end:], "bytes follow its last field")

    def _inner_messages(self, section: bytearray) -> None:
        position = 0
        while len(section) - position >= ENTRY_PREFIX.size:
            end = position + ENTRY_PREFIX_SIZE + ENTRY_PREFIX.unpack_from(section, position)[1]
            magic = section[position + MAGIC_POSITION]
            size = MESSAGE_HEADERS[magic].size if magic in MESSAGE_HEADERS else len(section)
            if not position + size <= end <= len(section):
                break
            message = bytearray(section[position:end])
            error = MESSAGE_CRC.read(message) ^ crc32(memoryview(message)[MAGIC_POSITION:])
            if magic:
                MESSAGE_TIME.write(message, self._pseudonyms.time(MESSAGE_TIME.read(message)))
            try:
                self._plain_message(message, *_message_fields(message, size))
            except _UnreadableError:
                message[size:] = self._given_up(message[size:], "a message inside it cannot be read")
            MESSAGE_CRC.write(message, crc32(memoryview(message)[MAGIC_POSITION:]) ^ error)
            section[position:end] = message
            position = end
        if position < len(section):
            section[position:] = self._given_up(section[position:], "a message inside it is cut short")


def _number(data: bytearray, position: int) -> tuple[int, int]:
    """Read a signed number of variable size; return it and the position after it."""
    value = 0
    for shift in range(MAX_VARINT):
        if position >= len(data):
            break
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << 7 * shift
        if byte < 0x80:  # noqa: PLR2004 - the highest bit
            return unzigzag(value), position
    raise _UnreadableError


def _bytes(data: bytearray, position: int, end: int) -> tuple[slice | None, int]:
    """Read the length of byte string; return its span, None for null, and the position after it."""
    size, start = _number(data, position)
    if size < 0:
        return None, start
    if start + size > end:
        raise _UnreadableError
    return slice(start, start + size), start + size


def _span(data: bytearray, position: int) -> tuple[int, int]:
    """Read the length of a record; return where its fields start and end."""
    size, start = _number(data, position)
    if not 0 <= size <= len(data) - start:
        raise _UnreadableError
    return start, start + size


def _is_plausible(header: BatchHeader) -> bool:
    """Return whether the header of a damaged entry is one, and no part of something else."""
    if not isinstance(header, RecordBatchHeader):
        return 0 <= header.last_offset < PLAUSIBLE
    numbers = (header.base_offset, header.base_timestamp_ms, header.max_timestamp_ms, header.producer_id)
    are_plausible = all(-1 <= number < PLAUSIBLE for number in numbers)
    return are_plausible and not header.unknown_attribute_bits and -1 <= header.records_count < PLAUSIBLE_COUNT


def _message_fields(data: bytearray, position: int) -> tuple[slice | None, slice | None, int]:
    """Return the spans of the key and the value of a message, and the position after them."""
    spans: list[slice | None] = []
    for _ in range(2):
        start = position + BYTES_LENGTH.size
        if start > len(data):
            raise _UnreadableError
        size = BYTES_LENGTH.unpack_from(data, position)[0]
        position = start + max(size, 0)
        if position > len(data):
            raise _UnreadableError
        spans.append(None if size < 0 else slice(start, position))
    return spans[0], spans[1], position


def _content(data: bytearray, span: slice | None) -> bytes | None:
    return None if span is None else bytes(data[span])
