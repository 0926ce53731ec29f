"""Decoders that the bytes of a log carry, and what the two encoders of entries have in common.

Readers share their code, and the bytes select the decoders that parse them. The plain engine parses bytes that carry no
decoders. The encoders are the packers of `codec.encode`, and those by the declarations.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.arguments import Closing
from seglog_format.model import StoredFrame
from seglog_format.storage.byte_source import FirstBytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.codec.container_headers import ContainerHeaders
    from seglog_format.codec.plain import MessageReader
    from seglog_format.codec.side_files import DecodedSnapshot
    from seglog_format.errors import Location
    from seglog_format.model import AbortedTxn, BatchHeader, Frame, MessageHeader, RecordBatchHeader, Tail
    from seglog_format.packing import Packer
    from seglog_format.record_model import Record
    from seglog_format.storage.byte_source import ByteSource, SourceFile, Window


class ControlReader(NamedTuple):
    """Parsers of the two numbers at the start of the parts of a control record; they raise `CorruptRecordError`.

    Attributes:
        key: returns version and type id.
        marker: returns version and coordinator epoch of the value of an end marker.
    """

    key: Callable[[bytes, Location], tuple[int, int]]
    marker: Callable[[bytes, Location], tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Decoders:
    """Parsers of the fields of logs and of the files beside them. Values and errors are those of the plain engine.

    Attributes:
        frame_at: see `seglog_format.codec.framing.frame_at`.
        whole_frame: see `seglog_format.codec.framing.whole_frame`.
        computed_crc: see `seglog_format.codec.decode.computed_crc`.
        records: yields the records of a decompressed section.
        first_record: decodes the first record of a section, whatever follows it.
        messages: reads the stored fields of messages.
        containers: parses the headers of compressed data.
        controls: reads keys of control records, and end markers.
        slots: returns a packer that reads the same slots as the given one.
        transaction_index: decodes the entries of a transaction index.
        producer_snapshot: decodes a producer snapshot.
    """

    frame_at: Callable[[DeclaredBytes, int, int, str], Frame | Tail]
    whole_frame: Callable[[DeclaredBytes, int, int, Location], Frame]
    computed_crc: Callable[[Frame], int]
    records: Callable[[bytes, RecordBatchHeader, Location], Iterator[Record]]
    first_record: Callable[[bytes, RecordBatchHeader, Location], Record]
    messages: MessageReader
    containers: ContainerHeaders
    controls: ControlReader
    slots: Callable[[Packer], Packer]
    transaction_index: Callable[[memoryview, Location], tuple[AbortedTxn, ...]]
    producer_snapshot: Callable[[memoryview, Location], DecodedSnapshot]


class DeclaredBytes:
    """Bytes with the decoders that parse their fields.

    Attributes:
        decoders: parse the fields.
        path: file name for errors; empty for bytes without a file.
        size: number of bytes.
    """

    __slots__ = ("_source", "decoders", "path", "size", "view", "window")

    def __init__(self, source: ByteSource, decoders: Decoders) -> None:
        self._source = source
        self.decoders = decoders
        self.path = source.path
        self.size = source.size
        self.view: Callable[[int, int], memoryview] = source.view
        self.window: Callable[..., Window] = source.window

    def first(self, size: int) -> DeclaredBytes:
        """Return the first bytes, as if the source ended after them."""
        return DeclaredBytes(FirstBytes(self._source, size), self.decoders)


class DeclaredFile(DeclaredBytes, Closing):
    """An open file with the decoders that parse its fields."""

    __slots__ = ("_file",)

    def __init__(self, file: SourceFile, decoders: Decoders) -> None:
        super().__init__(file, decoders)
        self._file = file

    def expect(self, start: int, end: int | None) -> None:
        """Announce the range that will be read."""
        self._file.expect(start, end)

    def forget(self) -> None:
        """Release the memory that holds bytes read so far."""
        self._file.forget()

    def release_before(self, position: int) -> None:
        """Release memory from time to time, while bytes are read from start to end."""
        self._file.release_before(position)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class DeclaredFrame(StoredFrame):
    """An entry in bytes with decoders; these also decode the entry.

    Attributes:
        decoders: of the bytes.
    """

    __slots__ = ("decoders",)
    decoders: Decoders

    def __init__(self, position: int, header: BatchHeader, source: DeclaredBytes) -> None:
        """Store where the entry is; arguments as for `StoredFrame`."""
        super().__init__(position, header, source)
        object.__setattr__(self, "decoders", source.decoders)


def decoders_of(carrier: ByteSource | Frame) -> Decoders | None:
    """Return the decoders of some bytes, or of an entry in them; None if the plain engine parses them."""
    return carrier.decoders if isinstance(carrier, DeclaredBytes | DeclaredFrame) else None


def plain_headers() -> ContainerHeaders:
    """Return the plain engine's parsers of the headers of compressed data."""
    from seglog_format.codec.container_headers import PLAIN  # noqa: PLC0415 - loaded when compressed data is read

    return PLAIN


def containers_of(frame: Frame) -> ContainerHeaders:
    """Return the parsers of the headers of the compressed data in an entry."""
    decoders = decoders_of(frame)
    return plain_headers() if decoders is None else decoders.containers


def first_bytes(source: ByteSource, size: int) -> ByteSource:
    """Return a source that ends after the first bytes of another."""
    return source.first(size) if isinstance(source, DeclaredBytes) else FirstBytes(source, size)


class Encoders(NamedTuple):
    """Writers of the structures of an entry.

    Attributes:
        record: returns the bytes of a record of magic 2.
        batch: returns the bytes of a batch: its header, with size and checksum, and the given bytes after it.
        message: returns the bytes of a message of magic 0 or 1, with size and checksum.
    """

    record: Callable[[Record], bytes]
    batch: Callable[[RecordBatchHeader, bytes], bytes]
    message: Callable[[MessageHeader, bytes | None, bytes | None], bytes]


def varint_size(value: int) -> int:
    """Return the size of the shortest encoding of a signed number (SEG-REC-005)."""
    return ((value if value >= 0 else ~value).bit_length() + 7) // 7  # a bit for the sign, and 7 bits in a byte


def body_size(record: Record) -> int:
    """Return the size of a record after its length field, with the shortest varints."""
    size = 1 + varint_size(record.timestamp_delta) + varint_size(record.offset_delta)
    size += _nullable_size(record.key) + _nullable_size(record.value) + varint_size(len(record.headers))
    return size + sum(_nullable_size(header.key) + _nullable_size(header.value) for header in record.headers)


def _nullable_size(data: bytes | None) -> int:
    return varint_size(-1) if data is None else varint_size(len(data)) + len(data)
