"""Conversion of lines to files: the output of ``seglog dump --json``, or lines written by hand.

Sizes and checksums are computed again. Data that the vocabulary lacks is lost: unknown attribute bits, the producers'
timestamps if the broker set the time (unless the lines are those of ``dump --raw``), and the bytes after the last whole
entry of a log.
"""

from __future__ import annotations

import binascii
from base64 import b64decode
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import TYPE_CHECKING, Any, Final, NoReturn

from seglog_format.codec.encode import encode_batch
from seglog_format.codec.side_files import encode_producer_snapshot
from seglog_format.errors import FormatError, UsageError
from seglog_format.log.index_file import IndexedRow, build_indexes, encode_offset_index, encode_time_index
from seglog_format.model import (
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    AbortedTxn,
    CompressionCodec,
    Message,
    MessageHeader,
    OffsetPosition,
    ProducerStateEntry,
    Record,
    RecordBatch,
    RecordBatchHeader,
    RecordHeader,
    TimestampOffset,
    TimestampType,
)
from seglog_format.names import FileKind, parse_file_name, segment_file_name
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from seglog_format.lines.options import BytesAs, Line


# -- reader of the values of a line; its errors name the number of the line --------------------------------------------


PAIR: Final = 2


class LineReader:
    """One line, or an object inside one.

    Args:
        line_number: from 1, for errors.
        line: the object.
        bytes_as: the form of bytes in it.

    All methods raise `UsageError` for invalid values.
    """

    def __init__(self, line_number: int, line: Line, bytes_as: BytesAs = "utf8") -> None:
        self._number = line_number
        self._line = line
        self._bytes_as = bytes_as
        if not isinstance(line, dict):
            self.refuse("this is not an object")

    def refuse(self, reason: str) -> NoReturn:
        """Raise an error about this line."""
        msg = f"line {self._number}: {reason}"
        raise UsageError(msg)

    def __contains__(self, name: str) -> bool:
        return self._line.get(name) is not None

    @property
    def type(self) -> str:
        """Type of the line."""
        return self.text("type")

    def _take(self, name: str) -> Any:  # noqa: ANN401 - a JSON value
        if name not in self._line:
            self.refuse(f"there is no {name!r}")
        return self._line[name]

    def text(self, name: str) -> str:
        """Return a text that UTF-8 can encode."""
        value = self._take(name)
        if not isinstance(value, str) or not _is_utf8(value):
            self.refuse(f"{name} is text, not {value!r}")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean; False if it is missing."""
        return self._line.get(name) is True

    def number(self, name: str, *, bits: int = 64) -> int:
        """Return a signed number of at most ``bits`` bits."""
        return self._checked(name, self._take(name), bits)

    def number_or(self, name: str, default: int, *, bits: int = 64) -> int:
        """Return a signed number, or the default if it is missing."""
        return self.number(name, bits=bits) if name in self else default

    def _checked(self, name: str, value: object, bits: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not -(1 << bits - 1) <= value < 1 << bits - 1:
            self.refuse(f"{name} is a number of {bits} bits, not {value!r}")
        return value

    def difference(self, name: str, value: int, origin: int, *, bits: int = 32) -> int:
        """Return a value minus an origin; the difference must fit ``bits`` bits."""
        return self._checked(f"{name} minus {origin}", value - origin, bits)

    def _list(self, name: str) -> list[Any]:
        value = self._take(name)
        if not isinstance(value, list):
            self.refuse(f"{name} is a list, not {value!r}")
        return value

    def inner(self, name: str) -> list[LineReader]:
        """Return the objects of a list."""
        return [LineReader(self._number, item, self._bytes_as) for item in self._list(name)]

    def pairs(self, name: str, base_offset: int, *, of_offset: int) -> list[Sequence[int]]:
        """Return the entries of an index.

        Args:
            name: of the list.
            base_offset: base of the relative offsets in the file.
            of_offset: index of the offset in a pair; the other number is a position after it, or a timestamp before it.
        """
        entries = [self._pair(name, entry) for entry in self._list(name)]
        for entry in entries:
            self.difference("offset", entry[of_offset], base_offset)
            self._checked(name, entry[1 - of_offset], 64 if of_offset else 32)
        return entries

    def _pair(self, name: str, entry: object) -> Sequence[int]:
        if not isinstance(entry, list) or len(entry) != PAIR:
            self.refuse(f"an entry of {name} is a pair, not {entry!r}")
        return [self._checked(name, number, 64) for number in entry]

    def data(self, name: str) -> bytes | None:
        """Return bytes, or None for null."""
        return self._bytes(name, self._take(name))

    def headers(self) -> list[tuple[bytes, bytes | None]]:
        """Return pairs of key and value; empty if the line has none."""
        if "headers" not in self:
            return []
        pairs = self._list("headers")
        if not all(isinstance(pair, list) and len(pair) == PAIR and pair[0] is not None for pair in pairs):
            self.refuse("headers are pairs, and their keys are not null")
        return [(self._bytes("headers", key) or b"", self._bytes("headers", value)) for key, value in pairs]

    def _bytes(self, name: str, value: object) -> bytes | None:
        if value is None:
            return None
        try:
            return _decoded(value, self._bytes_as)
        except (ValueError, binascii.Error):
            self.refuse(f"{name} is not bytes as {self._bytes_as}: {value!r:.60}")


def _is_utf8(text: str) -> bool:
    """Return whether a text has no lone surrogates, which JSON can contain."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _decoded(value: object, bytes_as: BytesAs) -> bytes:
    if isinstance(value, dict) and list(value) == ["hex"] and bytes_as == "utf8":
        value, bytes_as = value["hex"], "hex"
    if not isinstance(value, str):
        msg = "bytes must be text"
        raise ValueError(msg)  # noqa: TRY004 - the same error as for text that is not bytes
    match bytes_as:
        case "utf8":
            return value.encode()
        case "hex":
            return bytes.fromhex(value)
        case _:
            return b64decode(value, validate=True)


