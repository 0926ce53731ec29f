"""The reference engine: all decoders and encoders by the declarations in `seglog_format.schema`, beside `spec/`.

They are slow. Tests compare the fast ones with them: model objects, bytes and errors must be the same.
"""

from __future__ import annotations

import io
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, Final

from construct import Array, Struct
from crcmod import mkCrcFun

from seglog_format.codec.checksum import CRC32_POLYNOMIAL, CRC32C_POLYNOMIAL
from seglog_format.codec.container_headers import ContainerHeaders, GzipTrailer, Lz4Header, ZstdHeader
from seglog_format.codec.framing import (
    MAX_TRAILING_SIZE,
    MIN_ENTRY_SIZE,
    ControlReader,
    DeclaredBytes,
    DeclaredFile,
    DeclaredFrame,
    Decoders,
    check_header_size,
    check_magic,
    short_tail,
    tail_of_size,
)
from seglog_format.codec.parse import explain, parse
from seglog_format.codec.plain import (
    Encoders,
    MessageReader,
    StoredMessage,
    body_size,
    check_message,
    record_offset,
    record_sequence,
    record_timestamp,
    refuse_cut_short,
    require_end,
    require_more,
    require_size,
)
from seglog_format.codec.side_files import (
    PRODUCER_SNAPSHOT_VERSION,
    DecodedSnapshot,
    check_count,
    check_size,
    check_transaction_version,
    check_version,
    require_crc,
)
from seglog_format.errors import Location
from seglog_format.model import (
    ENTRY_PREFIX_SIZE,
    AbortedTxn,
    BatchHeader,
    MessageHeader,
    ProducerStateEntry,
    Record,
    RecordBatchHeader,
    RecordHeader,
)
from seglog_format.schema.compression import (
    GzipMemberHeader,
    GzipMemberTrailer,
    Lz4BlockHeader,
    Lz4FrameHeader,
    XerialBlock,
    XerialHeader,
    ZstdBlockHeader,
    ZstdFrameHeader,
    ZstdSkippableHeader,
)
from seglog_format.schema.control_record import ControlRecordKey, EndTransactionMarker
from seglog_format.schema.fields import CONSTRUCT_ERRORS, position_of
from seglog_format.schema.fixed_fields import (
    OFFSET_INDEX_ENTRY,
    TIME_INDEX_ENTRY,
    TRANSACTION_INDEX_ENTRY,
    XERIAL_MAGIC,
)
from seglog_format.schema.message_set import MESSAGES, MessageV0, MessageV0Header, MessageV1Header
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.producer_snapshot import ProducerSnapshot, ProducerSnapshotHeader
from seglog_format.schema.producer_snapshot import ProducerStateEntry as ProducerStateEntrySchema
from seglog_format.schema.record import Record as RecordSchema
from seglog_format.schema.record_batch import EntryPrefix
from seglog_format.schema.record_batch import RecordBatchHeader as RecordBatchHeaderSchema
from seglog_format.schema.time_index import TimeIndexEntry
from seglog_format.schema.tracing import trace
from seglog_format.schema.transaction_index import TransactionIndexEntry
from seglog_format.storage.byte_source import Buffer, Readable, SourceFile, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from pathlib import Path

    from seglog_format.model import Frame, Tail
    from seglog_format.packing import Packer
    from seglog_format.storage.log_storage import DirectoryEntries, FileStatus, LogStorage, SizeCheck


# -- the two checksums of the format, computed from their polynomials alone (SEG-MSG-004, SEG-BAT-003, SEG-PSN-002) ---


HIGHEST_TERM: Final = 1 << 32
"""The term x^32, which the usual way to write a polynomial of 32 bits leaves out."""
ALL_BITS: Final = 0xFFFFFFFF


def _checksum(polynomial: int) -> Callable[[bytes, int], int]:
    made: Callable[[bytes, int], int] = mkCrcFun(HIGHEST_TERM | polynomial, initCrc=0, rev=True, xorOut=ALL_BITS)
    return made


