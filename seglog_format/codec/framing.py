"""The walk from entry to entry of a log, on which every reader is built (chapter 20).

The walk checks only sizes and magic. Checksums, counts and offsets are checked by its callers. Readers share this code:
bytes may carry the decoders that parse them, and the plain engine parses bytes that carry none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.errors import CorruptRecordError, Location, RefusedError, UnsupportedVersionError
from seglog_format.model import (
    DEFAULT_OUTPUT_LIMIT,
    ENTRY_PREFIX_SIZE,
    AbortedTxn,
    BatchHeader,
    Frame,
    MessageHeader,
    Record,
    RecordBatchHeader,
    StoredFrame,
    Tail,
    TailKind,
)
from seglog_format.schema.fixed_fields import (
    ENTRY_PREFIX,
    MAGIC_POSITION,
    MESSAGE_V0_HEADER,
    MESSAGE_V1_HEADER,
    RECORD_BATCH_HEADER,
)
from seglog_format.storage.byte_source import ByteSource, Closing, FirstBytes, Readable, SourceFile, Window, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.codec.container_headers import ContainerHeaders
    from seglog_format.codec.plain import MessageReader
    from seglog_format.codec.side_files import DecodedSnapshot
    from seglog_format.packing import Packer

MIN_ENTRY_SIZE: Final = 14
"""Smallest size field: the fixed fields of a magic 0 message (SEG-LOG-003)."""

MAX_TRAILING_SIZE: Final = 17
"""Maximum size of a tail that is ignored: an entry has at least one byte more than this (SEG-LOG-002)."""

SHOWN_SIZE: Final = ENTRY_PREFIX.size
"""Number of bytes at the start of an entry that contain its size and magic."""

ZERO_CHUNK: Final = bytes(1 << 20)

HEADERS: Final[dict[int, tuple[Packer, Callable[..., BatchHeader]]]] = {
    0: (MESSAGE_V0_HEADER, MessageHeader),
    1: (MESSAGE_V1_HEADER, MessageHeader),
    2: (RECORD_BATCH_HEADER, RecordBatchHeader),
}

assert max(MESSAGE_V0_HEADER.size, MESSAGE_V1_HEADER.size) <= ENTRY_PREFIX_SIZE + MIN_ENTRY_SIZE


class FrameWalk:
    """Iterator over the entries of a log from one position to another; iterate it once.

    Attributes:
        source: the bytes of the log.
        position: start of the next entry; after the walk, the end of the last whole entry.
        end: where the walk stops.
        tail: the bytes after the last whole entry; known once the walk has ended.
    """

    def __init__(self, source: ByteSource, start: int, end: int, path: str) -> None:
        self.source = source
        self.position = start
        self.end = end
        self.path = path
        self.tail = Tail(TailKind.NONE, start, 0)

    def __iter__(self) -> Iterator[Frame]:
        while True:
            frame = frame_at(self.source, self.position, self.end, self.path)
            if isinstance(frame, Tail):
                self.tail = frame
                return
            yield frame
            self.position = frame.end


def walk(data: Readable, start: int = 0, end: int | None = None, *, path: str = "") -> FrameWalk:
    """Walk the entries of a log.

    Args:
        data: bytes of the log file.
        start: position of an entry.
        end: where to stop; by default the end of the data.
        path: file name for errors.

    Raises:
        FormatError: while iterating: at an entry of impossible size or magic. Entries after it cannot be found.

    Examples:
        >>> from pathlib import Path
        >>> from seglog_format import walk
        >>> data = Path("demo/kafka-4.3.0/segs-0/00000000000000000426.log").read_bytes()
        >>> for frame in walk(data):
        ...     print(frame.position, frame.header.base_offset, frame.header.records_count)
        0 426 6
        1308 432 6
        2606 438 6
        3967 444 6
    """
    source = source_of(data)
    return FrameWalk(source, start, source.size if end is None else end, path)


def frame_at(data: Readable, position: int, end: int, path: str = "") -> Frame | Tail:
    """Return the entry at a position, or the tail there at the end of a log.

    Raises:
        CorruptRecordError: the size is below 14 (SEG-LOG-003), or that of a batch below 49 (SEG-BAT-002).
        UnsupportedVersionError: the magic is above 2 (SEG-BAT-004).
        UnreadableError: the disk refuses its fixed fields (SEG-PDR-022).
    """
    source = source_of(data)
    if isinstance(source, DeclaredBytes):
        return source.decoders.frame_at(source, position, end, path)
    left = end - position
    if left <= MAX_TRAILING_SIZE:
        return short_tail(source, position, end)
    shown = source.window(position, SHOWN_SIZE)
    _, size, _, magic = ENTRY_PREFIX.unpack_from(shown.data, position - shown.start)
    if not MIN_ENTRY_SIZE <= size <= left - ENTRY_PREFIX_SIZE:
        return tail_of_size(size, source, position, end, path)
    at = Location(path, position)
    if magic not in HEADERS:
        check_magic(magic, at)
    return whole_frame(source, position, magic, at)


def tail_of_size(size: int, source: ByteSource, position: int, end: int, path: str) -> Tail:
    """Return the tail at the position of a size field with an impossible value.

    Args:
        size: value of the field; below 14, or more than the number of bytes after it.
        source: the bytes of the log.
        position: of the entry.
        end: where the log ends.
        path: file name for errors.

    Raises:
        CorruptRecordError: the size is below 14, and the bytes there are not all zero (SEG-LOG-003).
    """
    if size == 0 and is_zero(source, position, end):
        return Tail(TailKind.ZEROS, position, end - position)
    if size < MIN_ENTRY_SIZE:
        at = Location(path, position).at("size", 8, 4)
        raise CorruptRecordError(at, "SEG-LOG-003", expected="14 or more", found=size)
    return Tail(TailKind.PARTIAL, position, end - position)


def whole_frame(source: ByteSource, position: int, magic: int, at: Location) -> Frame:
    """Return the entry at a position; its size field is already known to be valid.

    Args:
        source: the bytes of the log.
        position: of the entry.
        magic: of the entry.
        at: location of the entry, for errors.

    Raises:
        CorruptRecordError: it is too small for its fixed fields (SEG-BAT-002).
        UnreadableError: the disk refuses its fixed fields (SEG-PDR-022).
    """
    if isinstance(source, DeclaredBytes):
        return source.decoders.whole_frame(source, position, magic, at)
    start, data = source.window(position, HEADERS[magic][0].size)
    first = position - start
    size: int = ENTRY_PREFIX_SIZE + ENTRY_PREFIX.unpack_from(data, first)[1]
    entry = data[first : first + size]
    header = read_header(entry, size, magic, at)
    return Frame(position, header, entry) if len(entry) == size else StoredFrame(position, header, source)


def short_tail(source: ByteSource, position: int, end: int) -> Tail:
    """Return the tail of a log that is too short for an entry (SEG-LOG-002)."""
    rest = source.view(position, end)
    kind = TailKind.TRAILING if any(rest) else TailKind.ZEROS
    return Tail(kind if rest else TailKind.NONE, position, end - position)


def is_zero(source: ByteSource, position: int, end: int) -> bool:
    """Return whether a range of bytes is all zeros; fast even for gigabytes of preallocated space."""
    while position < end:
        start, data = source.window(position, 1)
        chunk = bytes(data[position - start : min(position - start + len(ZERO_CHUNK), end - start)])
        if chunk != ZERO_CHUNK[: len(chunk)]:  # as bytes: views are compared item by item
            return False
        position += len(chunk)
    return True


def check_magic(magic: int, at: Location) -> None:
    """Refuse an entry that is neither a message nor a record batch (SEG-BAT-004)."""
    field = at.at("magic", MAGIC_POSITION, 1)
    if magic < 0:
        raise CorruptRecordError(field, "SEG-BAT-004", expected="0, 1 or 2", found=magic)
    if magic not in HEADERS:
        raise UnsupportedVersionError(field, "SEG-BAT-004", expected="0, 1 or 2", found=magic)


def read_header(entry: memoryview, size: int, magic: int, at: Location) -> BatchHeader:
    """Return the header fields of an entry of known magic.

    Args:
        entry: its first bytes: at least the fixed fields, if the entry is large enough for them.
        size: of the whole entry, in bytes.
        magic: of the entry.
        at: location of the entry, for errors.
    """
    layout, header = HEADERS[magic]
    check_header_size(size, layout.size, at)
    return header(*layout.unpack_from(entry))


def check_header_size(size: int, least: int, at: Location) -> None:
    """Refuse an entry that is too small for its fixed fields (SEG-BAT-002)."""
    if size < least:
        expected, found = f"{least - ENTRY_PREFIX_SIZE} or more", size - ENTRY_PREFIX_SIZE
        raise CorruptRecordError(at.at("batch_length", 8, 4), "SEG-BAT-002", expected=expected, found=found)


def refuse_large(frame: Frame, at: Location, limit: int) -> None:
    """Refuse an entry that is too large to be loaded whole into memory.

    Raises:
        RefusedError: it is larger than both the limit and `DEFAULT_OUTPUT_LIMIT` (SEG-COD-016).
    """
    most, size = max(limit, DEFAULT_OUTPUT_LIMIT), frame.header.size_in_bytes
    if size > most:
        at = at.at("size", 8, 4)
        raise RefusedError(at, "SEG-COD-016", expected=f"an entry of at most {most} bytes", found=size)


# -- decoders that the bytes of a log carry ----------------------------------------------------------------------------


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