# -- conversion of a batch's line and its record lines to a batch ------------------------------------------------------


MAGIC_2: Final = 2
CODECS: Final = {codec.label: codec for codec in CompressionCodec}


def rebuilt_batch(line: LineReader, records: Sequence[LineReader]) -> RecordBatch:
    """Build a batch from its lines.

    Args:
        line: of the batch.
        records: of its records, in order.

    Raises:
        UsageError: a value is invalid, the batch is damaged, or records are missing.
    """
    if not line.flag("isValid") or "invalid" in line or "refused" in line:
        line.refuse("this batch is damaged or was not read; it cannot be rebuilt")
    magic = line.number("magic", bits=8)
    if magic == MAGIC_2:
        return _record_batch(line, records)
    if magic not in {0, 1}:
        line.refuse(f"magic {magic} is not known")
    return _message_entry(line, records, magic)


def _attributes(line: LineReader) -> int:
    codec = CODECS.get(line.text("codec"))
    if codec is None:
        line.refuse(f"codec {line.text('codec')!r} is not known")
    is_stamped = line.text("timestampType") == TimestampType.LOG_APPEND_TIME.value
    return codec | (TIMESTAMP_TYPE_BIT if is_stamped else 0)


def _record_batch(line: LineReader, records: Sequence[LineReader]) -> RecordBatch:
    base_offset = line.number("baseOffset")
    if line.number_or("recordsCount", len(records)) != len(records):
        line.refuse(f"recordsCount is {line.number('recordsCount')}, and {len(records)} records follow")
    header = RecordBatchHeader(
        base_offset=base_offset,
        batch_length=0,
        partition_leader_epoch=line.number("partitionLeaderEpoch", bits=32),
        magic=MAGIC_2,
        crc=0,
        attributes=_attributes(line)
        | (TRANSACTIONAL_BIT if line.flag("isTransactional") else 0)
        | (CONTROL_BIT if line.flag("isControl") else 0)
        | (DELETE_HORIZON_BIT if "deleteHorizonMs" in line else 0),
        last_offset_delta=line.difference("lastOffset", line.number("lastOffset"), base_offset),
        base_timestamp_ms=line.number("baseTimestamp"),
        max_timestamp_ms=line.number("maxTimestamp"),
        producer_id=line.number("producerId"),
        producer_epoch=line.number("producerEpoch", bits=16),
        base_sequence=line.number("baseSequence", bits=32),
        records_count=len(records),
    )
    return RecordBatch(0, header, tuple(_record(record, header) for record in records))