_CRC32: Final = _checksum(CRC32_POLYNOMIAL)
_CRC32C: Final = _checksum(CRC32C_POLYNOMIAL)


def crc32(data: Buffer, start: int = 0) -> int:
    """Return the CRC-32 of some bytes, as an unsigned number.

    Args:
        data: bytes.
        start: checksum of the preceding bytes, if the data comes in pieces.
    """
    return _CRC32(bytes(data), start)


def crc32c(data: Buffer, start: int = 0) -> int:
    """Return the CRC-32C of some bytes, as an unsigned number.

    Args:
        data: bytes.
        start: checksum of the preceding bytes, if the data comes in pieces.
    """
    return _CRC32C(bytes(data), start)


def computed_crc(frame: Frame) -> int:
    """Compute the checksum of an entry: CRC-32C in magic 2, CRC-32 below (SEG-BAT-003, SEG-MSG-004)."""
    if isinstance(frame.header, RecordBatchHeader):
        start, extend = position_of(RecordBatchHeaderSchema, "attributes"), crc32c
    else:
        start, extend = position_of(MessageV0Header, "magic"), crc32
    checksum = 0
    for piece in frame.pieces(start):
        checksum = extend(piece, checksum)
    return checksum


# -- parsers of the entries of a log by their declarations (chapters 20, 30 and 33) -----------------------------------


HEADERS: Final[dict[int, tuple[Struct, type[BatchHeader]]]] = {
    0: (MessageV0Header, MessageHeader),
    1: (MessageV1Header, MessageHeader),
    2: (RecordBatchHeaderSchema, RecordBatchHeader),
}
"""Declaration and model class of the fixed fields of an entry, by magic."""


def frame_at(source: DeclaredBytes, position: int, end: int, path: str) -> Frame | Tail:
    """Return the entry or the tail at a position, as `seglog_format.codec.framing.frame_at`."""
    left = end - position
    if left <= MAX_TRAILING_SIZE:
        return short_tail(source, position, end)
    prefix = EntryPrefix.parse(source.view(position, position + EntryPrefix.sizeof()))
    if not MIN_ENTRY_SIZE <= prefix.size <= left - ENTRY_PREFIX_SIZE:
        return tail_of_size(prefix.size, source, position, end, path)
    at = Location(path, position)
    check_magic(prefix.magic, at)
    return whole_frame(source, position, prefix.magic, at)


def whole_frame(source: DeclaredBytes, position: int, magic: int, at: Location) -> Frame:
    """Return the entry at a position; its size field is already known to be valid.

    Raises:
        CorruptRecordError: it is too small for its fixed fields (SEG-BAT-002).
        UnreadableError: the disk refuses its fixed fields (SEG-PDR-022).
    """
    declaration, model = HEADERS[magic]
    prefix = EntryPrefix.parse(source.view(position, position + EntryPrefix.sizeof()))
    check_header_size(ENTRY_PREFIX_SIZE + prefix.size, declaration.sizeof(), at)
    header = declaration.parse(source.view(position, position + declaration.sizeof()))
    return DeclaredFrame(position, model_of(header, model), source)


def model_of(container: Any, model: type[Any]) -> Any:  # noqa: ANN401 - a construct container and what it becomes
    """Return a value of the model with the parsed fields of the same names, in whatever order they are stored."""
    return model(**{field.name: container[field.name] for field in fields(model) if field.name in container})


# -- parsers of the headers of compressed data by their declarations (chapter 34) -------------------------------------


XERIAL_MAGIC_POSITION: Final = position_of(XerialHeader, "magic")


def gzip_flags(data: memoryview, at: Location) -> int:
    """Return the flags of a gzip member."""
    return int(parse(GzipMemberHeader, data, at, requirement="SEG-COD-002").flags)


