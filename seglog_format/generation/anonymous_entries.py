"""Replacements for a copy that is fit to share: pseudonyms, messages of Kafka's own topics, entries of logs."""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
import secrets
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.codec.checksum import crc32, crc32c
from seglog_format.codec.compression import compress, decompress
from seglog_format.codec.decode import computed_crc
from seglog_format.codec.parse import parse
from seglog_format.codec.protocol import decode_whole, encode_message
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.layouts import MESSAGE_V0_HEADER_LAYOUT, MESSAGE_V1_HEADER_LAYOUT, RECORD_BATCH_HEADER_LAYOUT
from seglog_format.model import (
    END_MARKER_TYPES,
    ENTRY_PREFIX_SIZE,
    BatchHeader,
    CompressionCodec,
    Frame,
    RecordBatchHeader,
)
from seglog_format.names import is_reserved_id
from seglog_format.schema.control_record import EARLY_LEADER_CHANGE, KRAFT_VALUES
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.fields import unzigzag
from seglog_format.schema.fixed_fields import (
    ATTRIBUTES_POSITION,
    BYTES_LENGTH,
    CONTROL_RECORD_KEY,
    END_TRANSACTION_MARKER,
    ENTRY_PREFIX,
    MAGIC_POSITION,
    MESSAGE_HEADERS,
    RECORD_BATCH_HEADER_SIZE,
    SIZE_POSITION,
)
from seglog_format.schema.metadata_records import FRAMED_TOPICS, MetadataFrame
from seglog_format.schema.protocol import SIMPLE_TYPES, UNKNOWN_TAGGED_FIELDS, ArrayOf, Blob, Structure, Text
from seglog_format.state.config import DAY_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seglog_format.schema.protocol import FieldType, MessageDefinition
    from seglog_format.storage.byte_source import Buffer


# -- replacements of keys, values, names, ids and times, for a directory that is fit to share --------------------------


KEY_SIZE: Final = 32
BLOCK_SIZE: Final = 32
"""Bytes that are drawn for a replacement; a longer one repeats them, so compression does not enlarge it much."""
SHUFFLED_SIZE: Final = 16
"""Maximum size of bytes that are shuffled: then different ones always get different replacements."""
ROUNDS: Final = 6
LETTERS: Final = b"abcdefghijklmnopqrstuvwxyz"
MORE_LETTERS: Final = LETTERS + b"ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-"
"""For names so short that others have all that consist of letters."""
LONGEST_SHIFT_DAYS: Final = 365
EARLIEST_MS: Final = 100_000_000_000
"""Times before 1973 are no times of a clock; they stay unchanged."""
PLAUSIBLE: Final = 1 << 48
"""Offsets, producer ids and times in milliseconds are below it; 8 bytes of text, read as a number, are above."""
UUID_TEXT: Final = re.compile(r"[A-Za-z0-9_-]{22}")

PUBLIC_NAMES: Final = frozenset({*COORDINATOR_TOPICS, *FRAMED_TOPICS, "consumer", "metadata.version", "kraft.version"})
"""Names of Kafka itself, which stay: readers depend on them."""