def _record(line: LineReader, header: RecordBatchHeader) -> Record:
    offset, timestamp_ms = line.number("offset"), line.number("timestamp")
    is_stamped = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    apart_ms = 0 if is_stamped else line.difference("timestamp", timestamp_ms, header.base_timestamp_ms, bits=64)
    return Record(
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=line.data("key"),
        value=line.data("value"),
        headers=tuple(RecordHeader(key, value) for key, value in line.headers()),
        attributes=line.number_or("attributes", 0, bits=8),
        timestamp_delta=line.number_or("timestampDelta", apart_ms),
        offset_delta=line.difference("offset", offset, header.base_offset),
        timestamp_type=header.timestamp_type,
    )


def _message_entry(line: LineReader, records: Sequence[LineReader], magic: int) -> RecordBatch:
    if not records:
        line.refuse("no record follows: a message of magic 0 or 1 needs a record line")
    header = MessageHeader(
        offset=line.number("lastOffset"),
        message_size=0,
        crc=0,
        magic=magic,
        attributes=_attributes(line),
        timestamp_ms=line.number("maxTimestamp") if magic else NO_TIMESTAMP,
    )
    first_offset = records[0].number("offset")
    return RecordBatch(0, header, tuple(_message(record, header, first_offset) for record in records))


def _message(line: LineReader, header: MessageHeader, first_offset: int) -> Message:
    if not line.flag("isValid"):
        line.refuse("this message is damaged; it cannot be rebuilt")
    offset, timestamp_ms = line.number("offset"), line.number("timestamp")
    is_inner = bool(header.codec_id)
    magic = line.number("innerMagic", bits=8) if is_inner else header.magic
    if magic not in {0, 1}:
        line.refuse(f"innerMagic {magic} is not known")
    return Message(
        offset=offset,
        timestamp_ms=timestamp_ms,
        key=line.data("key"),
        value=line.data("value"),
        magic=magic,
        crc=0,
        is_valid=True,
        attributes=line.number_or("attributes", 0, bits=8) if is_inner else header.attributes,
        stored_offset=offset - first_offset if is_inner and header.magic else offset,  # SEG-MSG-012
        stored_timestamp_ms=timestamp_ms,
        timestamp_type=header.timestamp_type if magic else TimestampType.NO_TIMESTAMP_TYPE,
    )


# -- conversion of lines to files --------------------------------------------------------------------------------------


NO_OFFSET: Final = -1
INDEX_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


@dataclass(slots=True)
class RebuiltFile:
    """A file made from lines.

    Attributes:
        name: path below a directory, with slashes.
        pieces: its bytes; those of a log are created during iteration, which is possible once.
        rows: facts about the entries of a log, for its indexes; complete after iteration over the pieces.
    """

    name: str
    pieces: Iterable[bytes]
    rows: list[IndexedRow] = field(default_factory=list)

    @property
    def data(self) -> bytes:
        """All its bytes."""
        data = b"".join(self.pieces)
        self.pieces = (data,)
        return data


def rebuilt_files(lines: Iterable[Line], *, bytes_as: BytesAs = "utf8") -> Iterator[RebuiltFile]:
    """Make files from lines; a log without lines for its indexes also gets an offset and a time index.

    Args:
        lines: the lines of each file are consecutive.
        bytes_as: form of keys, values and headers in the lines.

    Yields:
        The files, in the order of the lines, then the missing indexes. The caller should iterate over the pieces
        of a file before it takes the next one; otherwise they are kept in memory.

    Raises:
        UsageError: a line is not in the vocabulary, or describes damage or omitted bytes.
    """
    logs, names = [], set()
    readers = (LineReader(number, line, bytes_as) for number, line in enumerate(lines, 1))
    for name, group in groupby(readers, key=lambda reader: reader.text("file")):
        made = _file(name, group)
        if made is None:
            continue
        if name in names:
            msg = f"the lines of {name} are not next to each other"
            raise UsageError(msg)
        names.add(name)
        yield made
        if not isinstance(made.pieces, tuple):
            made.pieces = tuple(made.pieces)
        logs += [made] if made.rows else []
    for log in logs:
        indexes = _indexes(log)
        if not any(index.name in names for index in indexes):
            yield from indexes


def _file(name: str, lines: Iterator[LineReader]) -> RebuiltFile | None:
    """Return the file; None if the lines do not describe its content."""
    heading = next(lines)
    first = next(lines, None) if heading.type == "file" else heading
    if first is None:
        return RebuiltFile(name, (b"",)) if heading.number_or("bytes", 0) == 0 else None
    if first.type in {"batch", "record", "logEnd"}:
        log = RebuiltFile(name, ())
        log.pieces = _entries(chain((first,), lines), log.rows)
        return log
    make = SIDE_FILES.get(first.type)
    if make is None:
        first.refuse(f"{first.type!r} is no line of a file")
    return RebuiltFile(name, (make(first, _base_offset(name)),))