def gzip_trailer(data: memoryview, at: Location) -> GzipTrailer:
    """Return the end of a gzip member."""
    found = parse(GzipMemberTrailer, data, at, requirement="SEG-COD-002")
    return GzipTrailer(found.crc, found.size)


def is_xerial(data: memoryview) -> bool:
    """Return whether the bytes start with a header of snappy blocks: with its magic number, even if nothing follows."""
    return data[XERIAL_MAGIC_POSITION : XERIAL_MAGIC_POSITION + len(XERIAL_MAGIC)] == XERIAL_MAGIC


def xerial_block(data: memoryview) -> int:
    """Return the size field of a snappy block."""
    return int(XerialBlock.parse(data).size)


def lz4_header(data: memoryview, at: Location) -> Lz4Header:
    """Return the header of an lz4 frame."""
    found = parse(Lz4FrameHeader, data, at, requirement="SEG-COD-006")
    return Lz4Header(found.flags, found.block_descriptor, found.header_checksum)


def lz4_block(data: memoryview) -> int:
    """Return the size field of an lz4 block."""
    return int(Lz4BlockHeader.parse(data).size)


def zstd_header(data: memoryview, at: Location) -> ZstdHeader:
    """Return the header of a zstd frame."""
    found = parse(ZstdFrameHeader, data, at, requirement="SEG-COD-014")
    return ZstdHeader(found.descriptor, found.window, found.dictionary_id, found.content_size, found.size_in_bytes)


def zstd_block(data: bytes) -> int:
    """Return the fields of a zstd block header."""
    return int(ZstdBlockHeader.parse(data).fields)


def zstd_skippable(data: memoryview, at: Location) -> int:
    """Return the size of a zstd frame without content."""
    return int(parse(ZstdSkippableHeader, data, at, requirement="SEG-COD-023").size)


CONTAINERS: Final = ContainerHeaders(
    gzip=gzip_flags,
    gzip_trailer=gzip_trailer,
    is_xerial=is_xerial,
    xerial_block=xerial_block,
    lz4=lz4_header,
    lz4_block=lz4_block,
    zstd=zstd_header,
    zstd_block=zstd_block,
    zstd_skippable=zstd_skippable,
)


# -- parsers of keys of control records and of end markers by their declarations (chapter 32) -------------------------


def read_key(key: bytes, at: Location) -> tuple[int, int]:
    """Return version and type id of a control record.

    Raises:
        CorruptRecordError: it is cut short, or the version is negative (SEG-CTL-001).
    """
    found = parse(ControlRecordKey, key, at, requirement="SEG-CTL-001")
    return found.version, found.type


def read_marker(value: bytes, at: Location) -> tuple[int, int]:
    """Return version and coordinator epoch of an end marker.

    Raises:
        CorruptRecordError: it is cut short, or the version is negative (SEG-CTL-004).
    """
    found = parse(EndTransactionMarker, value, at, requirement="SEG-CTL-004")
    return found.version, found.coordinatorEpoch


CONTROLS: Final = ControlReader(read_key, read_marker)


# -- parsers of messages of magic 0 and 1 by their declarations; `codec.message_set` reads wrappers -------------------


def read_message(data: memoryview, at: Location) -> StoredMessage:
    """Return the stored fields of one message.

    Args:
        data: the message, from its first byte to its last.
        at: location of the message.

    Raises:
        CorruptRecordError: SEG-MSG-003, SEG-MSG-005 or SEG-MSG-026.
    """
    magic = EntryPrefix.parse(data).magic
    check_message(data, magic, at)
    declaration, stream = MESSAGES[magic], io.BytesIO(data)
    try:
        message = declaration.parse_stream(stream)
    except CONSTRUCT_ERRORS:
        failed = trace(declaration, data).failed
        assert failed is not None
        refuse_cut_short(data, failed.start, failed.name, at)
    checked = data[position_of(declaration, "magic") :]
    return StoredMessage(
        header=model_of(message, MessageHeader),
        key=message.key,
        value=message.value,
        trailing_size=len(data) - stream.tell(),
        is_valid=crc32(checked) == message.crc,
    )