class Pseudonyms:
    """The replacements of one run.

    Args:
        key: decides all replacements; None for a random one.

    Attributes:
        shift_ms: by which all times become earlier: a whole number of milliseconds from one day to one year.
    """

    def __init__(self, key: bytes | None = None) -> None:
        self._key = secrets.token_bytes(KEY_SIZE) if key is None else key
        span = (LONGEST_SHIFT_DAYS - 1) * DAY_MS
        self.shift_ms = DAY_MS + int.from_bytes(self._digest(b"time", b""), "big") % span
        self._names: dict[str, str] = {name: name for name in PUBLIC_NAMES}
        self._used = set(PUBLIC_NAMES)

    def _digest(self, use: bytes, data: Buffer) -> bytes:
        return hashlib.blake2b(data, digest_size=BLOCK_SIZE, key=self._key, person=use).digest()

    def noise(self, data: Buffer) -> bytes:
        """Replace bytes by as many others; equal bytes get equal replacements, different bytes different ones."""
        size = len(data)
        if size <= SHUFFLED_SIZE:
            return self._shuffled(bytes(data))
        block = self._digest(b"bytes", data)
        return (block * (size // BLOCK_SIZE + 1))[:size]

    def fresh(self, size: int) -> bytes:
        """Return random bytes, for bytes that no reader can read anyway."""
        return secrets.token_bytes(size)

    def _shuffled(self, data: bytes) -> bytes:
        """Replace few bytes by a network of rounds, which can be inverted: so no two get the same replacement."""
        bits = 8 * len(data)
        low_bits = bits // 2
        number = int.from_bytes(data, "big")
        high, low = number >> low_bits, number & (1 << low_bits) - 1
        for turn in range(ROUNDS):
            mixed = self._digest(
                b"%d/%d/%d" % (bits, turn % 2, turn), (low if turn % 2 == 0 else high).to_bytes(9, "big")
            )
            if turn % 2 == 0:
                high ^= int.from_bytes(mixed, "big") & (1 << bits - low_bits) - 1
            else:
                low ^= int.from_bytes(mixed, "big") & (1 << low_bits) - 1
        return (high << low_bits | low).to_bytes(len(data), "big")

    def name(self, text: str) -> str:
        """Replace a name by letters of the same size in UTF-8; different names get different ones, if there are any."""
        found = self._names.get(text)
        if found is None:
            size = len(text.encode(errors="surrogatepass"))
            turns = product((LETTERS, MORE_LETTERS), range(1000))
            tries = (self._drawn(letters, text, size, turn) for letters, turn in turns)
            found = next((name for name in tries if name not in self._used), self._drawn(LETTERS, text, size, 0))
            self._names[text] = found
            self._used.add(found)
        return found

    def _drawn(self, letters: bytes, text: str, size: int, turn: int) -> str:
        digest = hashlib.shake_128(self._digest(b"name%d" % turn, text.encode(errors="surrogatepass"))).digest(size)
        return bytes(letters[byte % len(letters)] for byte in digest).decode()

    def uuid(self, text: str) -> str:
        """Replace an id in URL-safe Base64; the replacement does not begin with a dash, as Kafka's ids do not."""
        data = base64.urlsafe_b64decode(text + "==")
        if is_reserved_id(data):
            return text
        while True:
            data = self.noise(data)
            found = base64.urlsafe_b64encode(data).decode().rstrip("=")
            if not found.startswith("-") and not is_reserved_id(data):
                return found

    def identifier(self, text: str) -> str:
        """Replace an id, or another name in its place."""
        try:
            return self.uuid(text) if UUID_TEXT.fullmatch(text) else self.name(text)
        except binascii.Error:
            return self.name(text)

    def time(self, timestamp_ms: int) -> int:
        """Move a time; one before 1973 stays."""
        return timestamp_ms - self.shift_ms if timestamp_ms >= EARLIEST_MS else timestamp_ms


# -- replace names, ids and times in records of Kafka's own topics; everything else in them stays ----------------------


VERSION_SIZE: Final = 2
NOWHERE: Final = Location()
TIME_SUFFIXES: Final = ("Timestamp", "TimestampMs", "timestamp", "TimeMs")
"""Ends of the names of fields that hold a time."""


class Replaced(NamedTuple):
    """A key and a value after replacement.

    Attributes:
        key: of the same size; None for null.
        value: of the same size; None for null.
        is_opaque: whether one of them is of no known form, and was replaced as a whole.
    """

    key: bytes | None
    value: bytes | None
    is_opaque: bool = False


class MessageReplacer:
    """Replaces keys and values of the records of a topic.

    Args:
        topic: its name.
        pseudonyms: the replacements.
    """

    def __init__(self, topic: str, pseudonyms: Pseudonyms) -> None:
        self._topic = topic
        self._pseudonyms = pseudonyms

    def record(self, key: bytes | None, value: bytes | None) -> Replaced:
        """Replace key and value of a record."""
        if self._topic in COORDINATOR_TOPICS and key is not None:
            return self._coordinator(key, value)
        if self._topic in FRAMED_TOPICS and value is not None:
            return self._either(key, value, self._framed)
        return Replaced(self._noise(key), self._noise(value))

    def control(self, key: bytes | None, value: bytes | None) -> Replaced:
        """Replace the value of a control record; its key, and the value of an end marker, name nothing."""
        if key is None or value is None or len(key) != CONTROL_RECORD_KEY.size:
            return Replaced(self._noise(key), self._noise(value), is_opaque=True)
        _, kind = CONTROL_RECORD_KEY.unpack_from(key)
        if kind in END_MARKER_TYPES and len(value) == END_TRANSACTION_MARKER.size:
            return Replaced(key, value)
        return self._either(key, value, lambda data: self._kraft(kind, data), keeps_key=True)

    def _noise(self, data: bytes | None) -> bytes | None:
        return None if data is None else self._pseudonyms.noise(data)

    def _either(
        self, key: bytes | None, value: bytes, known_form: Callable[[bytes], bytes | None], *, keeps_key: bool = False
    ) -> Replaced:
        """Replace a value, or all of it if it is of no known form."""
        known = known_form(value)
        new_key = key if keeps_key else self._noise(key)
        return Replaced(new_key, known or self._noise(value), is_opaque=known is None)

    def _coordinator(self, key: bytes, value: bytes | None) -> Replaced:
        version = int.from_bytes(key[:VERSION_SIZE], "big", signed=True)
        kind = COORDINATOR_TOPICS[self._topic].get(version)
        new_key = None if kind is None else self._message(kind.key, 0, key[VERSION_SIZE:])
        if kind is None or new_key is None:
            return Replaced(self._noise(key), self._noise(value), is_opaque=True)
        new_key = key[:VERSION_SIZE] + new_key
        if value is None:
            return Replaced(new_key, None)
        version = int.from_bytes(value[:VERSION_SIZE], "big", signed=True)
        body = self._message(kind.value, version, value[VERSION_SIZE:])
        if body is None:
            rest = self._pseudonyms.noise(value[VERSION_SIZE:])
            return Replaced(new_key, value[:VERSION_SIZE] + rest, is_opaque=True)
        return Replaced(new_key, value[:VERSION_SIZE] + body)

    def _framed(self, value: bytes) -> bytes | None:
        try:
            frame = parse(MetadataFrame, value, NOWHERE, requirement="SEG-CTL-010")
        except FormatError:
            return None
        definition = FRAMED_TOPICS[self._topic].get(frame.type)
        body = None if definition is None else self._message(definition, frame.version, value[frame.end :])
        return None if body is None else value[: frame.end] + body

    def _kraft(self, kind: int, value: bytes) -> bytes | None:
        definition = KRAFT_VALUES.get(kind)
        version = int.from_bytes(value[:VERSION_SIZE], "big", signed=True)
        known = None if definition is None else self._message(definition, version, value)
        return known or self._message(EARLY_LEADER_CHANGE, 0, value)

    def _message(self, definition: MessageDefinition, version: int, data: bytes) -> bytes | None:
        """Return the message with its replacements, of the same size; None if it has no known form."""
        if not any(layout.describes(version) for layout in (definition, *definition.earlier)):
            return None
        try:
            fields, line = decode_whole(definition, version, data, NOWHERE)
            layout = next(each for each in (definition, *definition.earlier) if each.releases[1] == line)
            found = encode_message(layout, version, self._structure(Structure(layout.fields), fields))
        except (FormatError, UsageError):
            return None
        return found if len(found) == len(data) else None

    def _structure(self, kind: Structure, fields: Mapping[str, Any]) -> dict[str, Any]:
        types = {field.name: field.type for field in kind.fields}
        replaced = {name: self._field(types[name], name, value) for name, value in fields.items() if name in types}
        unknown = fields.get(UNKNOWN_TAGGED_FIELDS)
        if unknown:
            replaced[UNKNOWN_TAGGED_FIELDS] = [each | {"data": self._blob(each["data"])} for each in unknown]
        return replaced

    def _field(self, kind: FieldType, name: str, value: Any) -> Any:  # noqa: ANN401 - JSON
        if value is None:
            return None
        if isinstance(kind, Structure):
            return self._structure(kind, value)
        if isinstance(kind, ArrayOf):
            return [self._field(kind.element, name, each) for each in value]
        return self._simple(kind, name, value)

    def _simple(self, kind: FieldType, name: str, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(kind, Text):
            return self._pseudonyms.name(value)
        if isinstance(kind, Blob):
            return self._blob(value)
        if kind is SIMPLE_TYPES["uuid"]:
            return self._pseudonyms.uuid(value)
        is_time = kind is SIMPLE_TYPES["int64"] and name.endswith(TIME_SUFFIXES)
        return self._pseudonyms.time(value) if is_time else value

    def _blob(self, text: str) -> str:
        return base64.b64encode(self._pseudonyms.noise(base64.b64decode(text))).decode()


# -- replace the content of the entries of a log; offsets, sequences, attributes and sizes of uncompressed ones stay ---


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
        section = self._opened(codec_id, bytes(data[value]), magic)
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