def _base_offset(name: str) -> int:
    try:
        parsed = parse_file_name(name.rpartition("/")[2])
    except FormatError as error:
        raise UsageError(str(error)) from error
    return 0 if parsed is None else max(parsed.base_offset, 0)


def _entries(lines: Iterable[LineReader], rows: list[IndexedRow]) -> Iterator[bytes]:
    """Yield the entries of a log, and add a row for each."""
    position = 0
    for batch in _batches(lines):
        data = encode_batch(batch)
        rows.append(
            IndexedRow(position, len(data), batch.base_offset, batch.last_offset, batch.header.max_timestamp_ms)
        )
        position += len(data)
        yield data


def _batches(lines: Iterable[LineReader]) -> Iterator[RecordBatch]:
    """Yield a batch for each batch line with its record lines."""
    header: LineReader | None = None
    records: list[LineReader] = []
    for line in lines:
        if line.type == "record" and header is not None:
            records.append(line)
        elif line.type in {"batch", "logEnd"}:
            if header is not None:
                yield rebuilt_batch(header, records)
            header, records = (line, []) if line.type == "batch" else (None, [])
        else:
            line.refuse(f"a line of type {line.type!r} is not allowed here")
    if header is not None:
        yield rebuilt_batch(header, records)


def _indexes(log: RebuiltFile) -> list[RebuiltFile]:
    """Return both indexes of a log, as recovery would write them; none for a file that is not a segment."""
    directory, slash, file_name = log.name.rpartition("/")
    parsed = parse_file_name(file_name)
    if parsed is None or parsed.kind is not FileKind.LOG or parsed.suffix:
        return []
    built = build_indexes(log.rows)
    base = parsed.base_offset
    data = encode_offset_index(built.offset_entries, base), encode_time_index(built.time_entries, base)
    paths = (f"{directory}{slash}{segment_file_name(base, kind)}" for kind in INDEX_KINDS)
    return [RebuiltFile(path, (content,)) for path, content in zip(paths, data, strict=True)]


def _offset_index(line: LineReader, base_offset: int) -> bytes:
    entries = [OffsetPosition(*pair) for pair in line.pairs("entries", base_offset, of_offset=0)]
    return encode_offset_index(entries, base_offset)


def _time_index(line: LineReader, base_offset: int) -> bytes:
    entries = [TimestampOffset(*pair) for pair in line.pairs("entries", base_offset, of_offset=1)]
    return encode_time_index(entries, base_offset)


def _transaction_index(line: LineReader, _base_offset: int) -> bytes:
    return b"".join(_aborted(entry) for entry in line.inner("aborted"))


def _aborted(line: LineReader) -> bytes:
    entry = AbortedTxn(
        line.number("version", bits=16),
        line.number("producerId"),
        line.number("firstOffset"),
        line.number("lastOffset"),
        line.number("lastStableOffset"),
    )
    return TRANSACTION_INDEX_ENTRY.pack(
        entry.version, entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
    )


def _snapshot(line: LineReader, _base_offset: int) -> bytes:
    return encode_producer_snapshot(_producer(entry) for entry in line.inner("producers"))


def _producer(line: LineReader) -> ProducerStateEntry:
    batches = line.inner("batches")
    newest = batches[-1] if batches else None
    return ProducerStateEntry(
        line.number("producerId"),
        line.number("producerEpoch", bits=16),
        newest.number("lastSequence", bits=32) if newest else -1,
        newest.number("lastOffset") if newest else NO_OFFSET,
        newest.number("offsetDelta", bits=32) if newest else 0,
        line.number("lastTimestamp"),
        line.number("coordinatorEpoch", bits=32),
        line.number_or("currentTxnFirstOffset", NO_OFFSET),
    )


def _text(line: LineReader, _base_offset: int) -> bytes:
    return line.text("text").encode()


SIDE_FILES: Final[dict[str, Callable[[LineReader, int], bytes]]] = {
    "offsetIndex": _offset_index,
    "timeIndex": _time_index,
    "transactionIndex": _transaction_index,
    "producerSnapshot": _snapshot,
    "text": _text,
}