OFFSET_AND_SIZE: Final = Struct(*MessageV0.subcons[:2])
"""The first two fields of every message."""


def read_size(data: memoryview) -> int:
    """Return the size field of the message that starts at the first byte."""
    return int(OFFSET_AND_SIZE.parse(data).message_size)


MESSAGE_PARSER: Final = MessageReader(read_message, read_size)


# -- parsers of the slots of index files by their declarations (chapters 40 to 42) ------------------------------------


class DeclaredSlots:
    """A packer that parses and builds slots with their declaration.

    Args:
        declaration: of a slot.
        names: of its fields, in the order of the values.
        fast: the packer that it replaces.

    Attributes:
        format: of the replaced packer.
        size: of a slot, in bytes.
    """

    def __init__(self, declaration: Struct, names: tuple[str, ...], fast: Packer) -> None:
        self._declaration = declaration
        self._names = names
        self.format = fast.format
        self.size = int(declaration.sizeof())

    def pack(self, *values: Any) -> bytes:  # noqa: ANN401 - as struct
        """Return the bytes of these values."""
        return bytes(self._declaration.build(dict(zip(self._names, values, strict=True))))

    def unpack_from(self, buffer: Buffer, offset: int = 0) -> tuple[Any, ...]:
        """Read the values that start at a byte position."""
        return self._values(self._declaration.parse(memoryview(buffer)[offset : offset + self.size]))

    def iter_unpack(self, buffer: Buffer) -> Iterator[tuple[Any, ...]]:
        """Yield tuples of values, up to the end."""
        return map(self._values, _slots(self._declaration, buffer))

    def _values(self, slot: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a construct container
        return tuple(slot[name] for name in self._names)


DECLARED: Final[Mapping[Packer, Packer]] = {
    OFFSET_INDEX_ENTRY: DeclaredSlots(OffsetIndexEntry, ("relative_offset", "position"), OFFSET_INDEX_ENTRY),
    TIME_INDEX_ENTRY: DeclaredSlots(TimeIndexEntry, ("timestamp_ms", "relative_offset"), TIME_INDEX_ENTRY),
    TRANSACTION_INDEX_ENTRY: DeclaredSlots(
        TransactionIndexEntry, tuple(field.name for field in fields(AbortedTxn)), TRANSACTION_INDEX_ENTRY
    ),
}


def slots(fast: Packer) -> Packer:
    """Return the packer by declaration that replaces the one of an index."""
    return DECLARED[fast]


def decode_transaction_index(data: Buffer, at: Location) -> tuple[AbortedTxn, ...]:
    """Return the entries of a transaction index; bytes after the last whole one are ignored (SEG-TXN-001).

    Args:
        data: the whole file.
        at: location of its first byte.

    Raises:
        UnsupportedVersionError: an entry's version is not 0 (SEG-TXN-002).
    """
    entries = tuple(model_of(slot, AbortedTxn) for slot in _slots(TransactionIndexEntry, data))
    check_transaction_version(entries, at)
    return entries


def _slots(declaration: Struct, data: Buffer) -> list[Any]:
    """Return the whole slots of a file, as containers."""
    count = memoryview(data).nbytes // declaration.sizeof()
    return list(Array(count, declaration).parse_stream(io.BytesIO(data)))


# -- decoder of producer snapshots by their declarations (chapter 50) -------------------------------------------------


def decode_producer_snapshot(data: Buffer, at: Location) -> DecodedSnapshot:
    """Decode one snapshot file, as `seglog_format.codec.side_files.decode_producer_snapshot` does.

    Args:
        data: the whole file.
        at: location of its first byte.

    Raises:
        TruncatedError: fewer than 10 bytes (SEG-PSN-003).
        UnsupportedVersionError: a version other than 1 (SEG-PSN-001).
        CorruptIndexError: the checksum is wrong, or the size does not match the count (SEG-PSN-002, SEG-PSN-003).
    """
    view, size = memoryview(data), ProducerSnapshotHeader.sizeof()
    check_size(view, at)
    header = ProducerSnapshotHeader.parse(view)
    check_version(header.version, at)
    checked = position_of(ProducerSnapshotHeader, "count")
    require_crc(header.crc, crc32c(view[checked:]), at)
    entries = view[size:]
    check_count(header.count, ProducerStateEntrySchema.sizeof(), entries, at)
    stored = Array(header.count, ProducerStateEntrySchema).parse(entries)
    return DecodedSnapshot(header.version, header.crc, tuple(model_of(entry, ProducerStateEntry) for entry in stored))


# -- decoder of the records of a magic 2 batch by their declarations (chapter 31) -------------------------------------


def decode_first_record(section: bytes, header: RecordBatchHeader, at: Location) -> Record:
    """Return the first record of a batch with at least one; ignore the bytes after it.

    Args:
        section: everything after the batch header, decompressed.
        header: of the batch.
        at: location of the section; positions in errors are relative to it.

    Raises:
        CorruptRecordError: the record is damaged.
    """
    return decode_record(io.BytesIO(section), section, header, at.at("records[0]", 0))


def read_records(section: bytes, header: RecordBatchHeader, at: Location) -> Iterator[Record]:
    """Yield the records of a batch.

    Args:
        section: everything after the batch header, decompressed.
        header: of the batch.
        at: location of the section; positions in errors are relative to it.

    Raises:
        CorruptRecordError: while iterating: a record is damaged, or the section does not hold the counted records
            (SEG-BAT-008).
    """
    stream = io.BytesIO(section)
    for index in range(header.records_count):
        start = stream.tell()
        require_more(section, start, index, header, at)
        yield decode_record(stream, section, header, at.at(f"records[{index}]", start))
    require_end(section, stream.tell(), header, at)


def decode_record(stream: io.BytesIO, section: bytes, header: RecordBatchHeader, at: Location) -> Record:
    """Return the record at the current position of a stream over the section, for `read_records`."""
    start = stream.tell()
    try:
        fields = RecordSchema.parse_stream(stream)
    except CONSTRUCT_ERRORS as problem:
        raise explain(RecordSchema, section[start:], at, problem, requirement="SEG-REC-006") from None
    require_size(fields.length, fields.end - fields.start, at)
    return _to_record(fields, header, at, size=stream.tell() - start)


def _to_record(fields: Any, header: RecordBatchHeader, at: Location, *, size: int) -> Record:  # noqa: ANN401 - a construct container
    return Record(
        offset=record_offset(header, fields.offset_delta, at),
        timestamp_ms=record_timestamp(header, fields.timestamp_delta),
        key=fields.key,
        value=fields.value,
        headers=tuple(RecordHeader(pair.key, pair.value) for pair in fields.headers),
        sequence=record_sequence(header, fields.offset_delta),
        attributes=fields.attributes,
        timestamp_delta=fields.timestamp_delta,
        offset_delta=fields.offset_delta,
        size_in_bytes=size,
        timestamp_type=header.timestamp_type,
    )


# -- all of them, and bytes and files that carry them -----------------------------------------------------------------


BY_DECLARATION: Final = Decoders(
    frame_at=frame_at,
    whole_frame=whole_frame,
    computed_crc=computed_crc,
    records=read_records,
    first_record=decode_first_record,
    messages=MESSAGE_PARSER,
    containers=CONTAINERS,
    controls=CONTROLS,
    slots=slots,
    transaction_index=decode_transaction_index,
    producer_snapshot=decode_producer_snapshot,
)


def declared(data: Readable, path: str = "") -> DeclaredBytes:
    """Return bytes that the declarations parse.

    Args:
        data: bytes in memory, or a source of them.
        path: file name for errors about bytes in memory.
    """
    return DeclaredBytes(source_of(data, path), BY_DECLARATION)


class DeclaredStorage:
    """A storage with files that the declarations parse.

    Args:
        storage: opens the files.
    """

    def __init__(self, storage: LogStorage) -> None:
        self._storage = storage

    @property
    def is_local(self) -> bool:
        """Return whether paths are those of the local file system."""
        return self._storage.is_local

    def name_of(self, path: Path) -> str:
        """Return the name of a file or directory in errors and rows."""
        return self._storage.name_of(path)

    def entries(self, directory: Path) -> DirectoryEntries:
        """List a directory."""
        return self._storage.entries(directory)

    def is_link(self, path: Path) -> bool:
        """Return whether a path is a symbolic link."""
        return self._storage.is_link(path)

    def tiered_end(self, path: Path) -> int | None:
        """Return the offset after a remote segment; as `LogStorage.tiered_end`."""
        return self._storage.tiered_end(path)

    def status(self, path: Path) -> FileStatus:
        """Return size and time of a file."""
        return self._storage.status(path)

    def open(self, path: Path, *, mapped: bool = False, check: SizeCheck | None = None) -> SourceFile:
        """Open a regular file; as `LogStorage.open`."""
        return DeclaredFile(self._storage.open(path, mapped=mapped, check=check), BY_DECLARATION)


# -- encoders of entries and producer snapshots by their declarations and crcmod (chapters 30 to 33 and 50) -----------


def encode_record(record: Record) -> bytes:
    """Return the bytes of a record from its deltas, with the shortest varints (SEG-REC-005)."""
    headers = [{"key": header.key, "value": header.value} for header in record.headers]
    values = {
        "length": body_size(record),
        "attributes": record.attributes,
        "timestamp_delta": record.timestamp_delta,
        "offset_delta": record.offset_delta,
        "key": record.key,
        "value": record.value,
        "headers_count": len(headers),
        "headers": headers,
    }
    return bytes(RecordSchema.build(values))


def encode_record_batch(header: RecordBatchHeader, stored: bytes) -> bytes:
    """Return the bytes of a batch; ``stored`` is all that follows the header (SEG-BAT-002, SEG-BAT-003)."""
    size = RecordBatchHeaderSchema.sizeof() + len(stored) - ENTRY_PREFIX_SIZE
    values = {**asdict(header), "batch_length": size}
    return _sealed(RecordBatchHeaderSchema, values, stored, covered_from="attributes", checksum=crc32c)


def encode_message(header: MessageHeader, key: bytes | None, value: bytes | None) -> bytes:
    """Return the bytes of a message of magic 0 or 1 (SEG-MSG-003, SEG-MSG-004, SEG-MSG-005)."""
    declaration = MESSAGES[header.magic]
    values = {**asdict(header), "key": key, "value": value, "message_size": 0, "crc": 0}
    values["message_size"] = len(declaration.build(values)) - ENTRY_PREFIX_SIZE
    return _sealed(declaration, values, b"", covered_from="magic", checksum=crc32)


def encode_producer_snapshot(producers: Iterable[ProducerStateEntry]) -> bytes:
    """Return the bytes of a snapshot of these producers, in this order (SEG-PSN-002, SEG-PSN-003)."""
    entries = [asdict(producer) for producer in producers]
    values = {"version": PRODUCER_SNAPSHOT_VERSION, "count": len(entries), "producers": entries}
    return _sealed(ProducerSnapshot, values, b"", covered_from="count", checksum=crc32c)


def _sealed(
    declaration: Struct, values: Mapping[str, Any], rest: bytes, *, covered_from: str, checksum: Callable[[bytes], int]
) -> bytes:
    """Build a structure whose ``crc`` covers everything from a field on, and the bytes that follow the structure."""
    unsealed = declaration.build({**values, "crc": 0}) + rest
    crc = checksum(unsealed[position_of(declaration, covered_from) :])
    return bytes(declaration.build({**values, "crc": crc})) + rest


ENCODERS: Final = Encoders(encode_record, encode_record_batch, encode_message)
