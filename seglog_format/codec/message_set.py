"""Magic 0 and 1: from the bytes of one entry to its messages (chapter 33).

An entry is a plain message, or a wrapper whose value is a compressed sequence of messages. The wrapper decides how the
messages inside are read: its magic, whether their offsets are relative; its timestamp type, which timestamp applies.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checksum import crc32
from seglog_format.codec.compression import decompress
from seglog_format.codec.framing import containers_of, decoders_of, refuse_large
from seglog_format.codec.plain import (
    MessageReader,
    StoredMessage,
    check_message,
    field_location,
    refuse_cut_short,
)
from seglog_format.errors import CorruptRecordError, Location, RefusedError
from seglog_format.model import (
    DEFAULT_OUTPUT_LIMIT,
    ENTRY_PREFIX_SIZE,
    INT64_MAX,
    NO_TIMESTAMP,
    CompressionCodec,
    Message,
    MessageHeader,
    TimestampType,
)
from seglog_format.schema.fixed_fields import (
    BYTES_LENGTH,
    ENTRY_PREFIX,
    MAGIC_POSITION,
    MESSAGE_ATTRIBUTES_POSITION,
    MESSAGE_HEADERS,
    MESSAGE_MIN_SIZES,
    SIZE_POSITION,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.codec.container_headers import ContainerHeaders
    from seglog_format.model import Frame, RecordBatch


@dataclass(frozen=True, slots=True)
class MessageEntry:
    """An outermost message, with the facts that a validator needs about it.

    Attributes:
        messages: the message itself, or those inside the wrapper, in stored order.
        key: of the outermost message; a wrapper's is None as Kafka writes it (SEG-MSG-023).
        trailing_size: bytes after the value of the outermost message (SEG-MSG-006).
        inner_trailing_sizes: the same of each message inside a wrapper; empty for a plain message.
        dropped_size: bytes of a last message in the wrapper that is cut short (SEG-MSG-019).
    """

    messages: tuple[Message, ...]
    key: bytes | None
    trailing_size: int
    inner_trailing_sizes: tuple[int, ...] = ()
    dropped_size: int = 0


def read_message_entry(
    frame: Frame,
    *,
    at: Location,
    limit: int = DEFAULT_OUTPUT_LIMIT,
    max_messages: int | None = None,
) -> MessageEntry:
    """Decode one magic 0 or 1 entry, with absolute offsets and the sizes of ignored bytes.

    The caller verifies the checksum of the outermost message; `Message.is_valid` reports that of a message inside a
    wrapper (SEG-MSG-016).

    Args:
        frame: an entry whose header is a `MessageHeader`.
        at: where the entry starts.
        limit: maximum bytes that a wrapper may decompress to.
        max_messages: maximum number of messages in a wrapper; None for any number.

    Raises:
        CorruptRecordError: the entry, or a message inside it, breaks a rule of chapter 33 or 34.
        RefusedError: the wrapper holds more than ``limit`` bytes, or too many messages.
    """
    refuse_large(frame, at, limit)
    read = _reader_of(frame)
    outer = read.message(frame.data, at)
    _check_offset(outer.header.offset, at)
    if outer.header.codec_id == CompressionCodec.NONE:
        message = _message(outer, outer.header.offset, outer.header.timestamp_ms, outer.header.timestamp_type)
        return MessageEntry((message,), outer.key, outer.trailing_size)
    data = memoryview(_decompressed(outer, at, limit, containers_of(frame)))
    entries = list(islice(_inner_entries(data, read, at.at("messages")), max_messages))
    size = sum(map(len, entries))
    if len(entries) == max_messages and any(_inner_entries(data[size:], read, at.at("messages"))):
        expected = f"at most {max_messages} messages"
        raise RefusedError(at.at("messages"), "SEG-COD-016", expected=expected, found="more")
    if not entries:
        found = f"{len(data)} bytes without one"
        raise CorruptRecordError(at.at("messages"), "SEG-MSG-009", expected="at least one whole message", found=found)
    inner = [_inner_message(entry, read, at.at(f"messages[{index}]")) for index, entry in enumerate(entries)]
    return MessageEntry(
        tuple(_unwrapped(outer.header, inner, at)),
        outer.key,
        outer.trailing_size,
        tuple(one.trailing_size for one in inner),
        len(data) - size,
    )


def _reader_of(frame: Frame) -> MessageReader:
    decoders = decoders_of(frame)
    return PLAIN if decoders is None else decoders.messages


def _decompressed(wrapper: StoredMessage, at: Location, limit: int, headers: ContainerHeaders) -> bytes:
    codec_id, magic = wrapper.header.codec_id, wrapper.header.magic
    if not CompressionCodec.fits(codec_id, magic):
        location = at.at("attributes", MESSAGE_ATTRIBUTES_POSITION, 1)
        raise CorruptRecordError(location, "SEG-MSG-018", expected="gzip, snappy or lz4", found="zstd")
    position = wrapper.header.size_in_bytes - wrapper.trailing_size - len(wrapper.value or b"")
    location = at.at("value", position, len(wrapper.value or b""))
    if wrapper.value is None:
        raise CorruptRecordError(location, "SEG-MSG-009", expected="compressed messages", found="null")
    return decompress(codec_id, wrapper.value, magic=magic, at=location, limit=limit, headers=headers)


def verify_inner_checksums(entry: RecordBatch, at: Location) -> None:
    """Refuse an entry at the first message whose checksum is wrong.

    Args:
        entry: a message of magic 0 or 1, or a wrapper.
        at: location of the entry.

    Raises:
        CorruptRecordError: SEG-MSG-016.
    """
    for index, message in enumerate(entry.records):
        if isinstance(message, Message) and not message.is_valid:
            location = at.at(f"messages[{index}].crc")
            expected, found = "the checksum of the message", f"{message.crc:#010x}"
            raise CorruptRecordError(location, "SEG-MSG-016", expected=expected, found=found)


def wrapped_bytes(frame: Frame, *, at: Location, limit: int = DEFAULT_OUTPUT_LIMIT) -> bytes:
    """Return the decompressed value of a wrapper.

    Raises:
        CorruptRecordError: the wrapper is damaged.
        RefusedError: it holds more than ``limit`` bytes.
    """
    return _decompressed(_reader_of(frame).message(frame.data, at), at, limit, containers_of(frame))


def _inner_entries(data: memoryview, read: MessageReader, at: Location) -> Iterator[memoryview]:
    """Yield the whole entries of decompressed data; omit a last one that is cut short (SEG-MSG-019)."""
    start = 0
    while len(data) - start >= ENTRY_PREFIX_SIZE:
        size = read.size(data[start:])
        if size < MESSAGE_MIN_SIZES[0]:
            location, least = field_location(at, "message_size"), f"at least {MESSAGE_MIN_SIZES[0]}"
            raise CorruptRecordError(location, "SEG-MSG-003", expected=least, found=size)
        end = start + ENTRY_PREFIX_SIZE + size
        if end > len(data):
            return
        yield data[start:end]
        start = end


def _inner_message(data: memoryview, read: MessageReader, at: Location) -> StoredMessage:
    message = read.message(data, at)
    if message.header.codec_id != CompressionCodec.NONE:
        codec = f"codec {message.header.codec_id}"
        raise CorruptRecordError(
            field_location(at, "attributes"), "SEG-MSG-010", expected="no compression", found=codec
        )
    return message


def _unwrapped(wrapper: MessageHeader, inner: list[StoredMessage], at: Location) -> Iterator[Message]:
    """Yield the messages of a wrapper with absolute offsets, and the timestamps that readers see."""
    base = _base_offset(wrapper, inner[-1].header.offset, at)
    for index, one in enumerate(inner):
        offset = base + one.header.offset
        _check_offset(offset, at.at(f"messages[{index}]"))
        yield _message(one, offset, _timestamp_ms(wrapper, one.header), _timestamp_type(wrapper, one.header))


def _base_offset(wrapper: MessageHeader, last: int, at: Location) -> int:
    """Return the base of the offsets in a wrapper: 0 if they are absolute (SEG-MSG-011, SEG-MSG-012, SEG-MSG-013)."""
    if wrapper.magic == 0 or wrapper.offset == 0:
        return 0
    if wrapper.offset < last:
        least = f"0, or at least the last relative offset inside, {last}"
        raise CorruptRecordError(at.at("offset", 0, 8), "SEG-MSG-014", expected=least, found=wrapper.offset)
    return wrapper.offset - last


def _timestamp_ms(wrapper: MessageHeader, inner: MessageHeader) -> int:
    """Return the timestamp that readers see for a message in a wrapper (SEG-MSG-008, SEG-MSG-015)."""
    if inner.magic == 0:
        return NO_TIMESTAMP
    return wrapper.timestamp_ms if wrapper.timestamp_type is TimestampType.LOG_APPEND_TIME else inner.timestamp_ms


def _timestamp_type(wrapper: MessageHeader, inner: MessageHeader) -> TimestampType:
    """Return the timestamp type of a message in a wrapper: its own attribute bit is ignored (SEG-MSG-015)."""
    return TimestampType.NO_TIMESTAMP_TYPE if inner.magic == 0 else wrapper.timestamp_type


def _check_offset(offset: int, at: Location) -> None:
    if not 0 <= offset <= INT64_MAX:
        expected = f"an offset from 0 to {INT64_MAX}"
        raise CorruptRecordError(field_location(at, "offset", 0, 8), "SEG-MSG-025", expected=expected, found=offset)


def _message(stored: StoredMessage, offset: int, timestamp_ms: int, timestamp_type: TimestampType) -> Message:
    header = stored.header
    return Message(
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=stored.key,
        value=stored.value,
        magic=header.magic,
        crc=header.crc,
        is_valid=stored.is_valid,
        attributes=header.attributes,
        stored_offset=header.offset,
        stored_timestamp_ms=header.timestamp_ms,
        size_in_bytes=header.size_in_bytes,
        timestamp_type=timestamp_type,
    )


# -- hand-written parsers of messages of magic 0 and 1 (chapter 33) ---------------------------------------------------


def read_message(data: memoryview, at: Location) -> StoredMessage:
    """Return the stored fields of one message.

    Args:
        data: the message, from its first byte to its last; at least as long as the fixed fields of magic 0.
        at: location of the message.

    Raises:
        CorruptRecordError: SEG-MSG-003, SEG-MSG-005 or SEG-MSG-026.
    """
    magic = ENTRY_PREFIX.unpack_from(data)[3]
    check_message(data, magic, at)
    fixed = MESSAGE_HEADERS[magic]
    header = MessageHeader(*fixed.unpack_from(data))
    key, position = _nullable_bytes(data, fixed.size, at, "key")
    value, end = _nullable_bytes(data, position, at, "value")
    return StoredMessage(header, key, value, len(data) - end, crc32(data[MAGIC_POSITION:]) == header.crc)


def _nullable_bytes(data: memoryview, position: int, at: Location, name: str) -> tuple[bytes | None, int]:
    """Return the bytes after a length field, and the position of their end."""
    start = position + BYTES_LENGTH.size
    if start > len(data):
        refuse_cut_short(data, position, name, at)
    (size,) = BYTES_LENGTH.unpack_from(data, position)
    if size < 0:
        return None, start
    if size > len(data) - start:
        refuse_cut_short(data, position, name, at)
    return bytes(data[start : start + size]), start + size


def read_size(data: memoryview) -> int:
    """Return the size field of the message that starts at the first byte."""
    return int(BYTES_LENGTH.unpack_from(data, SIZE_POSITION)[0])


PLAIN: Final = MessageReader(read_message, read_size)
